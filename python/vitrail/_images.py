# SPDX-License-Identifier: Apache-2.0
"""Images of all kinds that callers have, as handles of the library."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable
from typing import Any

import numpy as np

from ._errors import Error
from ._library import ImageHandle, c_path, functions
from ._paths import list_images, names_several

GREY, RGB, RGBA = 0, 1, 3


def is_one_image(images: Any) -> bool:
    """Whether the argument is an image by itself, not several."""
    if isinstance(images, (list, tuple)):
        return False
    if isinstance(images, np.ndarray):
        return images.ndim in (2, 3)
    if hasattr(images, "__array_interface__") or hasattr(images, "__array__"):
        return np.ndim(images) in (2, 3)
    if hasattr(images, "__dlpack__"):
        return _from_dlpack(images).ndim in (2, 3)
    if names_several(images):
        return False
    return hasattr(images, "read") or not hasattr(images, "__next__")  # a path, a file, bytes, an image of Pillow


def _from_dlpack(image: Any) -> np.ndarray:
    try:
        return np.from_dlpack(image)
    except (BufferError, RuntimeError) as error:  # memory of a GPU, or a type that NumPy does not have
        expected = "a DLPack object that NumPy reads"
        raise Error(f"image: expected {expected}, got {error}", "image", expected, str(error)) from error


def _array(image: Any) -> np.ndarray:
    if isinstance(image, np.ndarray):
        return image
    if hasattr(image, "convert") and hasattr(image, "mode"):  # Pillow, which knows more modes than arrays have
        return np.asarray(image if image.mode in ("L", "RGB") else image.convert("RGB"))
    if hasattr(image, "__array__"):
        return np.asarray(image)
    if hasattr(image, "__dlpack__"):
        return _from_dlpack(image)
    raise Error(
        f"image: expected a path, bytes, a Pillow image or a uint8 array, got {type(image).__name__}",
        "image",
        "a path, bytes, a Pillow image or a uint8 array",
        type(image).__name__,
    )


def upright(image: Any) -> Any:
    """An image of Pillow turned as its EXIF orientation says.  Arrays have none."""
    if not hasattr(image, "getexif"):
        return image
    from PIL import ImageOps

    return ImageOps.exif_transpose(image)


def pixels_of(image: Any) -> np.ndarray:
    """The image as an array that images may be: uint8, grey, RGB or RGBA."""
    array = _array(image)
    if array.dtype == np.uint8 and array.ndim in (2, 3) and (array.ndim == 2 or array.shape[2] in (1, 3, 4)):
        return array
    got = f"{array.dtype} {list(array.shape)}"
    expected = "a uint8 array [height, width], or with 1, 3 (RGB) or 4 (RGBA) channels"
    raise Error(f"image: expected {expected}, got {got}", "image", expected, got)


def _view(image: Any, handle: ImageHandle) -> None:
    """A handle over the memory of an array, which it keeps alive."""
    array = pixels_of(image)
    channels = array.shape[2] if array.ndim == 3 else 1
    if array.size and (array.strides[1] != channels or (array.ndim == 3 and array.strides[2] != 1)):
        array = np.ascontiguousarray(array)
    if array.size and array.strides[0] < array.shape[1] * channels:  # flipped or broadcast rows
        array = np.ascontiguousarray(array)
    height, width = array.shape[:2]
    size = (height - 1) * array.strides[0] + width * channels if array.size else 0
    format = {1: GREY, 3: RGB, 4: RGBA}[channels]
    functions.image_view(array.ctypes.data, size, width, height, array.strides[0], format, ctypes.byref(handle))
    handle.owner = array


def open_image(model: Any, image: Any, exif: bool) -> ImageHandle:
    handle = ImageHandle()
    if hasattr(image, "read"):
        image = image.read()
    if isinstance(image, (str, os.PathLike)):
        functions.image_read(model, c_path(image), exif, ctypes.byref(handle))
    elif isinstance(image, (bytes, bytearray, memoryview)):
        data = bytes(image)
        functions.image_decode(model, data, len(data), exif, ctypes.byref(handle))
    else:
        _view(upright(image) if exif else image, handle)
    return handle


def each_of(images: Any) -> Iterable[Any]:
    """An iterable of several images."""
    if names_several(images):
        return list_images(images)
    return images if hasattr(images, "__iter__") else _array(images)  # it has only __array__ or __dlpack__
