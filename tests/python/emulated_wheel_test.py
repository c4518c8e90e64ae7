# SPDX-License-Identifier: Apache-2.0
"""A wheel for another processor, under emulation.   Run by scripts/wheel_check --arm64."""

import pathlib
import platform
import unittest

import numpy as np

import vitrail

PHOTO = pathlib.Path(__file__).resolve().parents[2] / "examples" / "photographs" / "chelsea.png"


class EmulatedWheel(unittest.TestCase):
    def test_the_bundled_model_knows_a_cat(self):
        self.assertEqual(platform.machine(), "aarch64")
        model = vitrail.load("imagenet-tiny")
        best = model.classify(PHOTO, top=1)[0]
        self.assertIn("cat", best.label)
        self.assertGreater(best.probability, 0.3)
        gradient = model.gradients(PHOTO, best.index)
        self.assertTrue(np.isfinite(gradient).all() and gradient.any())


if __name__ == "__main__":
    unittest.main()
