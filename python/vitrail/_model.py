# SPDX-License-Identifier: Apache-2.0
"""Models: images in, predictions, features and attention maps out."""

from __future__ import annotations

import ctypes
import html
import itertools
import json
import math
import operator
import os
import pathlib
import tempfile
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, NoReturn, TypeVar

import numpy as np

from ._batches import run_batches, run_together
from ._detect import detections
from ._errors import Error
from ._images import each_of, is_one_image
from ._interrupts import interruptible
from ._library import (
    AttentionOptions,
    EmbedOptions,
    ModelBytes,
    ModelHandle,
    ModelOptions,
    StrPath,
    TensorHandle,
    TextHandle,
    c_path,
    c_text,
    functions,
)
from ._library import Prediction as PredictionStruct
from ._maps import AnomalyMap, AttentionMap, DepthMap, LabelMap, Matte, label_map, with_image
from ._program import run_program
from ._segment import ImageEmbedding, embedded, masks_of
from ._show import image_pixels, option_text, png, table

OnProgress = Callable[[int], Any]
T = TypeVar("T")
TOKENS = ("pooled", "cls", "patch", "grid", "all")


class _Pair(NamedTuple):
    label: str
    probability: float


class Prediction(_Pair):
    """A class of an image: a pair (label, probability), with the index of the class as an attribute."""

    index: int  # type: ignore[assignment]  # hides the method of tuples

    def __new__(cls, label: str, probability: float, index: int) -> Prediction:
        self = super().__new__(cls, label, probability)
        self.index = index
        return self

    def __getnewargs__(self) -> tuple[Any, ...]:
        return (*self, self.index)

    def __repr__(self) -> str:
        return f"Prediction({self.label!r}, {self.probability!r}, index={self.index})"


class Predictions(list[Prediction]):
    """The classes of an image, the most probable first: a list, which a notebook shows with bars."""

    def _repr_html_(self) -> str:
        rows = [(prediction.label, f"{prediction.probability:.1%}") for prediction in self]
        return table(rows, [0 if math.isnan(p.probability) else p.probability for p in self])


def _strings(strings: Sequence[str]) -> tuple[Any, int]:
    if isinstance(strings, str):
        strings = [strings]
    return (ctypes.c_char_p * len(strings))(*map(c_text, strings)), len(strings)


def _content(image: Any) -> Any:
    """An image that can be read again: of an open file its bytes."""
    return image.read() if hasattr(image, "read") else image


def _image_file(image: Any) -> Any:
    """An image as run() takes it for an option: a path, bytes, an array or an image of Pillow."""
    if isinstance(image, str):
        return pathlib.Path(image)
    image = _content(image)
    return image.astype(np.uint8) * 255 if isinstance(image, np.ndarray) and image.dtype == bool else image


def _encoded(path: StrPath | None) -> bytes | None:
    return None if path is None else c_path(path)


def _read_safetensors(path: pathlib.Path) -> dict[str, np.ndarray]:
    """The tensors of a file whose values are all fp32."""
    data = path.read_bytes()
    begin = 8 + int.from_bytes(data[:8], "little")
    tensors = {}
    for name, tensor in json.loads(data[8:begin]).items():
        if name != "__metadata__":
            first = begin + tensor["data_offsets"][0]
            values = np.frombuffer(data, "<f4", math.prod(tensor["shape"]), first)
            tensors[name] = values.reshape(tensor["shape"]).copy()
    return tensors


