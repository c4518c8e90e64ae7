# SPDX-License-Identifier: Apache-2.0
"""What the tests of exported models share.  scripts/onnx_check sets VITRAIL_PROGRAM."""

import json
import os
import pathlib
import subprocess
import tempfile
import unittest

import numpy as np
import onnx
import onnxruntime
import openvino

ROOT = pathlib.Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "tests" / "fixtures" / "models"
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
    """The tensors, and the metadata."""
    content = path.read_bytes()
    size = int.from_bytes(content[:8], "little")
    types = {"F32": np.float32, "F64": np.float64, "I64": np.int64, "U8": np.uint8, "I8": np.int8}
    header = json.loads(content[8 : 8 + size])
    metadata = header.pop("__metadata__", {})
    tensors = {}
    for name, entry in header.items():
        first, last = (8 + size + offset for offset in entry["data_offsets"])
        tensors[name] = np.frombuffer(content[first:last], types[entry["dtype"]]).reshape(entry["shape"])
    return tensors, metadata


def weights_of(folder):
    return next(folder / name for name in WEIGHTS if (folder / name).exists())


def repeated(values, batch):
    return np.concatenate([values] * batch)[:batch]


class Engine:
    """Runs a checked file: run(input=array, …) gives a dictionary of arrays."""

    def __init__(self, file):
        onnx.checker.check_model(str(file), full_check=True)


class OnnxRuntime(Engine):
    def __init__(self, file):
        super().__init__(file)
        options = onnxruntime.SessionOptions()
        options.add_session_config_entry("session.qdq_matmulnbits_accuracy_level", "1")  # activations in fp32
        self.session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
        self.inputs = {value.name: value.shape for value in self.session.get_inputs()}
        self.outputs = {value.name: value.shape for value in self.session.get_outputs()}
        self.metadata = self.session.get_modelmeta().custom_metadata_map

    def run(self, **inputs):
        return dict(zip(self.outputs, self.session.run(None, inputs), strict=True))


class OpenVino(Engine):
    def __init__(self, file):
        super().__init__(file)
        self.outputs = [value.name for value in onnx.load(file, load_external_data=False).graph.output]
        in_fp32 = {"INFERENCE_PRECISION_HINT": "f32", "DYNAMIC_QUANTIZATION_GROUP_SIZE": "0"}
        self.model = openvino.Core().compile_model(file, "CPU", in_fp32)

    def run(self, **inputs):
        results = self.model(inputs)
        return {name: results[name] for name in self.outputs}


ENGINES = (OnnxRuntime, OpenVino)


class OnnxTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def convert(self, model, *options):
        """The file model.onnx, and further files of models that give several."""
        file = self.folder / "model.onnx"
        program("convert", model, "-o", file, *options)
        return file

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

    def assert_close(self, got, want, tolerance=TOLERANCE):
        self.assertEqual(got.shape, want.shape)
        self.assertLess(np.abs(got - want).max(), tolerance * np.abs(want).max())
