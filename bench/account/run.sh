#!/usr/bin/env bash
# The time account of the demo's step: how much of it no row explains, and how long the device waited for data.
source "$(dirname "$0")/../demo_run.sh"
"$bin/chiliad" train demo.yaml --nproc 2 --quiet --set run.dir=run --set run.steps=${STEPS:-80} --set checkpoint.every=0 >&2
python3 - <<'PY'
import json
lines = [json.loads(line) for line in open("run/metrics.jsonl")][2:]  # after the first decodes
wall = sum(line["wall"] for line in lines)
def report(metric, seconds, target):
    value = seconds / wall
    print(json.dumps({"bench": "account", "metric": metric, "value": round(value, 5), "unit": "fraction of the step",
                      "target": target, "ok": value <= target}))
report("other", sum(line["seconds"]["other"] for line in lines), 0.02)
report("data_wait", sum(line["seconds"]["data_wait"] for line in lines), 0.02)
PY
