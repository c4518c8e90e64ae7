#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The program starts fast because it loads little: what it links is held against the lists here.

linked_libraries_test.py PROGRAM
"""

import re
import subprocess
import sys

# What vitrail asks for itself: a library more here is a decision, since every command pays for it at each start.
DIRECT = {
    "libdnnl",
    "libgomp",  # matrix products on the calling thread alone: the number of threads is libgomp's
    "libjpeg",
    "libpng16",
    "libwebp",
    "libgif",
    "libtiff",
    "libz",  # image files, compressed archives
    "libutf8proc",  # class names in Unicode's composed form
    "libfmt",  # messages
    "libstdc++",
    "libgcc_s",
    "libm",
    "libc",
    "ld-linux-x86-64",
}
# What those bring with them, on Debian 12.
BROUGHT = {
    "libOpenCL",  # libdnnl is built with its GPU engines, which vitrail never starts
    "libzstd",
    "liblzma",
    "libLerc",
    "libjbig",
    "libdeflate",  # compressions of libtiff
    "linux-vdso",
}


def stem(name):
    """libpng16.so.16 → libpng16"""
    return re.sub(r"\.so(\.\d+)*$", "", name.rsplit("/", 1)[-1])


def main():
    program = sys.argv[1]
    headers = subprocess.run(["objdump", "-p", program], check=True, capture_output=True, text=True).stdout
    direct = {stem(name) for name in re.findall(r"NEEDED\s+(\S+)", headers)}
    listing = subprocess.run(["ldd", program], check=True, capture_output=True, text=True).stdout
    loaded = {stem(line.split()[0]) for line in listing.splitlines() if line.strip()}
    if "libc" not in direct or "not found" in listing:
        print(f"{program} could not be read, or lacks a library:\n{listing}")
        return 1
    wrong = sorted((direct - DIRECT) | (loaded - DIRECT - BROUGHT))
    for name in wrong:
        print(f"{program} loads {name}, which is not on the list of tests/tools/linked_libraries_test.py")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
