# Sourced by the benchmarks that run the demo's training: makes an index and a run file in a temporary folder.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
bin="$root/build/dev/bin"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$root/examples/pixels/pixels.yaml" "$work/demo.yaml"
cd "$work"
"$bin/chiliad" data index "${DEMO_STAMPS:-/usr/share/tuxpaint/stamps}" --out index >&2

# json BENCH METRIC VALUE UNIT TARGET OK
json() { printf '{"bench":"%s","metric":"%s","value":%s,"unit":"%s","target":%s,"ok":%s}\n' "$@"; }
# at_most BENCH METRIC VALUE UNIT TARGET
at_most() { json "$1" "$2" "$3" "$4" "$5" "$(awk -v v="$3" -v t="$5" 'BEGIN { print (v <= t) ? "true" : "false" }')"; }
at_least() { json "$1" "$2" "$3" "$4" "$5" "$(awk -v v="$3" -v t="$5" 'BEGIN { print (v >= t) ? "true" : "false" }')"; }
