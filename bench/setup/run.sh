#!/usr/bin/env bash
# Cold set-up and build in a fresh clone: wheels laid anew, no compiler cache. Debian packages that are there stay.
set -euo pipefail
root=$(cd "$(dirname "$0")/../.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
git clone -q "$root" "$work/chiliad"
cd "$work/chiliad"
start=$(date +%s)
CCACHE_DISABLE=1 ./dev build >&2
seconds=$(($(date +%s) - start))
printf '{"bench":"setup","metric":"cold_setup_and_build","value":%s,"unit":"s","target":1200,"ok":%s}\n' "$seconds" \
  "$([ "$seconds" -le 1200 ] && echo true || echo false)"
