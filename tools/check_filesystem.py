#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Refuses calls of std::filesystem that throw instead of returning an error code.

A path that may not be looked at, a name that is too long or a link that leads to itself makes them throw
std::filesystem::filesystem_error, which is no vitrail::Error and names no remedy.   tools/check_filesystem.py [FILE…]
"""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FOLDERS = ("vitrail", "apps")

# The last argument has to be an error code, or a status that was found with one.
FUNCTIONS = (
    "absolute canonical weakly_canonical relative proximate copy copy_file copy_symlink create_directories "
    "create_directory create_hard_link create_symlink current_path equivalent exists file_size hard_link_count "
    "is_block_file is_character_file is_directory is_empty is_fifo is_other is_regular_file is_socket is_symlink "
    "last_write_time permissions read_symlink remove remove_all rename resize_file space status symlink_status "
    "temp_directory_path directory_iterator recursive_directory_iterator"
).split()
CALL = re.compile(r"\b(?:fs|filesystem)::(" + "|".join(FUNCTIONS) + r")\b(?:\s+\w+)?\s*\(")
MEMBER = re.compile(
    r"(?:->|\.)(is_directory|is_regular_file|is_symlink|file_size|last_write_time|symlink_status)\(\s*\)"
)
RANGE_FOR = re.compile(r"for\s*\([^;)]*:[^;]*directory_iterator\s*\(")
ERROR_CODE = re.compile(r"\bstd::error_code\s*&?\s*(\w+)")
FILE_STATUS = re.compile(r"\bfs::file_status\s+(\w+)|\bauto\s+(\w*status\w*)\s*=")


def arguments(text, start):
    """The arguments of the call whose opening parenthesis is at start − 1, split at top-level commas."""
    depth, begin, found = 1, start, []
    for i in range(start, len(text)):
        if text[i] in "([{":
            depth += 1
        elif text[i] in ")]}":
            depth -= 1
        if depth == 0 or (depth == 1 and text[i] == ","):
            found.append(text[begin:i].strip())
            begin = i + 1
        if depth == 0:
            return found
    return found


def problems(text):
    """Yields (line, message) for each throwing call in C++ source text."""
    code = re.sub(r"//[^\n]*", "", text)
    codes = set(ERROR_CODE.findall(code))
    statuses = {name for pair in FILE_STATUS.findall(code) for name in pair if name}
    for match in CALL.finditer(code):
        given = arguments(code, match.end())
        last = given[-1] if given else ""
        is_end = last == "" and match[1].endswith("iterator")
        if last in codes or last in statuses or is_end or any(last.endswith(f", {code})") for code in codes):
            continue
        yield code.count("\n", 0, match.start()) + 1, f"fs::{match[1]} without a std::error_code throws"
    for match in MEMBER.finditer(code):
        yield code.count("\n", 0, match.start()) + 1, f"{match[1]}() without a std::error_code throws"
    for match in RANGE_FOR.finditer(code):
        yield code.count("\n", 0, match.start()) + 1, "a range-based for over directory entries throws; use increment()"


def main():
    """Checks the given files, or all sources of the library and the program."""
    files = [pathlib.Path(name) for name in sys.argv[1:]]
    if not files:
        sources = [path for folder in FOLDERS for path in sorted((ROOT / folder).rglob("*"))]
        files = [path for path in sources if path.suffix in (".cpp", ".h")]
    count = 0
    for path in files:
        for line, message in problems(path.read_text(encoding="utf-8")):
            print(f"{path.resolve().relative_to(ROOT)}:{line}: {message}")
            count += 1
    print(f"check_filesystem: {len(files)} files, {count} findings")
    return 1 if count else 0


if __name__ == "__main__":
    sys.exit(main())