class Model:
    """A model for inference.  load() opens one.

    Methods take one image or several.  An image is a path, the bytes of a file, an image of Pillow, a uint8 array
    [height, width, 3] (RGB; also [height, width] and RGBA), or an object with __array__ or __dlpack__.  One image gives
    one result, several give one per image.  Methods may be called from several threads at once.

    Several images are a list, an array, any iterable, or the path of a folder or a pattern such as "photos/*.jpg",
    whose images vitrail.list_images() lists.  classify, logits, embed, zeroshot and pca decode them in threads beside
    the model, with bounded memory.  on_progress, such as the `update` of a tqdm, is called with the number of images
    since its last call.  errors="nan" gives NaN for images that cannot be read.
    """

    def __init__(self, handle: ModelHandle, path: str | None, options: dict[str, Any]):
        self._handle, self._path, self._options = handle, path, options  # path: None of a model from bytes
        self._labels: list[str] | None = None

    def _facts(self) -> dict[str, str]:
        config = self.config
        facts = {"architecture": config.get("architecture", "unknown")}
        size = config["image_size"] if "image_size" in config else config["pretrained_cfg"]["input_size"][1:]
        height, width = (size, size) if isinstance(size, int) else size
        facts["image size"] = f"{width}×{height} pixels"
        if "num_features" in config:
            facts["features"] = f"of width {config['num_features']}"
        if self.labels:
            facts["classes"] = f"{len(self.labels)}: {', '.join(self.labels[:5])}{', …' * (len(self.labels) > 5)}"
        if self.has_text:
            facts["texts"] = "in one space with images"
        return facts

    def __repr__(self) -> str:
        facts = self._facts()
        classes = f", {len(self.labels)} classes" if self.labels else ""
        name = "from bytes" if self._path is None else repr(self._path)
        return f"<vitrail.Model {name}: {facts['architecture']}, {facts['image size']}{classes}>"

    def _repr_html_(self) -> str:
        name = "Model from bytes" if self._path is None else self._path
        return f"<b>{html.escape(name)}</b>{table(self._facts().items())}"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a vitrail.Model cannot be pickled: load it in each process")

    def _program_options(self) -> dict[str, Any]:
        """The options with which commands of the program open this model."""
        if self._path is None:
            expected = "one that was loaded from files, which the program opens"
            raise Error(f"model: expected {expected}, got one from bytes", "model", expected, "one from bytes")
        return {"model": self._path, **self._options}

    def trace(self, image: Any) -> dict[str, np.ndarray]:
        """The values of one forward pass in fp32, in their order, by their names in timm's tree, as `vitrail inspect
        --trace` shows them: what each module gives, and steps such as "blocks.0.attn.scores".
        """
        options = {**self._program_options(), "precision": None}
        with tempfile.TemporaryDirectory() as folder:
            file, output = pathlib.Path(folder, "image"), pathlib.Path(folder, "trace.npz")
            image = _content(image)
            if isinstance(image, (bytes, bytearray, memoryview)):
                file.write_bytes(image)
            elif isinstance(image, (str, os.PathLike)):
                file = pathlib.Path(image)
            else:
                file.write_bytes(png(image_pixels(image, False)))
            run_program("inspect", trace=file, output=output, quiet=True, **options)
            with np.load(output) as arrays:
                return dict(arrays)

    def parameters(self) -> dict[str, np.ndarray]:
        """The weights of the model's file in fp32, by their names in timm's tree, as `vitrail convert` writes them."""
        own = self._program_options()
        with tempfile.TemporaryDirectory() as folder:
            run_program("convert", own["model"], output=folder, config=own["config"], force=True, quiet=True)
            return _read_safetensors(pathlib.Path(folder, "model.safetensors"))

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
        self,
        images: Any,
        top: int = 5,
        exif: bool = False,
        errors: str = "raise",
        on_progress: OnProgress | None = None,
    ) -> Any:
        """The `top` most probable classes, the most probable first: pairs (label, probability), whose attribute `index`
        is that of the class in labels.

        With errors="nan", an image that cannot be read has as many pairs ("", nan), of index -1.
        """

        def rows(handles: Any, count: int) -> list[Predictions]:
            predictions, written = (PredictionStruct * (count * max(top, 1)))(), ctypes.c_int64()
            functions.classify(self._handle, handles, count, top, predictions, ctypes.byref(written))
            each = written.value
            return [
                Predictions(
                    Prediction(p.label.decode(), p.probability, p.index) for p in predictions[i * each : (i + 1) * each]
                )
                for i in range(count)
            ]

        results = self._each(rows, images, exif, errors, on_progress)
        unreadable = [Prediction("", math.nan, -1)] * min(top, len(self.labels))
        results = [Predictions(unreadable) if row is None else row for row in results]
        return results[0] if is_one_image(images) else results

    def logits(
        self, images: Any, exif: bool = False, errors: str = "raise", on_progress: OnProgress | None = None
    ) -> np.ndarray:
        """The class scores [classes], or [images, classes]."""
        return self._run(functions.logits, images, exif, errors=errors, on_progress=on_progress)

    def embed(
        self,
        images: Any,
        tokens: str = "pooled",
        layer: int = -1,
        norm: bool = True,
        normalize: bool = False,
        exif: bool = False,
        errors: str = "raise",
        on_progress: OnProgress | None = None,
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
        self, image: Any, layer: int = -1, head: int | None = None, rollout: bool = False, exif: bool = False
    ) -> AttentionMap:
        """The attention of the class token, or without one of the mean over all tokens, to each patch of one image:
        an array [rows, columns].
        """
        image = _content(image)
        options = AttentionOptions(ctypes.sizeof(AttentionOptions), layer, -1 if head is None else head, rollout)

        def map_of(handles: Any, _: int) -> np.ndarray:
            result = TensorHandle()
            functions.attention(self._handle, handles[0], ctypes.byref(options), ctypes.byref(result))
            return result.values()

        values = run_together(self._handle, [image], exif, map_of)
        return with_image(values, AttentionMap, lambda: self._input_pixels(image, exif))

    def gradients(
        self, image: Any, target: int | str | None = None, of: str | Sequence[str] = "images", exif: bool = False
    ) -> Any:
        """The exact gradient of a class's logit in fp32: an array, or for a list of names a dict.

        target: the class, by its index or label; by default the one with the highest logit.  of: "images", the pixels
        [channels, height, width] that preprocess() gives; a name of trace(), whose value's shape the gradient has, such
        as "embedded", the tokens [tokens, D] that enter the first block, or "blocks.3", those after a block; or a list
        of them, whose gradients come from one pass.  Needs a classifier whose weights are not int8, and the memory for
        its weights in fp32.
        """
        image = _content(image)
        names, index = _strings(of), self._class_index(target)

        def arrays(handles: Any, _: int) -> list[np.ndarray]:
            results = (ctypes.c_void_p * names[1])()
            functions.gradients(self._handle, handles[0], index, *names, results)
            return [TensorHandle(result).values() for result in results]

        gradients = run_together(self._handle, [image], exif, arrays)
        return gradients[0] if isinstance(of, str) else {name: gradients[i] for i, name in enumerate(of)}

    def _class_index(self, target: int | str | None) -> int:
        """For the library: -1 without a target.  It refuses models without classes."""
        if target is None or not self.labels:
            return -1
        if isinstance(target, str) and target in self.labels:
            return self.labels.index(target)
        if not isinstance(target, str) and 0 <= operator.index(target) < len(self.labels):
            return operator.index(target)
        expected = f"a class from 0 to {len(self.labels) - 1}, or one of the model's labels"
        raise Error(f"target: expected {expected}, got {target!r}", "target", expected, repr(target))

    def _input_pixels(self, image: Any, exif: bool) -> np.ndarray:
        """What the model sees of an image: [height, width, 3 (RGB) or 1 (grey)]."""

        def normalized(value: int) -> np.ndarray:
            constant = self.preprocess(np.full((1, 8, 8, 3), value, np.uint8))[0]
            return constant[:, constant.shape[1] // 2, constant.shape[2] // 2, None, None]

        black, white = normalized(0), normalized(255)
        values = (self.preprocess([image], exif)[0] - black) / (white - black)
        return np.rint(255 * np.clip(values, 0, 1)).astype(np.uint8).transpose(1, 2, 0)

    def pca(self, images: Any, exif: bool = False, errors: str = "raise", on_progress: OnProgress | None = None) -> Any:
        """The first three principal components of the patch features of all images, scaled to 0 to 1: [rows, columns,
        3] per image.

        The patch features of all images are in memory.  With errors="nan", an image that cannot be read has a map of
        NaN of the first one's size.
        """
        options = EmbedOptions(ctypes.sizeof(EmbedOptions), TOKENS.index("grid"), -1)

        def grids(handles: Any, count: int) -> list[TensorHandle]:  # one by one, because grids may differ in size
            return [
                self._tensor(functions.embed, (ctypes.c_void_p * 1)(handles[i]), 1, ctypes.byref(options))
                for i in range(count)
            ]

        def colors(features: list[TensorHandle]) -> list[np.ndarray]:
            maps = (ctypes.c_void_p * len(features))()
            functions.pca_maps((ctypes.c_void_p * len(features))(*features), len(features), maps)
            return [TensorHandle(map).values() for map in maps]

        features = self._each(grids, images, exif, errors, on_progress)
        maps = interruptible(colors, [grid for grid in features if grid is not None])
        known = iter(maps)
        results = [np.full_like(maps[0], np.nan) if grid is None else next(known) for grid in features]
        return results[0] if is_one_image(images) else results

    def preprocess(self, images: Any, exif: bool = False) -> np.ndarray:
        """The model's input [images, channels, height, width] of images whose inputs have one size."""
        return run_together(
            self._handle, images, exif, lambda handles, count: self._batch(functions.preprocess, handles, count)
        )

    def forward(self, pixels: Any) -> np.ndarray:
        """The model's output for an input [images, channels, height, width], as preprocess() gives it."""
        pixels = np.ascontiguousarray(pixels, np.float32)
        if pixels.ndim != 4:
            expected = "an array [images, channels, height, width]"
            raise Error(f"pixels: expected {expected}, got {list(pixels.shape)}", "pixels", expected, str(pixels.shape))
        shape = (ctypes.c_int64 * 4)(*pixels.shape)

        def output() -> np.ndarray:
            result = TensorHandle()
            functions.forward(self._handle, pixels.ctypes.data, shape, ctypes.byref(result))
            return result.values()

        return interruptible(output)

    def embed_text(self, texts: str | Sequence[str]) -> np.ndarray:
        """Embeddings of length 1: [D] of one text, [texts, D] of several."""
        strings = _strings(texts)
        embeddings = interruptible(self._batch, functions.embed_texts, *strings)
        return embeddings[0] if isinstance(texts, str) else embeddings

    def zeroshot(
        self,
        images: Any,
        labels: Sequence[str],
        templates: Sequence[str] = (),
        exif: bool = False,
        errors: str = "raise",
        on_progress: OnProgress | None = None,
    ) -> np.ndarray:
        """The probability of each label: [labels], or [images, labels].

        templates: texts such as "a photo of a {}", whose embeddings are averaged; without them the labels are the
        texts.
        """
        texts = (*_strings(labels), *_strings(templates))
        return self._run(functions.zeroshot, images, exif, *texts, errors=errors, on_progress=on_progress)

    def image_embedding(self, image: Any, exif: bool = False) -> ImageEmbedding:
        """What Segment Anything's image encoder gives for an image; segment() takes it instead of the image."""
        return embedded(self._handle, image, exif)

    def segment(
        self,
        image: Any,
        points: Any = None,
        labels: Any = None,
        box: Any = None,
        mask_logits: Any = None,
        multimask: bool = True,
        exif: bool = False,
        mask: Any = None,
    ) -> Any:
        """The Masks of one prompt, with a model of Segment Anything.

        image: an image, or its image_embedding(), which makes further prompts quick.  In pixels of the image: points
        [n, 2] (x, y) with labels [n], 1 in the object (default) or 0 outside, and box (x0, y0, x1, y1).  Boxes [n, 4]
        are n prompts, whose masks are a list.  mask: a mask to refine, as booleans [height, width].  mask_logits:
        instead, `logits` of a mask of an earlier result.  multimask: three masks of different extent, or one.
        """
        embedding = image if isinstance(image, ImageEmbedding) else embedded(self._handle, image, exif)
        if np.ndim(box) == 2:
            boxes = np.asarray(box)
            return [self.segment(embedding, points, labels, each, mask_logits, multimask, mask=mask) for each in boxes]
        return masks_of(self._handle, embedding, points, labels, box, mask_logits, multimask, mask)

    def depth(self, image: Any, exif: bool = False) -> DepthMap:
        """The depth of each pixel of one image [height, width], with a depth estimator.

        In metres, or with a model of relative depth inverse depth without scale and offset: `unit` says which.
        """
        return self._map(DepthMap, "depth", "depth", image, exif, {})

    def label_map(self, image: Any, task: str | None = None, exif: bool = False) -> LabelMap:
        """The class of each pixel of one image, and the segments, with a semantic segmenter or EoMT.

        task: "semantic", "instance" or "panoptic"; by default what the model is for.
        """
        image = _content(image)

        def arrays(results: TextHandle) -> LabelMap:
            (facts,) = results.json()
            labels = results.array("labels").astype(np.int32)
            semantic = facts["task"] == "semantic"  # a segment for each class
            ids = labels + 1 if semantic else results.array("ids").astype(np.int32)
            return label_map(facts, labels, ids, (image, exif))

        return self._task("segment", [image], exif, {} if task is None else {"task": task}, arrays)

    def matte(
        self, image: Any, trimap: Any = None, *, mask: Any = None, band: int | None = None, exif: bool = False
    ) -> Matte:
        """The alpha of each pixel of one image [height, width], with a matting model.

        trimap: an image of the same size, 255 in the foreground, 0 in the background and 128 where unknown; or mask: an
        image that is 0 outside of the object, or booleans [height, width].  band: the pixels on both sides of a mask's
        edge whose alpha is unknown (10).
        """
        files = {"trimap": trimap, "mask": mask}
        options = {name: _image_file(file) for name, file in files.items() if file is not None}
        return self._map(Matte, "matte", "alpha", image, exif, options if band is None else {**options, "band": band})

    def anomaly(
        self, image: Any, threshold: float | None = None, pixel_threshold: float | None = None, exif: bool = False
    ) -> AnomalyMap:
        """How unlike good images each pixel of one image is [height, width], and the whole image, with a bank of
        `vitrail anomaly fit`.

        threshold: the score from which the image is anomalous.  pixel_threshold: the distance from which a pixel is in
        the mask.  By default both are the bank's.
        """
        options = {} if threshold is None else {"threshold": threshold}
        result = self._map(AnomalyMap, "anomaly", "map", image, exif, options)
        own = self.config.get("pixel_threshold")
        result._facts["pixel_threshold"] = own if pixel_threshold is None else pixel_threshold
        return result

    def detect(
        self,
        images: Any,
        labels: Sequence[str] | None = None,
        *,
        like: Any = None,
        like_box: Sequence[float] | None = None,
        templates: Sequence[str] = (),
        per_label: bool = False,
        classes: Sequence[str] = (),
        threshold: float | None = None,
        nms: float | None = None,
        tile: int | None = None,
        tile_overlap: float | None = None,
        masks: StrPath | None = None,
        exif: bool = False,
    ) -> Any:
        """The objects of each image, as Detections (boxes, scores, labels), with an object detector.

        labels: what to find, with OWLv2 and OWL-ViT; instead like: an image of it, with like_box (x0, y0, x1, y1).
        templates: texts such as "a photo of a {}" around the labels.  per_label: a box may have several labels.
        classes: those of the model to find, by default all.  threshold: the score above which an object is in the
        result.  nms: objects whose boxes have a larger IoU with a better one of their class are left out.  tile: the
        side in pixels of overlapping tiles in which small objects are found too.  masks: a model of Segment Anything
        that gives each object a mask.
        """
        if isinstance(labels, str):
            labels = [labels]
        given = {"labels": labels and list(labels), "like": None if like is None else _image_file(like)}
        given |= {"like_box": like_box and ",".join(map(str, like_box)), "per_label": per_label or None}
        given |= {"template": list(templates), "classes": list(classes), "threshold": threshold, "nms": nms}
        given |= {"tile": tile, "tile_overlap": tile_overlap, "masks": None if masks is None else os.fspath(masks)}
        options = {name: value for name, value in given.items() if value is not None}
        single = is_one_image(images)
        each = [_content(image) for image in ([images] if single else each_of(images))]
        rows = self._task("detect", each, exif, options, TextHandle.json)
        found = [detections(facts, (image, exif)) for facts, image in zip(rows, each, strict=True)]
        return found[0] if single else found

    def explain(
        self,
        image: Any,
        target: int | str | None = None,
        *,
        labels: Sequence[str] | None = None,
        compare: str | os.PathLike[str] | None = None,
        detail: str | None = None,
        lang: str | None = None,
        exif: bool = False,
    ) -> str:
        """A page of HTML that shows the forward pass of one image: every shape, value, attention map and gradient.

        target: the index or the name of the class that the page explains, by default the prediction.  labels: texts
        that a model of images and texts compares the image with.  compare: the path of a second Vision Transformer.
        detail: "small" (2 MB for small models), "standard" (at most 8 MB) or "full".  lang: "en" or "zh".
        """
        given: dict[str, Any] = {"class": target, "labels": labels and list(labels), "detail": detail, "lang": lang}
        given["compare"] = compare and os.fspath(compare)
        options = {"format": "html"} | {name: value for name, value in given.items() if value is not None}
        return self._task("explain", [_content(image)], exif, options, lambda results: results.file().decode())

    def run(self, task: str, images: Any, exif: bool = False, **options: Any) -> Any:
        """The result of a task by its name, as the server's JSON.

        options: those of the server's route, with _ for -; a list stands for an option that is repeated.  A file, such
        as a trimap, is a pathlib.Path, bytes, an array or an image of Pillow.  A further model, such as the detector of
        pose, is its path as a str.
        """
        rows = self._task(task, images, exif, options, TextHandle.json)
        return rows[0] if is_one_image(images) else rows

    def _task(self, task: str, images: Any, exif: bool, options: dict[str, Any], take: Callable[[TextHandle], T]) -> T:
        """What `take` makes of the results of a task."""
        values = [(k.replace("_", "-"), v) for k, vs in options.items() for v in (vs if isinstance(vs, list) else [vs])]
        given = [f"{name}={option_text(value)}" for name, value in values]
        arguments = c_text(task), _strings(given)

        def results(handles: Any, count: int) -> T:
            text, (name, strings) = TextHandle(), arguments
            functions.run(self._handle, name, handles, count, *strings, ctypes.byref(text))
            return take(text)

        return run_together(self._handle, images, exif, results)

    def _map(self, kind: Any, task: str, array: str, image: Any, exif: bool, options: dict[str, Any]) -> Any:
        """An array of the result of a task for one image, as a map of this class."""
        image = _content(image)
        facts, values = self._task(
            task, [image], exif, options, lambda results: (results.json()[0], results.array(array))
        )
        return with_image(values, kind, lambda: image_pixels(image, exif), facts)

    def _tensor(self, function: Any, handles: Any, count: int, *options: Any) -> TensorHandle:
        result = TensorHandle()
        function(self._handle, handles, count, *options, ctypes.byref(result))
        return result

    def _batch(self, function: Any, handles: Any, count: int, *options: Any) -> np.ndarray:
        return self._tensor(function, handles, count, *options).values()

    def _batches(
        self, function: Any, images: Any, exif: bool, errors: str, on_progress: OnProgress | None
    ) -> tuple[list[Any], list[bool]]:
        """The results of function(handles, count), and whether each image has one."""
        if errors not in ("raise", "nan"):
            expected = '"raise" or "nan"'
            raise Error(f"errors: expected {expected}, got {errors!r}", "errors", expected, repr(errors))
        if errors == "raise" and is_one_image(images):
            result = run_together(self._handle, images, exif, function)
            if on_progress:
                on_progress(1)
            return [result], [True]
        return run_batches(self._handle, images, exif, function, skip=errors == "nan", on_progress=on_progress)

    def _each(self, function: Any, images: Any, exif: bool, errors: str, on_progress: OnProgress | None) -> list[Any]:
        """The result for each image, None for an unreadable one."""
        batches, read = self._batches(function, images, exif, errors, on_progress)
        results = itertools.chain.from_iterable(batches)
        return [next(results) if known else None for known in read]

    def _run(
        self, function: Any, images: Any, exif: bool, *options: Any, errors: str, on_progress: OnProgress | None
    ) -> np.ndarray:
        def rows(handles: Any, count: int) -> np.ndarray:
            return self._batch(function, handles, count, *options)

        batches, read = self._batches(rows, images, exif, errors, on_progress)
        if not batches:  # no image was read: the shape of a row is that of any image
            batches = [run_together(self._handle, np.zeros((64, 64, 3), np.uint8), False, rows)[:0]]
        if len({batch.shape[1:] for batch in batches}) > 1:
            expected, got = "images whose results have one shape", str({batch.shape[1:] for batch in batches})
            raise Error(f"images: expected {expected}, got {got}", "images", expected, got)
        values = np.concatenate(batches)
        if not all(read):
            known, values = values, np.full((len(read), *values.shape[1:]), np.nan, np.float32)
            values[np.array(read)] = known
        return values[0] if is_one_image(images) else values


def _json_text(contents: Mapping[str, Any] | bytes | None) -> bytes | None:
    return c_text(json.dumps(contents)) if isinstance(contents, Mapping) else contents


def _open_bytes(
    weights: bytes | bytearray | memoryview, config: bytes | None, preprocessor: bytes | None, options: ModelOptions
) -> ModelHandle:
    data = np.frombuffer(weights, np.uint8)
    files = ModelBytes(ctypes.sizeof(ModelBytes), data.ctypes.data, data.size, config, preprocessor)
    handle = ModelHandle()
    handle.owner = data
    interruptible(functions.model_open_bytes, ctypes.byref(files), ctypes.byref(options), ctypes.byref(handle))
    return handle


def load(
    path: StrPath | bytes | bytearray | memoryview,
    precision: str | None = None,
    threads: int | None = None,
    labels: StrPath | None = None,
    config: StrPath | Mapping[str, Any] | bytes | None = None,
    tokenizer: StrPath | None = None,
    image_size: int | tuple[int, int] | None = None,
    preprocessor: Mapping[str, Any] | bytes | None = None,
) -> Model:
    """Opens a model's folder, a weights file, the folder of a training run, a bundled model by its name, or a
    safetensors file that is in memory, as bytes.

    precision: "fp32", "half" or "int8"; by default int8 for an int8 model, else fp32.  threads: by default as many as
    the process may use.  labels: a file with one class name per line.  config: a config.json or the name of an
    architecture, for weights without one.  image_size: height and width, if not the model's own.

    With bytes, config is also the contents of config.json, as a dict or bytes, and preprocessor those of
    preprocessor_config.json, which models of transformers have.  The bytes are not copied.  What runs the program, such
    as trace() and eval(), needs a model of files.
    """
    height, width = (image_size, image_size) if isinstance(image_size, int) else image_size or (0, 0)
    contents, file = (config, None) if isinstance(config, (bytes, Mapping)) else (None, config)
    options = ModelOptions(
        ctypes.sizeof(ModelOptions),
        threads or 0,
        c_text(precision) if precision else None,
        _encoded(labels),
        _encoded(file),
        _encoded(tokenizer),
        height,
        width,
    )
    size = [height, width] if image_size else None
    of_program = {"precision": precision, "threads": threads, "config": file, "image_size": size}
    if isinstance(path, (bytes, bytearray, memoryview)):
        texts = _json_text(contents), _json_text(preprocessor)
        return Model(_open_bytes(path, *texts, options), None, of_program)
    if contents is not None or preprocessor is not None:
        expected = "the bytes of a safetensors file beside the contents of config.json or preprocessor_config.json"
        raise Error(f"path: expected {expected}, got {path!r}", "path", expected, repr(path))
    handle = ModelHandle()
    interruptible(functions.model_open, c_path(path), ctypes.byref(options), ctypes.byref(handle))
    return Model(handle, os.fspath(path), of_program)
