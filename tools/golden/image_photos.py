# SPDX-License-Identifier: Apache-2.0
"""Golden data of tests/image/photos_test.cpp: checksums of the shared photographs as Pillow and timm read them.

Run from the repository root: python tools/golden/image_photos.py ASSETS
Writes tests/fixtures/image/photos.json: CRC-32 of the pixels in RGB and in grey, and of the float32 output of timm's
evaluation transform (224, crop_pct 0.9, bicubic, ImageNet's mean and standard deviation).
"""

import json
import pathlib
import sys
import zlib

import numpy as np
import PIL
import timm
import torch
from PIL import Image, features
from timm.data.transforms_factory import transforms_imagenet_eval


def crc(array):
    return zlib.crc32(np.ascontiguousarray(array).tobytes())


def main():
    images = pathlib.Path(sys.argv[1]) / "images"
    transform = transforms_imagenet_eval(224, 0.9, "center", interpolation="bicubic")
    cases = []
    for path in sorted([*images.rglob("*.jpg"), *images.rglob("*.png")]):
        image = Image.open(path)
        rgb = image.convert("RGB")
        cases.append(
            {
                "file": path.relative_to(images).as_posix(),
                "width": image.width,
                "height": image.height,
                "rgb": crc(rgb),
                "grey": crc(image.convert("L")),
                "timm": crc(transform(rgb).numpy()),
            }
        )
    versions = {
        "pillow": PIL.__version__,
        "libjpeg_turbo": features.version("libjpeg_turbo"),
        "timm": timm.__version__,
        "torch": torch.__version__,
    }
    target = pathlib.Path("tests/fixtures/image/photos.json")
    target.write_text(json.dumps({"made_with": versions, "cases": cases}, indent=0) + "\n")
    print(f"{len(cases)} images")


if __name__ == "__main__":
    main()
