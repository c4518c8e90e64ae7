#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tests that the prose check finds what it is for, and nothing else."""

import pathlib
import sys
import tempfile
import tomllib
import unittest
from unittest import mock

ROOT = pathlib.Path(__file__).parent.parent.parent
sys.path.insert(0, str(ROOT / "tools"))
import check_prose  # noqa: E402

DATA = tomllib.loads(check_prose.RULES.read_text())


def findings(path, text, rules=None):
    return check_prose.check_text(rules or check_prose.Rules(DATA), path, text)


class Case(unittest.TestCase):
    def assert_fine(self, path, text):
        self.assertEqual(findings(path, text), [])

    def assert_caught(self, path, text, word, line=1, advice=""):
        found = findings(path, text)
        self.assertEqual([(f.line, f.text) for f in found], [(line, word)], found)
        self.assertIn(advice, found[0].advice)


class Identifiers(Case):
    def test_parts_of_compound_names_are_compared(self):
        self.assert_caught("vitrail/nn/a.cpp", "constexpr int kMostRows = 3;", "kMostRows", advice="max")
        self.assert_caught("vitrail/nn/a.cpp", "int least_time;", "least_time", advice="min")
        self.assert_caught("vitrail/kernels/a.cpp", "WeightRest r;", "WeightRest", advice="correction")
        self.assert_caught("vitrail/train/a.cpp", "\nint crew_;", "crew_", line=2, advice="process group")
        self.assert_caught("apps/vitrail/a.cpp", "#define MAKE_PICTURES 1", "MAKE_PICTURES", advice="image")

    def test_longer_words_are_other_words(self):
        self.assert_fine(
            "vitrail/kernels/a.cpp", "int restart, almost_done, mostly, crewless, parameter, restore_rows;"
        )

    def test_at_least_and_dot_product_are_usual_names(self):
        self.assert_fine("vitrail/kernels/a.cpp", "int at_least, at_most; void dot_product(); class AtLeast;")

    def test_a_single_word_counts_in_code_but_not_in_a_sentence(self):
        self.assert_caught("vitrail/nn/a.cpp", "int most = 1;  // the most frequent class", "most")
        self.assert_caught("vitrail/nn/a.cpp", "// The limit is `most`.", "most")
        self.assert_fine("vitrail/nn/a.cpp", '// The most frequent class.\nError("most rows");')

    def test_compound_names_count_in_comments_strings_and_documentation(self):
        self.assert_caught("vitrail/nn/a.cpp", "// See weight_rest.", "weight_rest")
        self.assert_caught("vitrail/nn/a.cpp", 'f("weight_rest");', "weight_rest")
        self.assert_caught("docs/a.md", "The file has `weight_rest`.", "weight_rest")

    def test_a_rule_may_be_for_some_folders_only(self):
        self.assert_caught("vitrail/kernels/a.cpp", "float rest;", "rest")
        self.assert_fine("vitrail/data/datasets/csv.cpp", "std::string_view rest;")

    def test_names_of_files_are_identifiers(self):
        self.assert_caught("tests/support/pictures.cpp", "int x;\n", "pictures", line=0)


class Phrases(Case):
    def test_comments_strings_and_documentation_are_read(self):
        self.assert_caught("vitrail/nn/a.cpp", "// The file is read anew.", "anew", advice="again")
        self.assert_caught("vitrail/nn/a.cpp", "/* Used in place of\n   the bias. */", "in place of")
        self.assert_caught("vitrail/nn/a.cpp", 'Error("a readable picture");', "picture")
        self.assert_caught("tools/a.py", '"""Reads\n\npictures."""\n', "pictures", line=3)
        self.assert_caught("tools/a.py", "x = 1  # a picture\n", "picture")
        self.assert_caught("README.md", "Vitrail\n\nreads pictures.\n", "pictures", line=3)
        self.assert_caught("cmake/a.cmake", "# done anew\n", "anew")
        self.assert_caught("scripts/test", "#!/bin/sh\n# done anew\n", "anew", line=2)

    def test_a_phrase_may_be_broken_across_lines(self):
        self.assert_caught("vitrail/nn/a.cpp", "int x;\n  // Used in\n  // place of the bias.", "in place of", line=2)
        self.assert_caught("tools/a.py", "x = 1\n# Used in place\n# of the bias.\n", "in place of", line=2)
        self.assert_caught("docs/a.md", "Used in\nplace of the bias.\n", "in place of")

    def test_parts_of_words_and_near_phrases_pass(self):
        self.assert_fine(
            "vitrail/nn/a.cpp", "// The function picturesque returns in turn; it stands for the renewed place of it."
        )
        self.assert_fine("docs/a.md", "The rest of the file is read once. A stand-alone program needs at most one.\n")

    def test_slashes_in_a_string_begin_no_comment(self):
        self.assert_fine("vitrail/nn/a.cpp", 'f("https://x"); int y;')


class Allowed(Case):
    RULES = {
        "identifiers": [["rests?", "correction"]],
        "allow": [{"path": "vitrail/weights/", "text": "_rest", "reason": "an old key"}],
    }

    def test_an_allowed_use_passes_in_its_folder_only(self):
        rules = check_prose.Rules(self.RULES)
        self.assertEqual(findings("vitrail/weights/a.cpp", 'f("_rest");', rules), [])
        self.assertEqual(len(findings("vitrail/nn/a.cpp", 'f("_rest");', rules)), 1)
        self.assertEqual(len(findings("vitrail/weights/a.cpp", "int w_rest;", rules)), 1)

    def test_an_entry_that_nothing_needs_is_told(self):
        rules = check_prose.Rules(self.RULES)
        self.assertEqual(len(rules.unused()), 1)
        findings("vitrail/weights/a.cpp", 'f("_rest");', rules)
        self.assertEqual(rules.unused(), [])

    def test_every_entry_has_a_reason(self):
        for entry in DATA["allow"]:
            self.assertTrue(entry["reason"], entry)


