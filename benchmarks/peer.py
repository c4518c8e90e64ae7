#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Times one peer on one model: prints {"min_ms", "median_ms", "peak_rss_mb", "error"} as one line of JSON.

usage: benchmarks/peer.py PEER MODEL BATCH PRECISION [SECONDS [wait]]
PEER       eager, compiled, tuned (PyTorch), zentorch, onnxruntime, onnxruntime_static, openvino, litert, mnn;
           train: PyTorch's forward, backward and AdamW
MODEL      a model name of timm, cifar_vit_d192, cifar_vit_d384, or a name of map_models.py
PRECISION  fp32, half (or bf16: peers compute half precision in bf16), int8; train: fp32, half

Weights and images are random: the time of a GEMM does not depend on its values.  Before anything is timed, the logits
are compared with those of PyTorch in fp32: `error` is the relative L2 norm of the difference.  Converted models are
cached in the temporary folder.  With `wait`, "ready" is printed before the measurement, which begins after a line of
standard input.
"""

import importlib
import json
import resource
import sys
import time
import warnings

import map_models
import numpy
import torch
from peer_names import RUNTIMES

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
# Larger differences mean that another model was timed.
MAX_ERRORS = {"fp32": 1e-3, "half": 0.1, "int8": 0.5}


def make_model(name):
    """The model and the height and width of its input."""
    if name in map_models.MODELS:
        model, size = map_models.make(name)
        return map_models.Output(model), size
    import timm

    torch.manual_seed(0)
    if name in CIFAR_VITS:
        from timm.models.vision_transformer import VisionTransformer

        model = VisionTransformer(**CIFAR_VITS[name])
    else:
        model = timm.create_model(name, pretrained=False)
    return model, model.patch_embed.img_size


def time_calls(call, seconds, **more):
    for _ in range(3):  # warm-up
        call()
    if sys.argv[6:] == ["wait"]:  # peers.py --alternate starts all programs at one time
        print("ready", flush=True)
        sys.stdin.readline()
    times, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 5:
        start = time.perf_counter()
        call()
        times.append(1e3 * (time.perf_counter() - start))
    times.sort()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"min_ms": times[0], "median_ms": times[len(times) // 2], "peak_rss_mb": peak, **more}))


def as_array(logits):
    return logits.float().numpy() if torch.is_tensor(logits) else numpy.asarray(logits, dtype="f")


@torch.inference_mode()
def infer(peer, model, name, images, precision, seconds):
    module, function = RUNTIMES[peer]
    expected = model.eval()(images).numpy()
    call = getattr(importlib.import_module("runtimes." + module), function)(model, name, images, precision)
    difference = as_array(call()).reshape(expected.shape) - expected
    error = float(numpy.linalg.norm(difference) / numpy.linalg.norm(expected))
    if not error <= MAX_ERRORS[precision]:
        sys.exit(f"the logits differ from PyTorch's in fp32 by {error:.3g}, more than {MAX_ERRORS[precision]}")
    time_calls(call, seconds, error=error)


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
    model, size = make_model(name)
    images = torch.randn(batch, 3, *size)
    if peer == "train":
        train(model, images, precision, seconds)
    else:
        infer(peer, model, name, images, precision, seconds)


if __name__ == "__main__":
    main()
