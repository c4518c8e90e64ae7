#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs one peer of segment_peers.py and prints the times of its image encoder and of one click as a line of JSON.

usage: benchmarks/segment_peer.py PEER FOLDER PRECISION [SECONDS]
PEER       reference, pytorch, onnxruntime, openvino
FOLDER     what segment_peers.py has prepared: model.pth, model.encoder.onnx, model.decoder.onnx, image.png
PRECISION  fp32, half, int8: of the image encoder; the mask decoder is fp32

reference writes the embedding and the logits of PyTorch in fp32 to FOLDER/expected.npz and times nothing.  The others
are compared with it before they are timed.  A click gives the logits and scores of all four masks at the decoder's
resolution: ONNX graphs are cut there.
"""

import json
import os
import pathlib
import resource
import sys
import time
import warnings

import numpy
from PIL import Image

warnings.filterwarnings("ignore")
THREADS = os.cpu_count()
CLICK = (300.0, 420.0)  # in pixels of the image, which has the size of the model's input
MEAN, STD = (123.675, 116.28, 103.53), (58.395, 57.12, 57.375)
CALIBRATION_IMAGES = 4
# Differences relative to the largest value.  Larger ones mean that another model was timed.
MAX_ERRORS = {"fp32": 1e-3, "half": 0.2, "int8": 0.7}
DECODER_INPUTS = ["image_embeddings", "point_coords", "point_labels", "mask_input", "has_mask_input"]


class Unsupported(Exception):
    """What this peer cannot run."""


def input_of(folder):
    pixels = numpy.asarray(Image.open(folder / "image.png").convert("RGB"), dtype="f")
    return numpy.ascontiguousarray(((pixels - numpy.float32(MEAN)) / numpy.float32(STD)).transpose(2, 0, 1)[None])


def onnx_click(embedding):
    """The click as segment-anything's ONNX decoder takes it: a padding point follows a point without a box."""
    size = 4 * embedding.shape[-1]
    return {
        "image_embeddings": embedding,
        "point_coords": numpy.float32([[CLICK, (0, 0)]]),
        "point_labels": numpy.float32([[1, -1]]),
        "mask_input": numpy.zeros((1, 1, size, size), "f"),
        "has_mask_input": numpy.zeros(1, "f"),
    }


def low_resolution_decoder(folder):
    import onnx

    path = folder / "model.low_resolution.onnx"
    if not path.exists():
        outputs = ["low_res_masks", "iou_predictions"]
        onnx.utils.extract_model(folder / "model.decoder.onnx", path, DECODER_INPUTS, outputs)
    return path


def pytorch(folder, precision):
    import segment_anything
    import torch

    if precision == "int8":
        raise Unsupported("PyTorch's int8 is not compared")
    torch.set_grad_enabled(False)
    model = segment_anything.sam_model_registry["vit_b"](checkpoint=str(folder / "model.pth")).eval()

    def encode(images):
        with torch.autocast("cpu", torch.bfloat16, enabled=precision == "half"):
            return model.image_encoder(torch.from_numpy(images)).float().numpy()

    def click(embedding):
        points = torch.tensor([[CLICK]]), torch.ones(1, 1)
        sparse, dense = model.prompt_encoder(points=points, boxes=None, masks=None)
        logits, _ = model.mask_decoder.predict_masks(
            torch.from_numpy(embedding), model.prompt_encoder.get_dense_pe(), sparse, dense
        )
        return logits.numpy()

    return encode, click


def onnxruntime(folder, precision):
    import onnxruntime

    if precision == "half":
        raise Unsupported("ONNX Runtime has no half precision on CPUs")
    path = folder / "model.encoder.onnx"
    if precision == "int8":
        from onnxruntime.quantization import QuantType, quantize_dynamic

        path = folder / "model.encoder.dynamic.onnx"
        if not path.exists():
            quantize_dynamic(folder / "model.encoder.onnx", path, weight_type=QuantType.QInt8)
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = THREADS
    encoder, decoder = (
        onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
        for file in (path, low_resolution_decoder(folder))
    )
    name = encoder.get_inputs()[0].name
    return (
        lambda images: encoder.run(["image_embeddings"], {name: images})[0],
        lambda embedding: decoder.run(["low_res_masks"], onnx_click(embedding))[0],
    )


def openvino(folder, precision):
    import openvino

    core = openvino.Core()
    model = core.read_model(folder / "model.encoder.onnx")
    if precision == "int8":
        import nncf

        quantized = folder / "model.encoder.openvino.xml"
        if not quantized.exists():
            images = input_of(folder)
            samples = [numpy.roll(images, 97 * i, axis=3) for i in range(CALIBRATION_IMAGES)]
            options = {"model_type": nncf.ModelType.TRANSFORMER, "subset_size": CALIBRATION_IMAGES}
            openvino.save_model(
                nncf.quantize(model, nncf.Dataset(samples), **options), quantized, compress_to_fp16=False
            )
        model = core.read_model(quantized)
    hints = {
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_NUM_THREADS": THREADS,
        "INFERENCE_PRECISION_HINT": "bf16" if precision == "half" else "f32",
    }
    encoder = core.compile_model(model, "CPU", hints).create_infer_request()
    hints["INFERENCE_PRECISION_HINT"] = "f32"
    decoder = core.compile_model(core.read_model(low_resolution_decoder(folder)), "CPU", hints).create_infer_request()
    return (
        lambda images: encoder.infer([images])["image_embeddings"],
        lambda embedding: decoder.infer(onnx_click(embedding))["low_res_masks"],
    )


PEERS = {"pytorch": pytorch, "onnxruntime": onnxruntime, "openvino": openvino}


def error_of(got, expected):
    """The largest difference, relative to the largest value."""
    return float(numpy.abs(got - expected).max() / numpy.abs(expected).max())


def times_of(call, seconds):
    call()  # warm-up
    times, end = [], time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 3:
        start = time.perf_counter()
        call()
        times.append(1e3 * (time.perf_counter() - start))
    times.sort()
    return {"min_ms": times[0], "median_ms": times[len(times) // 2], "runs": len(times)}


def peak_rss_mb():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main():
    peer, folder, precision = sys.argv[1], pathlib.Path(sys.argv[2]), sys.argv[3]
    seconds = float(sys.argv[4]) if len(sys.argv) > 4 else 3
    images = input_of(folder)
    if peer == "reference":
        encode, click = pytorch(folder, "fp32")
        embedding = encode(images)
        numpy.savez(folder / "expected.npz", embedding=embedding, logits=click(embedding))
        return
    expected = numpy.load(folder / "expected.npz")
    encode, click = PEERS[peer](folder, precision)
    errors = {
        "image_encoder": error_of(encode(images), expected["embedding"]),
        "click": error_of(click(expected["embedding"]), expected["logits"]),
    }
    for task, error in errors.items():
        limit = MAX_ERRORS[precision if task == "image_encoder" else "fp32"]
        if not error <= limit:
            sys.exit(f"{task} differs from PyTorch in fp32 by {error:.3g} of the largest value, more than {limit}")
    encoder = {**times_of(lambda: encode(images), seconds), "peak_rss_mb": peak_rss_mb()}
    times = {"image_encoder": encoder, "click": times_of(lambda: click(expected["embedding"]), seconds)}
    print(json.dumps({"tasks": times, "errors": errors}))


if __name__ == "__main__":
    main()
