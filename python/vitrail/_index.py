# SPDX-License-Identifier: Apache-2.0
"""Exact search of images by their features, in the files of `vitrail index`."""

from __future__ import annotations

import json
import os
import pathlib
import re
import tempfile
import warnings
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from ._errors import Error
from ._images import each_of, is_one_image
from ._library import StrPath
from ._model import Model, OnProgress, load
from ._program import run_program

BLOCK_SCORES = 1 << 24  # scores in memory at a time, 64 MB
SAME_MODEL = 0.95  # the cosine of two models' features of one image, from which the program takes them for the same
LENGTH_TOLERANCE = 0.01  # 8 bits per value change a length by less
INNER_PRODUCT, EIGHT_BITS = 0, 0  # METRIC_INNER_PRODUCT and QT_8bit of FAISS


class Match(NamedTuple):
    """A vector of an index that is near to a query."""

    name: str
    similarity: float
    row: int


def _wrong(where: str, expected: str, got: str) -> Error:
    return Error(f"{where}: expected {expected}, got {got}", where, expected, got)


def _unit_rows(values: Any, width: int | None) -> np.ndarray:
    """Vectors [n, D] of length 1; zeros stay zeros, and NaN stays NaN."""
    rows = np.array(values, np.float32, ndmin=2)
    if rows.ndim != 2 or (width is not None and rows.shape[1] != width):
        raise _wrong("vectors", f"an array [n, {'D' if width is None else width}]", str(list(np.shape(values))))
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return rows / np.where(lengths == 0, 1, lengths)


def _is_vectors(values: Any) -> bool:
    return isinstance(values, np.ndarray) and values.dtype.kind == "f" and values.ndim in (1, 2)


def _line(path: str) -> bytes:
    """The line of a path, escaped as `vitrail index` does."""
    if re.search(r"[\n\r]|^\\", path):
        path = "\\" + path.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
    return os.fsencode(path) + b"\n"


def _path_of(line: bytes) -> str:
    path = os.fsdecode(line)
    if not path.startswith("\\"):
        return path
    return re.sub(r"\\(.)", lambda match: {"n": "\n", "r": "\r"}.get(match[1], match[1]), path[1:])


class _File:
    """The fields of a file of FAISS (faiss/impl/index_write.cpp)."""

    def __init__(self, path: str):
        self.path, self._bytes, self._place = path, pathlib.Path(path).read_bytes(), 0

    def array(self, dtype: str, count: int) -> np.ndarray:
        size = np.dtype(dtype).itemsize * count
        if count < 0 or size > len(self._bytes) - self._place:
            raise _wrong(self.path, f"{size} more bytes", f"{len(self._bytes) - self._place}; the file is truncated")
        self._place += size
        return np.frombuffer(self._bytes, dtype, count, self._place - size)

    def number(self, dtype: str) -> int:
        return int(self.array(dtype, 1)[0])

    def expect(self, dtype: str, value: int, what: str) -> None:
        got = self.number(dtype)
        if got != value:
            raise _wrong(self.path, f"{what} {value}", str(got))


def _read_vectors(path: str) -> np.ndarray:
    file = _File(path)
    kind = file.array("u1", 4).tobytes()
    if kind not in (b"IxFI", b"IxSQ"):
        raise _wrong(path, "an index of `vitrail index` (FAISS's IxFI or IxSQ)", "another format")
    width, count = file.number("<i4"), file.number("<i8")
    file.array("u1", 17)  # two unused numbers, and whether it is trained
    file.expect("<i4", INNER_PRODUCT, "the metric of inner products,")
    if kind == b"IxFI":
        file.expect("<u8", count * width, "a number of values of")
        return file.array("<f4", count * width).reshape(count, width).astype(np.float32)
    file.expect("<i4", EIGHT_BITS, "the quantizer QT_8bit,")
    file.array("u1", 24)  # how the ranges were found, and twice the width
    file.expect("<u8", 2 * width, "a number of ranges of")
    minima, ranges = file.array("<f4", 2 * width).reshape(2, width).astype(np.float32)
    file.expect("<u8", count * width, "a number of values of")
    codes = file.array("u1", count * width).reshape(count, width)
    return minima + ranges / 255 / 2 + codes * (ranges / 255)


