# SPDX-License-Identifier: Apache-2.0
"""The shared library with the C interface (vitrail/c_api.h), by ctypes."""

from __future__ import annotations

import ctypes
import json
import os
import pathlib
import warnings
from ctypes import POINTER, c_char_p, c_double, c_float, c_int, c_int64, c_size_t, c_uint8, c_void_p
from typing import Any, Union

import numpy as np

from ._errors import Error, InternalError

OUT_OF_MEMORY, INTERNAL = 2, 3
Handle = c_void_p
Handles = POINTER(c_void_p)
Strings = POINTER(c_char_p)
StrPath = Union[str, "os.PathLike[str]"]


class ModelOptions(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("threads", c_int),
        ("precision", c_char_p),
        ("labels", c_char_p),
        ("config", c_char_p),
        ("tokenizer", c_char_p),
        ("image_height", c_int64),
        ("image_width", c_int64),
    ]


class ModelBytes(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("weights", c_void_p),
        ("weights_size", c_size_t),
        ("config", c_char_p),
        ("preprocessor", c_char_p),
    ]


class EmbedOptions(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("tokens", c_int),
        ("layer", c_int64),
        ("skip_norm", c_int),
        ("l2_normalize", c_int),
    ]


class AttentionOptions(ctypes.Structure):
    _fields_ = [("struct_size", c_size_t), ("layer", c_int64), ("head", c_int64), ("rollout", c_int)]


class Prompt(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("points", POINTER(c_double)),
        ("labels", POINTER(c_int)),
        ("num_points", c_size_t),
        ("box", POINTER(c_double)),
        ("mask_logits", POINTER(c_float)),
        ("mask_size", c_int64),
        ("single", c_int),
        ("mask", POINTER(c_uint8)),
        ("mask_width", c_int64),
        ("mask_height", c_int64),
    ]


class Prediction(ctypes.Structure):
    _fields_ = [("index", c_int64), ("probability", c_float), ("label", c_char_p)]


TrainCallback = ctypes.CFUNCTYPE(c_int, c_int, c_char_p, c_void_p)


class TrainOptions(ctypes.Structure):
    _fields_ = [
        ("struct_size", c_size_t),
        ("threads", c_int),
        ("resume", c_int),
        ("allow_changes", c_int),
        ("model", c_char_p),
        ("settings", Strings),
        ("num_settings", c_size_t),
        ("on_event", TrainCallback),
        ("context", c_void_p),
        ("preset", c_char_p),
        ("force", c_int),
    ]


WarningCallback = ctypes.CFUNCTYPE(None, c_char_p, c_void_p)

# name: (result, arguments); the result `Status` is checked.
Status = object()
FUNCTIONS = {
    "api_version": (c_int, []),
    "version": (c_char_p, []),
    "status_code": (c_int, [Handle]),
    "status_message": (c_char_p, [Handle]),
    "status_where": (c_char_p, [Handle]),
    "status_expected": (c_char_p, [Handle]),
    "status_got": (c_char_p, [Handle]),
    "status_free": (None, [Handle]),
    "set_warning_callback": (None, [WarningCallback, c_void_p]),
    "tensor_data": (POINTER(c_float), [Handle]),
    "tensor_rank": (c_int, [Handle]),
    "tensor_shape": (POINTER(c_int64), [Handle]),
    "tensor_free": (None, [Handle]),
    "model_open": (Status, [c_char_p, POINTER(ModelOptions), Handles]),
    "model_open_bytes": (Status, [POINTER(ModelBytes), POINTER(ModelOptions), Handles]),
    "model_free": (None, [Handle]),
    "model_config": (c_char_p, [Handle]),
    "model_num_classes": (c_int64, [Handle]),
    "model_class_name": (c_char_p, [Handle, c_int64]),
    "model_has_text": (c_int, [Handle]),
    "image_read": (Status, [Handle, c_char_p, c_int, Handles]),
    "image_decode": (Status, [Handle, c_char_p, c_size_t, c_int, Handles]),
    "image_view": (Status, [c_void_p, c_size_t, c_int64, c_int64, c_int64, c_int, Handles]),
    "image_width": (c_int64, [Handle]),
    "image_height": (c_int64, [Handle]),
    "image_free": (None, [Handle]),
    "classify": (Status, [Handle, Handles, c_size_t, c_int64, POINTER(Prediction), POINTER(c_int64)]),
    "logits": (Status, [Handle, Handles, c_size_t, Handles]),
    "embed": (Status, [Handle, Handles, c_size_t, POINTER(EmbedOptions), Handles]),
    "attention": (Status, [Handle, Handle, POINTER(AttentionOptions), Handles]),
    "gradients": (Status, [Handle, Handle, c_int64, Strings, c_size_t, Handles]),
    "pca_maps": (Status, [Handles, c_size_t, Handles]),
    "preprocess": (Status, [Handle, Handles, c_size_t, Handles]),
    "forward": (Status, [Handle, c_void_p, POINTER(c_int64), Handles]),
    "embed_texts": (Status, [Handle, Strings, c_size_t, Handles]),
    "run": (Status, [Handle, c_char_p, Handles, c_size_t, Strings, c_size_t, Handles]),
    "run_array": (Status, [Handle, c_size_t, c_char_p, Handles]),
    "run_file": (Status, [Handle, c_size_t, POINTER(POINTER(c_uint8)), POINTER(c_size_t)]),
    "text_data": (c_char_p, [Handle]),
    "text_free": (None, [Handle]),
    "train": (Status, [c_char_p, c_char_p, POINTER(TrainOptions), POINTER(c_int)]),
    "segment_embed": (Status, [Handle, Handle, Handles]),
    "image_embedding_free": (None, [Handle]),
    "segment": (Status, [Handle, Handle, POINTER(Prompt), Handles, Handles, Handles]),
    "zeroshot": (Status, [Handle, Handles, c_size_t, Strings, c_size_t, Strings, c_size_t, Handles]),
    "list_images": (Status, [c_char_p, Handles]),
    "paths_at": (c_char_p, [Handle, c_size_t]),
    "paths_free": (None, [Handle]),
}


