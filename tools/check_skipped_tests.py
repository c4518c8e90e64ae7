#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the tests that ctest skipped with tests/expected_skips.toml, so that none is skipped unnoticed.

    tools/check_skipped_tests.py build/test.log

The list tells which tests are skipped under which condition.  On a machine where the condition holds, each of them must
be skipped, and no other test may be.  Status 1 otherwise.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import tomllib

ROOT = pathlib.Path(__file__).resolve().parents[1]
EXPECTED = ROOT / "tests" / "expected_skips.toml"
SKIPPED = re.compile(r"Test\s+#\d+: (\S+) \.*\*\*\*Skipped")
RUN = re.compile(r"Test\s+#\d+: (\S+) \.*")


def mounts_files():
    """Whether this process may mount a file over another one, in a mount namespace of its own."""
    if not shutil.which("unshare"):
        return False
    with tempfile.TemporaryDirectory() as folder:
        source, target = pathlib.Path(folder, "source"), pathlib.Path(folder, "target")
        source.touch()
        target.touch()
        command = ["unshare", "-m", "mount", "--bind", source, target]
        return subprocess.run(command, capture_output=True, check=False).returncode == 0


def conditions_of_this_machine():
    """The conditions of the list, and whether they hold here."""
    assets = pathlib.Path(os.environ.get("VITRAIL_ASSETS", ROOT.parent / "shared" / "assets"))
    cpu = pathlib.Path("/proc/cpuinfo")
    bf16 = cpu.is_file() and "avx512_bf16" in cpu.read_text().split()
    scalar = os.environ.get("VITRAIL_CPU") == "scalar"
    return {
        "no assets": not (assets / "weights").is_dir(),
        "no AVX-512 BF16": not bf16,
        "AVX-512 BF16 is not used": not bf16 or "VITRAIL_CPU" in os.environ,
        "files cannot be mounted": not mounts_files(),
        "scalar kernels": scalar,
    }


def expected_skips(rows, conditions):
    """The names of the tests that are skipped under these conditions, and the names of unknown conditions."""
    names, unknown = set(), []
    for row in rows:
        if row["when"] not in conditions:
            unknown.append(row["when"])
        elif conditions[row["when"]]:
            names.update(row["tests"])
    return names, unknown


def problems_of(log, rows, conditions):
    expected, unknown = expected_skips(rows, conditions)
    skipped, run = set(SKIPPED.findall(log)), set(RUN.findall(log))
    problems = [f'tests/expected_skips.toml: unknown condition "{condition}"' for condition in unknown]
    if not run:
        problems.append("expected the output of ctest, got no line of a test")
    problems += [f"{name}: is skipped, which tests/expected_skips.toml does not expect" for name in skipped - expected]
    problems += [f"{name}: should be skipped here, but runs" for name in (expected & run) - skipped]
    problems += [f"{name}: is expected to be skipped, but is no test" for name in (expected - run) if run]
    return sorted(problems)


def main():
    parser = argparse.ArgumentParser(description="Compares the skipped tests with tests/expected_skips.toml.")
    parser.add_argument("log", type=pathlib.Path, help="output of ctest")
    options = parser.parse_args()
    rows = tomllib.loads(EXPECTED.read_text())["skip"]
    log = options.log.read_text(errors="replace")
    problems = problems_of(log, rows, conditions_of_this_machine())
    for problem in problems:
        print(problem)
    print(f"{len(set(SKIPPED.findall(log)))} of {len(set(RUN.findall(log)))} tests skipped, {len(problems)} problems")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