def _record_of(model: Model, features: dict[str, Any]) -> dict[str, Any]:
    """What `vitrail embed` writes beside features: the model, and how it preprocesses images."""
    options = {"tokens": features["tokens"], "layer": features["layer"], "no_norm": not features["norm"]}
    with tempfile.TemporaryDirectory() as folder:
        image, rows = pathlib.Path(folder, "image.ppm"), pathlib.Path(folder, "features.npy")
        image.write_bytes(b"P6 32 32 255\n" + bytes(3 * 32 * 32))
        run_program("embed", image, output=rows, quiet=True, model=model, exif=features["exif"], **options)
        return _read_record(rows.with_suffix(".json"))


def _read_record(path: pathlib.Path) -> dict[str, Any]:
    """What an index says about its model."""
    try:
        record: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
        if record.keys() >= {"model", "tokens", "layers", "final_norm", "probe"} and record["layers"]:
            return record
        got = "another content"
    except (ValueError, AttributeError) as error:
        got = str(error)
    raise _wrong(str(path), "the record that `vitrail embed` writes beside features", got)


def _checked(given: Model | StrPath, of_index: dict[str, Any], features: dict[str, Any]) -> Model:
    """The model, by its path with the image size of an index.  Raises Error if it is not that of its features."""
    if len(of_index["layers"]) > 1:
        raise _wrong("index", "features of one layer", str(of_index["layers"]))
    model = given if isinstance(given, Model) else load(given)
    own, want = _record_of(model, features), of_index.get("preprocessing")
    if want and want["image_size"] != own["preprocessing"]["image_size"] and not isinstance(given, Model):
        model = load(given, image_size=tuple(want["image_size"]))
        own = _record_of(model, features)
    if want and want != own["preprocessing"]:
        raise _wrong("model", f"the preprocessing of the index, {want}", str(own["preprocessing"]))
    a, b = of_index["probe"], own["probe"]
    if len(a) != len(b) or not np.dot(a, b) > SAME_MODEL:
        raise _wrong("model", f"{of_index['model']}, that of the index", str(own["model"]))
    return model


