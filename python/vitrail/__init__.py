# SPDX-License-Identifier: Apache-2.0
"""Vision Transformers in native C++, from Python.

    import vitrail

    model = vitrail.load("runs/photos/model")
    print(model.classify("photo.jpg", top=3))
    features = model.embed(["a.jpg", "b.jpg"])

The results are the numbers of the command line.  NumPy is the only dependency.
"""

from ._detect import Detections
from ._embedder import Embedder
from ._errors import Error, InternalError
from ._index import Index, Match
from ._library import version as _version
from ._maps import AnomalyMap, AttentionMap, DepthMap, LabelMap, Matte, Segment
from ._model import Model, Prediction, Predictions, load
from ._paths import list_images
from ._program import convert, eval, knn, pull
from ._segment import ImageEmbedding, Masks
from ._train import pretrain, train

__all__ = [
    "AnomalyMap",
    "AttentionMap",
    "DepthMap",
    "Detections",
    "Embedder",
    "Error",
    "ImageEmbedding",
    "Index",
    "InternalError",
    "LabelMap",
    "Masks",
    "Match",
    "Matte",
    "Model",
    "Prediction",
    "Predictions",
    "Segment",
    "convert",
    "eval",
    "knn",
    "list_images",
    "load",
    "pull",
    "pretrain",
    "train",
]
__version__ = _version()
