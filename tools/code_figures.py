#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints figures of the code, to compare before and after a restructuring.

    tools/code_figures.py [ROOT] [--program PROGRAM]     ROOT: a repository, by default the one this file is in

With a program, also how often commands open weights, images and class folders, counted by strace.
"""

import argparse
import collections
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import check_layers  # noqa: E402

CODE = {".h", ".cpp"}
TEST_CODE = {*CODE, ".py", ".c"}
# Code that uses Segment Anything, and the folders that are about nothing else.
SEGMENTATION = re.compile(r'\bsam::|"vitrail/(models/)?sam/')
ROOMS = {"sam", "segment", "segmentation"}
# Members of a request for features.
NORM = re.compile(r"\b(final_norm|no_norm|norm|normalize|l2_normalize)\b\s*[=;,{]")
TOKENS = re.compile(r"\b(tokens|layers?)\b\s*[=;,{]")
STRUCT = re.compile(r"^( *)(?:typedef )?struct (\w+)[^;{]*\{(.*?)^\1\}", re.M | re.S)
WORDING = re.compile(r"\b(expected|got|found|cannot|unknown|missing|must)\b|\bno such\b")
INSTALLED = re.compile(r"(?<!-inl)(?<!_internal)\.h$")
COMMANDS = {
    "classify": "classify {inputs}/set/test/cat -m {model}",
    "eval": "eval {inputs}/set -m {model}",
    "train": "train {inputs}/set -o {inputs}/run -m {model} --epochs 1",
    "knn": "knn {inputs}/set {inputs}/set -m {model}",
}

# Files whose opens are counted.
KINDS = {"weights": r"safetensors$", "config.json": r"config\.json$", "class folder": r"/(cat|dog)$", "image": r"png$"}


def sources(folder, suffixes=CODE):
    return sorted(path for path in folder.rglob("*") if path.suffix in suffixes and "fixtures" not in path.parts)


def lines(paths):
    return sum(len(path.read_text().splitlines()) for path in paths)


def lines_by_folder(root):
    counts = collections.Counter()
    for top, suffixes in (("vitrail", CODE), ("apps", CODE), ("tests", TEST_CODE)):
        for path in sources(root / top, suffixes):
            folder = path.relative_to(root).parts[: 2 if top != "apps" else 3]
            counts["/".join(folder[:-1] if path.name == folder[-1] else folder)] += lines([path])
    return counts


def code_of(path):
    """The text without comments."""
    tokens = check_layers.TOKENS
    return tokens.sub(lambda token: "" if token[0].startswith(("//", "/*")) else token[0], path.read_text())


def segmentation_files(root):
    """Files of library and program that use Segment Anything, outside its folders."""
    paths = [path for top in ("vitrail", "apps") for path in sources(root / top) if ROOMS.isdisjoint(path.parts)]
    return [path.relative_to(root) for path in paths if SEGMENTATION.search(code_of(path))]


def operation_files(root):
    """The files of the list in docs/extending.md, of an operation in the library."""
    page = (root / "docs" / "extending.md").read_text()
    section = re.search(r"^## An operation\n(.*?)(?=^## |^### An activation)", page, re.M | re.S)
    section = section[1].partition("### In the library")[2] or section[1]
    files = set()
    for bullet in re.findall(r"^- (`[^:]+):((?:.|\n(?!\n|-))*)", section, re.M):
        if not bullet[1].strip().startswith("only "):
            files |= set(re.findall(r"`([^`]+)`", bullet[0]))
    return sorted(files)


def feature_requests(root):
    """Structs that say which norm of the features is applied, beside their tokens or layers."""
    found = []
    for path in [path for top in ("vitrail", "apps") for path in sources(root / top)]:
        for _, name, body in STRUCT.findall(code_of(path)):
            if NORM.search(body) and TOKENS.search(body):
                found.append(f"{name} ({path.relative_to(root)})")
    return found


def wording_pins(root):
    """String literals of the C++ tests that have words of an error."""
    count = 0
    for path in sources(root / "tests"):
        literals = [token[0] for token in check_layers.TOKENS.finditer(path.read_text()) if token[0][0] in '"R']
        count += sum(" " in literal.strip('" ') and bool(WORDING.search(literal)) for literal in literals)
    return count


def installed_headers(root):
    """The headers of cmake/public_headers.cmake; of a version without it, those of vitrail/ but internal ones."""
    script = root / "cmake" / "public_headers.cmake"
    if script.is_file():
        return len(subprocess.run(["cmake", "-P", script], capture_output=True, check=True).stderr.splitlines())
    return sum(bool(INSTALLED.search(path.name)) for path in sources(root / "vitrail"))


def opens(program, root):
    """How often each kind of file is opened by a command, the most for one file."""
    if not shutil.which("strace"):
        return {}
    counts = {}
    with tempfile.TemporaryDirectory() as temporary:
        inputs = pathlib.Path(temporary)
        image = (root / "examples" / "photographs" / "chelsea.png").read_bytes()
        for split, number in (("train", 4), ("val", 2), ("test", 2)):
            for name in ("cat", "dog"):
                folder = inputs / "set" / split / name
                folder.mkdir(parents=True)
                for i in range(number):  # Identical images would be a warning.
                    (folder / f"{i}.png").write_bytes(image + f"{split}{name}{i}".encode())
        model = shutil.copytree(root / "models" / "cifar10-vit", inputs / "model")
        for name, command in COMMANDS.items():
            trace = inputs / "trace"
            arguments = command.format(inputs=inputs, model=model).split()
            called = ["strace", "-f", "-qq", "-e", "trace=open,openat", "-o", trace, program, *arguments]
            subprocess.run([str(part) for part in called], check=True, capture_output=True)
            paths = rf'"({re.escape(str(inputs))}/(?:model|set)[^"]*)".*(?:= \d|unfinished)'
            opened = collections.Counter(re.findall(paths, trace.read_text()))
            counts[name] = {
                kind: max((count for path, count in opened.items() if re.search(pattern, path)), default=0)
                for kind, pattern in KINDS.items()
            }
    return counts


def main():
    parser = argparse.ArgumentParser(description="Prints figures of the code.")
    parser.add_argument("root", nargs="?", type=pathlib.Path, default=pathlib.Path(__file__).resolve().parents[1])
    parser.add_argument("--program", type=pathlib.Path)
    parser.add_argument("--files", action="store_true", help="also the names of the files and structs that are counted")
    options = parser.parse_args()
    root = options.root.resolve()
    print("lines per folder")
    folders = lines_by_folder(root)
    for folder, count in sorted(folders.items()):
        print(f"  {folder:28} {count:7,}")
    total = {top: sum(count for folder, count in folders.items() if folder.split("/")[0] == top)
             for top in ("vitrail", "apps", "tests")}  # fmt: skip
    product = total["vitrail"] + total["apps"]
    test_code = lines(sources(root / "tests"))
    figures = [
        ("lines of library", total["vitrail"]),
        ("lines of program", total["apps"]),
        ("lines of library and program", product),
        ("lines of tests in C++", test_code),
        ("lines of tests in C++ and Python", total["tests"]),
        ("lines of tests in C++ per line of code", round(test_code / product, 3)),
        ("lines of tools/mutants", lines(sources(root / "tools" / "mutants", {".py", ".toml"}))),
        ("test files above 400 lines", sum(lines([path]) > 400 for path in sources(root / "tests"))),
        ("files with segmentation outside its rooms", segmentation_files(root)),
        ("files per operation", operation_files(root)),
        ("structs of the features' request", feature_requests(root)),
        ("pins of error wording", wording_pins(root)),
        ("installed headers", installed_headers(root)),
    ]
    for name, value in figures:
        print(f"{name:42} {len(value) if isinstance(value, list) else value:,}")
        for item in value if options.files and isinstance(value, list) else []:
            print(f"  {item}")
    timings = root / "build" / "ci-timings.txt"
    if timings.is_file():
        print("stages of the last CI\n" + timings.read_text().rstrip())
    for name, counts in opens(options.program.resolve(), root).items() if options.program else ():
        print(f"opens of {name:12} " + ", ".join(f"{kind} {count}" for kind, count in counts.items()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
