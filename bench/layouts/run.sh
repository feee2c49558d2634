#!/usr/bin/env bash
# What a layout costs: the step of one rank, and of two ranks with as many items each, as replicas, as shards (whole parameters
# let go or kept) and, with the items of one rank, as tensor-parallel ranks. Interleaved; a model of some 60 M parameters.
source "$(dirname "$0")/../demo_run.sh"
steps=${STEPS:-8} rounds=${ROUNDS:-3} items=8
model=(--set model.width=512 --set model.depth=8 --set model.heads=8)
run() { # NAME NPROC BATCH [ARG...]
  local name=$1 nproc=$2 batch=$3
  shift 3
  rm -rf run
  "$bin/chiliad" train demo.yaml --nproc "$nproc" --quiet "${model[@]}" --set run.dir=run --set run.steps="$steps" --set checkpoint.every=0 \
    --set observe.log_every=1 --set data.batch="$batch" --set data.micro_batch_items=$items --set data.shape_clusters=16 "$@" >&2
  cp run/metrics.jsonl "$name.$round.jsonl"
}
for round in $(seq "$rounds"); do
  run one 1 $items
  run replicas 2 $((2 * items))
  run shards 2 $((2 * items)) --set parallel.dp_shard=2
  run shards_kept 2 $((2 * items)) --set parallel.dp_shard=2 --set parallel.reshard_after_forward=false
  run tensor 2 $items --set parallel.tp=2
done
python3 - "$rounds" <<'PY'
import json, statistics, sys
rounds = range(1, int(sys.argv[1]) + 1)
def load(name, r):
    lines = [json.loads(line) for line in open(f"{name}.{r}.jsonl")][2:]  # the first steps warm caches
    flops = sum(l["flops"] for l in lines)
    wall = sum(l["wall"] for l in lines)
    # Steps hold other shapes in each layout: time for the same work is compared.
    return {"wall": wall / len(lines), "s_per_flop": wall / flops, "comm": sum(l["seconds"]["communication"] for l in lines) / wall,
            "other": sum(l["seconds"]["other"] for l in lines) / wall}
names = ["one", "replicas", "shards", "shards_kept", "tensor"]
data = {n: [load(n, r) for r in rounds] for n in names}
def emit(metric, value, unit, target=None):
    ok = None if target is None else value <= target
    print(json.dumps({"bench": "layouts", "metric": metric, "value": round(value, 4), "unit": unit, "target": target, "ok": ok}))
def median(values): return statistics.median(list(values))
emit("step_one_rank", median(x["wall"] for x in data["one"]), "s")
for n in names[1:]:
    ratio = median(2 * b["s_per_flop"] / a["s_per_flop"] for a, b in zip(data["one"], data[n]))
    # Half of what FSDP2 adds to its own one-rank step on two ranks over loopback: (3.69 - 3.15) / 3.15 / 2.
    emit(f"excess_{n}", ratio - 1, "of the one-rank step for the same work a rank", 0.086 if n.startswith("shards") else None)
    emit(f"communication_{n}", median(x["comm"] for x in data[n]), "of the step")
emit("other", max(median(x["other"] for x in data[n]) for n in names), "of the step", 0.01)
PY
