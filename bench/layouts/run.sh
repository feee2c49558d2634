#!/usr/bin/env bash
# What a layout costs: the step of one rank, and of two ranks with as many items each, as replicas, as shards (whole parameters
# let go, or kept for the step) and, with the items of one rank, as tensor-parallel ranks; over shared memory and over TCP
# loopback, fp32 and bf16. One micro-batch of 8 pictures of 256 patches a rank, 39.9 M parameters. Interleaved.
# PEER_PYTHON=path/to/python (with torch) runs the same model in PyTorch between them: one rank, DDP, FSDP2.
source "$(dirname "$0")/../demo_run.sh"
steps=${STEPS:-6} rounds=${ROUNDS:-2} items=8
peer="$root/bench/layouts/pytorch_step.py"
model=(--set model.width=384 --set model.depth=15 --set model.heads=6 --set model.patch=4
  --set data.resolution=64 --set data.bucket_min=64 --set data.bucket_max=64)

run() { # NAME NPROC [ARG...]
  local name=$1 nproc=$2
  shift 2
  [[ -z ${ONLY:-} || " $ONLY " == *" $name "* ]] || return 0
  rm -rf run
  # A BLAS kernel chosen by the environment would be measured, not the machine.
  env -u OPENBLAS_CORETYPE -u OPENBLAS_L2_SIZE "$bin/chiliad" train demo.yaml --nproc "$nproc" --quiet "${model[@]}" --set run.dir=run \
    --set run.steps="$steps" --set checkpoint.every=0 --set observe.log_every=1 --set data.micro_batch_items=$items "$@" >&2
  cp run/metrics.jsonl "$name.$round.jsonl"
}

peer() { # NAME NPROC MODE DTYPE
  [[ -n ${PEER_PYTHON:-} ]] || return 0
  OMP_NUM_THREADS=1 env -u OPENBLAS_CORETYPE -u OPENBLAS_L2_SIZE "$PEER_PYTHON" -m torch.distributed.run --nproc-per-node "$2" \
    --master-addr 127.0.0.1 --master-port $((29600 + RANDOM % 300)) "$peer" "$3" "$4" "$steps" 2>/dev/null >"$1.$round.peer.json" ||
    echo "peer $1 failed" >&2
}

exchange() { # TYPE: the bare collectives of the step with shards over TCP
  local pair settings=()
  for pair in "${model[@]}"; do [[ $pair == --set ]] || settings+=("$pair"); done
  "$bin/bench/bench_exchange" demo.yaml 10 "${settings[@]}" data.micro_batch_items=$items data.batch=$((2 * items)) parallel.nproc=2 \
    parallel.dp_shard=2 precision.compute="$1" >"exchange_$1.$round.json"
}

[[ -x $bin/bench/bench_exchange ]] || "$root/dev" build dev --target bench_exchange >&2
for round in $(seq "$rounds"); do
  for type in ${TYPES:-fp32 bf16}; do
    all=(--set data.batch=$((2 * items)) --set precision.compute="$type")
    tcp=(--set parallel.transport=gloo)
    run "one_$type" 1 --set data.batch=$items --set precision.compute="$type"
    peer "one_$type" 1 single "$type"
    run "replicas_$type" 2 "${all[@]}"
    run "shards_$type" 2 "${all[@]}" --set parallel.dp_shard=2
    run "kept_$type" 2 "${all[@]}" --set parallel.dp_shard=2 --set parallel.reshard_after_forward=false
    run "tensor_$type" 2 --set data.batch=$items --set precision.compute="$type" --set parallel.tp=2
    run "replicas_tcp_$type" 2 "${all[@]}" "${tcp[@]}"
    peer "replicas_tcp_$type" 2 ddp "$type"
    run "shards_tcp_$type" 2 "${all[@]}" "${tcp[@]}" --set parallel.dp_shard=2
    peer "shards_tcp_$type" 2 fsdp2 "$type"
    exchange "$type"
    run "kept_tcp_$type" 2 "${all[@]}" "${tcp[@]}" --set parallel.dp_shard=2 --set parallel.reshard_after_forward=false
  done
done
python3 - "$rounds" ${TYPES:-fp32 bf16} <<'PY'
import glob, json, os, statistics, sys
rounds, types = range(1, int(sys.argv[1]) + 1), sys.argv[2:]
def emit(metric, value, unit, target=None):
    ok = None if target is None else value <= target
    print(json.dumps({"bench": "layouts", "metric": metric, "value": round(value, 4), "unit": unit, "target": target, "ok": ok}))
def ours(name, r):
    if not os.path.exists(f"{name}.{r}.jsonl"): return None
    lines = [json.loads(line) for line in open(f"{name}.{r}.jsonl")][2:]  # the first steps warm caches
    row = {key: statistics.median(l[key] for l in lines) for key in ("wall", "cpu")}
    row["comm"] = statistics.median(l["seconds"]["communication"] / l["wall"] for l in lines)
    row["other"] = statistics.median(l["seconds"]["other"] / l["wall"] for l in lines)
    row["sent"] = lines[-1]["sent"]
    return row
def theirs(name, r):
    try: return json.load(open(f"{name}.{r}.peer.json"))
    except (OSError, ValueError): return None
def median(rows, key):
    rows = [row[key] for row in rows if row]
    return statistics.median(rows) if rows else None
names = ["replicas", "shards", "kept", "tensor", "replicas_tcp", "shards_tcp", "kept_tcp"]
other = 0.0
for type in types:
    one, peer_one = [[get(f"one_{type}", r) for r in rounds] for get in (ours, theirs)]
    for key in ("wall", "cpu"):
        if median(one, key): emit(f"one_{type}_{key}", median(one, key), "s")
        if median(peer_one, key): emit(f"pytorch_one_{type}_{key}", median(peer_one, key), "s")
    for name in names:
        mine, peer = [[get(f"{name}_{type}", r) for r in rounds] for get in (ours, theirs)]
        if not any(mine): continue
        other = max(other, median(mine, "other"))
        for key in ("wall", "cpu"):
            base = median(one, key) / (2 if name.startswith("tensor") else 1)
            target = None
            if name.startswith("shards_tcp") and median(peer, key):
                target = round((median(peer, key) - median(peer_one, key)) / 2, 4)  # half of FSDP2's excess
            emit(f"{name}_{type}_{key}_excess", median(mine, key) - base, "s above one rank's step for the same work", target)
            if median(peer, key):
                emit(f"pytorch_{name}_{type}_{key}_excess", median(peer, key) - median(peer_one, key), "s above its one rank's step")
                emit(f"{name}_{type}_{key}_over_pytorch", median(mine, key) / median(peer, key), "of its step", 1.0)
        if name == "shards_tcp":
            bare = [json.load(open(f"exchange_{type}.{r}.json")) for r in rounds]
            for key in ("wall", "cpu"):
                emit(f"bare_collectives_{type}_{key}", median(bare, key), "s for the same bytes, nothing beside them")
                beyond = (median(mine, key) - median(one, key) - median(bare, key)) / median(one, key)
                emit(f"{name}_{type}_{key}_beyond_bare_collectives", beyond, "of one rank's step", 0.01)
        emit(f"{name}_{type}_communication", median(mine, "comm"), "of the step")
        for kind, sent in next(m for m in mine if m)["sent"].items(): emit(f"{name}_{type}_sent_{kind}", sent / 1e6, "MB a step")
emit("other", other, "of the step", 0.01)
PY
