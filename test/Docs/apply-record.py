#!/usr/bin/env python3
"""Applies the record of docs/adding-an-op.md in a copy of source and build, and checks the result.

usage: apply-record.py SOURCE BUILD

The copy is mounted over the source in a mount namespace of its own, so that every path that the
build wrote down still holds and only what depends on the record is built again.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap


def run(*command, **kwargs):
    return subprocess.run(command, check=True, text=True, capture_output=True, **kwargs).stdout


def copy(source, build, scratch):
    files = run("git", "-C", source, "ls-files", "-z").split("\0")
    subprocess.run(["tar", "-C", source, "--null", "-T", "-", "-cf", f"{scratch}/source.tar"],
                   input="\0".join(f for f in files if f), text=True, check=True)
    run("tar", "-C", scratch, "-xpf", f"{scratch}/source.tar")
    os.remove(f"{scratch}/source.tar")
    inside = os.path.relpath(build, source)
    os.makedirs(f"{scratch}/{inside}")
    # What quern-opt is made from, without the other programs and the tests' own output.
    subprocess.run(f"tar -C {build} --exclude=./test --exclude=./unittests --exclude=./examples "
                   f"--exclude=./bin/quern-[!ot]* --exclude='./lib/libquern.so*' -cf - . | tar -C {scratch}/{inside} -xpf -",
                   shell=True, check=True)


def check(source, build):
    """Runs inside the namespace, where SOURCE is the copy."""
    page = open(f"{source}/docs/adding-an-op.md").read()
    record = re.search(r"```tablegen\n(.*?)```", page, re.S).group(1)
    assert len(record.strip().splitlines()) <= 12, "the record is longer than the page says"
    path = f"{source}/include/quern/Dialect/Quern/IR/Ops/Pointwise.td"
    text = open(path).read()
    end = text.rindex("#endif")
    open(path, "w").write(text[:end] + record + "\n" + text[end:])
    run("ninja", "-C", build, "quern-opt", "quern-docs")

    opt = f"{build}/bin/quern-opt"
    ir = textwrap.dedent("""
        func.func @f(%x: tensor<?x3xf32, #quern.dims<B>>, %d: tensor<?x3xf32, #quern.dims<B>>)
            -> tensor<?x3xf32, #quern.dims<B>> {
          %0 = quern.softsign %x into %d : (tensor<?x3xf32, #quern.dims<B>>,
              tensor<?x3xf32, #quern.dims<B>>) -> tensor<?x3xf32, #quern.dims<B>>
          return %0 : tensor<?x3xf32, #quern.dims<B>>
        }
        """)
    assert "quern.softsign %arg0 into %arg1" in run(opt, input=ir)
    functional = ir.replace(" into %d", "").replace(
        "(tensor<?x3xf32, #quern.dims<B>>,\n      tensor<?x3xf32, #quern.dims<B>>) ->",
        "(tensor<?x3xf32, #quern.dims<B>>) ->")
    assert "math.absf" in run(opt, "--quern-to-linalg", input=functional)
    assert "quern.abs" in run(opt, "--quern-autodiff", input=functional)
    refused = subprocess.run([opt], input=functional.replace("f32", "i32"), text=True,
                             capture_output=True)
    assert "softsign_c1: expected self to be of a float dtype, got i32" in refused.stderr
    assert "### softsign" in open(f"{build}/docs/operators.md").read()
    assert "| softsign |" in open(f"{build}/docs/coverage.md").read()


if sys.argv[1] == "--inside":
    check(sys.argv[2], sys.argv[3])
else:
    source, build = (os.path.abspath(p) for p in sys.argv[1:])
    scratch = tempfile.mkdtemp(prefix="quern-")
    copy(source, build, scratch)
    script = ('mount --bind "$1" "$2" && cd "$2" && '
              'exec python3 test/Docs/apply-record.py --inside "$2" "$3"')
    status = subprocess.run(
        ["unshare", "-m", "sh", "-c", script, "sh", scratch, source, build]).returncode
    shutil.rmtree(scratch)
    sys.exit(status)
