# SPDX-License-Identifier: Apache-2.0
"""ONNX files with quantised activations against onnx's reference implementation, fp32 and quantize_static.

Run by scripts/onnx_check.  VITRAIL_ASSETS names the folder with the real model and photographs.
"""

import os
import pathlib
import unittest

import numpy as np
import onnx
from onnx.reference import ReferenceEvaluator
from onnx_support import (
    ENGINES,
    FIXTURES,
    Engine,
    OnnxRuntime,
    OnnxTest,
    OpenVino,
    read_safetensors,
    run_program,
    weights_of,
)
from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
from PIL import Image

STATIC = ("--dtype", "int8", "--activations")


class Reference(Engine):
    def __init__(self, file):
        super().__init__(file)
        self.evaluator = ReferenceEvaluator(str(file))

    def run(self, **inputs):
        return dict(zip(self.evaluator.output_names, self.evaluator.run(None, inputs), strict=True))


def relative_error(got, want):
    return np.linalg.norm(got - want) / np.linalg.norm(want)


def logits_of(engine, images):
    results = engine.run(images=images)
    return results.get("logits", results["features"])


class Structure(OnnxTest):
    def test_both_operands_of_every_gemm_of_the_blocks_are_quantised(self):
        _, files = self.noise((16, 16), 2)
        for activations, kind in (("int8", onnx.TensorProto.INT8), ("uint8", onnx.TensorProto.UINT8)):
            graph = onnx.load(self.convert(FIXTURES / "timm_token", *STATIC, activations, "--calibrate", *files)).graph
            constants = {constant.name: constant for constant in graph.initializer}
            sources = {node.output[0]: node for node in graph.node}
            gemms = 0
            for node in graph.node:
                weight = sources.get(node.input[1]) if node.op_type == "MatMul" else None
                if weight is None or weight.op_type != "DequantizeLinear":
                    continue
                gemms += 1
                self.assertEqual(constants[weight.input[0]].data_type, onnx.TensorProto.INT8)
                self.assertTrue(np.all(onnx.numpy_helper.to_array(constants[weight.input[2]]) == 0))
                dequantize = sources[node.input[0]]
                quantize = sources[dequantize.input[0]]
                self.assertEqual((dequantize.op_type, quantize.op_type), ("DequantizeLinear", "QuantizeLinear"))
                self.assertEqual(quantize.input[1:], dequantize.input[1:])
                self.assertEqual(constants[quantize.input[2]].data_type, kind)
                if activations == "int8":
                    self.assertEqual(onnx.numpy_helper.to_array(constants[quantize.input[2]]), 0)
            blocks = len({name.split(".")[1] for name in constants if name.startswith("blocks.")})
            self.assertEqual(gemms, 4 * blocks + 1)  # the patch embedding is one, too


class Values(OnnxTest):
    def test_every_family_gives_the_reference_values(self):
        """ONNX Runtime computes what the graph says.  OpenVINO rounds other values up, with errors of the same size."""
        for folder in sorted(FIXTURES.iterdir()):
            with self.subTest(folder.name):
                golden, _ = read_safetensors(folder / "golden.safetensors")
                channels, *size = golden["input"].shape[1:]
                pixels, files = self.noise(size, 3, channels)
                options = ("--image-size", f"{size[0]},{size[1]}", "--input", "uint8", "--dynamic-batch")
                options += ("--mean", "0.5", "--std", "0.5", "--interpolation", "bicubic")
                if not (folder / "preprocessor_config.json").exists():  # a processor's steps have no crop_pct
                    options += ("--crop-pct", "1")
                options += ("--opset", "21")  # onnx evaluates DequantizeLinear from 19 on
                static = (*STATIC, "uint8", "--calibrate", *files)
                file = self.folder / "model.onnx"
                result = run_program("convert", weights_of(folder), "-o", file, *options, *static)
                if "a dual model" in result.stderr:
                    continue
                self.assertEqual(result.returncode, 0, result.stderr)
                want = logits_of(Reference(file), pixels)
                self.assertLess(relative_error(logits_of(OnnxRuntime(file), pixels), want), 0.01)
                in_openvino = logits_of(OpenVino(file), pixels)
                exact = logits_of(OnnxRuntime(self.convert(weights_of(folder), *options)), pixels)
                for got in (want, in_openvino):
                    self.assertLess(relative_error(got, exact), 0.1)  # 0.066 measured


@unittest.skipUnless("VITRAIL_ASSETS" in os.environ, "VITRAIL_ASSETS does not name a folder with a model and images")
class RealModel(OnnxTest):
    """DeiT-Tiny: half of the photographs calibrate, the others test."""

    def setUp(self):
        super().setUp()
        assets = pathlib.Path(os.environ["VITRAIL_ASSETS"])
        self.model = assets / "weights" / "deit_tiny_patch16_224.fb_in1k"
        photos = sorted((assets / "images" / "nips2017").glob("*.png"))
        self.calibration, self.test = photos[1::2], photos[::2]

    @staticmethod
    def pixels(files):
        """timm's evaluation transform of square photographs, up to its normalisation."""
        resized = [Image.open(file).convert("RGB").resize((248, 248), Image.BICUBIC) for file in files]
        return np.stack([np.asarray(image.crop((12, 12, 236, 236))) for image in resized])

    def quantize_static(self, file):
        batches = [{"images": image[None]} for image in self.pixels(self.calibration)]

        class Reader(CalibrationDataReader):
            def get_next(self):
                return batches.pop() if batches else None

        result = self.folder / "baseline.onnx"
        quantize_static(
            file,
            result,
            Reader(),
            quant_format=QuantFormat.QDQ,
            op_types_to_quantize=["MatMul"],
            per_channel=True,
            activation_type=QuantType.QUInt8,
            weight_type=QuantType.QInt8,
        )
        return result

    def test_is_more_accurate_than_quantize_static(self):
        pixels = self.pixels(self.test)
        file = self.convert(self.model, "--input", "uint8", "--dynamic-batch")
        exact = logits_of(OnnxRuntime(file), pixels)
        baseline = logits_of(OnnxRuntime(self.quantize_static(file)), pixels)
        agreed = np.mean(baseline.argmax(1) == exact.argmax(1))
        for activations in ("int8", "uint8"):
            static = (*STATIC, activations, "--calibrate", *self.calibration)
            file = self.convert(self.model, "--input", "uint8", "--dynamic-batch", *static)
            for engine in (runtime(file) for runtime in ENGINES):
                got = logits_of(engine, pixels)
                self.assertLess(relative_error(got, exact), relative_error(baseline, exact))
                self.assertGreaterEqual(np.mean(got.argmax(1) == exact.argmax(1)), agreed)


if __name__ == "__main__":
    unittest.main()
