# SPDX-License-Identifier: Apache-2.0
"""tests/fixtures/analysis/logistic_regression.safetensors: logistic regressions of scikit-learn in float64.

The metadata `config` lists the cases.  For each, NAME.features, NAME.labels, and for each C the weights, biases and
probabilities.  `curvature` is the smallest eigenvalue of the objective's Hessian, without the direction that adds a
constant to all biases: an error of the gradient of g moves the solution by at most about g / curvature.
NAME.folds are those of StratifiedKFold, and NAME.losses the mean held-out losses of the C over these folds.
"""

import json
import pathlib
import warnings

import numpy
from safetensors.numpy import save_file
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import StratifiedKFold

PATH = pathlib.Path(__file__).resolve().parents[2] / "tests/fixtures/analysis/logistic_regression.safetensors"
STRENGTHS = [0.01, 1.0, 100.0]
CASES = {"two_classes": (37, 5, 2), "three_classes": (41, 6, 3), "five_classes": (67, 9, 5)}  # samples, width, classes
FOLDS = 3


def data_of(name, samples, width, classes):
    """Overlapping clusters of unequal sizes, in random order, with features of unequal scales."""
    random = numpy.random.default_rng(sum(map(ord, name)))
    labels = random.choice(classes, samples, p=numpy.arange(1, classes + 1) / (classes * (classes + 1) / 2))
    centers = random.normal(size=(classes, width))
    features = (centers[labels] + random.normal(size=(samples, width))) * numpy.geomspace(0.3, 3, width)
    return features.astype(numpy.float32).astype(float), labels


def regression(features, labels, strength):
    return LogisticRegression(C=strength, solver="newton-cholesky", tol=1e-12, max_iter=1000).fit(features, labels)


def parameters_of(model):
    """Weights [classes, width] and biases [classes]; for two classes half of the difference each, as in vitrail."""
    weight, bias = model.coef_, model.intercept_
    if len(weight) == 1:
        weight, bias = numpy.concatenate([-weight, weight]) / 2, numpy.concatenate([-bias, bias]) / 2
    return weight - weight.mean(axis=0), bias - bias.mean()


def gradient_and_curvature(weight, bias, features, labels, strength):
    samples, classes = len(features), len(bias)
    penalty = (2 if classes == 2 else 1) / (strength * samples)
    x = numpy.concatenate([features, numpy.ones((samples, 1))], axis=1)
    scores = features @ weight.T + bias
    p = numpy.exp(scores - scores.max(axis=1, keepdims=True))
    p /= p.sum(axis=1, keepdims=True)
    penalties = numpy.full((classes, x.shape[1]), penalty)
    penalties[:, -1] = 0
    gradient = (p - numpy.eye(classes)[labels]).T @ x / samples + penalties * numpy.column_stack([weight, bias])
    hessian = numpy.diag(penalties.ravel())
    for row, q in zip(x, p, strict=True):
        hessian += numpy.kron(numpy.diag(q) - numpy.outer(q, q), numpy.outer(row, row)) / samples
    return numpy.abs(gradient).max(), numpy.linalg.eigvalsh(hessian)[1]  # [0] is the direction of equal biases


def held_out_losses(features, labels, folds):
    return [
        numpy.mean(
            [
                log_loss(
                    labels[folds == f],
                    regression(features[folds != f], labels[folds != f], c).predict_proba(features[folds == f]),
                    labels=numpy.unique(labels),
                )
                for f in range(FOLDS)
            ]
        )
        for c in STRENGTHS
    ]


def main():
    warnings.simplefilter("error")
    tensors, config = {}, []
    for name, (samples, width, classes) in CASES.items():
        features, labels = data_of(name, samples, width, classes)
        folds = numpy.empty(samples, dtype=numpy.int64)
        for fold, (_, held_out) in enumerate(StratifiedKFold(FOLDS).split(features, labels)):
            folds[held_out] = fold
        case = {"name": name, "classes": classes, "folds": FOLDS, "fits": []}
        tensors |= {f"{name}.features": features.astype(numpy.float32), f"{name}.labels": labels.astype(numpy.int64)}
        tensors |= {f"{name}.folds": folds, f"{name}.losses": numpy.array(held_out_losses(features, labels, folds))}
        for strength in STRENGTHS:
            model = regression(features, labels, strength)
            weight, bias = parameters_of(model)
            gradient, curvature = gradient_and_curvature(weight, bias, features, labels, strength)
            case["fits"].append({"c": strength, "gradient": gradient, "curvature": curvature})
            key = f"{name}.{strength:g}"
            tensors |= {f"{key}.weight": weight, f"{key}.bias": bias}
            tensors |= {f"{key}.probabilities": model.predict_proba(features)}
            print(f"{key}: gradient {gradient:.1e}, curvature {curvature:.1e}")
        config.append(case)
    PATH.parent.mkdir(exist_ok=True)
    save_file({k: numpy.ascontiguousarray(v) for k, v in tensors.items()}, PATH, {"config": json.dumps(config)})
    print(f"{PATH.name}: {PATH.stat().st_size / 1024:.0f} KiB")


if __name__ == "__main__":
    main()
