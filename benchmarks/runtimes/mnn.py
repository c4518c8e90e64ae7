# SPDX-License-Identifier: Apache-2.0
"""MNN: int8 has weights of 8 bits, and activations that are quantised at run time."""

import subprocess
import sys

import MNN.expr
import MNN.nn

from runtimes import THREADS, Unsupported, cached, exported_onnx


def prepare(model, name, images, precision):
    if precision == "half":
        raise Unsupported("MNN has no half precision on x86")
    path = cached(name, images, f".{precision}.mnn")
    if not path.exists():
        options = ["--weightQuantBits", "8"] if precision == "int8" else []
        file = str(exported_onnx(model, name, images, False))
        convert = "import sys; from MNN.tools import mnnconvert; sys.exit(mnnconvert.main())"
        command = ["-f", "ONNX", "--modelFile", file, "--MNNModel", str(path), "--bizCode", "x", *options]
        subprocess.run([sys.executable, "-c", convert, *command], check=True, capture_output=True)
    config = {"backend": "CPU", "numThread": THREADS, "precision": "high"}
    if precision == "int8":
        config["memory"] = "low"
    runtime = MNN.nn.create_runtime_manager((config,))
    network = MNN.nn.load_module_from_file(str(path), ["images"], [], runtime_manager=runtime)
    pixels = MNN.expr.const(images.numpy(), list(images.shape), MNN.expr.NCHW, MNN.expr.float)
    return lambda: network.forward(pixels).read()
