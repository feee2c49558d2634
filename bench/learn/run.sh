#!/usr/bin/env bash
# The demo, timed, and whether it learned: see examples/pixels/run.sh. DEMO_DIR is a fresh temporary folder.
source "$(dirname "$0")/../demo_run.sh"
start=$(date +%s.%N)
DEMO_DIR="$work/demo" "$root/examples/pixels/run.sh" >&2
seconds=$(awk -v s="$start" -v e="$(date +%s.%N)" 'BEGIN { printf "%.1f", e - s }')
result="$work/demo/result.json"
field() { python3 -c 'import json,sys; print(json.load(open(sys.argv[1]))[sys.argv[2]])' "$result" "$1"; }
at_least learn top10 "$(field top10)" fraction 0.75
at_most learn top10_shuffled "$(field top10_shuffled)" fraction 0.10
at_most learn demo_after_build "$seconds" s 480
