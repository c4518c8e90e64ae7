#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How often bf16 and int8 name photographs as fp32 does, and beside them the peers' int8.

    python benchmarks/photographs.py MODEL FOLDER… [--crops 20] [--mirrored] [--calibrate PICTURES] [--outliers 0]
                                     [--peers]

The FOLDERs hold photographs (at any depth; photograph_sets.py fetches some); of each, --crops random parts are taken, a
fifth of the picture to all of it; with 0, the picture as it is, and with --mirrored with left and right exchanged too.
int8 is the file that `vitrail convert --dtype int8 --calibrate` makes from PICTURES (default: the first FOLDER; better
others).  MODEL is a folder in hub layout.

--outliers F makes another model of the same function first: four channels of each LayerNorm before a linear layer are
F times as large, and that layer's weights for them F times as small.  In exact arithmetic nothing changes; activations
then have the large channels that trained models are known for, and that whole numbers lose most by.

--peers asks ONNX Runtime (dynamic int8) and OpenVINO (calibrated by nncf with the same PICTURES) too, each compared
with PyTorch's fp32; MODEL must then be timm's.

Prints a JSON object: views, and for each precision how many are named as in fp32 and what share of all that is, how
many of those whose first name fp32 gives a probability of 0.2 or more ("sure": one that leads by nothing falls to any
rounding), how far the logits are apart by the length of all of them, the largest difference over the largest logit, and
of int8 the share of layers kept in bf16.  Needs numpy, pillow, safetensors; --peers needs requirements.txt.
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
ENDINGS = {".jpg", ".jpeg", ".png", ".webp"}
CHANNELS = 4  # made large in each LayerNorm


def photographs(folder):
    return sorted(path for path in folder.rglob("*") if path.suffix.lower() in ENDINGS)


def crops_of(path, count, random):
    picture = Image.open(path).convert("RGB")
    for _ in range(count):
        side = numpy.sqrt(random.uniform(0.2, 1))
        width, height = (max(1, int(side * edge)) for edge in picture.size)
        left, top = (int(random.integers(0, edge - part + 1)) for edge, part in zip(picture.size, (width, height)))
        part = picture.crop((left, top, left + width, top + height))
        part.thumbnail((400, 400), Image.Resampling.LANCZOS)
        yield part


def fill(views, folders, crops, mirrored):
    """The folder `views` with what is to be named."""
    views.mkdir()
    random = numpy.random.default_rng(0)
    for i, path in enumerate(path for folder in folders for path in photographs(folder)):
        if crops == 0:
            (views / f"{i:04d}{path.suffix.lower()}").symlink_to(path.resolve())
            if mirrored:
                ImageOps.mirror(Image.open(path).convert("RGB")).save(views / f"{i:04d}_mirrored.png", compress_level=1)
            continue
        for j, part in enumerate(crops_of(path, crops, random)):
            part.save(views / f"{i:04d}_{j:03d}.png", compress_level=1)
    return views


def with_outliers(model, factor, folder):
    """A copy of a timm model in which LayerNorm's output has large channels and the next layer undoes them."""
    shutil.copytree(model, folder)
    file = folder / "model.safetensors"
    weights = load_file(file)
    random = numpy.random.default_rng(0)
    for name in [name for name in weights if name.endswith((".norm1.weight", ".norm2.weight"))]:
        block, norm = name.rsplit(".", 2)[:2]
        after = f"{block}.{'attn.qkv' if norm == 'norm1' else 'mlp.fc1'}.weight"
        chosen = random.choice(len(weights[name]), CHANNELS, replace=False)
        for parameter in (name, name.replace(".weight", ".bias")):
            weights[parameter][chosen] *= factor
        weights[after][:, chosen] /= factor
    save_file(weights, file, metadata={"format": "pt"})
    return folder


def logits(model, folder, file, precision):
    subprocess.run([PROGRAM, "classify", "-m", model, folder, "--precision", precision, "--logits", file, "--quiet"],
                   check=True, stdout=subprocess.DEVNULL)
    return numpy.load(file)


