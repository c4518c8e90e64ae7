# SPDX-License-Identifier: Apache-2.0
"""Models: images in, predictions, features and attention maps out."""

from __future__ import annotations

import ctypes
import json
import os
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ._batches import run_batches
from ._errors import Error
from ._images import each_of, is_one_image, opened
from ._library import AttentionOptions, EmbedOptions, ModelOptions, Prediction, c_path, c_text, functions
from ._segment import ImageEmbedding, Masks, embedded, masks_of

TOKENS = ("pooled", "cls", "patch", "grid", "all")


def _array(tensor: ctypes.c_void_p) -> np.ndarray:
    """The values of a result, which is freed."""
    try:
        rank = functions.tensor_rank(tensor)
        shape = functions.tensor_shape(tensor)[:rank]
        if 0 in shape:
            return np.empty(shape, np.float32)
        return np.ctypeslib.as_array(functions.tensor_data(tensor), shape).copy()
    finally:
        functions.tensor_free(tensor)


def _strings(strings: Sequence[str]):
    if isinstance(strings, str):
        strings = [strings]
    return (ctypes.c_char_p * len(strings))(*map(c_text, strings)), len(strings)


def _encoded(path: str | os.PathLike | None) -> bytes | None:
    return None if path is None else c_path(path)


class Model:
    """A model for inference.  load() opens one.

    Methods take one image or several.  An image is a path, the bytes of a file, an image of Pillow, a uint8 array
    [height, width, 3] (RGB; also [height, width] and RGBA), or an object with __array__ or __dlpack__.  One image gives
    one result, several give one per image.  Methods may be called from several threads at once.

    Several images are a list, an array, or any iterable: classify, logits, embed and zeroshot decode them in threads
    beside the model, with bounded memory.  on_progress, such as the `update` of a tqdm, is called with the number of
    images since its last call.  errors="nan" gives rows of NaN for images that cannot be read.
    """

    def __init__(self, handle: ctypes.c_void_p, path: str):
        self._handle, self._path = handle, path
        self._labels: list[str] | None = None

    def __del__(self):
        if getattr(self, "_handle", None) and functions:
            functions.model_free(self._handle)

    def __repr__(self) -> str:
        return f"<vitrail.Model {self._path!r}>"

    def __reduce__(self):
        raise TypeError("a vitrail.Model cannot be pickled: load it in each process")

    @property
    def config(self) -> dict[str, Any]:
        """The contents of config.json."""
        return json.loads(functions.model_config(self._handle))

    @property
    def labels(self) -> list[str]:
        """The class names in index order; empty for a model without a head."""
        if self._labels is None:
            count = functions.model_num_classes(self._handle)
            self._labels = [functions.model_class_name(self._handle, i).decode() for i in range(count)]
        return self._labels

    @property
    def has_text(self) -> bool:
        """Whether the model embeds texts (CLIP, SigLIP)."""
        return bool(functions.model_has_text(self._handle))

    def classify(
        self, images, top: int = 5, exif: bool = False, on_progress: Callable[[int], Any] | None = None
    ) -> list:
        """The `top` most probable classes as (label, probability), the most probable first."""

        def rows(handles, count):
            predictions, written = (Prediction * (count * max(top, 1)))(), ctypes.c_int64()
            functions.classify(self._handle, handles, count, top, predictions, ctypes.byref(written))
            each = written.value
            return [
                [(p.label.decode(), p.probability) for p in predictions[i * each : (i + 1) * each]]
                for i in range(count)
            ]

        if is_one_image(images):
            with opened(self._handle, images, exif) as (handles, count):
                return rows(handles, count)[0]
        batches, _ = run_batches(self._handle, each_of(images), exif, rows, on_progress=on_progress)
        return [row for batch in batches for row in batch]

    def logits(
        self, images, exif: bool = False, errors: str = "raise", on_progress: Callable[[int], Any] | None = None
    ) -> np.ndarray:
        """The class scores [classes], or [images, classes]."""
        return self._run(functions.logits, images, exif, errors=errors, on_progress=on_progress)

    def embed(
        self,
        images,
        tokens: str = "pooled",
        layer: int = -1,
        norm: bool = True,
        normalize: bool = False,
        exif: bool = False,
        errors: str = "raise",
        on_progress: Callable[[int], Any] | None = None,
    ) -> np.ndarray:
        """Features: [D] of an image for tokens "pooled" or "cls", [N, D] for "patch" or "all", [rows, columns, D] for
        "grid".

        layer: index of a block; negative counts from the end.  norm: apply the model's final norm.  normalize: scale
        each vector to length 1.
        """
        if tokens not in TOKENS:
            expected = "one of " + ", ".join(TOKENS)
            raise Error(f"tokens: expected {expected}, got {tokens!r}", "tokens", expected, repr(tokens))
        options = EmbedOptions(ctypes.sizeof(EmbedOptions), TOKENS.index(tokens), layer, not norm, normalize)
        return self._run(functions.embed, images, exif, ctypes.byref(options), errors=errors, on_progress=on_progress)

    def attention(
        self, image, layer: int = -1, head: int | None = None, rollout: bool = False, exif: bool = False
    ) -> np.ndarray:
        """The attention of the class token, or without one of the mean over all tokens, to each patch of one image:
        [rows, columns].
        """
        options = AttentionOptions(ctypes.sizeof(AttentionOptions), layer, -1 if head is None else head, rollout)
        result = ctypes.c_void_p()
        with opened(self._handle, [image], exif) as (handles, _):
            functions.attention(self._handle, handles[0], ctypes.byref(options), ctypes.byref(result))
        return _array(result)

    def pca(self, images, exif: bool = False):
        """The first three principal components of the patch features of all images, scaled to 0 to 1: [rows, columns,
        3] per image."""
        with opened(self._handle, images, exif) as (handles, count):
            maps = (ctypes.c_void_p * count)()
            functions.pca(self._handle, handles, count, maps)
        results = [_array(ctypes.c_void_p(map)) for map in maps]
        return results[0] if is_one_image(images) else results

    def preprocess(self, images, exif: bool = False) -> np.ndarray:
        """The model's input [images, channels, height, width] of images whose inputs have one size."""
        with opened(self._handle, images, exif) as (handles, count):
            return self._batch(functions.preprocess, handles, count)

    def forward(self, pixels) -> np.ndarray:
        """The model's output for an input [images, channels, height, width], as preprocess() gives it."""
        pixels = np.ascontiguousarray(pixels, np.float32)
        if pixels.ndim != 4:
            expected = "an array [images, channels, height, width]"
            raise Error(f"pixels: expected {expected}, got {list(pixels.shape)}", "pixels", expected, str(pixels.shape))
        result = ctypes.c_void_p()
        shape = (ctypes.c_int64 * 4)(*pixels.shape)
        functions.forward(self._handle, pixels.ctypes.data, shape, ctypes.byref(result))
        return _array(result)

    def embed_text(self, texts: str | Sequence[str]) -> np.ndarray:
        """Embeddings of length 1: [D] of one text, [texts, D] of several."""
        result = ctypes.c_void_p()
        functions.embed_texts(self._handle, *_strings(texts), ctypes.byref(result))
        embeddings = _array(result)
        return embeddings[0] if isinstance(texts, str) else embeddings

    def zeroshot(
        self,
        images,
        labels: Sequence[str],
        templates: Sequence[str] = (),
        exif: bool = False,
        errors: str = "raise",
        on_progress: Callable[[int], Any] | None = None,
    ) -> np.ndarray:
        """The probability of each label: [labels], or [images, labels].

        templates: texts such as "a photo of a {}", whose embeddings are averaged; without them the labels are the
        texts.
        """
        texts = (*_strings(labels), *_strings(templates))
        return self._run(functions.zeroshot, images, exif, *texts, errors=errors, on_progress=on_progress)

    def image_embedding(self, image, exif: bool = False) -> ImageEmbedding:
        """What Segment Anything's image encoder gives for an image; segment() takes it instead of the image."""
        return embedded(self._handle, image, exif)

    def segment(
        self, image, points=None, labels=None, box=None, mask_logits=None, multimask: bool = True, exif: bool = False
    ) -> Masks | list[Masks]:
        """The masks of one prompt, with a model of Segment Anything.

        image: an image, or its image_embedding(), which makes further prompts quick.  In pixels of the image: points
        [n, 2] (x, y) with labels [n], 1 in the object (default) or 0 outside, and box (x0, y0, x1, y1).  Boxes [n, 4]
        are n prompts, whose masks are a list.  mask_logits: `logits` of a mask of an earlier result.  multimask: three
        masks of different extent, or one.
        """
        embedding = image if isinstance(image, ImageEmbedding) else embedded(self._handle, image, exif)
        if np.ndim(box) == 2:
            boxes = np.asarray(box)
            return [self.segment(embedding, points, labels, each, mask_logits, multimask) for each in boxes]
        return Masks(*map(_array, masks_of(self._handle, embedding, points, labels, box, mask_logits, multimask)))

    def run(self, task: str, images, exif: bool = False, **options) -> Any:
        """The result of a task by its name, as the server's JSON.

        options: those of the server's route, with _ for -; a list stands for an option that is repeated.
        """
        values = [(k.replace("_", "-"), v) for k, vs in options.items() for v in (vs if isinstance(vs, list) else [vs])]
        given = [f"{name}={str(value).lower() if isinstance(value, bool) else value}" for name, value in values]
        text = ctypes.c_void_p()
        with opened(self._handle, images, exif) as (handles, count):
            functions.run(self._handle, c_text(task), handles, count, *_strings(given), ctypes.byref(text))
        try:
            rows = json.loads(functions.text_data(text))
        finally:
            functions.text_free(text)
        return rows[0] if is_one_image(images) else rows

    def _batch(self, function, handles, count, *options) -> np.ndarray:
        result = ctypes.c_void_p()
        function(self._handle, handles, count, *options, ctypes.byref(result))
        return _array(result)

    def _run(self, function, images, exif, *options, errors, on_progress) -> np.ndarray:
        if errors not in ("raise", "nan"):
            expected = '"raise" or "nan"'
            raise Error(f"errors: expected {expected}, got {errors!r}", "errors", expected, repr(errors))

        def rows(handles, count):
            return self._batch(function, handles, count, *options)

        if is_one_image(images) and errors == "raise":
            with opened(self._handle, images, exif) as (handles, count):
                return rows(handles, count)[0]
        batches, read = run_batches(
            self._handle,
            [images] if is_one_image(images) else each_of(images),
            exif,
            rows,
            skip=errors == "nan",
            on_progress=on_progress,
        )
        if not batches:  # no image was read: the shape of a row is that of any image
            with opened(self._handle, np.zeros((64, 64, 3), np.uint8)) as (handles, count):
                batches = [rows(handles, count)[:0]]
        if len({batch.shape[1:] for batch in batches}) > 1:
            expected, got = "images whose results have one shape", str({batch.shape[1:] for batch in batches})
            raise Error(f"images: expected {expected}, got {got}", "images", expected, got)
        values = np.concatenate(batches)
        if not all(read):
            known, values = values, np.full((len(read), *values.shape[1:]), np.nan, np.float32)
            values[np.array(read)] = known
        return values[0] if is_one_image(images) else values


def load(
    path: str | os.PathLike,
    precision: str | None = None,
    threads: int | None = None,
    labels: str | os.PathLike | None = None,
    config: str | os.PathLike | None = None,
    tokenizer: str | os.PathLike | None = None,
    image_size: int | tuple[int, int] | None = None,
) -> Model:
    """Opens a model's folder, a weights file, the folder of a training run, or a bundled model by its name.

    precision: "fp32", "half" or "int8"; by default int8 for an int8 model, else fp32.  threads: by default as many as
    the process may use.  labels: a file with one class name per line.  config: a config.json or the name of an
    architecture, for weights without one.  image_size: height and width, if not the model's own.
    """
    height, width = (image_size, image_size) if isinstance(image_size, int) else image_size or (0, 0)
    options = ModelOptions(
        ctypes.sizeof(ModelOptions),
        threads or 0,
        c_text(precision) if precision else None,
        _encoded(labels),
        _encoded(config),
        _encoded(tokenizer),
        height,
        width,
    )
    handle = ctypes.c_void_p()
    functions.model_open(c_path(path), ctypes.byref(options), ctypes.byref(handle))
    return Model(handle, os.fspath(path))
