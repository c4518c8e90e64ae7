# SPDX-License-Identifier: Apache-2.0
"""The examples of distributed work against one process.   Run by scripts/cluster_check."""

import importlib.util
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import numpy as np

import vitrail

ROOT = pathlib.Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples" / "python"
IMAGES = 96
BROKEN = 5  # is no image: a row of NaN

# Loaded by every process that has this folder in PYTHONPATH: the first Embedder that gets to its second batch ends its
# process by SIGKILL, as the kernel does where memory is short.
KILLER = """
import os, signal
import vitrail

embed = vitrail.Embedder.__call__
batches = 0

def call(self, batch):
    global batches
    batches += 1
    marker = os.environ["VITRAIL_TEST_MARKER"]
    if batches == int(os.environ["VITRAIL_TEST_BATCH"]):
        try:
            os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            pass
        else:
            os.kill(os.getpid(), signal.SIGKILL)
    return embed(self, batch)

vitrail.Embedder.__call__ = call
"""


class Cluster(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = pathlib.Path(tempfile.mkdtemp())
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        images = cls.folder / "images"
        images.mkdir()
        values = np.random.default_rng(1)
        for i in range(IMAGES):
            pixels = values.integers(0, 256, (32, 32, 3), np.uint8)
            (images / f"{i:03}.ppm").write_bytes(b"P6 32 32 255\n" + pixels.tobytes())
        (images / f"{BROKEN:03}.ppm").write_text("no image")
        (cls.folder / "sitecustomize.py").write_text(KILLER)
        cls.paths = sorted(str(path) for path in images.iterdir())
        cls.expected = vitrail.Embedder("imagenet-tiny", normalize=True, threads=1, errors="nan").embed(cls.paths)

    def run_example(self, name, batch):
        """The features of an example whose worker dies at its nth batch; 0: at none."""
        output, marker = self.folder / f"{name}{batch}.npz", self.folder / f"{name}{batch}.marker"
        environment = {
            **os.environ,
            "PYTHONPATH": f"{self.folder}{os.pathsep}{os.environ['PYTHONPATH']}",
            "VITRAIL_TEST_MARKER": str(marker),
            "VITRAIL_TEST_BATCH": str(batch),
            "PYSPARK_PYTHON": sys.executable,
            "HF_HOME": str(self.folder / "hub"),
        }
        command = [sys.executable, EXAMPLES / f"embed_{name}.py", self.folder / "images", output]
        result = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600)
        self.assertEqual(marker.exists(), batch > 0, "a worker was killed")
        return result, output

    def check(self, name, package, retries=True):
        if importlib.util.find_spec(package) is None:
            self.skipTest(f"{package} is not installed")
        # With retries, the run that loses a worker gives all that a quiet one gives.
        for batch in (1,) if retries else (0, 1):
            result, output = self.run_example(name, batch)
            if batch and not retries:
                self.assertNotEqual(result.returncode, 0, "the death of a worker is an error")
                continue
            self.assertEqual(result.returncode, 0, result.stderr[-4000:])
            with np.load(output) as results:
                self.assertEqual(list(results["paths"]), self.paths)
                np.testing.assert_allclose(results["features"], self.expected, rtol=0, atol=1e-6)
                self.assertTrue(np.isnan(results["features"][BROKEN]).all())

    def test_ray(self):
        self.check("ray", "ray")

    def test_dask(self):
        self.check("dask", "distributed")

    def test_spark(self):
        if shutil.which("java") is None:
            self.skipTest("Spark needs a Java runtime")
        self.check("spark", "pyspark")

    def test_datasets(self):
        self.check("datasets", "datasets", retries=False)


if __name__ == "__main__":
    unittest.main(verbosity=2)
