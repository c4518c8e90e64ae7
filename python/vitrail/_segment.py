# SPDX-License-Identifier: Apache-2.0
"""Masks, with Segment Anything."""

from __future__ import annotations

import ctypes
from typing import NamedTuple

import numpy as np

from ._errors import Error
from ._images import opened
from ._library import Prompt, functions


class Masks(NamedTuple):
    """The masks of a prompt."""

    masks: np.ndarray  # [masks, height, width], 1 in the object and 0 outside
    iou: np.ndarray  # [masks], the predicted intersection over union
    logits: np.ndarray  # [masks, h, w] at the model's mask size


class ImageEmbedding:
    """What the image encoder gives for an image.  Model.image_embedding() makes one."""

    def __init__(self, handle: ctypes.c_void_p):
        self._handle = handle

    def __del__(self):
        if getattr(self, "_handle", None) and functions:
            functions.image_embedding_free(self._handle)

    def __reduce__(self):
        raise TypeError("a vitrail.ImageEmbedding cannot be pickled")


def embedded(model: ctypes.c_void_p, image, exif: bool) -> ImageEmbedding:
    handle = ctypes.c_void_p()
    with opened(model, [image], exif) as (handles, _):
        functions.segment_embed(model, handles[0], ctypes.byref(handle))
    return ImageEmbedding(handle)


def _numbers(values, name: str, dtype, shape: tuple) -> np.ndarray:
    """A contiguous array of this shape; None stands for any extent."""
    array = np.ascontiguousarray(values, dtype)
    fits = array.ndim == len(shape) and all(want in (None, array.shape[i]) for i, want in enumerate(shape))
    if fits:
        return array
    expected = f"shape {['n' if extent is None else extent for extent in shape]}"
    raise Error(f"{name}: expected {expected}, got {list(array.shape)}", name, expected, str(list(array.shape)))


def masks_of(model, embedding: ImageEmbedding, points, labels, box, mask_logits, multimask: bool):
    """Handles of the masks, their IoU and their logits."""
    prompt, arrays = Prompt(struct_size=ctypes.sizeof(Prompt), single=not multimask), []

    def pointer(values, name, dtype, shape, kind):
        arrays.append(_numbers(values, name, dtype, shape))  # the arrays must outlive the call
        return arrays[-1].ctypes.data_as(ctypes.POINTER(kind))

    if points is not None:
        prompt.points = pointer(points, "points", np.float64, (None, 2), ctypes.c_double)
        prompt.num_points = len(points)
    if labels is not None:
        count = 0 if points is None else len(points)
        prompt.labels = pointer(labels, "labels", np.intc, (count,), ctypes.c_int)
    if mask_logits is not None and np.asarray(mask_logits).dtype == bool:
        raise Error("mask_logits: expected logits, got booleans", "mask_logits", "logits", "booleans")
    if box is not None:
        prompt.box = pointer(box, "box", np.float64, (4,), ctypes.c_double)
    if mask_logits is not None:
        prompt.mask_size = len(mask_logits)
        prompt.mask_logits = pointer(mask_logits, "mask_logits", np.float32, (len(mask_logits),) * 2, ctypes.c_float)
    results = [ctypes.c_void_p() for _ in range(3)]
    functions.segment(model, embedding._handle, ctypes.byref(prompt), *map(ctypes.byref, results))
    return results
