#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times one peer on one model: prints {"min_ms", "median_ms", "peak_rss_mb"} as one line of JSON.

usage: benchmarks/peer.py PEER MODEL BATCH PRECISION [SECONDS]
PEER       eager, compiled (PyTorch), onnxruntime, openvino; train: PyTorch's forward, backward and AdamW
MODEL      a model name of timm, or cifar_vit_d192 or cifar_vit_d384
PRECISION  fp32, half (or bf16: peers compute half precision in bf16), int8 (PyTorch and ONNX Runtime: dynamic;
           OpenVINO: calibrated by nncf); train: fp32, half

Weights and images are random: the time of a GEMM does not depend on its values.  Exported models are cached in the
temporary folder.
"""

import json
import os
import resource
import sys
import tempfile
import time
import warnings

import numpy
import torch

warnings.filterwarnings("ignore")
CIFAR_VITS = {
    "cifar_vit_d192": {
        "img_size": 32,
        "patch_size": 4,
        "embed_dim": 192,
        "depth": 9,
        "num_heads": 12,
        "mlp_ratio": 2,
        "num_classes": 10,
    },
    "cifar_vit_d384": {
        "img_size": 32,
        "patch_size": 4,
        "embed_dim": 384,
        "depth": 12,
        "num_heads": 8,
        "mlp_ratio": 4,
        "qkv_bias": False,
        "num_classes": 10,
    },
}


def make_model(name):
    import timm

    torch.manual_seed(0)
    if name in CIFAR_VITS:
        from timm.models.vision_transformer import VisionTransformer

        return VisionTransformer(**CIFAR_VITS[name])
    return timm.create_model(name, pretrained=False)


def time_calls(call, seconds):
    for _ in range(3):  # warm-up
        call()
    times, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 5:
        start = time.perf_counter()
        call()
        times.append(1e3 * (time.perf_counter() - start))
    times.sort()
    print(
        json.dumps(
            {
                "min_ms": times[0],
                "median_ms": times[len(times) // 2],
                "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
            }
        )
    )


def pytorch(model, images, precision, seconds, compiled):
    model.eval()
    if precision == "half":
        model, images = model.bfloat16(), images.bfloat16()
    if precision == "int8":
        model = torch.ao.quantization.quantize_dynamic(model, {torch.nn.Linear}, dtype=torch.qint8)
    if compiled:
        from torch._inductor import config

        config.freezing = True
        model = torch.compile(model)
    with torch.inference_mode():
        time_calls(lambda: model(images), seconds)


def exported(model, name, images, dynamo):
    """The path of the ONNX file.  int8 is quantised from the graph of the exporter without dynamo."""
    path = os.path.join(tempfile.gettempdir(), f"peer_{name}_{len(images)}_{'dynamo' if dynamo else 'plain'}.onnx")
    if not os.path.exists(path):
        torch.onnx.export(model.eval(), (images,), path, dynamo=dynamo, verbose=False)
    return path


def onnxruntime(model, name, images, precision, seconds):
    import onnxruntime

    path = exported(model, name, images, precision != "int8")
    if precision == "int8":
        from onnxruntime.quantization import QuantType, quantize_dynamic

        quantized = path.replace(".onnx", ".int8.onnx")
        if not os.path.exists(quantized):
            quantize_dynamic(path, quantized, weight_type=QuantType.QInt8)
        path = quantized
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = os.cpu_count()
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    feed = {session.get_inputs()[0].name: images.numpy()}
    time_calls(lambda: session.run(None, feed), seconds)


def openvino(model, name, images, precision, seconds):
    import openvino

    core = openvino.Core()
    path = exported(model, name, images, precision != "int8")
    if precision == "int8":
        quantized = path.replace(".onnx", ".openvino.xml")
        if not os.path.exists(quantized):
            import nncf

            samples = [numpy.random.default_rng(i).standard_normal(images.shape).astype("f") for i in range(16)]
            openvino.save_model(
                nncf.quantize(
                    core.read_model(path), nncf.Dataset(samples), model_type=nncf.ModelType.TRANSFORMER, subset_size=16
                ),
                quantized,
                compress_to_fp16=False,
            )
        path = quantized
    network = core.read_model(path)
    hints = {
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_NUM_THREADS": os.cpu_count(),
        "INFERENCE_PRECISION_HINT": "bf16" if precision == "half" else "f32",
    }
    request = core.compile_model(network, "CPU", hints).create_infer_request()
    pixels = images.numpy()
    time_calls(lambda: request.infer([pixels]), seconds)


def train(model, images, precision, seconds):
    model.train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.05, fused=True)
    labels = torch.randint(0, 10, (len(images),))

    def step():
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "half"):
            loss = torch.nn.functional.cross_entropy(model(images).float(), labels)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()

    time_calls(step, seconds)


def main():
    peer, name, batch = sys.argv[1], sys.argv[2], int(sys.argv[3])
    precision = sys.argv[4].replace("bf16", "half")
    seconds = float(sys.argv[5]) if len(sys.argv) > 5 else 4
    model = make_model(name)
    images = torch.randn(batch, 3, *model.patch_embed.img_size)
    if peer in ("eager", "compiled"):
        pytorch(model, images, precision, seconds, peer == "compiled")
    elif peer == "train":
        train(model, images, precision, seconds)
    else:
        {"onnxruntime": onnxruntime, "openvino": openvino}[peer](model, name, images, precision, seconds)


if __name__ == "__main__":
    main()
