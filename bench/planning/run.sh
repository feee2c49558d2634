#!/usr/bin/env bash
# Planning at 1e9 samples for 1,024 ranks (MILLIONS=1000) from columns on disk, which are made for it in a folder of TMPDIR and
# removed; fewer samples where less than 12 GB of the disk would stay free.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
bin=${CHILIAD_BIN:-$root/build/dev/bin}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$bin/bench/bench_planning" "$work/data" "${MILLIONS:-1000}"
