# SPDX-License-Identifier: Apache-2.0
"""LiteRT (TensorFlow Lite) with XNNPACK."""

import litert_torch
from ai_edge_litert.interpreter import Interpreter

from runtimes import THREADS, Unsupported, cached


def prepare(model, name, images, precision):
    if precision != "fp32":
        raise Unsupported("LiteRT is compared in fp32")
    path = cached(name, images, ".tflite")
    if not path.exists():
        litert_torch.convert(model, (images,)).export(str(path))
    interpreter = Interpreter(str(path), num_threads=THREADS)
    interpreter.allocate_tensors()
    into, out = interpreter.get_input_details()[0]["index"], interpreter.get_output_details()[0]["index"]
    pixels = images.numpy()

    def call():
        interpreter.set_tensor(into, pixels)
        interpreter.invoke()
        return interpreter.get_tensor(out)

    return call
