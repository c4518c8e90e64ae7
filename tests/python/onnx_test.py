# SPDX-License-Identifier: Apache-2.0
"""ONNX files against the reference values of the model fixtures, and against the program.

Run by scripts/onnx_check.
"""

import json
import unittest

import numpy as np
import onnx
from onnx_support import (
    ENGINES,
    FIXTURES,
    ROOT,
    OnnxRuntime,
    OnnxTest,
    program,
    read_safetensors,
    repeated,
    weights_of,
)

CLASSIFIER = ROOT / "models" / "cifar10-vit"


class Fixtures(OnnxTest):
    def test_every_family_gives_the_reference_values(self):
        for folder in sorted(FIXTURES.iterdir()):
            with self.subTest(folder.name):
                golden, _ = read_safetensors(folder / "golden.safetensors")
                images = golden["input"].astype("float32")
                size = f"{images.shape[2]},{images.shape[3]}"
                file = self.convert(weights_of(folder), "--dynamic-batch", "--image-size", size)
                for engine in (runtime(file) for runtime in ENGINES):
                    for batch in (1, 2, 7):
                        results = engine.run(images=repeated(images, batch))
                        got = results.get("logits", results["features"])
                        self.assert_close(got, repeated(golden["logits"], batch))

    def test_grey_pixels(self):
        pixels, files = self.noise((16, 16), 2, channels=1)
        options = ("--dynamic-batch", "--input", "uint8", "--crop-pct", "1")
        session = OnnxRuntime(self.convert(FIXTURES / "timm_gray", *options))
        self.assertEqual(session.inputs["images"], ["batch", 16, 16, 1])
        want = self.program_array("classify", FIXTURES / "timm_gray", files, "--crop-pct", "1")
        self.assert_close(session.run(images=pixels)["logits"], want)

    def test_embedding_of_a_dual_model(self):
        pixels, files = self.noise((16, 16), 2)
        session = OnnxRuntime(self.convert(FIXTURES / "hf_clip", "--dynamic-batch", "--input", "uint8"))
        self.assertEqual(list(session.outputs), ["features"])
        want = self.program_array("embed", FIXTURES / "hf_clip", files)
        self.assert_close(session.run(images=pixels)["features"], want)


class BundledModel(OnnxTest):
    def test_pixels_give_the_programs_logits_and_features(self):
        pixels, files = self.noise((32, 32), 7)
        session = OnnxRuntime(self.convert(CLASSIFIER, "--dynamic-batch", "--input", "uint8"))
        results = session.run(images=pixels)
        self.assert_close(results["logits"], self.program_array("classify", CLASSIFIER, files))
        self.assert_close(results["features"], self.program_array("embed", CLASSIFIER, files))
        for batch in (1, 2):
            self.assert_close(session.run(images=pixels[:batch])["logits"], results["logits"][:batch])

    def test_every_opset(self):
        pixels, files = self.noise((32, 32), 1)
        want = self.program_array("classify", CLASSIFIER, files)
        for opset in range(17, 22):
            session = OnnxRuntime(self.convert(CLASSIFIER, "--input", "uint8", "--opset", str(opset)))
            self.assert_close(session.run(images=pixels)["logits"], want)
            self.assertEqual(onnx.load(self.folder / "model.onnx").opset_import[0].version, opset)

    def test_without_dynamic_batch_there_is_one_image(self):
        session = OnnxRuntime(self.convert(CLASSIFIER))
        self.assertEqual(session.inputs["images"], [1, 3, 32, 32])
        self.assertEqual(session.outputs["logits"], [1, 10])

    def test_int8_folder_is_exported_in_fp32(self):
        program("convert", CLASSIFIER, "-o", self.folder / "int8", "--dtype", "int8")
        pixels, files = self.noise((32, 32), 2)
        session = OnnxRuntime(self.convert(self.folder / "int8", "--dynamic-batch", "--input", "uint8"))
        want = self.program_array("classify", self.folder / "int8", files, "--precision", "fp32")
        self.assert_close(session.run(images=pixels)["logits"], want)

    def test_int8_weights_give_the_programs_logits_of_the_folder(self):
        """Activations are fp32 in the file, so that the program's values in int8 differ by their rounding."""
        int8 = self.folder / "int8"
        pixels, files = self.noise((32, 32), 7)
        calibrated, whole_image = ("--calibrate", files[0], "--tolerance", "1"), ("--crop-pct", "1")
        for model, calibration in ((CLASSIFIER, ()), (FIXTURES / "timm_token", calibrated)):
            program("convert", model, "-o", int8, "--dtype", "int8", *calibration)
            file = self.convert(int8, "--dynamic-batch", "--input", "uint8", "--dtype", "int8")
            names = [constant.name for constant in onnx.load(file).graph.initializer]
            self.assertEqual("blocks.0.attn.qkv.weight_correction" in names, bool(calibration))
            want = self.program_array("classify", int8, files, "--precision", "fp32", *whole_image)
            in_int8 = self.program_array("classify", int8, files, *whole_image)
            for engine in (runtime(file) for runtime in ENGINES):
                for batch in (1, 2, 7):
                    got = engine.run(images=pixels[:batch])["logits"]
                    self.assert_close(got, want[:batch])
                    if model == CLASSIFIER:
                        np.testing.assert_array_equal(got.argmax(1), in_int8[:batch].argmax(1))

    def test_metadata_has_preprocessing_and_labels(self):
        metadata = OnnxRuntime(self.convert(CLASSIFIER)).session.get_modelmeta()
        self.assertEqual(metadata.producer_name, "vitrail")
        config = json.loads(metadata.custom_metadata_map["config.json"])
        own = json.loads((CLASSIFIER / "config.json").read_text())
        self.assertEqual(config["label_names"], own["label_names"])
        self.assertEqual(config["pretrained_cfg"], own["pretrained_cfg"])


if __name__ == "__main__":
    unittest.main()
