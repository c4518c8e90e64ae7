# SPDX-License-Identifier: Apache-2.0
"""Writes the .npy fixtures of tests/base/npy_test.cpp: inputs of the reader and expected content of the writer.

python tools/golden/data_npy.py
"""

import pathlib

import numpy

FOLDER = pathlib.Path("tests/fixtures/data")


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    numpy.save(FOLDER / "float32_2x3x4.npy", numpy.arange(24, dtype="<f4").reshape(2, 3, 4) / 8)
    numpy.save(FOLDER / "float64_5.npy", numpy.arange(5, dtype="<f8") ** 0.5)
    numpy.save(FOLDER / "int64_3x2.npy", numpy.array([[-1, 2], [2**62, -(2**63)], [0, 7]], dtype="<i8"))
    numpy.save(FOLDER / "scalar.npy", numpy.float32(2.5))
    numpy.save(FOLDER / "empty_0x7.npy", numpy.zeros((0, 7), dtype="<f4"))
    numpy.save(FOLDER / "fortran.npy", numpy.asfortranarray(numpy.ones((2, 3), dtype="<f4")))
    numpy.save(FOLDER / "int32.npy", numpy.ones(3, dtype="<i4"))
    with open(FOLDER / "version2.npy", "wb") as file:
        numpy.lib.format.write_array(file, numpy.arange(3, dtype="<f4"), version=(2, 0))


if __name__ == "__main__":
    main()
