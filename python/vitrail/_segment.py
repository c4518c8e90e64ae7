# SPDX-License-Identifier: Apache-2.0
"""Masks, with Segment Anything."""

from __future__ import annotations

import ctypes
from typing import Any, NamedTuple, NoReturn

import numpy as np

from ._batches import run_together
from ._errors import Error
from ._interrupts import interruptible
from ._library import ImageEmbeddingHandle, Prompt, TensorHandle, functions
from ._show import MASK_COLOR, OverImage, blend, figure, table


class _Arrays(NamedTuple):
    masks: np.ndarray  # [masks, height, width], 1 in the object and 0 outside
    iou: np.ndarray  # [masks], the predicted intersection over union
    logits: np.ndarray  # [masks, h, w] at the model's mask size


class Masks(_Arrays, OverImage):
    """The masks of a prompt: a tuple (masks, iou, logits)."""

    def __repr__(self) -> str:
        count, height, width = self.masks.shape
        ious = ", ".join(f"{iou:.3f}" for iou in self.iou)
        return f"<vitrail.Masks: {count} of {width}×{height} pixels, predicted IoU {ious}>"

    def _repr_html_(self) -> str:
        areas = [f"{mask.sum():.0f} pixels" for mask in self.masks]
        rows = [(f"mask {i}", areas[i], f"IoU {iou:.3f}") for i, iou in enumerate(self.iou)]
        text = table(rows, np.clip(self.iou, 0, 1).tolist())
        try:
            return figure(self.overlay(), f"mask {self.iou.argmax()}") + text
        except (Error, OSError):  # without Pillow, or the file is not there any more
            return text

    def overlay(self, image: Any = None, *, mask: int | None = None, opacity: float = 0.5) -> np.ndarray:
        """A mask over the image in RGB: uint8 [height, width, 3].

        image: by default the one that was segmented; files need Pillow.  mask: its number, by default that with the
        highest predicted IoU.  opacity: the weight of the mask's colour.
        """
        chosen = self.masks[int(self.iou.argmax()) if mask is None else mask]
        pixels = self._pixels_below(image, chosen.shape)
        return blend(pixels, MASK_COLOR, opacity * chosen[..., None])


class ImageEmbedding:
    """What the image encoder gives for an image.  Model.image_embedding() makes one."""

    def __init__(self, handle: ImageEmbeddingHandle, image: Any, exif: bool):
        self._handle, self._image = handle, (image, exif)

    def __reduce__(self) -> NoReturn:
        raise TypeError("a vitrail.ImageEmbedding cannot be pickled")


def embedded(model: Any, image: Any, exif: bool) -> ImageEmbedding:
    if hasattr(image, "read"):
        image = image.read()

    def embedding(handles: Any, _: int) -> ImageEmbedding:
        handle = ImageEmbeddingHandle()
        functions.segment_embed(model, handles[0], ctypes.byref(handle))
        return ImageEmbedding(handle, image, exif)

    return run_together(model, [image], exif, embedding)


def _numbers(values: Any, name: str, dtype: Any, shape: tuple[int | None, ...]) -> np.ndarray:
    """A contiguous array of this shape; None stands for any extent."""
    array = np.ascontiguousarray(values, dtype)
    fits = array.ndim == len(shape) and all(want in (None, array.shape[i]) for i, want in enumerate(shape))
    if fits:
        return array
    expected = f"shape {['n' if extent is None else extent for extent in shape]}"
    raise Error(f"{name}: expected {expected}, got {list(array.shape)}", name, expected, str(list(array.shape)))


def _pixels(mask: Any) -> np.ndarray:
    """A mask of booleans; numbers could be logits or labels of objects."""
    mask = np.asarray(mask)
    if mask.ndim == 2 and mask.dtype == bool:
        return np.ascontiguousarray(mask, np.uint8)
    expected, got = "booleans [height, width]", f"{mask.dtype} {list(mask.shape)}"
    raise Error(f"mask: expected {expected}, got {got}", "mask", expected, got)


def masks_of(
    model: Any,
    embedding: ImageEmbedding,
    points: Any,
    labels: Any,
    box: Any,
    mask_logits: Any,
    multimask: bool,
    mask: Any,
) -> Masks:
    prompt = Prompt(struct_size=ctypes.sizeof(Prompt), single=not multimask)
    arrays: list[np.ndarray] = []

    def pointer(array: np.ndarray, kind: Any) -> Any:
        arrays.append(array)
        return array.ctypes.data_as(ctypes.POINTER(kind))

    if points is not None:
        prompt.points = pointer(_numbers(points, "points", np.float64, (None, 2)), ctypes.c_double)
        prompt.num_points = len(points)
    if labels is not None:
        count = 0 if points is None else len(points)
        prompt.labels = pointer(_numbers(labels, "labels", np.intc, (count,)), ctypes.c_int)
    if box is not None:
        prompt.box = pointer(_numbers(box, "box", np.float64, (4,)), ctypes.c_double)
    if mask is None and mask_logits is not None and np.asarray(mask_logits).dtype == bool:
        mask, mask_logits = mask_logits, None
    if mask_logits is not None:
        prompt.mask_size = len(mask_logits)
        shape = (len(mask_logits), len(mask_logits))
        prompt.mask_logits = pointer(_numbers(mask_logits, "mask_logits", np.float32, shape), ctypes.c_float)
    if mask is not None:
        pixels = _pixels(mask)
        prompt.mask_height, prompt.mask_width = pixels.shape
        prompt.mask = pointer(pixels, ctypes.c_uint8)

    def masks(_: Any) -> Masks:
        results = [TensorHandle() for _ in Masks._fields]
        functions.segment(model, embedding._handle, ctypes.byref(prompt), *map(ctypes.byref, results))
        found = Masks(*(result.values() for result in results))
        found._image = embedding._image
        return found

    return interruptible(masks, arrays)  # the arrays must outlive the call
