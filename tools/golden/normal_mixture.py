# SPDX-License-Identifier: Apache-2.0
"""tests/fixtures/analysis/normal_mixture.safetensors: mixtures of two normal distributions by scikit-learn.

Case NAME: "NAME.values" [n] and "NAME.mixture" [2, 3], the weight, mean and deviation of the components, the lower mean
first, and "NAME.log_likelihood" [1] of all values.  The start is the best split of the sorted values.
"""

import pathlib

import numpy
from safetensors.numpy import save_file
from sklearn.mixture import GaussianMixture

PATH = pathlib.Path(__file__).resolve().parents[2] / "tests/fixtures/analysis/normal_mixture.safetensors"
FLOOR = 1e-6
# the number, mean and deviation of each group
CASES = {
    "artefacts": ((192, 3.9, 0.08), (4, 5.6, 0.05)),
    "equal": ((60, 0.0, 1.0), (60, 6.0, 1.0)),
    "overlapping": ((80, 1.0, 0.3), (40, 2.0, 0.5)),
    "wide": ((50, 2.0, 0.05), (10, 3.0, 0.6)),
    "single": ((2, 1.0, 0.1), (1, 9.0, 0.1)),
}


def best_split(ordered):
    costs = [at * ordered[:at].var() + (len(ordered) - at) * ordered[at:].var() for at in range(1, len(ordered))]
    return 1 + int(numpy.argmin(costs))


def fit(values):
    ordered = numpy.sort(values)
    at = best_split(ordered)
    groups = ordered[:at], ordered[at:]
    model = GaussianMixture(
        2,
        reg_covar=FLOOR,
        tol=1e-10,
        max_iter=10000,
        weights_init=[len(group) / len(ordered) for group in groups],
        means_init=[[group.mean()] for group in groups],
        precisions_init=[[[1 / (group.var() + FLOOR)]] for group in groups],
    ).fit(ordered[:, None])
    rows = numpy.stack([model.weights_, model.means_[:, 0], numpy.sqrt(model.covariances_[:, 0, 0])], 1)
    return rows[numpy.argsort(rows[:, 1])], [model.score(ordered[:, None]) * len(ordered)]


tensors = {}
for name, groups in CASES.items():
    random = numpy.random.default_rng(sum(map(ord, name)))
    values = numpy.concatenate([random.normal(mean, deviation, count) for count, mean, deviation in groups])
    values = random.permutation(values).astype(numpy.float32)
    mixture, likelihood = fit(values.astype(float))
    tensors |= {f"{name}.values": values, f"{name}.mixture": mixture, f"{name}.log_likelihood": likelihood}
    print(name, mixture.round(4).tolist(), likelihood)
save_file({key: numpy.ascontiguousarray(value, dtype=numpy.float32) for key, value in tensors.items()}, PATH)
