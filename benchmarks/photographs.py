#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures how well half precision and int8 agree with fp32 on photographs, and optionally the int8 of peers.

    python benchmarks/photographs.py MODEL FOLDER… [--crops 20] [--mirrored] [--calibrate IMAGES] [--outliers 0]
                                     [--peers]

MODEL is a folder in hub layout.  The FOLDERs hold photographs at any depth (photograph_sets.py downloads some).  The
views of each photograph are --crops random crops of a fifth to all of its area.  With --crops 0 the view is the
photograph, and with --mirrored also its mirror image.  int8 is the file that `vitrail convert --dtype int8 --calibrate`
makes from IMAGES (default: the first FOLDER; other images give a fairer result).

--outliers F first makes an equivalent model: it multiplies four channels of each LayerNorm before a linear layer by F
and divides the weights of that layer accordingly.  Its activations have outlier channels as trained models do, which
quantise badly.

--peers adds ONNX Runtime (dynamic int8) and OpenVINO (calibrated by nncf with the same IMAGES), each compared with fp32
of PyTorch.  MODEL must then be a model of timm.

Prints a JSON object: the number of views, and for each precision
  same, same_top1                 the number and the fraction of views whose top-1 class is that of fp32
  confident, confident_same       the number of views whose top-1 class has a probability of 0.2 or more in fp32, and
                                  how many of these have the same top-1 class (a narrow lead is lost to any rounding)
  relative_error                  relative L2 error of the logits
  largest_difference              largest difference of a logit over the largest logit
  excluded_layers                 int8: the fraction of linear layers that are excluded from int8