def compared(given, wanted):
    same = given.argmax(1) == wanted.argmax(1)
    # The first name's probability: one over the sum of all beside it.
    sure = 1 / numpy.exp(wanted - wanted.max(1, keepdims=True)).sum(1) >= 0.2
    return {"same": int(same.sum()), "same_top1": float(same.mean()),
            "sure": int(sure.sum()), "sure_same": int(same[sure].sum()),
            "apart": float(numpy.linalg.norm(given - wanted) / numpy.linalg.norm(wanted)),
            "largest_difference": float(abs(given - wanted).max() / abs(wanted).max())}


def vitrail(model, views, calibrate, place):
    """bf16 and int8, each beside fp32."""
    quantised = place / "int8"
    subprocess.run([PROGRAM, "convert", model, "-o", quantised, "--dtype", "int8", "--calibrate", calibrate, "--quiet"],
                   check=True, stdout=subprocess.DEVNULL)
    fp32 = logits(model, views, place / "fp32.npy", "fp32")
    result = {"bf16": compared(logits(model, views, place / "bf16.npy", "bf16"), fp32),
              "int8": compared(logits(quantised, views, place / "int8.npy", "int8"), fp32)}
    kept = json.loads((quantised / "config.json").read_text())["int8"]["kept"]
    with safe_open(quantised / "model.safetensors", "numpy") as file:
        layers = [name for name in file.keys() if name.endswith("weight_scale")]
    result["int8"]["kept_in_16_bits"] = len(kept) / (len(kept) + len(layers))
    return result


def peers(model, views, calibrate, place):
    """The int8 of ONNX Runtime and OpenVINO, each beside PyTorch's fp32."""
    import nncf
    import onnxruntime
    import openvino
    import timm
    import torch
    from onnxruntime.quantization import QuantType, quantize_dynamic
    config = json.loads((model / "config.json").read_text())
    network = timm.create_model(config["architecture"]).eval()
    network.load_state_dict({name: torch.from_numpy(value) for name, value in load_file(model / "model.safetensors").items()})
    transform = timm.data.create_transform(**timm.data.resolve_data_config(config["pretrained_cfg"]))

    def pixels(path):
        return transform(Image.open(path).convert("RGB"))[None]

    pictures = [pixels(path) for path in photographs(views)]
    with torch.inference_mode():
        fp32 = torch.cat([network(picture) for picture in pictures]).numpy()
    plain, dynamic = str(place / "plain.onnx"), str(place / "dynamic.onnx")
    torch.onnx.export(network, (pictures[0],), plain, dynamo=False, verbose=False)
    quantize_dynamic(plain, dynamic, weight_type=QuantType.QInt8)
    session = onnxruntime.InferenceSession(dynamic, providers=["CPUExecutionProvider"])
    feed = session.get_inputs()[0].name
    named = numpy.concatenate([session.run(None, {feed: picture.numpy()})[0] for picture in pictures])
    seen = nncf.Dataset([pixels(path).numpy() for path in photographs(calibrate)])
    calibrated = nncf.quantize(openvino.Core().read_model(plain), seen, model_type=nncf.ModelType.TRANSFORMER)
    compiled = openvino.Core().compile_model(calibrated, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    answers = numpy.concatenate([compiled([picture.numpy()])[compiled.output(0)] for picture in pictures])
    return {"onnxruntime": compared(named, fp32), "openvino": compared(answers, fp32)}


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
        place = pathlib.Path(name)
        views = fill(place / "views", options.folders, options.crops, options.mirrored)
        model = with_outliers(options.model, options.outliers, place / "model") if options.outliers else options.model
        result = {"model": options.model.name, "outliers": options.outliers, "views": len(photographs(views))}
        result |= vitrail(model, views, calibrate, place)
        if options.peers:
            result |= peers(model, views, calibrate, place)
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
