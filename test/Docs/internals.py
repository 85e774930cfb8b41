#!/usr/bin/env python3
"""Makes the fenced blocks of docs/internals.md from the commands above them.

usage: internals.py SOURCE [--check]

A block is written as `<!-- command -->` and, in the next line, its fence. The command runs in SOURCE
with the tools on PATH. Without --check the page is rewritten; with it the page stays, and a block
that differs is an error.
"""
import difflib
import os
import re
import subprocess
import sys

BLOCK = re.compile(r"^(?:<!--(?P<command>(?:(?!-->).)*)-->\n)?(?P<fence>```\w*)\n(?P<text>.*?)^```$",
                   re.S | re.M)


def output(command, source):
    """What the command prints; an error when it fails or writes to its standard error."""
    done = subprocess.run(command, shell=True, cwd=source, text=True, capture_output=True,
                          env={**os.environ, "QUERN_CACHE_DIR": ""})
    if done.returncode or done.stderr:
        sys.exit(f"internals.py: {command}\nexit status {done.returncode}\n{done.stderr}")
    return "".join(line.rstrip() + "\n" for line in done.stdout.strip("\n").splitlines())


def main():
    check = sys.argv[2:] == ["--check"]
    if len(sys.argv) < 2 or (len(sys.argv) > 2 and not check):
        sys.exit(__doc__)
    source = sys.argv[1]
    path = os.path.join(source, "docs", "internals.md")
    with open(path) as file:
        page = file.read()
    differ = 0

    def renew(match):
        nonlocal differ
        if not match["command"]:
            sys.exit(f"internals.py: a block without a command:\n{match[0]}")
        command = match["command"].strip()
        text = output(command, source)
        if not text:
            sys.exit(f"internals.py: no output: {command}")
        if text != match["text"]:
            differ += 1
            if check:
                print(command)
                sys.stdout.writelines(difflib.unified_diff(
                    match["text"].splitlines(True), text.splitlines(True), "docs/internals.md", "now"))
        return f"<!--{match['command']}-->\n{match['fence']}\n{text}```"

    renewed, blocks = BLOCK.subn(renew, page)
    if not blocks:
        sys.exit("internals.py: no blocks")
    if check:
        if differ:
            sys.exit(f"internals.py: {differ} of {blocks} blocks differ; without --check they are "
                     "written anew")
        return
    with open(path, "w") as file:
        file.write(renewed)


main()
