# SPDX-License-Identifier: Apache-2.0
"""ONNX files against the reference values of the model fixtures, and against the program.

Run by scripts/onnx_check, which sets VITRAIL_PROGRAM.
"""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

import numpy as np
import onnx
import onnxruntime

ROOT = pathlib.Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "tests" / "fixtures" / "models"
CLASSIFIER = ROOT / "models" / "cifar10-vit"
WEIGHTS = ("model.safetensors", "model.pth", "model_legacy.pth", "model.npz", "open_clip_model.safetensors")
TOLERANCE = 1e-5  # relative to the largest value; rounding explains a tenth of it


def run_program(*arguments):
    command = [os.environ["VITRAIL_PROGRAM"], *map(str, arguments)]
    return subprocess.run(command, check=False, capture_output=True, text=True)


def program(*arguments):
    result = run_program(*arguments)
    if result.returncode != 0:
        raise AssertionError(f"{arguments}: {result.stderr}")
    return result.stdout


def read_safetensors(path):
    content = path.read_bytes()
    size = int.from_bytes(content[:8], "little")
    types = {"F32": np.float32, "F64": np.float64, "I64": np.int64}
    tensors = {}
    for name, entry in json.loads(content[8 : 8 + size]).items():
        if name != "__metadata__":
            first, last = (8 + size + offset for offset in entry["data_offsets"])
            tensors[name] = np.frombuffer(content[first:last], types[entry["dtype"]]).reshape(entry["shape"])
    return tensors


def repeated(values, batch):
    return np.concatenate([values] * batch)[:batch]


def outputs_of(session, images):
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, {"images": images}), strict=True))


class OnnxTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def convert(self, model, *options):
        file = self.folder / "model.onnx"
        program("convert", model, "-o", file, *options)
        onnx.checker.check_model(str(file), full_check=True)
        return onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])

    def noise(self, size, count, channels=3):
        """Pixels [count, H, W, C], and the Netpbm files that hold them."""
        pixels = np.random.default_rng(1).integers(0, 256, (count, *size, channels), dtype=np.uint8)
        files = [self.folder / f"{i}.pnm" for i in range(count)]
        for file, image in zip(files, pixels, strict=True):
            kind = "P6" if channels == 3 else "P5"
            file.write_bytes(f"{kind} {size[1]} {size[0]} 255\n".encode() + image.tobytes())
        return pixels, files

    def program_array(self, command, model, files, *options):
        array = self.folder / "array.npy"
        program(command, "-m", model, *files, "--logits" if command == "classify" else "-o", array, *options)
        return np.load(array)

    def assert_close(self, got, want):
        self.assertEqual(got.shape, want.shape)
        self.assertLess(np.abs(got - want).max(), TOLERANCE * np.abs(want).max())


class Fixtures(OnnxTest):
    def test_every_family_gives_the_reference_values(self):
        for folder in sorted(FIXTURES.iterdir()):
            with self.subTest(folder.name):
                golden = read_safetensors(folder / "golden.safetensors")
                images = golden["input"].astype(np.float32)
                weights = next(folder / name for name in WEIGHTS if (folder / name).exists())
                size = f"{images.shape[2]},{images.shape[3]}"
                session = self.convert(weights, "--dynamic-batch", "--image-size", size)
                for batch in (1, 2, 7):
                    results = outputs_of(session, repeated(images, batch))
                    got = results.get("logits", results["features"])
                    self.assert_close(got, repeated(golden["logits"], batch))

    def test_grey_pixels(self):
        pixels, files = self.noise((16, 16), 2, channels=1)
        session = self.convert(FIXTURES / "timm_gray", "--dynamic-batch", "--input", "uint8", "--crop-pct", "1")
        self.assertEqual(session.get_inputs()[0].shape, ["batch", 16, 16, 1])
        want = self.program_array("classify", FIXTURES / "timm_gray", files, "--crop-pct", "1")
        self.assert_close(outputs_of(session, pixels)["logits"], want)

    def test_embedding_of_a_dual_model(self):
        pixels, files = self.noise((16, 16), 2)
        session = self.convert(FIXTURES / "hf_clip", "--dynamic-batch", "--input", "uint8")
        self.assertEqual([output.name for output in session.get_outputs()], ["features"])
        want = self.program_array("embed", FIXTURES / "hf_clip", files)
        self.assert_close(outputs_of(session, pixels)["features"], want)


class BundledModel(OnnxTest):
    def test_pixels_give_the_programs_logits_and_features(self):
        pixels, files = self.noise((32, 32), 7)
        session = self.convert(CLASSIFIER, "--dynamic-batch", "--input", "uint8")
        results = outputs_of(session, pixels)
        self.assert_close(results["logits"], self.program_array("classify", CLASSIFIER, files))
        self.assert_close(results["features"], self.program_array("embed", CLASSIFIER, files))
        for batch in (1, 2):
            self.assert_close(outputs_of(session, pixels[:batch])["logits"], results["logits"][:batch])

    def test_every_opset(self):
        pixels, files = self.noise((32, 32), 1)
        want = self.program_array("classify", CLASSIFIER, files)
        for opset in range(17, 22):
            session = self.convert(CLASSIFIER, "--input", "uint8", "--opset", str(opset))
            self.assert_close(outputs_of(session, pixels)["logits"], want)
            self.assertEqual(onnx.load(self.folder / "model.onnx").opset_import[0].version, opset)

    def test_without_dynamic_batch_there_is_one_image(self):
        session = self.convert(CLASSIFIER)
        self.assertEqual(session.get_inputs()[0].shape, [1, 3, 32, 32])
        self.assertEqual(session.get_outputs()[0].shape, [1, 10])

    def test_int8_folder_is_exported_in_fp32(self):
        program("convert", CLASSIFIER, "-o", self.folder / "int8", "--dtype", "int8")
        pixels, files = self.noise((32, 32), 2)
        session = self.convert(self.folder / "int8", "--dynamic-batch", "--input", "uint8")
        want = self.program_array("classify", self.folder / "int8", files, "--precision", "fp32")
        self.assert_close(outputs_of(session, pixels)["logits"], want)

    def test_metadata_has_preprocessing_and_labels(self):
        metadata = self.convert(CLASSIFIER).get_modelmeta()
        self.assertEqual(metadata.producer_name, "vitrail")
        config = json.loads(metadata.custom_metadata_map["config.json"])
        own = json.loads((CLASSIFIER / "config.json").read_text())
        self.assertEqual(config["label_names"], own["label_names"])
        self.assertEqual(config["pretrained_cfg"], own["pretrained_cfg"])


if __name__ == "__main__":
    unittest.main()