Needs numpy, pillow and safetensors; --peers needs requirements.txt.
"""

import argparse
import json
import pathlib
import shutil
import subprocess
import tempfile

import numpy
from PIL import Image, ImageOps
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

ROOT = pathlib.Path(__file__).resolve().parents[1]
PROGRAM = ROOT / "build" / "release" / "vitrail"
EXTENSIONS = {".jpg", ".jpeg", ".png", ".webp"}
OUTLIER_CHANNELS = 4  # in each LayerNorm
CONFIDENT = 0.2


def photographs(folder):
    return sorted(path for path in folder.rglob("*") if path.suffix.lower() in EXTENSIONS)


def crops_of(path, count, random):
    image = Image.open(path).convert("RGB")
    for _ in range(count):
        scale = numpy.sqrt(random.uniform(0.2, 1))
        width, height = (max(1, int(scale * edge)) for edge in image.size)
        left, top = (
            int(random.integers(0, edge - side + 1)) for edge, side in zip(image.size, (width, height), strict=True)
        )
        crop = image.crop((left, top, left + width, top + height))
        crop.thumbnail((400, 400), Image.Resampling.LANCZOS)
        yield crop


def make_views(views, folders, crops, mirrored):
    """Fills the new folder `views`."""
    views.mkdir()
    random = numpy.random.default_rng(0)
    for i, path in enumerate(path for folder in folders for path in photographs(folder)):
        if crops == 0:
            (views / f"{i:04d}{path.suffix.lower()}").symlink_to(path.resolve())
            if mirrored:
                ImageOps.mirror(Image.open(path).convert("RGB")).save(views / f"{i:04d}_mirrored.png", compress_level=1)
            continue
        for j, crop in enumerate(crops_of(path, crops, random)):
            crop.save(views / f"{i:04d}_{j:03d}.png", compress_level=1)
    return views


def with_outliers(model, factor, folder):
    """A copy of a timm model with outlier channels in each LayerNorm, which the weights after it compensate."""
    shutil.copytree(model, folder)
    file = folder / "model.safetensors"
    weights = load_file(file)
    random = numpy.random.default_rng(0)
    for name in [name for name in weights if name.endswith((".norm1.weight", ".norm2.weight"))]:
        block, norm = name.rsplit(".", 2)[:2]
        next_weight = f"{block}.{'attn.qkv' if norm == 'norm1' else 'mlp.fc1'}.weight"
        channels = random.choice(len(weights[name]), OUTLIER_CHANNELS, replace=False)
        for parameter in (name, name.replace(".weight", ".bias")):
            weights[parameter][channels] *= factor
        weights[next_weight][:, channels] /= factor
    save_file(weights, file, metadata={"format": "pt"})
    return folder


def logits_of(model, folder, file, precision):
    subprocess.run(
        [PROGRAM, "classify", "-m", model, folder, "--precision", precision, "--logits", file, "--quiet"],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return numpy.load(file)


def agreement(logits, reference):
    same = logits.argmax(1) == reference.argmax(1)
    top1_probability = 1 / numpy.exp(reference - reference.max(1, keepdims=True)).sum(1)  # softmax of the maximum
    confident = top1_probability >= CONFIDENT
    return {
        "same": int(same.sum()),
        "same_top1": float(same.mean()),
        "confident": int(confident.sum()),
        "confident_same": int(same[confident].sum()),
        "relative_error": float(numpy.linalg.norm(logits - reference) / numpy.linalg.norm(reference)),
        "largest_difference": float(abs(logits - reference).max() / abs(reference).max()),
    }


def excluded_fraction(folder):
    int8 = json.loads((folder / "config.json").read_text())["int8"]
    excluded = len(int8["excluded"] if "excluded" in int8 else int8["kept"])
    with safe_open(folder / "model.safetensors", "numpy") as file:  # names only: numpy has no bfloat16
        names = file.keys()
    quantized = sum(name.endswith("weight_scale") for name in names)
    return excluded / (excluded + quantized)


def vitrail(model, views, calibrate, scratch):
    """Agreement of half precision and int8 with fp32."""
    quantized = scratch / "int8"
    subprocess.run(
        [PROGRAM, "convert", model, "-o", quantized, "--dtype", "int8", "--calibrate", calibrate, "--quiet"],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    fp32 = logits_of(model, views, scratch / "fp32.npy", "fp32")
    # "bf16" is a name of half precision in every version of the program.
    return {
        "half": agreement(logits_of(model, views, scratch / "half.npy", "bf16"), fp32),
        "int8": agreement(logits_of(quantized, views, scratch / "int8.npy", "int8"), fp32)
        | {"excluded_layers": excluded_fraction(quantized)},
    }


def peers(model, views, calibrate, scratch):
    """Agreement of the int8 of ONNX Runtime and OpenVINO with fp32 of PyTorch."""
    import nncf
    import onnxruntime
    import openvino
    import timm
    import torch
    from onnxruntime.quantization import QuantType, quantize_dynamic

    config = json.loads((model / "config.json").read_text())
    network = timm.create_model(config["architecture"]).eval()
    weights = load_file(model / "model.safetensors")
    network.load_state_dict({name: torch.from_numpy(value) for name, value in weights.items()})
    transform = timm.data.create_transform(**timm.data.resolve_data_config(config["pretrained_cfg"]))

    def pixels_of(path):
        return transform(Image.open(path).convert("RGB"))[None]

    images = [pixels_of(path) for path in photographs(views)]
    with torch.inference_mode():
        fp32 = torch.cat([network(image) for image in images]).numpy()
    exported, dynamic = str(scratch / "fp32.onnx"), str(scratch / "dynamic.onnx")
    torch.onnx.export(network, (images[0],), exported, dynamo=False, verbose=False)
    quantize_dynamic(exported, dynamic, weight_type=QuantType.QInt8)
    session = onnxruntime.InferenceSession(dynamic, providers=["CPUExecutionProvider"])
    feed = session.get_inputs()[0].name
    onnxruntime_logits = numpy.concatenate([session.run(None, {feed: image.numpy()})[0] for image in images])
    calibration = nncf.Dataset([pixels_of(path).numpy() for path in photographs(calibrate)])
    quantized = nncf.quantize(openvino.Core().read_model(exported), calibration, model_type=nncf.ModelType.TRANSFORMER)
    compiled = openvino.Core().compile_model(quantized, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    openvino_logits = numpy.concatenate([compiled([image.numpy()])[compiled.output(0)] for image in images])
    return {"onnxruntime": agreement(onnxruntime_logits, fp32), "openvino": agreement(openvino_logits, fp32)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("folders", type=pathlib.Path, nargs="+")
    parser.add_argument("--crops", type=int, default=20)
    parser.add_argument("--mirrored", action="store_true")
    parser.add_argument("--calibrate", type=pathlib.Path)
    parser.add_argument("--outliers", type=float, default=0)
    parser.add_argument("--peers", action="store_true")
    options = parser.parse_args()
    calibrate = options.calibrate or options.folders[0]
    with tempfile.TemporaryDirectory() as name:
        scratch = pathlib.Path(name)
        views = make_views(scratch / "views", options.folders, options.crops, options.mirrored)
        model = with_outliers(options.model, options.outliers, scratch / "model") if options.outliers else options.model
        result = {"model": options.model.name, "outliers": options.outliers, "views": len(photographs(views))}
        result |= vitrail(model, views, calibrate, scratch)
        if options.peers:
            result |= peers(model, views, calibrate, scratch)
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
