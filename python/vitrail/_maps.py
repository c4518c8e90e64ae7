# SPDX-License-Identifier: Apache-2.0
"""Maps: values of the pixels of an image, as arrays and in colours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from ._errors import Error
from ._show import OverImage, Shown, blend, figure, image_pixels, of_size, pillow_image, table

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
SQUARE = 8  # pixels of a checkerboard's square


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


class _Map(np.ndarray, Shown):
    """An array [rows, columns], which a notebook shows over an image."""

    _pixels: Callable[[], np.ndarray] | None  # the image, without which the map is an array alone
    _facts: dict[str, Any]  # what the JSON of the whole map says; parts and copies have it too

    def __array_finalize__(self, source: Any) -> None:
        self._pixels, self._facts = None, getattr(source, "_facts", {})

    def __reduce__(self) -> Any:
        reduced: Any = super().__reduce__()
        make, arguments, state = reduced
        return make, arguments, (*state, self._facts)

    def __setstate__(self, state: Any) -> None:
        super().__setstate__(state[:-1])
        self._facts = state[-1]

    def __repr__(self) -> str:
        if self._pixels is None:
            return repr(self.view(np.ndarray))
        return f"<vitrail.{type(self).__name__} {self._summary()}>"

    def _summary(self) -> str:
        return f"{'×'.join(map(str, self.shape))}: {self.min():.3g} to {self.max():.3g}"

    def _repr_html_(self) -> str | None:
        if self._pixels is None:
            return None
        try:
            return figure(self.overlay(), repr(self)[1:-1])
        except Error:  # the file is not there any more
            return None

    def _pixels_below(self, image: Any) -> np.ndarray:
        if image is not None:
            return image_pixels(image, False)
        if self._pixels is not None:
            return self._pixels()
        expected = "the image of a map that was copied or cut"
        raise Error(f"image: expected {expected}, got none", "image", expected, "none")

    def _overlay(self, image: Any, opacity: float, scale: tuple[float, float] | None = None) -> np.ndarray:
        pixels = self._pixels_below(image)
        values = enlarged(np.asarray(self, np.float64), *pixels.shape[:2])
        low, high = scale or (float(self.min()), float(self.max()))
        place = (values - low) / (high - low) * (len(HEAT) - 1) if high > low else np.zeros_like(values)
        colors = [np.interp(place, np.arange(len(HEAT)), HEAT[:, channel]) for channel in range(3)]
        return blend(pixels, np.stack(colors, -1), opacity)


class AttentionMap(_Map):
    """An attention map [rows, columns]: an array, which a notebook shows over the model's input."""

    def _summary(self) -> str:
        row, column = np.unravel_index(self.argmax(), self.shape)
        return f"{super()._summary()}, highest at [{row}, {column}]"

    def overlay(self, image: Any = None, *, opacity: float = 0.6) -> np.ndarray:
        """The map over the image in RGB: uint8 [height, width, 3].

        image: by default the model's input, which is what the map covers; otherwise a uint8 array, or with Pillow a
        file, which the map then covers as a whole.  opacity: the weight of the map's colours.
        """
        return self._overlay(image, opacity)


class DepthMap(_Map):
    """The depth of each pixel [height, width]: an array, which a notebook shows in colours."""

    @property
    def unit(self) -> str:
        """ "m" for metres, or "relative" for inverse depth without scale and offset, where larger is nearer."""
        return self._facts.get("unit", "relative")

    def _summary(self) -> str:
        return f"{super()._summary()}, {self.unit}"

    def overlay(self, image: Any = None, *, opacity: float = 1) -> np.ndarray:
        """The map over the image in RGB: uint8 [height, width, 3].

        image: by default that of the map; otherwise a uint8 array, or with Pillow a file.  opacity: the weight of the
        map's colours, by default all of it.
        """
        return self._overlay(image, opacity)


