#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/fixtures/data/multi_label_report.json: scikit-learn's metrics of three random multi-label classifiers.

Logits are multiples of 1/8, so that their text is exact and many are equal.  The second set has images without labels.
"""

import json
import pathlib

import numpy as np
from sklearn.metrics import accuracy_score, average_precision_score, precision_recall_fscore_support

FIXTURE = pathlib.Path(__file__).resolve().parents[2] / "tests/fixtures/data/multi_label_report.json"


def averages(truth, predicted, average):
    return precision_recall_fscore_support(truth, predicted, average=average, zero_division=0)[:3]


def case(images, classes, share, strength, seed):
    random = np.random.default_rng(seed)
    truth = random.random((images, classes)) < share
    truth[0] = True  # every class has an image
    logits = np.round((random.normal(size=(images, classes)) + strength * (truth - 0.5)) * 8) / 8
    logits[:, -1] -= 6  # the last class is never predicted
    predicted = logits > 0
    precision, recall, f1, support = precision_recall_fscore_support(truth, predicted, average=None, zero_division=0)
    return {
        "classes": classes,
        "logits": logits.tolist(),
        "labels": [np.flatnonzero(row).tolist() for row in truth],
        "average_precision": average_precision_score(truth, logits, average=None).tolist(),
        "map": average_precision_score(truth, logits, average="macro"),
        "map_micro": average_precision_score(truth, logits, average="micro"),
        "exact": accuracy_score(truth, predicted),
        "precision": precision.tolist(),
        "recall": recall.tolist(),
        "f1": f1.tolist(),
        "support": support.tolist(),
        "macro": averages(truth, predicted, "macro"),
        "micro": averages(truth, predicted, "micro"),
    }


def main():
    cases = [case(40, 3, 0.5, 2, 0), case(60, 7, 0.1, 3, 1), case(25, 12, 0.3, 0.5, 2)]
    FIXTURE.write_text(json.dumps(cases, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
