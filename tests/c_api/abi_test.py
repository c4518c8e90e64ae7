#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The binary interface of vitrail/c_api.h, by libabigail: programs that were compiled against the header of an earlier
version (tests/c_api/released/) run with the library of this one.

A release that increases VITRAIL_C_API_VERSION adds a copy of its header.  Each header becomes a library of functions
with empty bodies, whose debug information has the types.
"""

import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
HEADER = HERE.parents[1] / "vitrail/c_api.h"
RELEASED = sorted((HERE / "released").glob("c_api_*.h"))
FUNCTION = re.compile(r"^([a-z][^{};#]*?\bvitrail_\w+\([^;{}]*\));", re.MULTILINE)
# abidiff's status has these bits if it could not compare.
ERROR = 3
# Structures that begin with their size may grow: SIZED finds their names and fields.
SIZED = re.compile(r"^typedef struct (\w+) \{\n  size_t struct_size;\n(.*?)^\}", re.MULTILINE | re.DOTALL)
GROWN = "[suppress_type]\n  type_kind = struct\n  name = {}\n  has_data_member_inserted_at = end\n"


def without_comments(header):
    return re.sub(r" */\*.*?\*/", "", header, flags=re.DOTALL)


def grown(old, new):
    """The structures to which the new header only appends fields."""
    fields = dict(SIZED.findall(without_comments(new)))
    return [name for name, before in SIZED.findall(without_comments(old)) if fields.get(name, "").startswith(before)]


def with_bodies(header):
    """The header as a source file that defines its functions."""
    plain = without_comments(header)
    functions = [match for match in FUNCTION.findall(plain) if not match.startswith("typedef")]
    assert len(functions) > 30, "the functions of the header were not found"
    return header + "".join(f"\n{function} {{ __builtin_trap(); }}" for function in functions)


@unittest.skipUnless(shutil.which("abidiff"), "abidiff is not installed (apt-get install abigail-tools)")
class Abi(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory(prefix="vitrail-abi-")
        self.addCleanup(scratch.cleanup)
        self.folder = pathlib.Path(scratch.name)

    def library(self, name, header):
        source, library = self.folder / f"{name}.c", self.folder / name / "libvitrail.so"
        library.parent.mkdir(exist_ok=True)
        source.write_text(with_bodies(header))
        subprocess.run(["gcc", "-g", "-O0", "-w", "-shared", "-fPIC", source, "-o", library], check=True)
        return library

    def incompatibilities(self, old, new):
        """What abidiff reports of an incompatible change, else an empty text."""
        libraries = [self.library(name, header) for name, header in (("old", old), ("new", new))]
        suppressions = self.folder / "suppressions.ini"
        suppressions.write_text("".join(GROWN.format(name) for name in grown(old, new)))
        command = ["abidiff", "--no-added-syms", "--suppressions", suppressions, *libraries]
        run = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual(run.returncode & ERROR, 0, run.stderr)
        return run.stdout if run.returncode else ""

    def test_the_library_runs_what_was_compiled_against_released_headers(self):
        self.assertTrue(RELEASED)
        for released in RELEASED:
            with self.subTest(released.name):
                self.assertEqual(self.incompatibilities(released.read_text(), HEADER.read_text()), "")

    def test_the_version_has_its_header(self):
        version = re.search(r"#define VITRAIL_C_API_VERSION (\d+)", HEADER.read_text())[1]
        self.assertIn(f"c_api_{version}.h", [released.name for released in RELEASED])

    def test_fields_and_functions_may_be_added(self):
        header = HEADER.read_text()
        for old, new in (
            ("  int64_t image_width;\n", "  int64_t image_width;\n  int added;\n"),
            ("int vitrail_api_version(void);", "int vitrail_api_version(void);\nint vitrail_added(int x);"),
        ):
            with self.subTest(new):
                self.assertIn(old, header)
                self.assertEqual(self.incompatibilities(header, header.replace(old, new)), "")

    def test_changes_are_noticed(self):
        header = HEADER.read_text()
        for old, new in (
            ("int vitrail_tensor_rank(const vitrail_tensor* tensor);", ""),
            ("int vitrail_tensor_rank(", "int64_t vitrail_tensor_rank("),
            ("VITRAIL_INVALID = 1,", "VITRAIL_INVALID = 4,"),
            ("  int64_t image_height;", "  int added;\n  int64_t image_height;"),
            ("  float probability;", "  double probability;"),
        ):
            with self.subTest(old):
                self.assertIn(old, header)
                self.assertNotEqual(self.incompatibilities(header, header.replace(old, new)), "")


if __name__ == "__main__":
    unittest.main()
