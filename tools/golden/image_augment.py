# SPDX-License-Identifier: Apache-2.0
"""Golden data of tests/image/augment_ops_test.cpp: checksums of images after operations of Pillow and torchvision.

Run from the repository root: python tools/golden/image_augment.py
Writes tests/fixtures/image/augment.json (the cases; crc is zlib's CRC-32 of the result's bytes) and augment.raw (the
source pixels).
"""

import json
import math
import pathlib
import zlib

import numpy as np
import PIL
import torchvision
from PIL import Image, ImageEnhance, ImageFilter, ImageOps
from torchvision.transforms import functional as F

FOLDER = pathlib.Path("tests/fixtures/image")
# name: height, width, channels
SOURCES = {
    "noise": (23, 31, 3),
    "smooth": (40, 29, 3),
    "square": (32, 32, 3),
    "dark": (33, 17, 3),
    "grey": (37, 19, 1),
    "digit": (28, 28, 1),
    "flat": (9, 7, 3),
    "row": (1, 17, 3),
    "column": (29, 1, 1),
    "two": (2, 2, 3),
}
FILL = {3: (124, 116, 104), 1: (93,)}
FILTERS = {"nearest": 0, "bilinear": 2, "bicubic": 3}
FACTORS = [0.0, 0.1, 0.37, 0.73, 0.95, 1.0, 1.05, 1.46, 1.9, 2.5]


def synthetic_image(name, shape):
    height, width, channels = shape
    generator = np.random.default_rng(sum(map(ord, name)))
    y, x, c = np.mgrid[:height, :width, :channels]
    if name == "smooth":
        return (127.5 + 127.5 * np.sin(x / 5 + c) * np.cos(y / 7)).astype(np.uint8)
    if name == "dark":  # covers part of the range, so that autocontrast and equalize have an effect
        return (generator.integers(0, 60, shape) + 20 * c).astype(np.uint8)
    if name == "digit":
        return (255 * np.exp(-((x - 13.3) ** 2 + (y - 12.1) ** 2) / 40)).astype(np.uint8)
    if name == "flat":
        return np.broadcast_to(np.array([10, 200, 77], np.uint8), shape).copy()
    return generator.integers(0, 256, shape).astype(np.uint8)


def solarize_add(image, add, threshold):
    table = [min(255, i + add) if i < threshold else i for i in range(256)]
    return image.point(table * len(image.getbands()))


def matrices(width, height):
    """Affine matrices: timm's shears and translations, a general one, one that leaves the image, one beyond 16 bits."""
    yield from [(1, f, 0, 0, 1, 0) for f in (-0.3, 0.17)]
    yield from [(1, 0, 0, f, 1, 0) for f in (-0.21, 0.3)]
    yield from [(1, 0, p * width, 0, 1, 0) for p in (-0.45, 0.31)]
    yield from [(1, 0, 0, 0, 1, p * height) for p in (-0.11, 0.45)]
    yield (0.9, 0.2, -1.3, -0.15, 1.1, 2.7)
    yield (1, 0, 3, 0, 1, -2)
    yield (1, 0.1, 10 * width, 0, 1, 0)
    yield (1700.3, 0.25, -5000.7, 0.1, 1.2, 0.3)


def cases(image, channels):
    """Yields (operation, arguments, result) of all cases."""
    enhancers = {
        "brightness": ImageEnhance.Brightness,
        "contrast": ImageEnhance.Contrast,
        "color": ImageEnhance.Color,
        "sharpness": ImageEnhance.Sharpness,
    }
    for name, enhancer in enhancers.items():
        for factor in FACTORS:
            yield name, [factor], enhancer(image).enhance(factor)
    for radius in (0.0, 0.03, 0.1, 0.4, 0.75, 1.0, 1.4142, 2.0, 3.7, 9.5, 40.0):
        yield "blur", [radius], image.filter(ImageFilter.GaussianBlur(radius))
    yield "autocontrast", [], ImageOps.autocontrast(image)
    yield "equalize", [], ImageOps.equalize(image)
    yield "invert", [], ImageOps.invert(image)
    for bits in range(1, 9):
        yield "posterize", [bits], ImageOps.posterize(image, bits)
    for threshold in (0, 25.5, 26, 128, 255, 256):
        yield "solarize", [threshold], ImageOps.solarize(image, threshold)
    for add in (0, 33, 110):
        yield "solarize_add", [add, 128], solarize_add(image, add, 128)
    for shift in (-0.5, -0.13, 0.0, 0.1, 0.5):
        yield "hue", [shift], F.adjust_hue(image, shift)
    yield "mirror", [], ImageOps.mirror(image)
    fill = FILL[channels] if channels > 1 else FILL[channels][0]
    for name, number in FILTERS.items():
        for matrix in matrices(*image.size):
            yield (
                f"affine {name}",
                list(matrix),
                image.transform(image.size, Image.Transform.AFFINE, matrix, number, fillcolor=fill),
            )
        for degrees in (-400, -90, -12.5, 0, 1e-9, 7, 27.3, 90, 180, 270, 359.99):
            yield f"rotate {name}", [degrees], image.rotate(degrees, number, fillcolor=fill)
        mode = {0: "nearest", 2: "bilinear", 3: "bicubic"}[number]
        for degrees, shift, scale in ((12, (2, -3), 1.1), (-7.5, (0, 0), 0.9), (0, (-1, 2), 1.0), (0, (0, 0), 1.25)):
            yield (
                f"centred {name}",
                [degrees, *shift, scale],
                F.affine(
                    image, degrees, list(shift), scale, [0.0, 0.0], F.InterpolationMode(mode), list(FILL[channels])
                ),
            )
    for mode in ("constant", "reflect"):
        if min(image.size) > 4:
            padded = F.pad(image, 4, list(FILL[channels]), mode)
            for left, top in ((0, 0), (4, 4), (8, 3), (1, 8)):
                yield f"crop {mode}", [left - 4, top - 4], F.crop(padded, top, left, *image.size[::-1])


def main():
    raw, sources, listed = bytearray(), {}, []
    for name, shape in SOURCES.items():
        pixels = synthetic_image(name, shape)
        height, width, channels = shape
        sources[name] = {"width": width, "height": height, "channels": channels, "offset": len(raw)}
        raw += pixels.tobytes()
        image = Image.fromarray(pixels[:, :, 0] if channels == 1 else pixels)
        for operation, arguments, result in cases(image, channels):
            assert result.size == image.size and result.mode == image.mode, (operation, arguments)
            assert all(math.isfinite(a) for a in arguments)
            listed.append([name, operation, arguments, zlib.crc32(np.asarray(result).tobytes())])
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / "augment.raw").write_bytes(raw)
    index = {
        "made_with": {"pillow": PIL.__version__, "torchvision": torchvision.__version__.split("+")[0]},
        "fill": {str(channels): fill for channels, fill in FILL.items()},
        "sources": sources,
    }
    lines = ",\n".join(json.dumps(case, separators=(",", ":")) for case in listed)
    head = json.dumps(index)[:-1]
    (FOLDER / "augment.json").write_text(f'{head}, "cases": [\n{lines}\n]}}\n')
    print(f"{len(listed)} cases, {len(raw)} bytes")


if __name__ == "__main__":
    main()
