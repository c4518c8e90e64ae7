#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes examples/digits.zip: the 1,797 handwritten digits of scikit-learn as images in class folders.

    python tools/make_digits.py      # needs scikit-learn and pillow

The images are 8×8 grey PNG files SPLIT/DIGIT/INDEX.png, with the values 0 to 16 of the dataset scaled to 0 to 255.  A
fifth of each class is the split test, drawn with a fixed seed.  Nothing in the file depends on the time or the machine.
"""

import io
import pathlib
import zipfile

import numpy
from PIL import Image
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

PATH = pathlib.Path(__file__).resolve().parents[1] / "examples" / "digits.zip"
TEST_IMAGES = 360


def png(values):
    pixels = numpy.round(values * (255 / 16)).astype(numpy.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG", optimize=True)
    return file.getvalue()


def main():
    digits = load_digits()
    indices = numpy.arange(len(digits.target))
    test = set(train_test_split(indices, test_size=TEST_IMAGES, random_state=0, stratify=digits.target)[1])
    names = {f"{'test' if i in test else 'train'}/{digits.target[i]}/{i:04}.png": i for i in indices}
    with zipfile.ZipFile(PATH, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(names):
            archive.writestr(zipfile.ZipInfo(name), png(digits.images[names[name]]))
    print(f"{PATH.name}: {len(names)} images, {PATH.stat().st_size / 1024:.0f} KiB")


if __name__ == "__main__":
    main()
