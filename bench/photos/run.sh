#!/usr/bin/env bash
# CPU-seconds that a thousand pictures cost from shards to batches of 256 x 256, beside the decoder alone. PHOTOS=DIR: folders
# photo-wds (JPEG) and, if wanted, png-wds that `chiliad data index` reads, with at least 64 STEPS pictures; photo/ with the same as loose
# files for the peers. With PEER_PYTHON (torch, Pillow, torchvision) PyTorch's DataLoader with both decoders runs between the
# rounds. STEPS batches of 64, ROUNDS. Skipped without PHOTOS.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
here=$root/bench/photos
bin=${CHILIAD_BIN:-$root/build/dev/bin}
steps=${STEPS:-16} rounds=${ROUNDS:-3}
[[ -n ${PHOTOS:-} ]] || { echo "bench photos: skipped, set PHOTOS to a folder with photo-wds/ (head of bench/photos/run.sh)" >&2; exit 0; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$bin/chiliad" data index "$PHOTOS/photo-wds" --out "$work/photo" >&2
failed=0
for ((round = 1; round <= rounds; ++round)); do
  "$bin/bench/bench_photos" photo "$work/photo" "$steps" 2 | sed "s/}\$/,\"round\":$round}/" || failed=1
  [[ -z ${PEER_PYTHON:-} ]] || "$PEER_PYTHON" "$here/peers.py" "$PHOTOS/photo" "$((64 * (steps < 8 ? steps : 8)))" | sed "s/}\$/,\"round\":$round}/"
done
if [[ -d $PHOTOS/png-wds ]]; then
  "$bin/chiliad" data index "$PHOTOS/png-wds" --out "$work/png" >&2
  "$bin/bench/bench_photos" png "$work/png" "$steps" 2 || failed=1
fi
exit $failed
