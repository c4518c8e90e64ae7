#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares `vitrail eval` of an anomaly bank with scikit-learn and SciPy on the same patch features.

    tools/golden/anomaly.py PROGRAM SET     SET: a folder in MVTec AD's layout; needs torch, scikit-learn, scipy, pillow

The features are those of `vitrail embed`; distances, maps and areas are computed again.  Prints both and exits with 1
if they differ by more than 1e-4.
"""

import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import scipy.ndimage
import torch
from PIL import Image
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import NearestNeighbors

PROGRAM, SET = sys.argv[1], pathlib.Path(sys.argv[2])
SIGMA, SHARE = 4, 0.01


def run(*arguments):
    return subprocess.run([PROGRAM, *map(str, arguments)], check=True, capture_output=True, text=True).stdout


def features(folder, images):
    """[images, patches, D] of unit length, and the images' paths."""
    whole = ["--crop-mode", "squash", "--crop-pct", "1"]
    run("embed", images, "-o", folder / "x.npy", "--tokens", "patch", "--normalize", *whole, "--force", "--quiet")
    rows = np.load(folder / "x.npy")
    return rows.reshape(len(rows), -1, rows.shape[-1]), (folder / "x.txt").read_text().splitlines()


def expected(folder):
    bank, _ = features(folder, SET / "train")
    nearest = NearestNeighbors(n_neighbors=1, metric="cosine").fit(bank.reshape(-1, bank.shape[-1]))
    images, paths = features(folder, SET / "test")
    scores, defects, pixels, masks = [], [], [], []
    for image, path in zip(images, map(pathlib.Path, paths), strict=True):
        distances = nearest.kneighbors(image)[0][:, 0]
        highest = np.sort(distances)[::-1][: max(1, round(SHARE * len(distances)))]
        scores.append(highest.mean())
        defects.append(path.parent.name != "good")
        width, height = Image.open(path).size
        side = round(len(distances) ** 0.5)
        grid = torch.tensor(distances, dtype=torch.float32).reshape(1, 1, side, side)
        plane = torch.nn.functional.interpolate(grid, (height, width), mode="bilinear", align_corners=False)
        pixels.append(scipy.ndimage.gaussian_filter(plane[0, 0].numpy(), SIGMA).ravel())
        mask = SET / "ground_truth" / path.parent.name / f"{path.stem}_mask.png"
        masks.append((np.asarray(Image.open(mask)) > 0 if defects[-1] else np.zeros((height, width), bool)).ravel())
    return {
        "image_auroc": roc_auc_score(defects, scores),
        "pixel_auroc": roc_auc_score(np.concatenate(masks), np.concatenate(pixels)),
    }


with tempfile.TemporaryDirectory() as name:
    FOLDER = pathlib.Path(name)
    run("anomaly", "fit", SET / "train", "-o", FOLDER / "bank", "--coreset", 1, "--quiet")
    got = json.loads(run("eval", "-m", FOLDER / "bank", SET, "--format", "json", "--quiet"))
    differences = []
    for key, value in expected(FOLDER).items():
        print(f"{key}: expected {value:.6f}, got {got[key]:.6f}")
        differences.append(abs(value - got[key]))
sys.exit(max(differences) > 1e-4)
