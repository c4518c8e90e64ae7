#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests of tools/compare_builds.py, with scripts as programs."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tools"))
import compare_builds  # noqa: E402

# Prints its arguments, a time that changes from run to run and its own path, and writes a file.
PROGRAM = """#!{python}
import pathlib, sys, time
print(sys.argv[1:], '{{"seconds": %f, "top1": {top1}}}' % time.time(), __file__)
pathlib.Path("out").mkdir(exist_ok=True)
pathlib.Path("out/metrics.csv").write_text("loss,seconds\\n{loss},%f" % time.time())
pathlib.Path("out/a.npy").write_bytes(b"\\x93NUMPY{array}")
"""


class CompareBuilds(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def program(self, name, top1="0.5", loss="1.5", array="1"):
        path = pathlib.Path(self.folder.name) / name / "build" / "release" / "vitrail"
        path.parent.mkdir(parents=True)
        path.write_text(PROGRAM.format(python=sys.executable, top1=top1, loss=loss, array=array))
        path.chmod(0o755)
        return path

    def compare(self, base, new):
        """The status, and the lines of the cases."""
        tool = ROOT / "tools" / "compare_builds.py"
        command = [sys.executable, tool, base, new, "--quick", "--only", "^(models|knn)$"]
        ended = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual(ended.stderr, "")
        return ended.returncode, ended.stdout.splitlines()

    def test_programs_that_differ_in_times_and_place_are_equal(self):
        status, lines = self.compare(self.program("a"), self.program("b"))
        self.assertEqual([line.split()[:2] for line in lines[:2]], [["equal", "knn"], ["equal", "models"]])
        self.assertEqual((status, lines[2]), (0, "2 cases, 0 differ"))

    def test_each_difference_is_found_and_shown(self):
        base = self.program("base")
        for index, (change, text) in enumerate(
            [
                ({"top1": "0.25"}, "0 stdout: "),
                ({"loss": "1.25"}, "out/metrics.csv: '1.5' | '1.25'"),
                ({"array": "2"}, "out/a.npy: "),
            ]
        ):
            status, lines = self.compare(base, self.program(f"new{index}", **change))
            self.assertEqual((status, lines[-1]), (1, "2 cases, 2 differ"))
            self.assertIn(text, lines[0])

    def test_other_cases_files_and_statuses_are_differences(self):
        self.assertEqual(compare_builds.difference({"a": b"1"}, {"a": b"1"}), "")
        self.assertEqual(compare_builds.difference({"a": b"1"}, {}), "a: only in base")
        self.assertEqual(compare_builds.difference({}, {"b": b"1"}), "b: only in new")
        self.assertIn("0 status", compare_builds.difference({"0 status": b"0"}, {"0 status": b"1"}))
        self.assertIn("(more lines)", compare_builds.difference({"a": b"1"}, {"a": b"1\n2"}))

    def test_weights_are_compared_though_their_metadata_has_times(self):
        def file(seconds, data):
            header = b'{"__metadata__":{"seconds":"%d"}}' % seconds
            content = len(header).to_bytes(8, "little") + header + data
            return compare_builds.normalised("x.safetensors", content, "/a/b/c/d")

        self.assertEqual(file(1, b"weights"), file(2, b"weights"))
        self.assertNotEqual(file(1, b"weights"), file(1, b"Weights"))


if __name__ == "__main__":
    unittest.main()
