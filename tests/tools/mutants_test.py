# SPDX-License-Identifier: Apache-2.0
"""Tests of tools/mutants/run.py: the mutants of a source, and the report of their states."""

import contextlib
import io
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "tools" / "mutants"))
import run  # noqa: E402

SOURCE = """#include <a_1.h>
int f(std::vector<int> list, bool fast = true) {
  // a < b: 7
  if (a < b && name == "x < 8") list.resize(0.5 * a);
  sum += g(a, b);
  return a - 3;
}
"""


class MutantsTest(unittest.TestCase):
    def changes(self, kind):
        """The changed line of each mutant of a kind, without indentation."""
        lines = []
        for mutant in run.mutants_of("vitrail/base/a.cpp", SOURCE):
            if mutant.kind == kind:
                lines.append(run.mutated(mutant, SOURCE).splitlines()[mutant.line(SOURCE) - 1].strip())
        return lines

    def test_operators_outside_comments_strings_and_templates_change(self):
        condition = 'if (a {} b {} name {} "x < 8") list.resize(0.5 {} a);'
        changed = [("<=", "&&", "==", "*"), ("<", "||", "==", "*"), ("<", "&&", "!=", "*"), ("<", "&&", "==", "/")]
        expected = [condition.format(*operators) for operators in changed]
        self.assertEqual(self.changes("operator"), [*expected, "sum -= g(a, b);", "return a + 3;"])

    def test_constants_change(self):
        self.assertEqual(
            self.changes("constant"),
            [
                "int f(std::vector<int> list, bool fast = false) {",
                'if (a < b && name == "x < 8") list.resize(1.5 * a);',
                "return a - 4;",
            ],
        )

    def test_statements_are_dropped_and_arguments_swapped(self):
        self.assertEqual(self.changes("statement"), [";"])
        self.assertEqual(self.changes("arguments"), ["sum += g(b, a);"])

    def test_the_seed_decides_the_order(self):
        with tempfile.TemporaryDirectory() as folder:
            (pathlib.Path(folder) / "a.cpp").write_text(SOURCE)
            first, again, other = (run.drawn(["a.cpp"], seed, pathlib.Path(folder)) for seed in (1, 1, 2))
        self.assertEqual(first, again)
        self.assertNotEqual(first, other)
        self.assertEqual(sorted(first), sorted(other))

    def test_mutants_that_do_not_compile_are_not_counted(self):
        with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()) as output:
            (pathlib.Path(folder) / "a.cpp").write_text(SOURCE)
            states = iter(["killed", "does not compile", "killed", "survived", "killed"])
            mutants = run.mutants_of("a.cpp", SOURCE)
            counts = run.report(mutants, 3, lambda mutant: next(states), pathlib.Path(folder))
        self.assertEqual(counts, (2, 1))
        self.assertIn("killed           a.cpp:4: operator: < → <=\n", output.getvalue())
        self.assertTrue(output.getvalue().endswith("2 of 3 killed (67 %)\n"))

    def test_tests_are_those_of_the_folder(self):
        self.assertEqual(run.test_program("vitrail/models/sam/sam.cpp"), "models_tests")
        self.assertEqual(run.test_program("apps/vitrail/main.cpp"), "apps_tests")


if __name__ == "__main__":
    unittest.main()
