# SPDX-License-Identifier: Apache-2.0
"""The Python package beside OpenCV, scikit-learn, FAISS and PyTorch in one process.   Run by scripts/python_check.

What is not installed is said, and not tested.
"""

import importlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import numpy as np

import vitrail

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODEL = ROOT / "models" / "cifar10-vit"


def pattern(i):
    """An image [40, 50, 3] of stripes whose width and colours depend on i."""
    rows, columns = np.indices((40, 50))
    stripes = (rows * (i % 3) + columns) // (2 + i) % 2
    return np.stack([stripes * 200, stripes * 40 * i, rows * 6], -1).astype(np.uint8)


IMAGES = [pattern(i) for i in range(6)]


def imported(name):
    try:
        return importlib.import_module(name)
    except ImportError:
        print(f"neighbours_test: {name} is not installed: not tested beside it", file=sys.stderr)
        return None


# Before the libraries are loaded: they have thread pools and OpenMP runtimes of their own.
ALONE = vitrail.load(MODEL).logits(IMAGES)
cv2, sklearn, faiss, torch = map(imported, ("cv2", "sklearn", "faiss", "torch"))


def program(*arguments):
    command = [os.environ["VITRAIL_PROGRAM"], *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def image_files(folder):
    """The images as files of Netpbm."""
    paths = [pathlib.Path(folder) / f"{i}.ppm" for i in range(len(IMAGES))]
    for path, image in zip(paths, IMAGES, strict=True):
        path.write_bytes(b"P6 50 40 255 " + image.tobytes())
    return paths


class Images:
    """A map-style dataset whose model is opened where its items are read: in a worker of the loader."""

    def __init__(self):
        self.model = None

    def __len__(self):
        return len(IMAGES)

    def __getitem__(self, i):
        self.model = self.model or vitrail.load(MODEL)
        return self.model.logits(IMAGES[i])


class Neighbours(unittest.TestCase):
    def setUp(self):
        self.model = vitrail.load(MODEL)

    @unittest.skipUnless(cv2, "OpenCV is not installed")
    def test_frames_of_opencv_are_images(self):
        with tempfile.TemporaryDirectory() as folder:
            frames = [cv2.cvtColor(cv2.imread(str(path)), cv2.COLOR_BGR2RGB) for path in image_files(folder)]
        np.testing.assert_array_equal(self.model.logits(frames), ALONE)
        cv2.GaussianBlur(np.zeros((1000, 1000, 3), np.uint8), (31, 31), 0)  # in its threads
        np.testing.assert_array_equal(self.model.logits(IMAGES), ALONE)
        part = frames[0][10:30, 20:40]  # rows with a stride
        np.testing.assert_array_equal(self.model.logits(part), self.model.logits(part.copy()))

    @unittest.skipUnless(sklearn, "scikit-learn is not installed")
    def test_scikit_learn_learns_from_features(self):
        from sklearn.cluster import KMeans
        from sklearn.linear_model import LogisticRegression

        features = self.model.embed(IMAGES)
        labels = np.arange(len(IMAGES)) % 2
        self.assertEqual(LogisticRegression(C=1e6, max_iter=1000).fit(features, labels).score(features, labels), 1)
        KMeans(2, n_init=2, random_state=0).fit(np.random.default_rng(0).normal(size=(2000, 32)))  # in OpenMP threads
        np.testing.assert_array_equal(self.model.logits(IMAGES), ALONE)

    @unittest.skipUnless(faiss, "FAISS is not installed")
    def test_faiss_opens_an_index_and_finds_the_same(self):
        with tempfile.TemporaryDirectory() as folder:
            features, index = pathlib.Path(folder) / "f.npy", pathlib.Path(folder) / "f.index"
            paths = image_files(folder)
            program("embed", "-m", MODEL, *paths, "-o", features)
            queries = np.load(features)
            queries /= np.linalg.norm(queries, axis=1, keepdims=True)
            for dtype, tolerance in (("fp32", 1e-5), ("int8", 1e-2)):  # int8: steps of a 255th of a column's range
                program("index", features, "-o", index, "--dtype", dtype)
                opened = faiss.read_index(str(index))
                self.assertEqual((opened.ntotal, opened.d), queries.shape)
                scores, rows = opened.search(queries, 3)
                found = program("search", index, "-m", MODEL, *paths, "--top", 3, "--format", "json").splitlines()
                self.assertEqual(len(found), len(paths))
                for i, line in enumerate(found):
                    results = json.loads(line)["results"]
                    self.assertEqual([r["row"] for r in results], rows[i].tolist(), dtype)
                    np.testing.assert_allclose([r["score"] for r in results], scores[i], atol=tolerance)
        np.testing.assert_array_equal(self.model.logits(IMAGES), ALONE)

    @unittest.skipUnless(torch, "PyTorch is not installed")
    def test_tensors_are_images_and_results_become_tensors(self):
        tensors = [torch.from_numpy(image) for image in IMAGES]
        np.testing.assert_array_equal(self.model.logits(tensors), ALONE)
        np.testing.assert_array_equal(self.model.logits(torch.stack(tensors)), ALONE)
        torch.randn(800, 800) @ torch.randn(800, 800)  # in its threads
        np.testing.assert_array_equal(self.model.logits(IMAGES), ALONE)
        self.assertEqual(torch.from_dlpack(self.model.embed(IMAGES)).shape, self.model.embed(IMAGES).shape)

    @unittest.skipUnless(torch, "PyTorch is not installed")
    def test_a_model_runs_in_the_workers_of_a_data_loader(self):
        loader = torch.utils.data.DataLoader(Images(), batch_size=2, num_workers=2)
        np.testing.assert_array_equal(torch.cat(list(loader)).numpy(), ALONE)


if __name__ == "__main__":
    unittest.main()
