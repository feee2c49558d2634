#!/usr/bin/env bash
# Training steps of DiT (39.8 M) and PixArt (29.8 M), batch 8, 256 tokens, beside diffusers on the same cores: CPU seconds,
# wall seconds, peak memory, share of the FMA peak; fp32 and bf16; interleaved.
# PEER_PYTHON=python with torch and diffusers, PEER_SCRIPT=path/to/bench_dit.py (options --model --dtype --opt --threads --budget,
# one JSON line with step_s, step_cpu_s and peak_rss_mib) runs the peer: fused and foreach optimizers, and the better one counts.
# COMPILED=1: the peer by torch.compile, too (option --compile; it compiles first, which is not counted).
# SECONDS_EACH=8 ROUNDS=2 THREADS_LIST="1 2" MODELS="dit pixart" TYPES="fp32 bf16" RECOMPUTE="none" (selective, layers; most: two layers of three)
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
bench="$root/build/dev/bin/bench/bench_diffusion"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
[[ -x $bench ]] || "$root/dev" build dev --target bench_diffusion >&2
peer_script=${PEER_SCRIPT:-}
unset OPENBLAS_CORETYPE OPENBLAS_L2_SIZE # the peer's products are not slowed down by a choice made for tests
export HF_HUB_OFFLINE=1

ours() { # MODEL TYPE THREADS RECOMPUTE
  OMP_NUM_THREADS=$3 "$bench" step "$1" "$2" "$3" "${SECONDS_EACH:-8}" "$4" >>"$work/ours.jsonl"
}
peer() { # MODEL TYPE THREADS
  [[ -n ${PEER_PYTHON:-} && -n $peer_script ]] || return 0
  local options kinds=("fused" "foreach")
  [[ -z ${COMPILED:-} ]] || kinds+=("fused --compile")
  for options in "${kinds[@]}"; do
    # shellcheck disable=SC2086 -- two words where compiled
    (cd "$(dirname "$peer_script")" && "$PEER_PYTHON" "$peer_script" --model "$1" --dtype "$2" --opt $options --threads "$3" \
      --budget "${SECONDS_EACH:-8}" 2>/dev/null | tail -1 >>"$work/peer.jsonl") || echo "peer $* failed" >&2
  done
}

"$bench" peak 1 >"$work/peak.jsonl"
for _ in $(seq "${ROUNDS:-2}"); do
  for threads in ${THREADS_LIST:-1 2}; do
    for model in ${MODELS:-dit pixart}; do
      for type in ${TYPES:-fp32 bf16}; do
        for recompute in ${RECOMPUTE:-none}; do ours "$model" "$type" "$threads" "$recompute"; done
        peer "$model" "$type" "$threads"
      done
    done
  done
done
cat "$work"/*.jsonl >&2
python3 - "$work" <<'PY'
import json, os, statistics, sys
def lines(name):
    path = os.path.join(sys.argv[1], name)
    return [json.loads(line) for line in open(path) if line.strip()] if os.path.exists(path) else []
ours, peers = lines("ours.jsonl"), lines("peer.jsonl")
peak = max(line["gflops_a_cpu_second"] for line in lines("peak.jsonl"))  # bf16 products are made in fp32
def emit(metric, value, unit, target=None):
    ok = None if target is None else value <= target
    print(json.dumps({"bench": "diffusion", "metric": metric, "value": round(value, 4), "unit": unit, "target": target, "ok": ok}))
emit("fma_peak", peak, "GFLOP/s a core, a large product")
keys = sorted({(o["model"], o["dtype"], o["threads"], o["recompute"]) for o in ours})
for key in keys:
    model, dtype, threads, recompute = key
    mine = [o for o in ours if (o["model"], o["dtype"], o["threads"], o["recompute"]) == key]
    cpu, wall = (statistics.median(o[k] for o in mine) for k in ("cpu", "wall"))
    name = f"{model}_{dtype}_{threads}t" + ("" if recompute == "none" else f"_{recompute}")
    emit(f"{name}_cpu", cpu, "CPU s a step")
    emit(f"{name}_wall", wall, "s a step")
    emit(f"{name}_peak", max(o["peak_mib"] for o in mine), "MiB")
    emit(f"{name}_share_of_peak", mine[0]["gflops"] / cpu / peak, "of the FMA peak")
    for part in sorted(k for k in mine[0] if k.endswith(" s")):
        emit(f"{name}: {part[:-2]}", statistics.median(o[part] for o in mine), "CPU s a step")
    plain = [o["cpu"] for o in ours if (o["model"], o["dtype"], o["threads"], o["recompute"]) == (model, dtype, threads, "none")]
    if recompute != "none" and plain:
        emit(f"{name}_cpu_over_none", cpu / statistics.median(plain), "ratio", 1.33)
    theirs = [p for p in peers if (p["model"], p["dtype"], p["threads"]) == (model, dtype, threads)]
    if not theirs: continue
    compiled = [p for p in theirs if p.get("compile")]
    def eager(get):  # the better optimizer
        by = {}
        for p in theirs:
            if not p.get("compile"): by.setdefault(p["opt"], []).append(get(p))
        return min(statistics.median(v) for v in by.values())
    emit(f"{name}_cpu_over_eager", cpu / eager(lambda p: p["step_cpu_s"]["median"]), "ratio", (0.65 if dtype == "fp32" else 0.72) if recompute == "none" else None)
    emit(f"{name}_wall_over_eager", wall / eager(lambda p: p["step_s"]["median"]), "ratio")
    emit(f"{name}_peak_over_eager", max(o["peak_mib"] for o in mine) / eager(lambda p: p["peak_rss_mib"]), "ratio", 0.8 if recompute == "none" else 0.5)
    if compiled:
        emit(f"{name}_cpu_over_compiled", cpu / statistics.median(p["step_cpu_s"]["median"] for p in compiled), "ratio", 1.0)
PY
