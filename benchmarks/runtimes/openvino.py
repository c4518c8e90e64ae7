# SPDX-License-Identifier: Apache-2.0
"""OpenVINO: int8 is calibrated by nncf."""

import openvino

from runtimes import CALIBRATION_IMAGES, THREADS, cached, calibration_images, exported_onnx


def prepare(model, name, images, precision):
    core = openvino.Core()
    path = exported_onnx(model, name, images, precision != "int8")
    if precision == "int8":
        quantized = cached(name, images, ".openvino.xml")
        if not quantized.exists():
            import nncf

            samples = [batch.numpy() for batch in calibration_images(images)]
            openvino.save_model(
                nncf.quantize(
                    core.read_model(path),
                    nncf.Dataset(samples),
                    model_type=nncf.ModelType.TRANSFORMER,
                    subset_size=CALIBRATION_IMAGES,
                ),
                quantized,
                compress_to_fp16=False,
            )
        path = quantized
    hints = {
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_NUM_THREADS": THREADS,
        "INFERENCE_PRECISION_HINT": "bf16" if precision == "half" else "f32",
    }
    request = core.compile_model(core.read_model(path), "CPU", hints).create_infer_request()
    pixels = images.numpy()
    return lambda: next(iter(request.infer([pixels]).values()))
