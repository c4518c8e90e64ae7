#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares `vitrail eval` of an anomaly bank with scikit-learn and SciPy on the same patch features.

    tools/golden/anomaly.py PROGRAM SET [MODEL]     SET: a folder in MVTec AD's layout

The features are those of `vitrail embed`; foregrounds, distances, maps and areas are computed again, for each value of
--mask.  Prints both and exits with 1 if they differ by more than 1e-4.  Needs torch, scikit-learn, scipy, pillow.
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
from sklearn.decomposition import PCA
from sklearn.metrics import roc_auc_score
from sklearn.neighbors import NearestNeighbors

PROGRAM, SET = sys.argv[1], pathlib.Path(sys.argv[2])
MODEL = ["-m", sys.argv[3]] if len(sys.argv) > 3 else []
SIGMA, SHARE = 4, 0.01


def run(*arguments):
    return subprocess.run([PROGRAM, *map(str, arguments)], check=True, capture_output=True, text=True).stdout


def features(folder, images):
    """[images, patches, D], and the images' paths."""
    whole = ["--crop-mode", "squash", "--crop-pct", "1"]
    run("embed", images, "-o", folder / "x.npy", "--tokens", "patch", *MODEL, *whole, "--force", "--quiet")
    rows = np.load(folder / "x.npy")
    return rows.reshape(len(rows), -1, rows.shape[-1]), (folder / "x.txt").read_text().splitlines()


def foreground(rows):
    """AnomalyDINO's, of the patches of an image."""
    side = round(len(rows) ** 0.5)
    scores = PCA(n_components=1, svd_solver="full").fit_transform(rows).reshape(side, side)
    first, last = int(side * 0.2), int(side * 0.8)
    mask = scores > 10
    if mask[first:last, first:last].mean() <= 0.35:
        mask = scores < -10
    square = np.ones((3, 3), bool)
    enlarged = scipy.ndimage.binary_dilation(mask, square, iterations=2)  # the dilation, and that of the closing
    closed = scipy.ndimage.binary_erosion(enlarged, square, border_value=1)
    return closed.ravel() if mask.any() else np.ones(len(rows), bool)


def expected(folder, kind):
    bank, _ = features(folder, SET / "train")
    if kind == "all":
        bank = [image[foreground(image)] for image in bank]
    nearest = NearestNeighbors(n_neighbors=1, metric="cosine").fit(np.concatenate(bank))
    images, paths = features(folder, SET / "test")
    scores, defects, pixels, masks = [], [], [], []
    for image, path in zip(images, map(pathlib.Path, paths), strict=True):
        distances = nearest.kneighbors(image)[0][:, 0]
        if kind != "none":
            distances = distances * foreground(image)
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
    differences = []
    for kind in ("none", "test", "all"):
        fit = ["--coreset", 1, "--mask", kind, "--force", "--quiet"]
        run("anomaly", "fit", SET / "train", "-o", FOLDER / "bank", *MODEL, *fit)
        got = json.loads(run("eval", "-m", FOLDER / "bank", SET, "--format", "json", "--quiet"))
        for key, value in expected(FOLDER, kind).items():
            print(f"--mask {kind}: {key}: expected {value:.6f}, got {got[key]:.6f}")
            differences.append(abs(value - got[key]))
sys.exit(max(differences) > 1e-4)
