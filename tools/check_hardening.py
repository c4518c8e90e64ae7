#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that programs and shared libraries are built with the hardening flags of cmake/compiler.cmake.

    tools/check_hardening.py FILE…

Each property is read from the ELF file with readelf (binutils), so that a flag that the linker ignores is found too.
"""

import pathlib
import platform
import re
import subprocess
import sys

# The instruction endbr64 begins functions that may be called indirectly.  The start files of the C library hold two.
# The note that announces the protection is missing on Debian 12, because some of its start files are built without.
ENDBR64 = b"\xf3\x0f\x1e\xfa"
ENDBR64_OF_START_FILES = 2

# The signs of these flags are calls that only some functions need.  The modules are a few dozen lines around a library:
# no function copies into a buffer whose size the compiler knows, or indexes a container of the C++ library; in that of
# libcurl none has an array either.  They are built with the flags all the same.
CALLS = {"-D_FORTIFY_SOURCE=2", "-D_GLIBCXX_ASSERTIONS"}
WITHOUT_SUCH_FUNCTIONS = {
    "vitrail_curl.so": CALLS | {"-fstack-protector-strong"},
    "vitrail_mpi.so": CALLS,
    "vitrail_sentencepiece.so": CALLS,
}


def readelf(program, *options):
    return subprocess.run(["readelf", "-W", *options, program], capture_output=True, text=True, check=True).stdout


def missing_properties(program):
    """The hardening properties that a program or shared library lacks, each with the flag that gives it."""
    header, segments, dynamic = readelf(program, "-h"), readelf(program, "-l"), readelf(program, "-d")
    symbols = readelf(program, "--dyn-syms")
    stack = re.search(r"GNU_STACK\s.*", segments)
    properties = [
        ("position-independent code", "-pie", re.search(r"Type:\s+DYN", header)),
        ("read-only relocations", "-Wl,-z,relro", "GNU_RELRO" in segments),
        ("symbols bound at start", "-Wl,-z,now", re.search(r"BIND_NOW|FLAGS_1.*\bNOW\b", dynamic)),
        ("stack that is not executable", "-Wl,-z,noexecstack", stack and "RWE" not in stack.group()),
        ("stack protection", "-fstack-protector-strong", "__stack_chk_fail" in symbols),
        ("checked calls of the C library", "-D_FORTIFY_SOURCE=2", re.search(r"__(mem|str|printf)\w*_chk", symbols)),
        ("bounds checks of the C++ library", "-D_GLIBCXX_ASSERTIONS", "__glibcxx_assert_fail" in symbols),
    ]
    if platform.machine() == "x86_64":
        protected = pathlib.Path(program).read_bytes().count(ENDBR64) > ENDBR64_OF_START_FILES
        properties.append(("control flow protection", "-fcf-protection", protected))
    optional = WITHOUT_SUCH_FUNCTIONS.get(pathlib.Path(program).name, set())
    return [f"{name} ({flag})" for name, flag, holds in properties if not holds and flag not in optional]


def main():
    if len(sys.argv) < 2:
        sys.exit("check_hardening: expected programs or shared libraries")
    missing = [f"{program}: lacks {entry}" for program in sys.argv[1:] for entry in missing_properties(program)]
    for line in missing:
        print(line, file=sys.stderr)
    if missing:
        sys.exit(1)
    for program in sys.argv[1:]:
        print(f"check_hardening: {program} has all properties")


if __name__ == "__main__":
    main()
