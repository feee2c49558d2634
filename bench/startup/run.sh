#!/usr/bin/env bash
# From exec of the launcher to the first collective of two workers; median of REPEATS (default 9), page cache warm.
# The mark is the machine's steady clock, which /proc/uptime and Python's time.monotonic share.
source "$(dirname "$0")/../demo_run.sh"
repeats=${REPEATS:-9}
sed -i 's/steps: .*/steps: 1/' demo.yaml
python3 - "$bin/chiliad" "$repeats" <<'PY'
import json, os, shutil, statistics, subprocess, sys, time
chiliad, repeats = sys.argv[1], int(sys.argv[2])
times = []
for i in range(repeats + 1):
    shutil.rmtree("run", ignore_errors=True)
    mark = os.path.abspath("mark")
    if os.path.exists(mark):
        os.remove(mark)
    start = time.monotonic_ns()
    subprocess.run([chiliad, "train", "demo.yaml", "--nproc", "2", "--quiet", "--set", "run.dir=run"], check=True,
                   env=dict(os.environ, CHILIAD_STARTUP_MARK=mark), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    if i > 0:
        times.append((int(open(mark).read()) - start) / 1e9)
value = statistics.median(times)
print(json.dumps({"bench": "startup", "metric": "exec_to_first_collective", "value": round(value, 4), "unit": "s",
                  "target": 0.3, "ok": value <= 0.3}))
print(json.dumps({"bench": "startup", "metric": "exec_to_first_collective_min", "value": round(min(times), 4), "unit": "s",
                  "target": 0.3, "ok": min(times) <= 0.3}))
PY
