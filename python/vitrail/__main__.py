# SPDX-License-Identifier: Apache-2.0
"""python -m vitrail: the program."""

import os
import sys

from ._program import program_path


def main() -> None:
    os.execv(program_path(), ["vitrail", *sys.argv[1:]])


if __name__ == "__main__":
    main()
