"""Runs small functions with literal inputs: run.py CASES.mlir [option of quern-run…]

The file has one section for each function, `//--- name`. In it:

  // in:  i32[2x3] 1 2 3 4 5 6     an input, in order (`[]` is rank 0)
  // out: f32[2] 1.5 nan           a result, in order; relative to 1e-5, zeros with their sign
  // error: text                   instead of results: what the error says
  // grad: 0,1                     of this function's results and its gradients by these arguments
"""
import math
import os
import re
import struct
import subprocess
import sys
import tempfile

FORMATS = {"f64": "<f8 d", "f32": "<f4 f", "f16": "<f2 e", "i64": "<i8 q", "i32": "<i4 i", "i16": "<i2 h",
           "i8": "|i1 b", "ui8": "|u1 B", "i1": "|b1 B"}


def parse(text):
    dtype, dims, values = re.match(r"(\w+)\[([\dx]*)\](.*)", text).groups()
    dims = [int(d) for d in dims.split("x") if d]
    convert = float if dtype[0] == "f" else int
    values = [convert(v) for v in values.split()]
    count = math.prod(dims)
    if len(values) == 1:
        values *= count
    assert len(values) == count, text
    return dtype, dims, values


def write(path, tensor):
    dtype, dims, values = tensor
    descr, code = FORMATS[dtype].split()
    shape = "(" + ", ".join(map(str, dims)) + ("," if len(dims) == 1 else "") + ")"
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}"
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    with open(path, "wb") as file:
        file.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode())
        file.write(struct.pack(f"<{len(values)}{code}", *values))


def read(path):
    data = open(path, "rb").read()
    size = struct.unpack("<H", data[8:10])[0]
    header = eval(data[10:10 + size])  # a literal
    code = {v.split()[0]: v.split()[1] for v in FORMATS.values()}[header["descr"]]
    count = math.prod(header["shape"])
    return list(header["shape"]), list(struct.unpack(f"<{count}{code}", data[10 + size:]))


def same(got, wanted):
    if isinstance(wanted, int):
        return got == wanted
    if math.isnan(wanted) or math.isinf(wanted) or wanted == 0:
        return math.isnan(got) if math.isnan(wanted) else \
            got == wanted and math.copysign(1, got) == math.copysign(1, wanted)
    return abs(got - wanted) <= 1e-5 * abs(wanted)


def run(name, text, options, folder):
    field = lambda key: [m.strip() for m in re.findall(rf"^// {key}: *(.*)$", text, re.M)]
    model = os.path.join(folder, "case.mlir")
    open(model, "w").write(text)
    for arguments in field("grad"):
        backward = subprocess.run(["quern-opt", model, f"--quern-backward=function=f arguments={arguments}",
                                   "-o", model], capture_output=True, text=True)
        if backward.returncode:
            return backward.stderr
        options = [*options, "--function=f_joint"]
    inputs = []
    for i, literal in enumerate(field("in")):
        inputs.append(os.path.join(folder, f"in{i}.npy"))
        write(inputs[-1], parse(literal))
    result = subprocess.run(["quern-run", model, *inputs, "--quiet", "--save", folder, *options],
                            capture_output=True, text=True)
    errors = field("error")
    if errors:
        ok = result.returncode != 0 and all(e in result.stderr for e in errors)
        return "" if ok else f"expected the error {errors}, got {result.returncode}: {result.stderr}"
    if result.returncode:
        return result.stderr
    for i, literal in enumerate(field("out")):
        _, dims, wanted = parse(literal)
        shape, got = read(os.path.join(folder, f"output_{i}.npy"))
        if shape != dims or not all(map(same, got, wanted)):
            return f"output {i}: got {shape} {got}, expected {dims} {wanted}"
    return ""


sections = re.split(r"^//--- *(.*)$", open(sys.argv[1]).read(), flags=re.M)[1:]
failed = 0
for name, text in zip(sections[::2], sections[1::2]):
    with tempfile.TemporaryDirectory() as folder:
        problem = run(name, text, sys.argv[2:], folder)
    if problem:
        failed += 1
        print(f"FAILED {name}: {problem}")
print(f"{len(sections) // 2 - failed} passed, {failed} failed")
sys.exit(failed > 0)
