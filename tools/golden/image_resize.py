# SPDX-License-Identifier: Apache-2.0
"""Golden data of tests/image/resize_test.cpp: small images resized by Pillow's Image.resize.

Run from the repository root: python tools/golden/image_resize.py
Writes tests/fixtures/image/resize.json (the cases) and resize.raw (pixels, at the offsets that the cases list).
"""

import json
import pathlib

import numpy as np
import PIL
from PIL import Image

FOLDER = pathlib.Path("tests/fixtures/image")
FILTERS = {"nearest": 0, "box": 4, "bilinear": 2, "hamming": 5, "bicubic": 3, "lanczos": 1}
# name: height, width, channels
SOURCES = {"noise": (23, 31, 3), "edges": (37, 19, 1), "smooth": (40, 29, 3), "row": (1, 17, 3), "column": (29, 1, 1)}
# New width and height for each source: up, down, mixed, one axis only, and a single pixel
SIZES = [(13, 11), (47, 53), (9, 50), (40, 8), (None, 15), (14, None), (1, 1)]
BOXES = [(16, 12, (0.25, 0.4, 0.8, 0.93))]  # with a source box, in fractions of width and height


def synthetic_image(kind, shape):
    height, width, channels = shape
    generator = np.random.default_rng(height * 1000 + width)
    if kind == "edges":  # black and white only, so that the filters overshoot
        return generator.integers(0, 2, shape).astype(np.uint8) * 255
    if kind == "smooth":
        y, x, c = np.mgrid[:height, :width, :channels]
        return (127.5 + 127.5 * np.sin(x / 5 + c) * np.cos(y / 7)).astype(np.uint8)
    return generator.integers(0, 256, shape).astype(np.uint8)


class Raw:
    """A buffer of pixels.  add() appends an array and returns its offset."""

    def __init__(self):
        self.data = bytearray()

    def add(self, array):
        offset = len(self.data)
        self.data += np.ascontiguousarray(array).tobytes()
        return offset


def main():
    raw, sources, cases = Raw(), {}, []
    for name, shape in SOURCES.items():
        pixels = synthetic_image(name, shape)
        height, width, channels = shape
        sources[name] = {"width": width, "height": height, "channels": channels, "offset": raw.add(pixels)}
        image = Image.fromarray(pixels[:, :, 0] if channels == 1 else pixels)
        wanted = [(w or width, h or height, None) for w, h in SIZES]
        if min(width, height) > 1:
            for w, h, (left, top, right, bottom) in BOXES:
                wanted.append(
                    (w, h, [float(np.float32(v)) for v in (left * width, top * height, right * width, bottom * height)])
                )
        for w, h, box in wanted:
            for filter_name, number in FILTERS.items():
                result = np.array(image.resize((w, h), number, box=box))
                cases.append(
                    {
                        "source": name,
                        "width": w,
                        "height": h,
                        "filter": filter_name,
                        "box": box,
                        "offset": raw.add(result),
                    }
                )
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / "resize.raw").write_bytes(raw.data)
    index = {"made_with": {"pillow": PIL.__version__}, "sources": sources, "cases": cases}
    (FOLDER / "resize.json").write_text(json.dumps(index, indent=0) + "\n")
    print(f"{len(cases)} cases, {len(raw.data)} bytes")


if __name__ == "__main__":
    main()
