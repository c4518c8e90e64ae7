# SPDX-License-Identifier: Apache-2.0
"""Features of columns of images, for the libraries that distribute work."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from ._errors import Error
from ._library import StrPath
from ._model import Model, load


def _image(value: Any) -> Any:
    """An image of a column: as Model takes it, or {"bytes": …, "path": …} of Hugging Face datasets."""
    if isinstance(value, dict) and ("bytes" in value or "path" in value):
        return value.get("bytes") or value.get("path")
    return value


class Embedder:
    """Adds a column of features to batches of images.

    One callable serves Ray Data (map_batches), Hugging Face datasets (map with batched=True), Dask (map_partitions) and
    Spark (mapInPandas, on each frame).  A batch is a dict of columns or a pandas DataFrame.  An Embedder can be sent to
    other processes: each loads the model when it sees its first batch.

    column: that of the images: paths, bytes, arrays, Pillow images.  output: that of the features.  errors: "raise", or
    "nan" for rows of NaN where an image cannot be read.  threads, precision: as load().  Other options: as Model.embed.
    """

    def __init__(
        self,
        model: StrPath,
        column: str = "image",
        output: str = "embedding",
        *,
        errors: str = "raise",
        batch: int = 32,
        precision: str | None = None,
        threads: int | None = None,
        **options: Any,
    ):
        if errors not in ("raise", "nan"):
            expected = '"raise" or "nan"'
            raise Error(f"errors: expected {expected}, got {errors!r}", "errors", expected, repr(errors))
        self.model: str = os.fspath(model)
        self.column: str = column
        self.output: str = output
        self.errors: str = errors
        self.batch: int = batch
        self._load_options: dict[str, Any] = {"precision": precision, "threads": threads}
        self._options = options
        self._loaded: Model | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_loaded": None}

    def _model(self) -> Model:
        if self._loaded is None:
            self._loaded = load(self.model, **self._load_options)
        return self._loaded

    def embed(self, images: Any) -> np.ndarray:
        """The features of images, a row each."""
        images = [_image(value) for value in images]
        lists = [images[i : i + self.batch] for i in range(0, len(images), self.batch)]
        parts = [self._model().embed(part, errors=self.errors, **self._options) for part in lists]
        return np.concatenate(parts) if parts else np.empty((0, 0), np.float32)

    def __call__(self, batch: Any) -> Any:
        """The batch with the column of features: a dict, or a DataFrame of a DataFrame."""
        features = self.embed(list(batch[self.column]))
        if hasattr(batch, "assign"):  # a DataFrame, whose columns have one value a row
            return batch.assign(**{self.output: list(features)})
        return {**batch, self.output: features}
