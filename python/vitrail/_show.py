# SPDX-License-Identifier: Apache-2.0
"""HTML and overlays of results, for notebooks.  Only files and images of Pillow need it."""

from __future__ import annotations

import base64
import html
import io
import os
import pathlib
import struct
import zlib
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from ._errors import Error
from ._images import pixels_of, upright

MASK_COLOR = (255, 112, 0)
SHOWN_PIXELS = 448  # the longest edge of an image in a notebook
BAR = "background:#4c78a8;height:0.8em;min-width:1px;width:"


def png(pixels: np.ndarray) -> bytes:
    """Pixels [height, width, 3 (RGB) or 1 (grey)] as a PNG file."""
    height, width, channels = pixels.shape
    rows = np.zeros((height, 1 + channels * width), np.uint8)  # each row begins with its filter, 0: none
    rows[:, 1:] = pixels.reshape(height, -1)

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2 if channels == 3 else 0, 0, 0, 0)  # 8 bits, RGB or grey
    body = chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows.tobytes())) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + body


def option_text(value: Any) -> str:
    """The value of an option as text: a file or an image as a data URI."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, os.PathLike):
        value = pathlib.Path(value).read_bytes()
    elif hasattr(value, "__array_interface__"):
        pixels = pixels_of(value)
        value = png(pixels.reshape(*pixels.shape[:2], -1))
    if isinstance(value, bytes):
        return "data:application/octet-stream;base64," + base64.b64encode(value).decode()
    return str(value)


def figure(pixels: np.ndarray, caption: str) -> str:
    """HTML of an RGB image, which is made smaller if it is large."""
    step = -(-max(pixels.shape[:2]) // (2 * SHOWN_PIXELS))  # twice the shown size, for screens of high density
    data = base64.b64encode(png(pixels[::step, ::step])).decode()
    height, width = pixels.shape[:2]
    edge = "width" if width >= height else "height"
    image = f'<img alt="" src="data:image/png;base64,{data}" style="{edge}:{SHOWN_PIXELS}px">'
    return f'<figure style="margin:0">{image}<figcaption>{html.escape(caption)}</figcaption></figure>'


def table(rows: Iterable[Sequence[str]], bars: Sequence[float] = ()) -> str:
    """HTML of rows of texts, with a bar of each value from 0 to 1 behind them."""
    style = 'style="text-align:left;padding:2px 8px"'
    lines = []
    for i, row in enumerate(rows):
        cells = "".join(f"<td {style}>{html.escape(text)}</td>" for text in row)
        if bars:
            cells += f'<td {style} width="200"><div style="{BAR}{100 * bars[i]:.1f}%"></div></td>'
        lines.append(f"<tr>{cells}</tr>")
    return f"<table>{''.join(lines)}</table>"


def _pillow(expected: str, got: str) -> Any:
    """The module of Pillow."""
    try:
        from PIL import Image
    except ImportError as error:
        raise Error(f"image: expected {expected}, got {got}", "image", expected, got) from error
    return Image


def pillow_image(pixels: np.ndarray) -> Any:
    """Pixels [height, width, 3 (RGB) or 4 (RGBA)] as an image of Pillow."""
    return _pillow("Pillow (pip install pillow)", "none").fromarray(pixels)


def image_pixels(image: Any, exif: bool) -> np.ndarray:
    """The pixels [height, width, 3 (RGB) or 1 (grey)] of an image; those of a file need Pillow."""
    if isinstance(image, (str, os.PathLike, bytes, bytearray, memoryview)):
        expected = "a uint8 array [height, width, 3], or Pillow to read a file (pip install pillow)"
        module = _pillow(expected, "a file")
        source = image if isinstance(image, (str, os.PathLike)) else io.BytesIO(image)
        with module.open(source) as opened:
            image = np.asarray((upright(opened) if exif else opened).convert("RGB"))
    pixels = pixels_of(upright(image) if exif else image)
    return pixels.reshape(*pixels.shape[:2], -1)[..., :3]


def of_size(pixels: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """The pixels, which must have this height and width."""
    if pixels.shape[:2] != shape:
        expected, got = (f"{size[1]}×{size[0]}" for size in (shape, pixels.shape))
        raise Error(f"image: expected the result's size {expected}, got {got}", "image", expected, got)
    return pixels


def blend(pixels: np.ndarray, colors: Any, weight: Any) -> np.ndarray:
    """Pixels [height, width, 3 or 1] with RGB colours over them."""
    return np.rint(pixels * (1 - weight) + np.asarray(colors) * weight).astype(np.uint8)


class Shown:
    """A result with colours over its image."""

    def overlay(self, image: Any = None) -> np.ndarray:
        raise NotImplementedError

    def render(self, image: Any = None, **options: Any) -> Any:
        """The overlay() of these arguments as an image of Pillow."""
        return pillow_image(self.overlay(image, **options))


class OverImage(Shown):
    """A result of the size of its image."""

    _image: tuple[Any, bool] | None = None  # the image, and whether its EXIF orientation was applied

    def _pixels_below(self, image: Any, shape: tuple[int, ...]) -> np.ndarray:
        source = self._image if image is None else (image, False)
        if source is None:
            raise Error("image: expected the image of this result, got none", "image", "the image", "none")
        return of_size(image_pixels(*source), shape)
