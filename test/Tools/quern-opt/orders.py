"""Runs every pass, and every two passes, over one file of many modules: whatever is asked, the
answer is IR or an error with its exit code, never the end of the process.

usage: orders.py FILE
"""

import itertools
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

passes = [
    "quern-propagate-shapes", "quern-materialize-guards", "quern-lower-dims", "quern-strip-dims",
    "quern-autodiff", "quern-autodiff=mode=split", "quern-simplify", "quern-fuse",
    "quern-fuse=fuse=false", "quern-inplace", "quern-to-linalg", "quern-bufferize",
    "quern-plan-memory", "quern-verify-stage=stage=named", "quern-verify-stage=stage=inplace",
    "quern-verify-stage=stage=bufferized", "quern-verify-stage=stage=planned",
    "quern-convert-host-to-llvm", "quern-schedule-cpu", "quern-schedule-cuda", "quern-cpu",
    "quern-backward",
]


def run(order):
    command = ["quern-opt", sys.argv[1], "--split-input-file", "-o", "/dev/null"]
    command += [f"--{name}" for name in order]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    except subprocess.TimeoutExpired:
        return f"{' '.join(command)}: no end"
    # A stage that is verified says `internal:`, since passes are at fault.
    verified = any(name.startswith("quern-verify-stage") for name in order)
    if done.returncode in (0, 2, 3) or (verified and done.returncode == 4):
        return None
    return f"{' '.join(command)}: {done.returncode}\n{done.stderr}"


orders = [(p,) for p in passes] + list(itertools.product(passes, passes))
with ThreadPoolExecutor() as pool:
    failures = [f for f in pool.map(run, orders) if f]
for failure in failures:
    print(failure)
print(f"{len(orders)} orders, {len(failures)} failed")
sys.exit(bool(failures))
