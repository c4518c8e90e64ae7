# SPDX-License-Identifier: Apache-2.0
"""tools/check_filesystem.py finds calls that throw, and no others."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import check_filesystem  # noqa: E402


def lines(text):
    return [line for line, _ in check_filesystem.problems(text)]


class CheckFilesystemTest(unittest.TestCase):
    def test_calls_without_an_error_code_are_found(self):
        for call in (
            "fs::exists(path);",
            "if (std::filesystem::is_directory(folder / name(1, 2)))",
            "fs::copy_file(a, b, fs::copy_options::overwrite_existing);",
            "fs::directory_iterator entries(folder);",
            "for (const auto& entry : fs::directory_iterator(folder, error)) {",
            "entry->is_directory()",
            "fs::rename(from,\n           to);",
        ):
            self.assertTrue(lines(f"std::error_code error;\n{call}"), call)

    def test_calls_with_an_error_code_are_accepted(self):
        for call in (
            "fs::exists(path, error);",
            "fs::copy_file(a, b, fs::copy_options::overwrite_existing, error);",
            "fs::directory_iterator entries(folder, error);",
            "entries != fs::directory_iterator();",
            "const fs::file_status status = fs::status(path, error); fs::exists(status);",
            "fs::is_symlink(fs::symlink_status(path, error))",
            "entry->is_directory(error)",
            "// fs::exists(path) throws",
            "const fs::path path(name);",
        ):
            self.assertEqual(lines(f"std::error_code error;\n{call}"), [], call)

    def test_the_line_is_that_of_the_call(self):
        self.assertEqual(lines("int a;\n\nfs::exists(path);\n"), [3])


if __name__ == "__main__":
    unittest.main()
