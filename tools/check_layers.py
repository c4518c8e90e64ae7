#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds every include of the tree against the table in docs/design/architecture.md.

    tools/check_layers.py [ROOT]      ROOT: a repository, by default the one this file is in

Prints a line per violation (file:line: what is wrong) and exits with 1 if there is one.  Checked are
- includes between folders, against the table's third column, and that the table has no cycle;
- includes of third-party headers, against its fourth column;
- public headers (vitrail/**/*.h but for *-inl.h and *_internal.h), which include no third-party and no internal header;
- the silence of vitrail/: no standard streams, no printing, no ending of the process.
"""

import pathlib
import re
import sys

# The names of the table's fourth column, and the headers each stands for.
LIBRARIES = {
    "zlib": r"zlib\.h|zconf\.h",
    "omp": r"omp\.h",
    "hwy": r"hwy/.*",
    "dnnl": r"(oneapi/)?(dnnl/)?dnnl.*\.hp?p?",
    "intrinsics": r"\w*intrin\.h|cpuid\.h|arm_neon\.h|arm_sve\.h",
    "nlohmann": r"nlohmann/.*",
    "jpeg": r"jpeglib\.h|jerror\.h|jmorecfg\.h|turbojpeg\.h",
    "png": r"png(conf)?\.h",
    "webp": r"webp/.*",
    "gif": r"gif_lib\.h",
    "tiff": r"tiff(io)?\.h",
    "utf8proc": r"utf8proc\.h",
    "sentencepiece": r"sentencepiece.*\.h",
    "curl": r"curl/.*",
    "boost": r"boost/.*",
    "mpi": r"mpi\.h",
    "cuda": r"(cuda|cublas|cudnn|cutlass|nvrtc|nvml).*",
    "CLI11": r"CLI/.*",
    "fmt": r"fmt/.*",
    "pybind": r"pybind11/.*",
    "gtest": r"(gtest|gmock)/.*",
    "benchmark": r"benchmark/.*",
}
# What others than the library may include beside it.
ALLOWED = {"fuzz": {"tests"}, "examples": {"apps/vitrail"}, "tests": {"apps/vitrail", "examples"}}
# Free for all: C++ headers have no suffix; those of C, POSIX and glibc (malloc.h) are listed, so that an unknown
# library is noticed.
STANDARD = re.compile(
    r"[a-z_0-9]+|(sys|linux|netinet|arpa)/[\w/]+\.h|"
    r"(assert|ctype|errno|fenv|float|inttypes|limits|locale|math|setjmp|signal|stdarg|stddef|stdint|stdio|stdlib|string|"
    r"time|dirent|dlfcn|fcntl|glob|link|malloc|netdb|poll|pthread|pwd|sched|semaphore|spawn|strings|termios|unistd|"
    r"wordexp)\.h"
)
SOURCES = {".h", ".hpp", ".cpp", ".cc", ".cu", ".cuh", ".inc"}
INTERNAL = re.compile(r".*(-inl|_internal)\.h")
INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]*(.*?)[ \t]*$", re.M)
NOISE = re.compile(
    r"\bstd::(cout|cerr|clog|puts|print|println|exit|_Exit|quick_exit|abort|terminate)\b|"
    r"(?<![\w.>])(v?f?printf|puts|fputs|putchar|perror|_?exit|_Exit|quick_exit|abort)\s*\(|#\s*include\s*<iostream>"
)
# Comments and literals in the order of the alternatives, so that // inside a string is no comment.
TOKENS = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(?P<mark>[^(\s]*)\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"|(?<!\w)\'(?:\\.|[^\'\\\n])+\'', re.S
)


def without(text, literals):
    """The text with its comments (and, if asked, its literals) blanked; lines keep their numbers."""

    def blank(match):
        token = match.group()
        if token.startswith("/") or literals:
            return re.sub(r"[^\n]", " ", token)
        return token

    return TOKENS.sub(blank, text)


class Table:
    """The table's rows: folder (or single file) → the folders and headers, and the libraries, that it may include.

    A file belongs to the row of its innermost folder.  A subfolder without a row belongs to its parent's row, and a row
    that names a folder also allows its subfolders.
    """

    def __init__(self, text):
        self.folders, self.libraries, self.problems = {}, {}, []
        for line in text.splitlines():
            cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
            if len(cells) == 4 and re.fullmatch(r"`[\w/]+(/|\.h)`", cells[0]):
                self.add(cells[0].strip("`/"), cells[2], cells[3])
        if not self.folders:
            self.problems.append("the table of folders was not found")
        self.check()

    def add(self, folder, folders, libraries):
        def names(cell):
            return [] if cell == "–" else [name.strip() for name in cell.split(",")]

        if folder in self.folders:
            self.problems.append(f"{folder} has two rows")
        self.folders[folder] = names(folders)
        self.libraries[folder] = names(libraries)

    def rows_named(self, name):
        """The rows that a name of the third column stands for: its own and those below it, or the one around it."""
        path = f"vitrail/{name}"
        rows = {row for row in self.folders if row == path or row.startswith(path + "/")}
        return rows or {self.row_of(path)} - {None}

    def check(self):
        for folder, allowed in self.folders.items():
            for name in allowed:
                if name != "everything" and not self.rows_named(name):
                    self.problems.append(f"{folder} may include {name}, which has no row")
                if any(name.startswith(other + "/") for other in allowed):
                    self.problems.append(f"{folder} names {name} and a folder that it is in")
            for library in self.libraries[folder]:
                if library not in LIBRARIES:
                    self.problems.append(f"{folder} names the library {library}, unknown to tools/check_layers.py")
        open_rows = {folder for folder in self.folders if "everything" not in self.folders[folder]}
        while True:  # removes rows that include no remaining row; only cycles remain
            leaves = {folder for folder in open_rows if not self.rows_below(folder) & open_rows}
            if not leaves:
                break
            open_rows -= leaves
        if open_rows:
            self.problems.append("rows include each other in a circle: " + ", ".join(sorted(open_rows)))

    def row_of(self, path):
        """The row of a file or folder: its own, or that of the innermost folder around it, or None."""
        rows = [row for row in self.folders if path == row or path.startswith(row + "/")]
        return max(rows, key=len, default=None)

    def rows_below(self, folder):
        """The other rows that a row may include."""
        return set().union(*(self.rows_named(name) for name in self.folders[folder])) - {folder}

    def allows(self, row, header):
        """Whether a row names the header itself or a folder above it."""
        names = self.folders[row]
        inside = header.removeprefix("vitrail/")
        return "everything" in names or any(inside == name or inside.startswith(name + "/") for name in names)


def library_of(header):
    return next((name for name, pattern in LIBRARIES.items() if re.fullmatch(pattern, header)), None)


def check_include(table, path, written):
    """What is wrong with `#include written` in the file `path`, or None."""
    row = table.row_of(path)
    public = path.startswith("vitrail/") and path.endswith(".h") and not INTERNAL.fullmatch(path)
    if not re.fullmatch(r'<[^>]+>|"[^"]+"', written):
        return f"an include that cannot be checked: {written}"
    header = written[1:-1]
    library = library_of(header)
    if library is not None:
        if library not in table.libraries[row]:
            return f"{row} may not include {header}: its row does not name {library}"
        return f"a public header includes {header}; make it *-inl.h or *_internal.h" if public else None
    if written[0] == "<":
        return None if STANDARD.fullmatch(header) else f"<{header}> is neither standard nor in a row of the table"
    target = table.row_of(header)
    if target is None:
        return f'"{header}" is not a path from the repository root into a folder of the table'
    if public and INTERNAL.fullmatch(header):
        return f"a public header includes the internal {header}"
    if target == row:
        return None
    if not target.startswith("vitrail/"):
        allowed = target in ALLOWED.get(row, ())
        return None if allowed else f"{row} may not include {header}: {target} is not part of the library"
    if table.allows(row, header):
        return None
    return f"{row} may not include {header}: its row does not name {target.removeprefix('vitrail/')}"


def check_file(table, path, text):
    """The violations of one file, as (line, message)."""
    if table.row_of(path) is None:
        return [(1, "the table has no row for this file's folder")]
    found = []
    code = without(text, literals=False)
    for match in INCLUDE.finditer(code):
        message = check_include(table, path, match.group(1))
        if message:
            found.append((code.count("\n", 0, match.start(1)) + 1, message))
    if path.startswith("vitrail/"):
        silent = without(text, literals=True)
        for match in NOISE.finditer(silent):
            line = silent.count("\n", 0, match.start()) + 1
            found.append((line, f"the library neither prints nor ends the process: {match.group().strip()}"))
    return sorted(found)


def check_tree(root):
    """All violations of a repository, as lines to print, and the number of files read."""
    table = Table((root / "docs/design/architecture.md").read_text(encoding="utf-8"))
    lines = [f"docs/design/architecture.md: {problem}" for problem in table.problems]
    files = 0
    for top in ("vitrail", "apps", "examples", "tests", "benchmarks", "fuzz", "python"):
        for file in sorted((root / top).rglob("*")):
            path = file.relative_to(root).as_posix()
            if file.suffix not in SOURCES or not file.is_file() or path.startswith("tests/install/"):
                continue  # tests/install is a project of its own that uses the installed library
            files += 1
            text = file.read_text(encoding="utf-8")
            lines += [f"{path}:{line}: {message}" for line, message in check_file(table, path, text)]
    return lines, files


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent.parent).resolve()
    lines, files = check_tree(root)
    for line in lines:
        print(line)
    print(
        f"check_layers: {files} files, {len(lines)} violations"
        if lines
        else f"check_layers: {files} files, all in order"
    )
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
