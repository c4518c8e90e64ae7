# SPDX-License-Identifier: Apache-2.0
"""ONNX files of depth estimators against the fixtures of tools/golden/depth.py, and against the program.

Run by scripts/onnx_check.
"""

import json
import unittest

import numpy as np
from onnx_support import ENGINES, ROOT, OnnxRuntime, OnnxTest, program, read_safetensors, repeated
from PIL import Image

FIXTURES = ROOT / "tests" / "fixtures" / "depth"
STEP = 3  # golden maps have every third row and column
TOLERANCE = 1e-4


class Depth(OnnxTest):
    def traced(self, model, image):
        """The input and the output of the program for an image of the fixtures."""
        pixels, _ = read_safetensors(FIXTURES / "images.safetensors")
        photo, arrays = self.folder / f"{image}.png", self.folder / "traced.npz"
        Image.fromarray(pixels[f"image_{image}"]).save(photo)
        program("inspect", "-m", model, "--trace", photo, "-o", arrays, "--force")
        with np.load(arrays) as values:
            return values["images"], values["depth"]

    def test_every_fixture_gives_the_reference_and_the_programs_values(self):
        for folder in sorted(path for path in FIXTURES.iterdir() if path.is_dir()):
            golden, _ = read_safetensors(folder / "golden.safetensors")
            for image in (0, 1):
                inputs, want = self.traced(folder, image)
                size = f"{inputs.shape[2]},{inputs.shape[3]}"
                file = self.convert(folder, "--dynamic-batch", "--image-size", size, "--force")
                for runtime in ENGINES:
                    with self.subTest(folder.name, image=image, engine=runtime.__name__):
                        engine = runtime(file)
                        got = engine.run(images=inputs)["depth"]
                        self.assert_close(got, want, TOLERANCE)
                        self.assert_close(got[0, ::STEP, ::STEP], golden[f"predicted_{image}"], TOLERANCE)
                        self.assert_close(engine.run(images=repeated(inputs, 3))["depth"][2], want[0], TOLERANCE)

    def test_pixels_are_normalised_in_the_graph(self):
        floats = OnnxRuntime(self.convert(FIXTURES / "relative"))
        self.assertEqual(floats.inputs["images"], [1, 3, 98, 98])
        processor = json.loads(floats.metadata["preprocessor_config.json"])
        self.assertEqual(json.loads(floats.metadata["config.json"])["model_type"], "depth_anything")
        pixels, _ = self.noise((98, 98), 1)
        normalised = (pixels / 255 - processor["image_mean"]) / processor["image_std"]
        want = floats.run(images=normalised.transpose(0, 3, 1, 2).astype(np.float32))["depth"]
        file = self.convert(FIXTURES / "relative", "--input", "uint8", "--force")
        for engine in (runtime(file) for runtime in ENGINES):
            self.assert_close(engine.run(images=pixels)["depth"], want, TOLERANCE)

    def test_every_opset(self):
        inputs, want = self.traced(FIXTURES / "dpt_vit", 0)
        for opset in range(17, 22):
            engine = OnnxRuntime(self.convert(FIXTURES / "dpt_vit", "--opset", str(opset), "--force"))
            self.assert_close(engine.run(images=inputs)["depth"], want, TOLERANCE)


if __name__ == "__main__":
    unittest.main()
