# SPDX-License-Identifier: Apache-2.0
"""The peers of peer.py, a module each.

prepare(model, name, images, precision) gives a function without arguments that computes the logits of the images.  The
model is in fp32 and in eval mode.  Unsupported raises what a peer cannot do.  Calibration images are random, as the
others.
"""

import os
import pathlib
import tempfile

import torch

THREADS = os.cpu_count()
CALIBRATION_IMAGES = 16


class Unsupported(Exception):
    """What this peer cannot run."""


def cached(name, images, suffix):
    """A file in the temporary folder for what is made of a model, once for a model and batch size."""
    return pathlib.Path(tempfile.gettempdir()) / f"peer_{name}_{len(images)}{suffix}"


def calibration_images(images):
    for seed in range(CALIBRATION_IMAGES):
        yield torch.randn(images.shape, generator=torch.Generator().manual_seed(seed))


def exported_onnx(model, name, images, dynamo):
    """The path of the ONNX file.  Quantisers need the graph of the exporter without dynamo."""
    path = cached(name, images, ".dynamo.onnx" if dynamo else ".onnx")
    if not path.exists():
        torch.onnx.export(model, (images,), path, dynamo=dynamo, verbose=False, input_names=["images"])
    return path