class Owned(c_void_p):
    """A handle that its last reference frees: a call that runs on after Ctrl-C keeps it."""

    free = ""

    def __del__(self) -> None:
        if self and functions:
            getattr(functions, self.free)(self)


class ModelHandle(Owned):
    free = "model_free"
    owner: Any = None  # the bytes of its weights


class ImageHandle(Owned):
    free = "image_free"
    owner: Any = None  # the object with the pixels


class ImageEmbeddingHandle(Owned):
    free = "image_embedding_free"


class TensorHandle(Owned):
    free = "tensor_free"

    def values(self) -> np.ndarray:
        """A copy."""
        shape = functions.tensor_shape(self)[: functions.tensor_rank(self)]
        if 0 in shape:
            return np.empty(shape, np.float32)
        return np.ctypeslib.as_array(functions.tensor_data(self), shape).copy()


class TextHandle(Owned):
    """A text, with the arrays of the result of a task."""

    free = "text_free"

    def json(self) -> Any:
        return json.loads(functions.text_data(self))

    def array(self, name: str) -> np.ndarray:
        """The first image's."""
        result = TensorHandle()
        functions.run_array(self, 0, c_text(name), ctypes.byref(result))
        return result.values()

    def file(self) -> bytes:
        """The first image's."""
        content, size = POINTER(c_uint8)(), c_size_t()
        functions.run_file(self, 0, ctypes.byref(content), ctypes.byref(size))
        return ctypes.string_at(content, size.value)


class PathsHandle(Owned):
    free = "paths_free"


def c_text(text: str) -> bytes:
    """A text for C, which would end it at a NUL."""
    if "\0" in text:
        raise Error(f"text: expected no NUL character, got {text!r}", "text", "no NUL character", repr(text))
    return text.encode()


def c_path(path: StrPath) -> bytes:
    """A path for C, in the encoding of the file system."""
    name = os.fsencode(path)
    if b"\0" in name:
        raise Error(f"path: expected no NUL character, got {path!r}", "path", "no NUL character", repr(path))
    return name


def _path() -> str:
    """VITRAIL_LIBRARY, else the library of the wheel."""
    chosen = os.environ.get("VITRAIL_LIBRARY")
    return chosen or str(pathlib.Path(__file__).parent / "lib" / "libvitrail.so")


def _raise(address: int) -> None:
    """Raises the exception of a status, and frees it."""
    status = c_void_p(address)
    try:
        code = functions.status_code(status)
        message, where, expected, got = (
            getattr(functions, "status_" + part)(status).decode(errors="replace")
            for part in ("message", "where", "expected", "got")
        )
    finally:
        functions.status_free(status)
    if code == OUT_OF_MEMORY:
        raise MemoryError(message)
    if code == INTERNAL:
        raise InternalError(message)
    raise Error(message, where, expected, got)


def _check(status: int | None, function: Any, arguments: Any) -> None:
    if status:
        _raise(status)


class _Functions:
    """The functions of the library without their prefix."""

    def __init__(self, library: ctypes.CDLL):
        for name, (result, arguments) in FUNCTIONS.items():
            function = getattr(library, "vitrail_" + name)
            function.restype = c_void_p if result is Status else result
            function.argtypes = arguments
            if result is Status:
                function.errcheck = _check
            setattr(self, name, function)

    def __getattr__(self, name: str) -> Any:  # for type checkers: __init__ sets the functions
        raise AttributeError(name)


@WarningCallback  # type: ignore[untyped-decorator]  # of ctypes
def _warn(message: bytes, context: Any) -> None:
    warnings.warn(message.decode(errors="replace"), stacklevel=2)


functions = _Functions(ctypes.CDLL(_path()))
functions.set_warning_callback(_warn, None)


def version() -> str:
    return functions.version().decode()
