# SPDX-License-Identifier: Apache-2.0
"""The fuzz targets have seeds and dictionaries, and SECURITY.md lists all of them."""

import pathlib
import re
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FUZZ = ROOT / "fuzz"
# A file of CIFAR has records of one size, whose bytes are pixels and labels.
WITHOUT_TOKENS = {"cifar"}


def targets():
    return {path.stem.removeprefix("fuzz_") for path in FUZZ.glob("fuzz_*.cpp")}


def listed_targets(page):
    """The targets in the second column of the table under "Fuzzing"."""
    rows = re.findall(r"^\|[^|]+\|([^|]+)\|$", page.split("## Fuzzing")[1], re.MULTILINE)
    return [name for row in rows for name in re.findall(r"`(\w+)`", row)]


def seeds_of(target):
    """The seeds as scripts/fuzz_target finds them."""
    source = (FUZZ / f"fuzz_{target}.cpp").read_text()
    patterns = [f"fuzz/corpus/fuzz_{target}/*", *re.findall(r"^// *corpus: *(.*)$", source, re.MULTILINE)]
    return [path for pattern in patterns for part in pattern.split() for path in ROOT.glob(part)]


class FuzzTargetsTest(unittest.TestCase):
    def test_the_page_lists_each_target_once(self):
        listed = listed_targets((ROOT / "SECURITY.md").read_text())
        self.assertEqual(sorted(listed), sorted(targets()))

    def test_each_target_has_seeds(self):
        for target in targets():
            self.assertTrue(seeds_of(target), target)

    def test_each_format_with_tokens_has_a_dictionary(self):
        dictionaries = {path.stem.removeprefix("fuzz_") for path in (FUZZ / "dictionaries").glob("*.dict")}
        self.assertEqual(dictionaries, targets() - WITHOUT_TOKENS)

    def test_a_missing_target_would_be_noticed(self):
        page = "## Fuzzing\n\n| what | targets |\n| --- | --- |\n| images | `png` with EXIF, `jpeg` |\n"
        self.assertEqual(listed_targets(page), ["png", "jpeg"])


if __name__ == "__main__":
    unittest.main()
