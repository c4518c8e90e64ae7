# SPDX-License-Identifier: Apache-2.0
import pathlib
import re
import sys
import tomllib
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
import check_skipped_tests as check  # noqa: E402

LOG = """      Start  1: A.Runs
 1/3 Test  #1: A.Runs ............................   Passed    0.02 sec
 2/3 Test #12: A.NeedsFiles ......................***Skipped   0.01 sec
 3/3 Test #103: B.NeedsAFastCpu ..................***Skipped   0.01 sec
"""
ROWS = [{"when": "no files", "tests": ["A.NeedsFiles"]}, {"when": "slow", "tests": ["B.NeedsAFastCpu"]}]


class CheckSkippedTestsTest(unittest.TestCase):
    def test_expected_skips_are_right(self):
        self.assertEqual(check.problems_of(LOG, ROWS, {"no files": True, "slow": True}), [])

    def test_other_skips_are_problems(self):
        problems = check.problems_of(LOG, ROWS, {"no files": True, "slow": False})
        self.assertEqual(len(problems), 1)
        self.assertIn("B.NeedsAFastCpu: is skipped", problems[0])

    def test_a_test_that_runs_although_it_is_listed_is_a_problem(self):
        rows = [*ROWS, {"when": "slow", "tests": ["A.Runs"]}]
        problems = check.problems_of(LOG, rows, {"no files": True, "slow": True})
        self.assertEqual(problems, ["A.Runs: should be skipped here, but runs"])

    def test_a_listed_name_that_is_no_test_is_a_problem(self):
        rows = [*ROWS, {"when": "slow", "tests": ["A.Gone"]}]
        problems = check.problems_of(LOG, rows, {"no files": True, "slow": True})
        self.assertEqual(problems, ["A.Gone: is expected to be skipped, but is no test"])

    def test_unknown_conditions_and_empty_logs_are_problems(self):
        problems = check.problems_of(LOG, [{"when": "late", "tests": []}], {})
        self.assertTrue(any("unknown condition" in problem for problem in problems))
        self.assertTrue(any("no line of a test" in problem for problem in check.problems_of("", [], {})))

    def test_the_list_has_known_conditions_and_existing_tests(self):
        rows = tomllib.loads(check.EXPECTED.read_text())["skip"]
        _, unknown = check.expected_skips(rows, check.conditions_of_this_machine())
        self.assertEqual(unknown, [])
        sources = "".join(path.read_text() for path in (ROOT / "tests").glob("*/*_test.cpp"))
        tests = {f"{suite}.{name}" for suite, name in re.findall(r"^TEST(?:_F)?\((\w+), (\w+)\)", sources, re.M)}
        for row in rows:
            for name in row["tests"]:
                self.assertIn(name, tests)

    def test_every_test_that_needs_assets_is_listed(self):
        rows = tomllib.loads(check.EXPECTED.read_text())["skip"]
        listed = {name for row in rows if row["when"] == "no assets" for name in row["tests"]}
        found = set()
        for path in (ROOT / "tests").glob("*/*_test.cpp"):
            test = ""
            for line in path.read_text().splitlines():
                if match := re.match(r"TEST(?:_F)?\((\w+), (\w+)\)", line):
                    test = f"{match[1]}.{match[2]}"
                if line.lstrip().startswith("VITRAIL_NEED_ASSETS("):
                    found.add(test)
        self.assertEqual(found, listed)


if __name__ == "__main__":
    unittest.main()
