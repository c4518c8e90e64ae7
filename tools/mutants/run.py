#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that tests notice faults: applies each mutant of mutants/*.toml to a copy of the sources, builds the test
program that should notice it, and runs it.

    tools/mutants/run.py                  all mutants
    tools/mutants/run.py --list
    tools/mutants/run.py next_rate 'ema*' mutants by name or glob
    tools/mutants/run.py --file train     those of mutants/train.toml

A mutant is killed if its test program fails or does not end.  A mutant that does not compile is an error of the list.
Status 1 if one survives or is an error.  It takes about a minute per mutant and is no part of CI; there,
tests/tools/mutants_test.py checks that each mutant still applies.
"""

import argparse
import fnmatch
import os
import pathlib
import shutil
import subprocess
import sys
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[2]
LISTS = pathlib.Path(__file__).resolve().parent
FIELDS = {"name", "file", "original", "mutated", "program", "filter"}


def read_mutants(lists=LISTS):
    """The mutants of all lists: dictionaries with FIELDS and "list", the name of the file."""
    mutants = []
    for path in sorted(lists.glob("*.toml")):
        for mutant in tomllib.loads(path.read_text())["mutant"]:
            mutants.append({"filter": "*", **mutant, "list": path.stem})
    return mutants


def problem_of(mutant, root=ROOT):
    """Why a mutant cannot be applied to the sources, or an empty string."""
    if set(mutant) - {"list"} != FIELDS:
        return f"expected the fields {sorted(FIELDS)}, got {sorted(mutant)}"
    path = root / mutant["file"]
    if not path.is_file():
        return f"{mutant['file']} does not exist"
    count = path.read_text().count(mutant["original"])
    if count != 1:
        return f"expected the original text once in {mutant['file']}, got it {count} times"
    if mutant["original"] == mutant["mutated"]:
        return "the mutated text is the original"
    if not list((root / "tests" / mutant["program"].removesuffix("_tests")).glob("*_test.cpp")):
        return f"there is no test program {mutant['program']}"
    return ""


def copy_sources(to):
    """Copies the files that git knows or would add; files that are equal keep their times, so that builds are short.
    Deletes others, except in build/."""
    command = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout.split(b"\0")
    wanted = {os.fsdecode(name) for name in names if name and (ROOT / os.fsdecode(name)).is_file()}
    for name in sorted(wanted):
        source, target = ROOT / name, to / name
        if target.is_file() and target.read_bytes() == source.read_bytes():
            continue
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
        shutil.copymode(source, target)
    for path in list(to.rglob("*")):
        name = str(path.relative_to(to))
        if path.is_file() and not name.startswith("build/") and name not in wanted:
            path.unlink()


class Workspace:
    def __init__(self, source, jobs, timeout, definitions):
        # The build folder is where the preset "release" has it, so that ccache finds what was compiled elsewhere.
        self.source, self.build_folder, self.jobs, self.timeout = source, source / "build" / "release", jobs, timeout
        self.environment = {**os.environ, "CCACHE_BASEDIR": str(self.source), "CCACHE_NOHASHDIR": "1"}
        copy_sources(self.source)
        options = ["-G", "Ninja", "-D", "CMAKE_BUILD_TYPE=Release", "-D", "VITRAIL_EXAMPLES=OFF"]
        options += [f"-D{definition}" for definition in definitions]
        if shutil.which("ccache"):
            options += ["-D", "CMAKE_CXX_COMPILER_LAUNCHER=ccache"]
        self.run(["cmake", "-S", self.source, "-B", self.build_folder, *options], check=True)

    def run(self, command, check=False, timeout=None):
        return subprocess.run(
            [str(part) for part in command],
            check=check,
            timeout=timeout,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        )

    def build(self, program):
        # The program vitrail is a part of what apps_tests tests.
        targets = [program, "vitrail"] if program == "apps_tests" else [program]
        return self.run(["cmake", "--build", self.build_folder, "-j", self.jobs, "--target", *targets])

    def passes(self, program, names):
        """Whether the tests of the program pass."""
        try:
            command = [self.build_folder / "tests" / program, f"--gtest_filter={names}", "--gtest_fail_fast"]
            result = self.run(command, timeout=self.timeout)
        except subprocess.TimeoutExpired:
            return False
        if "[  PASSED  ] 0 tests" in result.stdout and result.returncode == 0:
            raise SystemExit(f"{program}: the filter {names} selects no test that runs")
        return result.returncode == 0

    def state_of(self, mutant):
        path = self.source / mutant["file"]
        original = path.read_text()
        path.write_text(original.replace(mutant["original"], mutant["mutated"]))
        try:
            built = self.build(mutant["program"])
            if built.returncode != 0:
                return "error: does not compile\n" + built.stdout[-2000:]
            return "survived" if self.passes(mutant["program"], mutant["filter"]) else "killed"
        finally:
            path.write_text(original)


def check_unchanged(workspace, mutants):
    """The tests must pass without a mutant; otherwise every mutant counts as killed."""
    for program, names in sorted({(mutant["program"], mutant["filter"]) for mutant in mutants}):
        built = workspace.build(program)
        if built.returncode != 0:
            sys.exit(f"{program} does not compile:\n{built.stdout[-4000:]}")
        if not workspace.passes(program, names):
            sys.exit(f"{program} --gtest_filter={names} fails without a mutant")


def main():
    parser = argparse.ArgumentParser(description="Checks that tests notice the mutants of mutants/*.toml.")
    parser.add_argument("names", nargs="*", help="names or globs of mutants; default: all")
    parser.add_argument("--file", help="only the mutants of this list")
    parser.add_argument("--list", action="store_true", help="print the mutants and end")
    parser.add_argument("--folder", type=pathlib.Path, default=ROOT / "build" / "mutants", help="the copy to build in")
    parser.add_argument("--define", action="append", default=[], help="NAME=VALUE of CMake; repeatable")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="of the build")
    parser.add_argument("--timeout", type=int, default=600, help="seconds for a test program")
    options = parser.parse_args()
    mutants = [
        mutant
        for mutant in read_mutants()
        if (not options.names or any(fnmatch.fnmatch(mutant["name"], name) for name in options.names))
        and options.file in (None, mutant["list"])
    ]
    if options.list:
        for mutant in mutants:
            print(f"{mutant['name']:40} {mutant['file']:45} {mutant['program']} {mutant['filter']}")
        return 0
    if not mutants:
        parser.error("no mutant has such a name")
    for mutant in mutants:
        if problem := problem_of(mutant):
            sys.exit(f"{mutant['name']}: {problem}")
    workspace = Workspace(options.folder, options.jobs, options.timeout, options.define)
    check_unchanged(workspace, mutants)
    states = {}
    for mutant in mutants:
        states[mutant["name"]] = workspace.state_of(mutant)
        print(f"{mutant['name']:40} {states[mutant['name']]}", flush=True)
    killed = sum(state == "killed" for state in states.values())
    print(f"{killed} of {len(states)} killed")
    return 0 if killed == len(states) else 1


if __name__ == "__main__":
    sys.exit(main())
