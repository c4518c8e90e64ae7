#!/usr/bin/env python3
"""How often bf16 and int8 name photographs as fp32 does.

    python benchmarks/photographs.py MODEL FOLDER [--crops 20] [--calibrate PICTURES] [--outliers 0]

FOLDER holds photographs (at any depth); of each, --crops random parts are taken, a fifth of the picture to all of it.
int8 is the file that `vitrail convert --dtype int8 --calibrate` makes from PICTURES (default: whole photographs of
FOLDER; better others).  MODEL is a folder in hub layout.

--outliers F makes another model of the same function first: four channels of each LayerNorm before a linear layer are
F times as large, and that layer's weights for them F times as small.  In exact arithmetic nothing changes; activations
then have the large channels that trained models are known for, and that whole numbers lose most by.

Prints a JSON object: views, and for each precision the share named as in fp32, the largest difference of logits over
the largest logit, and of int8 the share of layers kept in bf16.  Needs numpy, pillow, safetensors.
"""
import argparse
import json
import pathlib
import shutil
import subprocess
import tempfile

import numpy
from PIL import Image
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
    return {"same_top1": float((given.argmax(1) == wanted.argmax(1)).mean()),
            "largest_difference": float(abs(given - wanted).max() / abs(wanted).max())}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--crops", type=int, default=20)
    parser.add_argument("--calibrate", type=pathlib.Path)
    parser.add_argument("--outliers", type=float, default=0)
    options = parser.parse_args()
    random = numpy.random.default_rng(0)
    with tempfile.TemporaryDirectory() as name:
        place = pathlib.Path(name)
        views = place / "views"
        views.mkdir()
        for i, path in enumerate(photographs(options.folder)):
            for j, part in enumerate(crops_of(path, options.crops, random)):
                part.save(views / f"{i:04d}_{j:03d}.png", compress_level=1)
        model = with_outliers(options.model, options.outliers, place / "model") if options.outliers else options.model
        quantised = place / "int8"
        subprocess.run([PROGRAM, "convert", model, "-o", quantised, "--dtype", "int8", "--calibrate",
                        options.calibrate or options.folder, "--quiet"], check=True, stdout=subprocess.DEVNULL)
        fp32 = logits(model, views, place / "fp32.npy", "fp32")
        result = {"model": options.model.name, "outliers": options.outliers, "views": len(fp32),
                  "bf16": compared(logits(model, views, place / "bf16.npy", "bf16"), fp32),
                  "int8": compared(logits(quantised, views, place / "int8.npy", "int8"), fp32)}
        kept = json.loads((quantised / "config.json").read_text())["int8"]["kept"]
        with safe_open(quantised / "model.safetensors", "numpy") as file:
            layers = [name for name in file.keys() if name.endswith("weight_scale")]
        result["int8"]["kept_in_bf16"] = len(kept) / (len(kept) + len(layers))
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()
