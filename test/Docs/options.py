#!/usr/bin/env python3
"""Compares docs/tools.md with what the tools' --help lists.

usage: options.py SOURCE

Every option of a tool has a row in a table whose heading names the tool, and every row is an
option. What README.md and the pages write after a tool's name exists.
"""
import glob
import os
import re
import subprocess
import sys

ALWAYS = {"--help", "--help-list", "--version"}


def help_options(*command):
    """The options that a tool prints. Values of an option are indented deeper and begin with '='."""
    text = subprocess.run([*command, "--help"], check=True, text=True, capture_output=True).stdout
    return set(re.findall(r"^ +(--?[A-Za-z][\w-]*)", text, re.M)) - ALWAYS


def listed_options(page):
    """Tool to the options of the tables under headings that name it."""
    listed = {}
    section = re.search(r"^## Options\n(.*?)^## ", page, re.S | re.M).group(1)
    for part in re.split(r"^### ", section, flags=re.M)[1:]:
        heading, _, body = part.partition("\n")
        for tool in re.findall(r"quern-\w+", heading):
            listed.setdefault(tool, set()).update(re.findall(r"^\| `(-[\w-]+)` \|", body, re.M))
    return listed


def main():
    source = sys.argv[1]
    with open(os.path.join(source, "docs", "tools.md")) as file:
        listed = listed_options(file.read())
    every = help_options("quern-opt")
    ours = re.search(r"^Quern:\n\n(.*?)^$",
                     subprocess.run(["quern-opt", "--help"], text=True, capture_output=True).stdout,
                     re.S | re.M).group(1)
    existing = {tool: help_options(tool) for tool in ("quern-compile", "quern-run", "quern-bench")}
    existing["quern-opt"] = set(re.findall(r"^ +(--[\w-]+)", ours, re.M))
    existing["quern-conformance"] = set().union(
        *(help_options("quern-conformance", sub) for sub in ("aten", "onnx", "training")))
    wrong = []
    for tool, options in existing.items():
        have = listed.get(tool, set())
        wrong += [f"{tool}: {o} has no row" for o in sorted(options - have)]
        wrong += [f"{tool}: {o} does not exist" for o in sorted(have - options)]
        if not options:
            wrong.append(f"{tool}: --help lists nothing")
    existing["quern-opt"] |= every
    checked = 0
    for path in [os.path.join(source, "README.md"), *glob.glob(os.path.join(source, "docs/*.md"))]:
        with open(path) as file:
            text = file.read().replace("\\\n", " ")
        for command in re.findall(r"\b(quern-(?:opt|compile|run|bench|conformance) [^`\n|]*)", text):
            tool = command.split()[0]
            for option in re.findall(r"(?<=\s)--[a-z][\w-]*", command):
                checked += 1
                if option not in existing[tool] | ALWAYS:
                    wrong.append(f"{os.path.basename(path)}: {tool} has no {option}")
    if not checked:
        wrong.append("no command in the pages")
    sys.exit("\n".join(wrong) or 0)


main()
