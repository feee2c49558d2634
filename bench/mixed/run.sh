#!/usr/bin/env bash
# Training steps on 64 pictures of mixed shapes: padded to the largest, in buckets, packed; the same real pixels, CPU
# seconds, interleaved, medians. The target is 2.2 times the throughput of padding.
# MODELS="pixart" TYPES="fp32 bf16" THREADS=1 ROUNDS=3 DEPTH=4 SIDE=256
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
bench="$root/build/dev/bin/bench/bench_diffusion"
[[ -x $bench ]] || "$root/dev" build dev --target bench_diffusion >&2
for model in ${MODELS:-pixart}; do
  for type in ${TYPES:-fp32 bf16}; do
    OMP_NUM_THREADS=${THREADS:-1} "$bench" mixed "$model" "$type" "${THREADS:-1}" "${ROUNDS:-3}" "${DEPTH:-4}" "${SIDE:-256}"
  done
done
