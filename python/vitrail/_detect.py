# SPDX-License-Identifier: Apache-2.0
"""Objects of an image, as arrays and as boxes over it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from ._errors import Error
from ._show import OverImage, figure, image_pixels, table


def _color(index: int) -> list[int]:
    """PASCAL VOC's colour of a class: the bits of its id, from the lowest, are those of channels from the highest."""
    return [sum((index + 1 >> 3 * bit + channel & 1) << 7 - bit for bit in range(8)) for channel in range(3)]


class _Arrays(NamedTuple):
    boxes: np.ndarray  # float32 [objects, 4]: left, top, right, bottom in pixels
    scores: np.ndarray  # float32 [objects]
    labels: list[str]


class Detections(_Arrays, OverImage):
    """The objects of an image, the best one first: a tuple (boxes, scores, labels), which a notebook shows as boxes."""

    indices: np.ndarray  # int64 [objects]: the class of each object
    rles: list[dict[str, Any] | None]  # the mask of each object in COCO's encoding, of a model that gives masks

    def __repr__(self) -> str:
        names = ", ".join(f"{label} {score:.2f}" for label, score in zip(self.labels[:5], self.scores[:5], strict=True))
        more = ", …" * (len(self.labels) > 5)
        return f"<vitrail.Detections: {len(self.labels)} objects{': ' * bool(names)}{names}{more}>"

    def _repr_html_(self) -> str:
        text = table(list(zip(self.labels, map("{:.1%}".format, self.scores), strict=True)), self.scores.tolist())
        try:
            return figure(self.overlay(), repr(self)[1:-1]) + text
        except (Error, OSError):  # without Pillow, or the file is not there any more
            return text

    def overlay(self, image: Any = None) -> np.ndarray:
        """The boxes over the image in RGB, in a colour for each class: uint8 [height, width, 3].

        image: by default the one in which the objects are; files need Pillow.
        """
        source = self._image if image is None else (image, False)
        if source is None:
            raise Error("image: expected the image of this result, got none", "image", "the image", "none")
        below = image_pixels(*source)
        pixels = np.array(np.broadcast_to(below, (*below.shape[:2], 3)))
        wide = 1 + max(pixels.shape) // 400
        for (x0, y0, x1, y1), index in zip(np.rint(self.boxes).astype(int)[::-1], self.indices[::-1], strict=True):
            left, top, right, bottom = (max(0, side) for side in (x0, y0, x1, y1))
            inner = [max(0, side) for side in (x0 + wide, y0 + wide, x1 - wide, y1 - wide)]
            kept = pixels[inner[1] : inner[3], inner[0] : inner[2]].copy()
            pixels[top:bottom, left:right] = _color(int(index))
            pixels[inner[1] : inner[3], inner[0] : inner[2]] = kept
        return pixels


def detections(facts: dict[str, Any], image: tuple[Any, bool]) -> Detections:
    found = facts["detections"]
    boxes = np.array([each["box"] for each in found], np.float32).reshape(-1, 4)
    scores = np.array([each["score"] for each in found], np.float32)
    result = Detections(boxes, scores, [each["label"] for each in found])
    result.indices = np.array([each["index"] for each in found], np.int64)
    result.rles = [each.get("rle") for each in found]
    result._image = image
    return result
