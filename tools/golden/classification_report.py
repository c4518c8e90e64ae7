#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/fixtures/data/classification_report.json: metrics of scikit-learn for three random classifiers.

Logits are multiples of 1/8, so that their text is exact.  Labels of the third set leave two of its classes out.
"""

import json
import pathlib

import numpy as np
from sklearn.metrics import confusion_matrix, precision_recall_fscore_support, top_k_accuracy_score

FIXTURE = pathlib.Path(__file__).resolve().parents[2] / "tests/fixtures/data/classification_report.json"


def averages(labels, predictions, average):
    present = sorted(set(labels) | set(predictions))
    return precision_recall_fscore_support(labels, predictions, labels=present, average=average, zero_division=0)[:3]


def calibration_error(probabilities, predictions, labels, bins=15):
    """Guo et al. 2017, equation 3; neither scikit-learn nor NumPy has it."""
    confidence = probabilities[np.arange(len(labels)), predictions]
    bin_of = np.clip(np.ceil(confidence * bins) - 1, 0, bins - 1)
    error = 0.0
    for b in range(bins):
        inside = bin_of == b
        if inside.any():
            gap = abs((predictions[inside] == labels[inside]).mean() - confidence[inside].mean())
            error += inside.mean() * gap
    return error


def case(images, classes, label_classes, strength, seed):
    random = np.random.default_rng(seed)
    labels = random.integers(0, label_classes, images)
    logits = np.round(random.normal(size=(images, classes)) * 8) / 8
    logits[np.arange(images), labels] += strength
    predictions = logits.argmax(axis=1)
    probabilities = np.exp(logits - logits.max(axis=1, keepdims=True))
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    precision, recall, f1, support = precision_recall_fscore_support(
        labels, predictions, labels=range(classes), zero_division=0
    )
    return {
        "classes": classes,
        "logits": logits.tolist(),
        "labels": labels.tolist(),
        "top1": (predictions == labels).mean(),
        "top5": top_k_accuracy_score(labels, logits, k=5, labels=range(classes)) if classes > 5 else 1.0,
        "precision": precision.tolist(),
        "recall": recall.tolist(),
        "f1": f1.tolist(),
        "support": support.tolist(),
        "macro": averages(labels, predictions, "macro"),
        "weighted": averages(labels, predictions, "weighted"),
        "confusion": confusion_matrix(labels, predictions, labels=range(classes)).tolist(),
        "calibration_error": calibration_error(probabilities, predictions, labels),
    }


def main():
    cases = [case(60, 3, 3, 1.5, 0), case(120, 10, 10, 1, 1), case(40, 8, 6, 3, 2)]
    FIXTURE.write_text(json.dumps(cases, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
