# SPDX-License-Identifier: Apache-2.0
"""tests/fixtures/analysis/pca.safetensors: principal components of scikit-learn in float64.

For each case NAME.features [n, D], NAME.mean [D], NAME.components [k, D], NAME.variances [k] and NAME.scores [n, k].
"""

import pathlib

import numpy
import sklearn
from safetensors.numpy import save_file
from sklearn.decomposition import PCA

PATH = pathlib.Path(__file__).resolve().parents[2] / "tests/fixtures/analysis/pca.safetensors"
# samples, width, components: more rows than columns, fewer, a large mean, and variances that decrease slowly
CASES = {"tall": (60, 12, 3), "wide": (9, 40, 3), "offset": (50, 7, 7), "flat": (80, 30, 3)}

tensors = {}
for name, (samples, width, count) in CASES.items():
    random = numpy.random.default_rng(sum(map(ord, name)))
    scales = numpy.geomspace(3, 2.5 if name == "flat" else 0.1, width)
    turn = numpy.linalg.qr(random.normal(size=(width, width)))[0]
    features = (random.normal(size=(samples, width)) * scales) @ turn
    features = (features + (100 if name == "offset" else 0)).astype(numpy.float32)
    model = PCA(count, svd_solver="full").fit(features.astype(float))
    tensors |= {
        f"{name}.features": features,
        f"{name}.mean": model.mean_,
        f"{name}.components": model.components_,
        f"{name}.variances": model.explained_variance_,
        f"{name}.scores": model.transform(features.astype(float)),
    }
tensors = {key: numpy.ascontiguousarray(value, dtype=numpy.float32) for key, value in tensors.items()}
save_file(tensors, PATH, metadata={"config": "{}", "reference": f"scikit-learn {sklearn.__version__}"})
print(f"{PATH}: {len(CASES)} cases")