class Matte(_Map):
    """Alpha, the share of the object in each pixel [height, width]: an array, which a notebook shows as the object on
    a checkerboard.
    """

    def overlay(self, image: Any = None, *, background: Any = None) -> np.ndarray:
        """The object on another background in RGB: uint8 [height, width, 3].

        image: by default that of the matte; otherwise a uint8 array, or with Pillow a file.  background: an RGB colour,
        or pixels [height, width, 3]; by default a checkerboard.
        """
        pixels = of_size(self._pixels_below(image), self.shape)
        if background is None:
            squares: Any = (np.indices(self.shape) // SQUARE).sum(0)
            background = np.where(squares[..., None] % 2, 204, 255)
        return blend(np.broadcast_to(background, (*self.shape, 3)), pixels, np.asarray(self)[..., None])

    def cutout(self, image: Any = None) -> np.ndarray:
        """The image with alpha, as the program's `--render`: uint8 RGBA [height, width, 4]."""
        pixels = of_size(self._pixels_below(image), self.shape)
        alpha = (np.asarray(self) * np.float32(255) + np.float32(0.5)).astype(np.uint8)
        return np.dstack([np.broadcast_to(pixels, (*self.shape, 3)), alpha])

    def render(self, image: Any = None, **options: Any) -> Any:
        """The cutout(), or with a background the overlay(), as an image of Pillow."""
        return super().render(image, **options) if options else pillow_image(self.cutout(image))


class AnomalyMap(_Map):
    """How unlike good images each pixel is [height, width]: an array, which a notebook shows over the image."""

    @property
    def score(self) -> float:
        """The score of the whole image."""
        return self._facts["score"]

    @property
    def threshold(self) -> float | None:
        """The score from which an image is anomalous."""
        return self._facts.get("threshold")

    @property
    def anomalous(self) -> bool | None:
        """Whether the score is above the threshold; None without a threshold."""
        return self._facts.get("anomalous")

    @property
    def pixel_threshold(self) -> float | None:
        """The distance from which a pixel is in the mask."""
        return self._facts.get("pixel_threshold")

    @property
    def mask(self) -> np.ndarray | None:
        """The pixels above pixel_threshold: booleans; None without this threshold."""
        return None if self.pixel_threshold is None else np.asarray(self, np.float64) > self.pixel_threshold

    def _summary(self) -> str:
        verdict = "" if self.anomalous is None else ", anomalous" if self.anomalous else ", good"
        return f"{super()._summary()}, score {self.score:.3g}{verdict}"

    def overlay(self, image: Any = None, *, opacity: float = 0.6) -> np.ndarray:
        """The map over the image in RGB: uint8 [height, width, 3].

        Distances up to pixel_threshold, which good images have too, do not reach the lightest colours.  image: by
        default that of the map; otherwise a uint8 array, or with Pillow a file.  opacity: the weight of the map's
        colours.
        """
        return self._overlay(image, opacity, (0, max(2 * (self.pixel_threshold or 0), float(self.max()))))


class Segment(NamedTuple):
    """A class or an object of a LabelMap."""

    label: str
    score: float | None  # None: a semantic map
    area: int  # pixels
    box: tuple[int, int, int, int]  # x0, y0, x1, y1
    id: int  # in LabelMap.ids
    class_index: int  # in LabelMap.labels
    color: tuple[int, int, int]


class _LabelArrays(NamedTuple):
    labels: np.ndarray  # int32 [height, width], the index of each pixel's class; -1: none
    ids: np.ndarray  # int32 [height, width], the segment of each pixel; 0: none
    segments: list[Segment]


class LabelMap(_LabelArrays, OverImage):
    """The classes and objects of an image: a tuple (labels, ids, segments), which a notebook shows in colours."""

    def __repr__(self) -> str:
        height, width = self.labels.shape
        names = ", ".join(segment.label for segment in self.segments[:5])
        more = ", …" * (len(self.segments) > 5)
        return f"<vitrail.LabelMap: {width}×{height} pixels, {len(self.segments)} segments: {names}{more}>"

    def _repr_html_(self) -> str:
        text = table(
            (each.label, f"{each.area} pixels", "" if each.score is None else f"score {each.score:.3f}")
            for each in self.segments
        )
        try:
            return figure(self.overlay(), repr(self)[1:-1]) + text
        except (Error, OSError):  # without Pillow, or the file is not there any more
            return text

    def overlay(self, image: Any = None, *, opacity: float = 0.5) -> np.ndarray:
        """The segments' colours over the image in RGB: uint8 [height, width, 3].

        image: by default that of the map; otherwise a uint8 array, or with Pillow a file.  opacity: the weight of the
        colours.
        """
        pixels = self._pixels_below(image, self.ids.shape)
        colors = np.zeros((int(self.ids.max(initial=0)) + 1, 3))
        for segment in self.segments:
            colors[segment.id] = segment.color
        return blend(pixels, colors[self.ids], opacity * (self.ids > 0)[..., None])


def label_map(facts: dict[str, Any], labels: np.ndarray, ids: np.ndarray, image: tuple[Any, bool]) -> LabelMap:
    segments = []
    for segment in facts["segments"]:
        x, y, width, height = segment["bbox"]
        named = {name: segment.get(name) for name in ("label", "score", "area", "id")}
        box, color = (x, y, x + width, y + height), tuple(segment["color"])
        segments.append(Segment(**named, box=box, class_index=segment["index"], color=color))
    result = LabelMap(labels, ids, segments)
    result._image = image
    return result


def with_image(values: np.ndarray, kind: Any, pixels: Callable[[], np.ndarray], facts: Any = None) -> Any:
    """The values as a map of this class."""
    result: Any = values.view(kind)
    result._pixels, result._facts = pixels, facts or {}
    return result
