#!/usr/bin/env bash
# How much of the wire two sharded ranks hide: each in a network namespace of its own, a link of MEGABITS (default 250) each way between
# them, 28 layers. With overlap, without it (control), interleaved. Needs root, for the namespaces.
source "$(dirname "$0")/../demo_run.sh"
steps=${STEPS:-6} rounds=${ROUNDS:-2} megabits=${MEGABITS:-250} items=${ITEMS:-12}
name=chiliad-bench-$$
"$bin/chiliad" train demo.yaml --check >&2  # makes the token columns
[[ -x $bin/bench/bench_overlap ]] || "$root/dev" build dev --target bench_overlap >&2
cleanup() {
  for rank in 0 1; do ip netns delete "$name-$rank" 2>/dev/null || true; done
  rm -rf "$work"
}
trap cleanup EXIT
ip netns add "$name-0" && ip netns add "$name-1"
ip link add v0 netns "$name-0" type veth peer name v1 netns "$name-1"
for rank in 0 1; do
  ip -n "$name-$rank" link set lo up
  ip -n "$name-$rank" address add 10.77.0.$((rank + 1))/24 dev "v$rank"
  # Jumbo frames, and large packets below the burst: else the CPU cuts every packet to 1500 bytes, and headers take 4 % of the rate.
  ip -n "$name-$rank" link set "v$rank" mtu 9000 gso_max_size 32768 up
  # Both directions, each at its sender.
  tc -n "$name-$rank" qdisc add dev "v$rank" root tbf rate "${megabits}mbit" burst 64kb latency 400ms
done
wire_bytes() { ip netns exec "$name-0" cat /sys/class/net/v0/statistics/tx_bytes; }
model=(model.width=${WIDTH:-128} model.depth=24 model.heads=2 model.patch=4 data.batch=$((2 * items)) data.micro_batch_items="$items"
  data.resolution=64 data.bucket_min=64 data.bucket_max=64 parallel.nproc=2 parallel.dp_shard=2 run.steps="$steps")
rank() { # RANK OVERLAP
  ip netns exec "$name-$1" "$bin/bench/bench_overlap" demo.yaml "$1" 10.77.0.1 10.77.0.$(($1 + 1)) "$steps" "$megabits" \
    "${model[@]}" parallel.overlap="$2" ${SET:-}
}
for round in $(seq "$rounds"); do
  for overlap in true false; do
    before=$(wire_bytes)
    rank 1 $overlap >&2 &
    other=$!
    rank 0 $overlap >"$overlap.$round.json"
    wait "$other"
    echo $((($(wire_bytes) - before) / steps)) >"$overlap.$round.wire"
  done
done
python3 - "$rounds" <<'PY'
import json, statistics, sys
rounds = range(1, int(sys.argv[1]) + 1)
def median(overlap, key): return statistics.median(json.load(open(f"{overlap}.{r}.json"))[key] for r in rounds)
def wire(overlap): return statistics.median(int(open(f"{overlap}.{r}.wire").read()) for r in rounds)
def emit(metric, value, unit, target=None, at_least=False):
    ok = None if target is None else (value >= target if at_least else value <= target)
    print(json.dumps({"bench": "overlap", "metric": metric, "value": round(value, 4), "unit": unit, "target": target, "ok": ok}))
emit("layers", median("true", "layers"), "layers")
emit("communication_over_compute", median("true", "communication") / median("true", "compute"), "ratio (meant: 0.6 to 0.9)")
emit("step", median("true", "step"), "s")
emit("ceiling", median("true", "ceiling"), "s: this computation of both ranks, and a perfect wire")
emit("ceiling_over_step", median("true", "ratio"), "of the ceiling", 0.97, True)
emit("step_without_overlap", median("false", "step"), "s")
emit("ceiling_without_overlap", median("false", "ceiling"), "s")
emit("waited", median("true", "waited"), "s")
emit("waited_without_overlap", median("false", "waited"), "s")
emit("cpu_beside_compute", median("true", "cpu_beside_compute"), "s of a rank, whose core computes at the same time: sockets, optimizer, loader")
emit("sent_over_ideal", median("true", "sent") / median("true", "ideal_sent"), "ratio", 1.05)
emit("wire_over_ideal", wire("true") / median("true", "ideal_sent"), "ratio, headers and start-up included", 1.05)
PY
