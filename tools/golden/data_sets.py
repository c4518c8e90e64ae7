# SPDX-License-Identifier: Apache-2.0
"""Writes the fixtures of tests/data: small archives, and the shared assets as the reference implementations read them.

    python tools/golden/data_sets.py

Needs Pillow, numpy and torchvision, and the shared assets (the folder VITRAIL_ASSETS).
"""

import csv
import importlib.metadata
import io
import json
import os
import pathlib
import tempfile
import zipfile

import numpy
import torchvision
from PIL import Image

FOLDER = pathlib.Path("tests/fixtures/data")
ASSETS = pathlib.Path(os.environ["VITRAIL_ASSETS"])


def png(red, green, blue):
    """A 3×2 image of one colour."""
    file = io.BytesIO()
    Image.new("RGB", (3, 2), (red, green, blue)).save(file, "PNG")
    return file.getvalue()


def write_archives():
    (FOLDER / "red.png").write_bytes(png(255, 0, 0))
    with zipfile.ZipFile(FOLDER / "wrapped.zip", "w") as archive:  # like desktop tools
        for name, data in [
            ("pets/", b""),
            ("pets/cat/b.png", png(1, 2, 3)),
            ("pets/cat/a.PNG", png(4, 5, 6)),
            ("pets/cat/broken.png", png(0, 0, 0)[:40]),
            ("pets/dog/deep/c.png", png(7, 8, 9)),
            ("pets/dog/notes.txt", b"not an image"),
            ("pets/.hidden/d.png", png(0, 0, 0)),
            ("__MACOSX/pets/cat/._b.png", b"resource fork"),
        ]:
            method = zipfile.ZIP_STORED if "dog" in name else zipfile.ZIP_DEFLATED
            archive.writestr(zipfile.ZipInfo(name, (2020, 1, 1, 0, 0, 0)), data, method)


def mnist():
    """MNIST's test set as torchvision reads it."""
    with tempfile.TemporaryDirectory() as root:
        raw = pathlib.Path(root) / "MNIST" / "raw"
        raw.mkdir(parents=True)
        for file in (ASSETS / "mnist").glob("*.gz"):
            torchvision.datasets.utils.extract_archive(str(file), str(raw))
        data = torchvision.datasets.MNIST(root, train=False)
    pixels = data.data.numpy().astype(numpy.int64)
    return {
        "labels": data.targets[:50].tolist(),
        "size": len(data),
        "pixel_sums": pixels.sum((1, 2))[:50].tolist(),
        "row_14_of_first": pixels[0, 14].tolist(),
    }


def cifar_zip():
    """The archive's test split, unpacked and read by torchvision's ImageFolder."""
    with tempfile.TemporaryDirectory() as root:
        with zipfile.ZipFile(ASSETS / "cifar10/cifar10_jpeg.zip") as archive:
            archive.extractall(root, [name for name in archive.namelist() if name.startswith("test/")])
        data = torchvision.datasets.ImageFolder(os.path.join(root, "test"))
        picked = {}
        for index in range(0, len(data), 997):
            image, label = data[index]
            picked[str(index)] = {
                "path": os.path.relpath(data.samples[index][0], root),
                "label": label,
                "pixel_sum": int(numpy.asarray(image, dtype=numpy.int64).sum()),
            }
        return {"classes": data.classes, "size": len(data), "picked": picked}


def nips_csv():
    with open(ASSETS / "images/nips2017/labels.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    first = Image.open(ASSETS / "images/nips2017" / rows[0]["file"]).convert("RGB")
    return {
        "files": [row["file"] for row in rows],
        "labels": [int(row["class_index"]) for row in rows],
        "first_pixel_sum": int(numpy.asarray(first, dtype=numpy.int64).sum()),
    }


def main():
    write_archives()
    versions = {name: importlib.metadata.version(name) for name in ("pillow", "numpy", "torchvision")}
    golden = {"made_with": versions, "mnist": mnist(), "cifar_zip": cifar_zip(), "nips_csv": nips_csv()}
    (FOLDER / "sets.json").write_text(json.dumps(golden, indent=1) + "\n")


if __name__ == "__main__":
    main()
