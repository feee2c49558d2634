# Chiliad for people without root: only building this image needs a container engine, nothing on the machine itself.
#   docker build -t chiliad .                                  (or podman; --build-arg USER_ID=$(id -u) for your files)
#   docker run --rm -it -v "$PWD:/data" chiliad                a shell with `chiliad` on the PATH
#   docker run --rm -v "$PWD:/data" chiliad chiliad train run.yaml --nproc 2
# More than one worker: add --shm-size=1g where the engine limits shared memory. Signals reach the job with --init.
FROM debian:12

# The packages alone, so that a change of the sources does not install them again.
COPY tools/packages.txt /tmp/packages.txt
RUN apt-get update -q \
 && grep -v '^#' /tmp/packages.txt | DEBIAN_FRONTEND=noninteractive xargs apt-get install -q -y --no-install-recommends \
 && rm -rf /var/lib/apt/lists/* /tmp/packages.txt

ARG USER_NAME=chiliad
ARG USER_ID=1000
ARG GROUP_ID=1000
RUN groupadd --non-unique --gid "$GROUP_ID" "$USER_NAME" \
 && useradd --non-unique --uid "$USER_ID" --gid "$GROUP_ID" --create-home "$USER_NAME" \
 && install -d -o "$USER_ID" -g "$GROUP_ID" /opt/chiliad /data
USER $USER_NAME
WORKDIR /opt/chiliad

# Wheels and models by the lock files, again before the sources.
COPY --chown=$USER_ID:$GROUP_ID dev ./
COPY --chown=$USER_ID:$GROUP_ID tools tools
RUN ./dev setup

COPY --chown=$USER_ID:$GROUP_ID . .
# dev: with tests and fault hooks; release: what is used. JOBS: files compiled at once, 3 GiB of memory each.
ARG PRESET=dev
ARG JOBS=
RUN CHILIAD_JOBS=$JOBS ./dev build "$PRESET"
ENV PATH=/opt/chiliad/build/$PRESET/bin:$PATH

WORKDIR /data
CMD ["bash"]
