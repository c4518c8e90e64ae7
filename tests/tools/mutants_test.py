# SPDX-License-Identifier: Apache-2.0
"""The mutants of tools/mutants/ still apply to the sources, so that tools/mutants/run.py can check the tests."""

import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "mutants"))
import run  # noqa: E402


class MutantsTest(unittest.TestCase):
    def test_every_mutant_applies(self):
        for mutant in run.read_mutants():
            with self.subTest(mutant["name"]):
                self.assertEqual(run.problem_of(mutant), "")

    def test_names_are_unique(self):
        names = [mutant["name"] for mutant in run.read_mutants()]
        self.assertEqual(len(names), len(set(names)))

    def test_problems_are_found(self):
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            (root / "tests" / "base").mkdir(parents=True)
            (root / "tests" / "base" / "a_test.cpp").touch()
            (root / "a.cpp").write_text("int a = 1; int b = 1;")
            good = {"name": "a", "file": "a.cpp", "original": "a = 1", "mutated": "a = 2", "program": "base_tests"}
            good["filter"] = "*"
            self.assertEqual(run.problem_of(good, root), "")
            for change, problem in [
                ({"file": "b.cpp"}, "does not exist"),
                ({"original": "a = 3"}, "0 times"),
                ({"original": " = 1"}, "2 times"),
                ({"mutated": "a = 1"}, "is the original"),
                ({"program": "other_tests"}, "no test program"),
                ({"comment": "x"}, "expected the fields"),
            ]:
                self.assertIn(problem, run.problem_of({**good, **change}, root))


if __name__ == "__main__":
    unittest.main()
