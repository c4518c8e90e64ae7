#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of tools/code_figures.py on a small tree."""

import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tools"))
import code_figures  # noqa: E402

FILES = {
    "vitrail/a.h": "// sam::Sam in a comment\nstruct Request {\n  int tokens = 0;\n  bool normalize = true;\n};\n",
    "vitrail/a_internal.h": "struct Other {\n  int tokens;\n};\n",
    "vitrail/sam/b.cpp": "sam::Sam b;\n",
    "vitrail/serve/c.cpp": 'const char* text = "a // b";\nsam::Sam c;\n',
    "apps/vitrail/shell/main.cpp": '#include "vitrail/models/sam/sam.h"\n',
    "tests/serve/c_test.cpp": 'EXPECT("x: expected a, got b");  // "expected a" in a comment\nf("expected", "a b");\n',
    "tests/fixtures/d.cpp": "left out\n",
    "docs/extending.md": """## An operation

### In the library

- `a.h`, `b.cpp`: one.
- `c.cpp`: only for a fusion.

## A layer

- `d.h`: another.
""",
}


class CodeFigures(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = pathlib.Path(folder.name)
        for name, text in FILES.items():
            (self.root / name).parent.mkdir(parents=True, exist_ok=True)
            (self.root / name).write_text(text)

    def test_lines_are_counted_by_folder(self):
        expected = {"vitrail": 8, "vitrail/sam": 1, "vitrail/serve": 2, "apps/vitrail/shell": 1, "tests/serve": 2}
        self.assertEqual(code_figures.lines_by_folder(self.root), expected)

    def test_files_outside_the_folders_of_segmentation_are_named(self):
        files = [str(path) for path in code_figures.segmentation_files(self.root)]
        self.assertEqual(files, ["vitrail/serve/c.cpp", "apps/vitrail/shell/main.cpp"])

    def test_words_structs_headers_and_files_of_an_operation_are_counted(self):
        self.assertEqual(code_figures.wording_pins(self.root), 1)
        self.assertEqual(code_figures.feature_requests(self.root), ["Request (vitrail/a.h)"])
        self.assertEqual(code_figures.installed_headers(self.root), 1)
        self.assertEqual(code_figures.operation_files(self.root), ["a.h", "b.cpp"])


if __name__ == "__main__":
    unittest.main()