def _similar_rows(vectors: np.ndarray, threshold: float) -> Iterator[np.ndarray]:
    """For each row that has similar ones behind it: its number and theirs, ascending."""
    each = max(1, BLOCK_SCORES // max(1, len(vectors)))
    for first in range(0, len(vectors), each):
        similar = vectors[first : first + each] @ vectors[first:].T >= threshold
        for i, row in enumerate(similar):
            row[: i + 1] = False
            if row.any():
                yield first + np.append(i, np.flatnonzero(row))


def _root(parents: np.ndarray, i: int) -> int:
    while parents[i] != i:
        i = parents[i]
    return i


class Index:
    """Exact search by the cosine similarity of features: NumPy's matrix product.

        index = vitrail.Index("imagenet-tiny")
        index.add("photos")
        for name, similarity, row in index.search("query.jpg"):
            print(f"{similarity:.3f} {name}")
        index.save("photos.index")

    model: a Model, or what load() takes; without it the index has vectors alone.  tokens ("pooled" or "cls"), layer,
    norm and exif are those of Model.embed.  Where images are expected, a float array is vectors: [D], or [n, D].
    """

    def __init__(
        self,
        model: Model | StrPath | None = None,
        *,
        tokens: str = "pooled",
        layer: int = -1,
        norm: bool = True,
        exif: bool = False,
    ):
        self._model = model
        self._features: dict[str, Any] = {"tokens": tokens, "layer": layer, "norm": norm, "exif": exif}
        self._record: dict[str, Any] | None = None  # what the file of the index says about its model
        self._names: list[str] = []
        self._parts: list[np.ndarray] = []
        self._unchecked: dict[str, Any] | None = None  # the record, until the model is known to be the same

    def __len__(self) -> int:
        return len(self._names)

    def __repr__(self) -> str:
        shape = "empty" if not self._parts else f"{len(self)} vectors of width {self.vectors.shape[1]}"
        return f"<vitrail.Index: {shape}>"

    @property
    def names(self) -> list[str]:
        """The name of each row."""
        return list(self._names)

    @property
    def vectors(self) -> np.ndarray:
        """The features, of length 1: [n, D]."""
        if not self._parts:
            return np.empty((0, 0), np.float32)
        if len(self._parts) > 1:
            self._parts = [np.concatenate(self._parts)]
        return self._parts[0]

    def add(
        self,
        images: Any,
        names: Sequence[str] | None = None,
        *,
        errors: str = "raise",
        on_progress: OnProgress | None = None,
    ) -> None:
        """Adds one image or several, as Model takes them, or vectors.

        names: by default the paths, else the number of the row.  errors="skip" leaves out images that cannot be read.
        """
        if errors not in ("raise", "skip"):
            raise _wrong("errors", '"raise" or "skip"', repr(errors))
        paths: list[str | None] = []

        def listed(images: Any) -> Iterator[Any]:
            for image in [images] if is_one_image(images) else each_of(images):
                paths.append(os.fsdecode(image) if isinstance(image, (str, os.PathLike)) else None)
                yield image

        if not _is_vectors(images):
            images = listed(images)
        vectors = self._vectors_of(images, on_progress, "raise" if errors == "raise" else "nan")
        if names is None:
            known = paths or [None] * len(vectors)
            names = [str(len(self) + i) if path is None else path for i, path in enumerate(known)]
        if isinstance(names, str) or len(names) != len(vectors):
            raise _wrong("names", f"{len(vectors)} texts", repr(names) if isinstance(names, str) else str(len(names)))
        read = np.flatnonzero(np.isfinite(vectors).all(axis=1))
        if len(read):
            self._parts.append(vectors[read])
            self._names.extend(names[int(i)] for i in read)

    def search(
        self,
        images: Any,
        k: int | None = 5,
        threshold: float | None = None,
        *,
        on_progress: OnProgress | None = None,
    ) -> list[Any]:
        """The `k` most similar rows, the most similar first, of equal ones the lower row: a list of Match for one image
        or vector, a list of such lists for several.

        threshold: only rows with this cosine similarity.  k=None: all.
        """
        if k is not None and k < 1:
            raise _wrong("k", "at least 1, or None", str(k))
        one = images.ndim == 1 if _is_vectors(images) else is_one_image(images)
        queries = self._vectors_of(images, on_progress, "raise")
        each = max(1, BLOCK_SCORES // max(1, len(self)))
        blocks = (queries[i : i + each] @ self.vectors.T for i in range(0, len(queries), each) if len(self))
        results = [
            [Match(self._names[i], float(scores[i]), int(i)) for i in _best(scores, k, threshold)]
            for block in blocks
            for scores in block
        ]
        results = results or [[] for _ in queries]
        return results[0] if one else results

    def duplicates(self, threshold: float = 0.9) -> list[list[Match]]:
        """Groups of rows that have this cosine similarity, directly or through others, in the order of their first
        rows.

        The similarity of a Match is that with the first row of its group.
        """
        vectors, parents = self.vectors, np.arange(len(self))
        for rows in _similar_rows(vectors, threshold):
            roots = [_root(parents, i) for i in np.unique(parents[rows])]
            parents[roots] = parents[rows] = min(roots)
        groups: dict[int, list[int]] = {}
        for i in range(len(self)):
            groups.setdefault(_root(parents, i), []).append(i)
        return [
            [Match(self._names[i], float(vectors[first] @ vectors[i]), i) for i in group]
            for first, group in groups.items()
            if len(group) > 1
        ]

    def save(self, path: StrPath, *, dtype: str = "fp32", force: bool = False) -> None:
        """Writes the files of `vitrail index`: FAISS's IndexFlatIP, or with dtype="int8" its IndexScalarQuantizer; the
        names in PATH.txt; and the model, if there is one, in PATH.json.

        force: replace files that the program did not write.
        """
        if not self._names:
            raise _wrong(os.fsdecode(path), "an index with at least one vector", "none")
        with tempfile.TemporaryDirectory() as folder:
            rows = pathlib.Path(folder, "features.npy")
            np.save(rows, self.vectors)
            rows.with_suffix(".txt").write_bytes(b"".join(map(_line, self._names)))
            record = self._record
            if record is None and self._model is not None:
                record = _record_of(self._opened(), self._features)
            if record is not None:
                rows.with_suffix(".json").write_text(json.dumps(record), encoding="utf-8")
            run_program("index", rows, output=path, dtype=dtype, force=force, quiet=True)

    @classmethod
    def load(cls, path: StrPath, model: Model | StrPath | None = None) -> Index:
        """Reads an index that save(), `vitrail index` or FAISS wrote.

        model: by default the one that the index names.  It is opened when an image is added or searched, and has to be
        the one of the features.
        """
        name = os.fsdecode(path)
        vectors = _read_vectors(name)
        lines = pathlib.Path(name + ".txt").read_bytes().split(b"\n")[:-1]
        if len(lines) != len(vectors):
            raise _wrong(name + ".txt", f"{len(vectors)} lines, as the index's vectors", str(len(lines)))
        lengths = np.linalg.norm(vectors, axis=1)
        if len(vectors) and np.abs(lengths - 1).max() > LENGTH_TOLERANCE:
            warnings.warn(f"{name}: vectors are not of length 1: similarities are inner products", stacklevel=2)
        index = cls(model)
        index._parts, index._names = [vectors], [_path_of(line) for line in lines]
        record_file = pathlib.Path(name + ".json")
        if record_file.exists():
            index._take(_read_record(record_file))
        return index

    def _take(self, record: dict[str, Any]) -> None:
        self._record = self._unchecked = record
        self._model = record["model"] if self._model is None else self._model
        self._features = {
            "tokens": record["tokens"],
            "layer": record["layers"][0],
            "norm": record["final_norm"],
            "exif": record.get("exif", False),
        }

    def _opened(self) -> Model:
        if self._model is None:
            raise _wrong("images", "a float array [n, D], since the index has no model (Index(model))", "others")
        if self._unchecked is not None:
            self._model, self._unchecked = _checked(self._model, self._unchecked, self._features), None
        if not isinstance(self._model, Model):
            self._model = load(self._model)
        return self._model

    def _vectors_of(self, images: Any, on_progress: OnProgress | None, errors: str) -> np.ndarray:
        if not _is_vectors(images):
            options = {**self._features, "normalize": True, "errors": errors, "on_progress": on_progress}
            images = self._opened().embed(images, **options)
        elif not np.isfinite(images).all():
            raise _wrong("vectors", "finite values", "others")
        return _unit_rows(images, self.vectors.shape[1] if self._parts else None)


def _best(scores: np.ndarray, k: int | None, threshold: float | None) -> np.ndarray:
    """The rows of the largest scores, the largest first, of equal ones the lower row."""
    rows = np.arange(len(scores)) if threshold is None else np.flatnonzero(scores >= threshold)
    if k is not None and k < len(rows):
        lowest = np.partition(scores[rows], -k)[-k]
        rows = rows[scores[rows] >= lowest]
    return rows[np.argsort(-scores[rows], kind="stable")][:k]
