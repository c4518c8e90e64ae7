# SPDX-License-Identifier: Apache-2.0
"""python -m vitrail: the program."""

import os
import pathlib
import sys


def main() -> None:
    program = os.environ.get("VITRAIL_PROGRAM") or str(pathlib.Path(__file__).parent / "bin" / "vitrail")
    os.execv(program, ["vitrail", *sys.argv[1:]])


if __name__ == "__main__":
    main()
