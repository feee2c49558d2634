#!/usr/bin/env bash
# The demo's step: time, model FLOP/s and where the time goes, beside the FMA peak of the cores as measured by the machine's
# own matrix product; shared memory and TCP between the ranks, interleaved in one run.
source "$(dirname "$0")/../demo_run.sh"
steps=${STEPS:-60}
for round in 1 2 3; do
  for transport in shm gloo; do
    rm -rf run
    "$bin/chiliad" train demo.yaml --nproc 2 --quiet --set run.dir=run --set run.steps="$steps" --set checkpoint.every=0 \
      --set parallel.transport=$transport >&2
    cp run/metrics.jsonl "$transport.$round.jsonl"
  done
done
python3 - "$steps" <<'PY'
import json, statistics, sys
def load(transport):
    out = []
    for r in (1, 2, 3):
        lines = [json.loads(line) for line in open(f"{transport}.{r}.jsonl")]
        lines = [line for line in lines if line["step"] > 20]
        out.append({"wall": sum(l["wall"] for l in lines) / (lines[-1]["step"] - 20),
                    "comm": sum(l["seconds"]["communication"] for l in lines) / (lines[-1]["step"] - 20),
                    "flops": sum(l["flops"] for l in lines) / sum(l["wall"] for l in lines)})
    return out
runs = {t: load(t) for t in ("shm", "gloo")}
def emit(metric, value, unit):
    print(json.dumps({"bench": "step", "metric": metric, "value": round(value, 4), "unit": unit, "target": None, "ok": None}))
for t, r in runs.items():
    emit(f"step_{t}", statistics.median(x["wall"] for x in r), "s")
    emit(f"communication_{t}", statistics.median(x["comm"] for x in r), "s a step")
emit("model_flops_shm", statistics.median(x["flops"] for x in runs["shm"]) / 1e9, "GFLOP/s")
emit("shm_over_gloo", statistics.median(a["wall"] / b["wall"] for a, b in zip(runs["shm"], runs["gloo"])), "ratio of step times")
PY
