# is_linear.py SCRIPT PASS…: with four times the ops, passes take about four times
# the processor time (a quadratic one takes sixteen times).
import resource
import subprocess
import sys


def seconds(ops, passes):
    text = subprocess.run([sys.executable, sys.argv[1], str(ops)], capture_output=True, check=True)
    before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    subprocess.run(["quern-opt", *passes, "-o", "/dev/null"], input=text.stdout, check=True)
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before


passes = sys.argv[2:]
small = min(seconds(2500, passes) - seconds(2500, []) for _ in range(3))
large = min(seconds(10000, passes) - seconds(10000, []) for _ in range(3))
print(f"2,500 ops {small:.3f} s, 10,000 ops {large:.3f} s")
sys.exit(large > 8 * max(small, 0.01))
