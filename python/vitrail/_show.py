# SPDX-License-Identifier: Apache-2.0
"""HTML and overlays of results, for notebooks.  Only files of images need Pillow."""

from __future__ import annotations

import base64
import html
import io
import os
import pathlib
import struct
import zlib
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ._errors import Error
from ._images import pixels_of, upright

# Every seventeenth of the program's 256 colours for heat maps.
HEAT = np.array(
    [
        list(bytes.fromhex(color))
        for color in (
            "1e023b 34034a 4c0156 65005c 80015e 9b005a b50c52 cb2445 de3d34 ec581d f57402 fa900a fcab2e fac555 f8dd7c "
            "f8f3a3"
        ).split()
    ],
    np.float64,
)
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


def image_pixels(image: Any, exif: bool) -> np.ndarray:
    """The pixels [height, width, 3 (RGB) or 1 (grey)] of an image; those of a file need Pillow."""
    if isinstance(image, (str, os.PathLike, bytes, bytearray, memoryview)):
        try:
            from PIL import Image
        except ImportError as error:
            expected = "a uint8 array [height, width, 3], or Pillow to read a file (pip install pillow)"
            raise Error(f"image: expected {expected}, got a file", "image", expected, "a file") from error
        source = image if isinstance(image, (str, os.PathLike)) else io.BytesIO(image)
        with Image.open(source) as opened:
            image = np.asarray((upright(opened) if exif else opened).convert("RGB"))
    pixels = pixels_of(upright(image) if exif else image)
    return pixels.reshape(*pixels.shape[:2], -1)[..., :3]


def _cells(pixels: int, cells: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The two cells around each pixel, and the weight of the second.  Values belong to the centres of cells."""
    at = np.clip((np.arange(pixels) + 0.5) * cells / pixels - 0.5, 0, cells - 1)
    first = at.astype(np.int64)
    return first, np.minimum(first + 1, cells - 1), at - first


def enlarged(values: np.ndarray, height: int, width: int) -> np.ndarray:
    """The map [rows, columns] at another size, interpolated bilinearly."""
    above, below, y = _cells(height, values.shape[0])
    left, right, x = _cells(width, values.shape[1])
    rows = values[above] + (values[below] - values[above]) * y[:, None]
    return rows[:, left] + (rows[:, right] - rows[:, left]) * x


def blend(pixels: np.ndarray, colors: Any, weight: Any) -> np.ndarray:
    """Pixels [height, width, 3 or 1] with RGB colours over them."""
    return np.rint(pixels * (1 - weight) + np.asarray(colors) * weight).astype(np.uint8)


class _Map(np.ndarray):
    """An array [rows, columns], which a notebook shows over an image."""

    _pixels: Callable[[], np.ndarray] | None  # the image, without which the map is an array alone

    def __array_finalize__(self, source: Any) -> None:
        self._pixels = None

    def _summary(self) -> str:
        return f"{'×'.join(map(str, self.shape))}: {self.min():.3g} to {self.max():.3g}"

    def _repr_html_(self) -> str | None:
        if self._pixels is None:
            return None
        try:
            return figure(self.overlay(), repr(self)[1:-1])
        except Error:  # the file is not there any more
            return None

    def overlay(self, image: Any = None) -> np.ndarray:
        raise NotImplementedError

    def _overlay(self, image: Any, opacity: float) -> np.ndarray:
        if image is not None:
            pixels = image_pixels(image, False)
        elif self._pixels is not None:
            pixels = self._pixels()
        else:
            expected = "the image of a map that was copied or cut"
            raise Error(f"image: expected {expected}, got none", "image", expected, "none")
        values = enlarged(np.asarray(self, np.float64), *pixels.shape[:2])
        low, high = float(self.min()), float(self.max())
        place = (values - low) / (high - low) * (len(HEAT) - 1) if high > low else np.zeros_like(values)
        colors = [np.interp(place, np.arange(len(HEAT)), HEAT[:, channel]) for channel in range(3)]
        return blend(pixels, np.stack(colors, -1), opacity)


class AttentionMap(_Map):
    """An attention map [rows, columns]: an array, which a notebook shows over the model's input."""

    def __repr__(self) -> str:
        if self._pixels is None:
            return repr(self.view(np.ndarray))
        row, column = np.unravel_index(self.argmax(), self.shape)
        return f"<vitrail.AttentionMap {self._summary()}, highest at [{row}, {column}]>"

    def overlay(self, image: Any = None, *, opacity: float = 0.6) -> np.ndarray:
        """The map over the image in RGB: uint8 [height, width, 3].

        image: by default the model's input, which is what the map covers; otherwise a uint8 array, or with Pillow a
        file, which the map then covers as a whole.  opacity: the weight of the map's colours.
        """
        return self._overlay(image, opacity)


class DepthMap(_Map):
    """The depth of each pixel [height, width]: an array, which a notebook shows in colours.

    unit: "m" for metres, or "relative" for inverse depth without scale and offset, where larger is nearer.
    """

    unit: str

    def __array_finalize__(self, source: Any) -> None:
        super().__array_finalize__(source)
        self.unit = getattr(source, "unit", "relative")

    def __repr__(self) -> str:
        if self._pixels is None:
            return repr(self.view(np.ndarray))
        return f"<vitrail.DepthMap {self._summary()}, {self.unit}>"

    def overlay(self, image: Any = None, *, opacity: float = 1) -> np.ndarray:
        """The map over the image in RGB: uint8 [height, width, 3].

        image: by default that of the map; otherwise a uint8 array, or with Pillow a file.  opacity: the weight of the
        map's colours, by default all of it.
        """
        return self._overlay(image, opacity)


def attention_map(values: np.ndarray, pixels: Callable[[], np.ndarray]) -> AttentionMap:
    result = values.view(AttentionMap)
    result._pixels = pixels
    return result


def depth_map(values: np.ndarray, unit: str, pixels: Callable[[], np.ndarray]) -> DepthMap:
    result = values.view(DepthMap)
    result.unit, result._pixels = unit, pixels
    return result
