#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that tests notice faults: changes an operator, a constant, a statement or the order of arguments in a copy of
the sources, builds the tests of the file's folder and runs them.

    tools/mutants/run.py FILE… [--count 20] [--seed 0]
    tools/mutants/run.py FILE… --list       the drawn mutants, without building them

A mutant is killed if its test program fails or does not end.  Mutants that do not compile are replaced by others.  It
takes about a minute per mutant and is no part of CI.
"""

import argparse
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
from typing import NamedTuple

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import check_layers  # noqa: E402

# clang-format writes spaces around binary operators, but not inside the angle brackets of templates.
PAIRS = [("<", "<="), (">", ">="), ("==", "!="), ("&&", "||"), ("+", "-"), ("*", "/"), ("+=", "-="), ("true", "false")]
OPPOSITES = {**dict(PAIRS), **{b: a for a, b in PAIRS}}
OPERATOR = re.compile(r"(?<= )([<>]=?|[=!]=|&&|\|\||[-+*/]|[-+]=)(?= )")
CONSTANT = re.compile(r"\b(true|false)\b|(?<![\w.])\d+(?=\.\d|(?:LL|U)?\b(?!'))")
# A call or an assignment in one line.
STATEMENT = re.compile(r"(?<=\n) +(?!return|using|throw|case|else)((?:[\w.:\]\[]|->)+(?:\(| [-+*/]?= ).*;)(?=\n)")
ARGUMENTS = re.compile(r"(?<=\w\()([a-z]\w*), ([a-z]\w*)(?=[,)])")
LEFT_OUT = re.compile(r"^ *(#|static_assert|template).*$", re.M)


class Mutant(NamedTuple):
    file: str
    start: int
    end: int
    text: str  # Replaces the content from start to end.
    kind: str

    def line(self, content):
        return content.count("\n", 0, self.start) + 1

    def description(self, content):
        original = " ".join(content[self.start : self.end].split())
        return f"{self.file}:{self.line(content)}: {self.kind}: {original} → {self.text}"


def mutants_of(file, content):
    """All mutants of a file."""
    code = LEFT_OUT.sub(lambda line: " " * len(line[0]), check_layers.without(content, literals=True))
    found = [Mutant(file, *m.span(), OPPOSITES[m[0]], "operator") for m in OPERATOR.finditer(code)]
    for match in CONSTANT.finditer(code):
        text = OPPOSITES.get(match[0]) or str(int(match[0], 8 if match[0][0] == "0" else 10) + 1)
        found.append(Mutant(file, *match.span(), text, "constant"))
    whole = [m for m in STATEMENT.finditer(code) if m[1].count("(") == m[1].count(")")]
    found += [Mutant(file, *m.span(1), ";", "statement") for m in whole]
    found += [Mutant(file, *m.span(), f"{m[2]}, {m[1]}", "arguments") for m in ARGUMENTS.finditer(code) if m[1] != m[2]]
    return found


def drawn(files, seed, root=ROOT):
    """The mutants of the files in an order that the seed decides."""
    found = [mutant for file in files for mutant in mutants_of(file, (root / file).read_text())]
    random.Random(seed).shuffle(found)
    return found


def mutated(mutant, content):
    return content[: mutant.start] + mutant.text + content[mutant.end :]


def test_program(file):
    parts = pathlib.PurePath(file).parts
    return ("apps" if parts[0] == "apps" else parts[1]) + "_tests"


def copy_sources(to):
    """Copies the files that git knows or would add; files that are equal keep their times, so that builds are short."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout.split(b"\0")
    wanted = {os.fsdecode(name) for name in names if name and (ROOT / os.fsdecode(name)).is_file()}
    for name in sorted(wanted):
        source, target = ROOT / name, to / name
        if not target.is_file() or target.read_bytes() != source.read_bytes():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)
    for path in list(to.rglob("*")):
        name = str(path.relative_to(to))
        if path.is_file() and not name.startswith("build/") and name not in wanted:
            path.unlink()


class Workspace:
    def __init__(self, source, jobs, timeout):
        self.source, self.build_folder, self.jobs, self.timeout = source, source / "build" / "release", jobs, timeout
        self.environment = {**os.environ, "CCACHE_BASEDIR": str(source), "CCACHE_NOHASHDIR": "1"}
        copy_sources(source)
        options = ["-G", "Ninja", "-D", "CMAKE_BUILD_TYPE=Release", "-D", "VITRAIL_EXAMPLES=OFF"]
        self.run("cmake", "-S", source, "-B", self.build_folder, *options)

    def run(self, *command, timeout=None):
        """Whether the command succeeds."""
        command = [str(part) for part in command]
        return subprocess.run(command, timeout=timeout, env=self.environment, capture_output=True).returncode == 0

    def build(self, program):
        return self.run("cmake", "--build", self.build_folder, "-j", self.jobs, "--target", program)

    def passes(self, program):
        try:
            return self.run(self.build_folder / "tests" / program, "--gtest_fail_fast", timeout=self.timeout)
        except subprocess.TimeoutExpired:
            return False

    def state_of(self, mutant):
        path = self.source / mutant.file
        original = path.read_text()
        path.write_text(mutated(mutant, original))
        try:
            if not self.build(test_program(mutant.file)):
                return "does not compile"
            return "survived" if self.passes(test_program(mutant.file)) else "killed"
        finally:
            path.write_text(original)


def report(mutants, count, state_of, root=ROOT):
    """Prints the state of `count` mutants that compile; returns how many were killed and how many survived."""
    counts = {"killed": 0, "survived": 0, "does not compile": 0}
    for mutant in mutants:
        if counts["killed"] + counts["survived"] == count:
            break
        state = state_of(mutant)
        counts[state] += 1
        print(f"{state:16} {mutant.description((root / mutant.file).read_text())}", flush=True)
    tried = counts["killed"] + counts["survived"]
    print(f"{counts['killed']} of {tried} killed ({100 * counts['killed'] / max(1, tried):.0f} %)")
    return counts["killed"], counts["survived"]


def main():
    parser = argparse.ArgumentParser(description="Checks that tests notice mutants of source files.")
    parser.add_argument("files", nargs="+", metavar="FILE", help="sources, relative to the repository")
    parser.add_argument("--count", type=int, default=20, help="mutants")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--list", action="store_true", help="print the mutants and end")
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "build" / "mutants", help="the copy to build in")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="of the build")
    parser.add_argument("--timeout", type=int, default=600, help="seconds for a test program")
    options = parser.parse_args()
    mutants = drawn(options.files, options.seed)
    if options.list:
        print("\n".join(mutant.description((ROOT / mutant.file).read_text()) for mutant in mutants[: options.count]))
        return 0
    workspace = Workspace(options.folder.resolve(), options.jobs, options.timeout)
    for program in sorted({test_program(file) for file in options.files}):
        if not workspace.build(program) or not workspace.passes(program):
            sys.exit(f"{program} fails without a mutant")
    return 1 if report(mutants, options.count, workspace.state_of)[1] else 0


if __name__ == "__main__":
    sys.exit(main())
