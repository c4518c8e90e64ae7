# SPDX-License-Identifier: Apache-2.0
"""ONNX Runtime: int8 is dynamic, or static between nodes that quantise and dequantise (QDQ)."""

import onnxruntime

from runtimes import THREADS, Unsupported, cached, calibration_images, exported_onnx


def session_of(path, images):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = THREADS
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    feed = {session.get_inputs()[0].name: images.numpy()}
    return lambda: session.run(None, feed)[0]


def dynamic(model, name, images, precision):
    if precision == "half":
        raise Unsupported("ONNX Runtime has no half precision on CPUs")
    path = exported_onnx(model, name, images, precision != "int8")
    if precision == "int8":
        from onnxruntime.quantization import QuantType, quantize_dynamic

        quantized = cached(name, images, ".dynamic.onnx")
        if not quantized.exists():
            quantize_dynamic(path, quantized, weight_type=QuantType.QInt8)
        path = quantized
    return session_of(path, images)


class Calibration:
    """A CalibrationDataReader."""

    def __init__(self, images):
        self.batches = ({"images": batch.numpy()} for batch in calibration_images(images))

    def get_next(self):
        return next(self.batches, None)


def static(model, name, images, precision):
    if precision != "int8":
        raise Unsupported("a static range is for int8 alone")
    from onnxruntime import quantization

    path, quantized = exported_onnx(model, name, images, False), cached(name, images, ".static.onnx")
    if not quantized.exists():
        prepared = cached(name, images, ".prepared.onnx")
        quantization.shape_inference.quant_pre_process(path, prepared)
        quantization.quantize_static(
            prepared,
            quantized,
            Calibration(images),
            quant_format=quantization.QuantFormat.QDQ,
            op_types_to_quantize=["MatMul", "Gemm", "Conv"],
            per_channel=True,
            activation_type=quantization.QuantType.QUInt8,
            weight_type=quantization.QuantType.QInt8,
        )
    return session_of(quantized, images)
