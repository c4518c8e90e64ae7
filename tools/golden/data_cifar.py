# SPDX-License-Identifier: Apache-2.0
"""Fixtures of CIFAR's files for Python, tests/fixtures/data/cifar*: two images a file.

The published files were pickled by Python 2, whose strings have no encoding; those of CIFAR-100 are written here as
Python 3 would.  cifar.json has what torchvision's way to read them gives: pickle.load(encoding="latin1"), then
data.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1).
"""

import io
import json
import pathlib
import pickle
import struct
import tarfile
import zlib

import numpy

ROOT = pathlib.Path(__file__).resolve().parents[2] / "tests" / "fixtures" / "data"


class Python2Pickler(pickle._Pickler):
    """Writes strings and bytes as Python 2 wrote its str."""

    dispatch = dict(pickle._Pickler.dispatch)

    def save_text(self, text):
        text = text.encode() if isinstance(text, str) else text
        short = len(text) < 256
        self.write(b"U" + bytes([len(text)]) + text if short else b"T" + struct.pack("<i", len(text)) + text)
        self.memoize(text)

    dispatch[str] = save_text
    dispatch[bytes] = save_text


def python2(value):
    file = io.BytesIO()
    Python2Pickler(file, protocol=2).dump(value)
    return file.getvalue().replace(b"numpy._core", b"numpy.core")


def images(first):
    """Two images whose pixels differ in every channel and position."""
    index = numpy.arange(3072)
    values = [(index * 7 + index // 1024 * 50 + 31 * (first + i)) % 256 for i in range(2)]
    return numpy.stack(values).astype(numpy.uint8)


def write(path, value, dump):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(dump(value))


def read(path, labels):
    batch = pickle.loads(path.read_bytes(), encoding="latin1")
    pixels = batch["data"].reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
    return {
        "labels": batch[labels],
        "crc32": [zlib.crc32(image.tobytes()) for image in pixels],
        "pixel": pixels[:, 3, 5].tolist(),
    }


def main():
    ten, hundred = ROOT / "cifar-10-batches-py", ROOT / "cifar-100-python"
    names = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
    files = {"data_batch_1": (0, [6, 9]), "data_batch_2": (2, [0, 1]), "test_batch": (4, [3, 8])}
    for name, (first, labels) in files.items():
        batch = {"batch_label": name, "labels": labels, "data": images(first), "filenames": ["a.png", "b.png"]}
        write(ten / name, batch, python2)
    write(ten / "batches.meta", {"num_cases_per_batch": 2, "label_names": names, "num_vis": 3072}, python2)
    for name, first in (("train", 6), ("test", 8)):
        batch = {"coarse_labels": [1, 2], "fine_labels": [99, first], "data": images(first)}
        write(hundred / name, batch, pickle.dumps)
    write(hundred / "meta", {"fine_label_names": [f"class {i}" for i in range(100)]}, pickle.dumps)
    with tarfile.open(ROOT / "cifar-10-python.tar.gz", "w:gz") as archive:
        for path in sorted(ten.iterdir()):
            info = tarfile.TarInfo(f"cifar-10-batches-py/{path.name}")
            info.size = path.stat().st_size
            archive.addfile(info, io.BytesIO(path.read_bytes()))
    golden = {f"{ten.name}/{name}": read(ten / name, "labels") for name in files}
    golden |= {f"{hundred.name}/{name}": read(hundred / name, "fine_labels") for name in ("train", "test")}
    (ROOT / "cifar.json").write_text(json.dumps(golden) + "\n")


if __name__ == "__main__":
    main()
