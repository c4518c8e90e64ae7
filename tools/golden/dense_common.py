# SPDX-License-Identifier: Apache-2.0
"""Shared by the generators of fixtures of models for maps: images, random weights, files, and the command line.

Outputs are computed in float64 from the stored weights, which are f16, and the pixels of the Pillow processor.
"""

import argparse
import copy
import json
import pathlib
import subprocess
import tempfile

import numpy
import safetensors.torch
import torch
import transformers
from PIL import Image

FIXTURES = pathlib.Path(__file__).resolve().parents[2] / "tests" / "fixtures"
SIZES = ((203, 131), (97, 163))  # height and width of the images
STEP = 3  # golden maps have every third row and column
IMAGENET = dict(image_mean=[0.485, 0.456, 0.406], image_std=[0.229, 0.224, 0.225])


def images():
    draw = numpy.random.default_rng(0)
    result = []
    for height, width in SIZES:
        y, x = numpy.mgrid[:height, :width] / 20
        waves = [numpy.sin(a * x + b * y + c) for a, b, c in draw.uniform(-3, 3, (3, 3))]
        noise = draw.uniform(-40, 40, (height, width, 3))
        result.append((numpy.stack(waves, 2) * 80 + 128 + noise).clip(0, 255).astype(numpy.uint8))
    return result


def write_images(folder, samples):
    """The paths of the files 0.png, 1.png, …"""
    folder.mkdir(parents=True, exist_ok=True)
    files = [folder / f"{i}.png" for i in range(len(samples))]
    for file, pixels in zip(files, samples, strict=True):
        Image.fromarray(pixels).save(file)
    return files


def draw_parameters(model, seed, scaled):
    """Parameters that f16 holds: scaled(key, parameter, values) makes them of normal random values."""
    draw = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for key, parameter in model.named_parameters():
            values = torch.randn(parameter.shape, generator=draw)
            parameter.copy_(scaled(key, parameter, values).half().float())
        for key, buffer in model.named_buffers():
            if key.endswith("running_mean"):
                buffer.copy_((0.3 * torch.randn(buffer.shape, generator=draw)).half())
            elif key.endswith("running_var"):
                buffer.copy_((0.5 + torch.rand(buffer.shape, generator=draw)).half())
    return model.eval()


def output_of(module, run):
    """What a module gives while `run` is called."""
    hidden = []
    hook = module.register_forward_hook(lambda module, args, out: hidden.append(out))
    with torch.no_grad():
        run()
    hook.remove()
    return hidden[0]


def save(folder, model, processor, **options):
    copy.deepcopy(model).half().save_pretrained(folder, **options)
    processor.save_pretrained(folder)


def save_golden(folder, model, golden, file="golden.safetensors", **about):
    about = {"reference": f"transformers {transformers.__version__} {type(model).__name__}"} | about
    golden = {key: values.contiguous() for key, values in golden.items()}
    safetensors.torch.save_file(golden, folder / file, metadata={"config": json.dumps(about)})


def run_program(*command):
    subprocess.run([str(word) for word in command], check=True, stdout=subprocess.DEVNULL)


def main(models, published, write_fixture, check):
    """write_fixture(name, spec) for each of the models; with --check VITRAIL, check(program, folder, name, spec)."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", metavar="VITRAIL")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    transformers.logging.set_verbosity_error()
    for name, spec in (models | (published if options.check else {})).items():
        if options.names and name not in options.names:
            continue
        if not options.check:
            write_fixture(name, spec)
            continue
        with tempfile.TemporaryDirectory() as folder:
            check(options.check, pathlib.Path(folder), name, spec)