class Fragments(Case):
    def assert_fragment(self, text):
        found = findings("vitrail/nn/a.cpp", text)
        self.assertEqual(len(found), 1, found)
        self.assertIn("comment begins", found[0].text)

    def test_a_comment_that_continues_the_name_is_caught(self):
        self.assert_fragment("// By oneDNN; null when there is none.\nvoid f();")
        self.assert_fragment("// Which augmentation an image gets.\nvoid f();")
        self.assert_fragment("// Of the last block.\nint blocks;")
        self.assert_fragment("// When all parts have been added.\nvoid f();")
        self.assert_fragment("int x;  // of the last block")

    def test_sentences_pass(self):
        self.assert_fine("vitrail/nn/a.cpp", "// When x is null, y is zero.\nvoid f();")
        self.assert_fine("vitrail/nn/a.cpp", "// As the paper has it, x is scaled.\nvoid f();")
        self.assert_fine("vitrail/nn/a.cpp", "// By default, x is empty.\nvoid f();")
        self.assert_fine(
            "vitrail/nn/a.cpp", "// Returns null where oneDNN has no kernel,\n// when x is empty.\nint x;  // in bytes"
        )


class Form(Case):
    LONG = "word " * 25

    def test_long_lines_are_caught(self):
        self.assert_caught("docs/a.md", f"{self.LONG}\n", "125 characters")
        self.assert_caught("cmake/a.cmake", f"\nset({self.LONG})\n", "130 characters", line=2)

    def test_tables_code_and_links_may_be_long(self):
        self.assert_fine("docs/a.md", f"| {self.LONG} | |\n")
        self.assert_fine("docs/a.md", f"```\n{self.LONG}\n```\n")
        self.assert_fine("docs/a.md", f"See [the paper](https://example.org/{'x' * 120}).\n")

    def test_long_paragraphs_are_caught(self):
        self.assert_caught("docs/a.md", "# Title\n" + "line\n" * 6, "paragraph of 6 lines", line=2)
        self.assert_caught("docs/a.md", "- item\n" + "  line\n" * 5, "paragraph of 6 lines")

    def test_lists_tables_code_and_short_paragraphs_pass(self):
        self.assert_fine("docs/a.md", "line\n" * 5 + "\n" + "line\n" * 5)
        self.assert_fine("docs/a.md", "- item\n" * 9 + "\n" + "1. item\n" * 9)
        self.assert_fine("docs/a.md", "| a |\n" * 9 + "\n```\n" + "code\n" * 9 + "```\n")


class Subjects(unittest.TestCase):
    def found(self, subject):
        return [finding for finding, _ in check_prose.check_subject(subject)]

    def test_imperative_subjects_pass(self):
        for subject in (
            "Add a check of words and form",
            "docs: Explain the int8 file format",
            "Speed up softmax with AVX-512 on Zen 4",
            "Support ViT-B/16, fp32, bf16 and 8-bit weights in C++20",
            "Embed the ImageNet-1k labels",
            "Process images of CIFAR-10 in batches",
            "Release 0.2.0",
            'Revert "Added 3 % speed."',
        ):
            self.assertEqual(self.found(subject), [], subject)

    def test_other_forms_are_caught(self):
        for subject in (
            "Added a check",
            "Adds a check",
            "Adding a check",
            "The table anew",
            "Docs: what the corrections cost",
            "What was tried",
            "Add a check.",
            "Add " + "x" * 69,
            "",
        ):
            self.assertEqual(len(self.found(subject)), 1, subject)

    def test_figures_are_caught(self):
        for subject in (
            "Speed up softmax by 3 %",
            "Take 38.4 ms for an image",
            "Reach 92.4 percent",
            "Make it 1.2 times faster",
        ):
            self.assertEqual(len(self.found(subject)), 1, subject)

    def test_a_commit_message_file_is_read_without_its_comments(self):
        with tempfile.TemporaryDirectory() as folder:
            message = pathlib.Path(folder) / "message"
            for text, status in (("# a hint\nAdd a check\n\nBody 3 %\n", 0), ("Added a check\n", 1)):
                message.write_text(text)
                with (
                    mock.patch.object(sys, "argv", ["check_prose.py", "--message", str(message)]),
                    mock.patch("builtins.print"),
                    self.assertRaises(SystemExit) as end,
                ):
                    check_prose.main()
                self.assertEqual(end.exception.code, status)


class Tree(unittest.TestCase):
    def test_data_of_others_is_not_read(self):
        rules = check_prose.Rules(DATA)
        for path in ("LICENSE", "fuzz/corpus/fuzz_image/a.md", "tests/fixtures/a.md"):
            self.assertTrue(path.startswith(rules.exclude), path)

    def test_binary_and_unknown_files_are_not_read(self):
        self.assertFalse(check_prose.is_checked("models/a.safetensors", "picture"))
        self.assertFalse(check_prose.is_checked("recipes/a.json", "picture"))
        self.assertTrue(check_prose.is_checked("scripts/test", "#!/bin/sh"))
        self.assertTrue(check_prose.is_checked("CMakeLists.txt", ""))


if __name__ == "__main__":
    unittest.main()
