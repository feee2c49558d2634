#!/usr/bin/env bash
# Pictures without an autoencoder: index real pictures, train with two processes, make pictures from prompts, and say how well it learned.
# Usage: ./dev demo pixels   (DEMO_DIR: where to work, default runs/pixels; DEMO_STEPS: optimizer steps)
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
bin="$root/build/dev/bin"
stamps=${DEMO_STAMPS:-/usr/share/tuxpaint/stamps}
work=${DEMO_DIR:-$root/runs/pixels}
start=$(date +%s)
say() { printf '\n== %s\n' "$*"; }

if [ ! -d "$stamps" ]; then
  echo "error: $stamps is missing: install the package tuxpaint-stamps-default (./dev setup does)" >&2
  exit 2
fi
mkdir -p "$work"
cp "$root/examples/pixels/pixels.yaml" "$work/pixels.yaml"
cp "$root/examples/pixels/prompts.txt" "$work/prompts.txt"
cd "$work"

say "1/5 index the stamps where they lie (nothing is written beside them)"
"$bin/chiliad" data index "$stamps" --out index

say "2/5 what training will see"
"$bin/chiliad" data plan pixels.yaml --ranks 2

say "3/5 train with 2 processes (Ctrl-C saves; the same command goes on where it stopped)"
"$bin/chiliad" train pixels.yaml --nproc 2 --set run.dir=run ${DEMO_STEPS:+--set run.steps=$DEMO_STEPS}

say "4/5 pictures from prompts: captions it has seen, then new ones"
"$bin/chiliad" generate run --prompts prompts.txt --columns 6 --out grid.png

say "5/5 does it make what it was shown?"
"$bin/chiliad" eval run --json --grid eval.png | tee result.json

printf '\nDone in %d s. Pictures: %s  Result: %s  Metrics: %s\n' "$(($(date +%s) - start))" "$work/grid.png" \
  "$work/result.json" "$work/run/metrics.jsonl"
