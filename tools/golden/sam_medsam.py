# SPDX-License-Identifier: Apache-2.0
"""The fixture of MedSAM: a small random model of segment-anything, with the arithmetic of MedSAM_Inference.py
(github.com/bowang-lab/MedSAM): the image in a square by scikit-image, scaled to 0-1; masks in boxes from
probabilities.

    tools/golden/sam_medsam.py

Writes tests/fixtures/sam/medsam as sam.py does, with resized [S, S, 3] u8 and small [40, 13, 3] u8 too, and
config.json.
"""

import json
import zlib

import numpy
import skimage.transform
import torch
from sam import ROOT, WELL_CONDITIONED, build, difference, float64, write

CONFIG = dict(grid=8, patch=8, dim=32, heads=2, depth=2, window=4, glob=(1,), dec=32, size=(70, 45))
SMALL = (40, 13)
BOXES = ([5.5, 8.25, 30, 60], [20, 2, 44.5, 33.75])


def resize(image, size):
    image = skimage.transform.resize(image.numpy(), size, order=3, preserve_range=True, anti_aliasing=True)
    return image.astype(numpy.uint8)


def segment(model, pixels, box, size):
    """The logits of the mask in a box of the square image, its score and its probabilities at the image's size."""
    embedding = model.image_encoder(pixels)
    sparse, dense = model.prompt_encoder(points=None, boxes=box, masks=None)
    logits, iou = model.mask_decoder(
        image_embeddings=embedding,
        image_pe=model.prompt_encoder.get_dense_pe(),
        sparse_prompt_embeddings=sparse,
        dense_prompt_embeddings=dense,
        multimask_output=False,
    )
    full = torch.nn.functional.interpolate(torch.sigmoid(logits), size=size, mode="bilinear", align_corners=False)
    return embedding[0], logits[0], iou[0], full[0]


@torch.no_grad()
def outputs(generator):
    model, side = build(CONFIG, generator), CONFIG["grid"] * CONFIG["patch"]
    height, width = CONFIG["size"]
    image = torch.randint(0, 256, (height, width, 3), generator=generator, dtype=torch.uint8)
    resized = resize(image, (side, side))
    scaled = (resized - resized.min()) / numpy.clip(resized.max() - resized.min(), a_min=1e-8, a_max=None)
    pixels = torch.tensor(scaled).double().permute(2, 0, 1)[None]
    small = resize(image, SMALL)
    tensors, worst = {"image": image, "resized": torch.from_numpy(resized), "small": torch.from_numpy(small)}, 0
    for number, box in enumerate(BOXES):
        square = torch.tensor(numpy.array([box]) / [width, height, width, height] * side)
        with float64():
            embedding, logits, iou, full = segment(model.double(), pixels, square, CONFIG["size"])
        approximate = segment(model.float(), pixels.float(), square.float(), CONFIG["size"])
        worst = max([worst, *map(difference, (embedding, logits, iou), approximate)])
        tensors["embedding"] = embedding.float()
        tensors[f"logits_{number}"], tensors[f"iou_{number}"] = logits.float(), iou.float()
        tensors[f"signs_{number}"] = torch.where((full - 0.5).abs() > 1e-4, (full - 0.5).sign(), 0).char()
    return model, tensors, worst


def main():
    generator = torch.Generator().manual_seed(zlib.crc32(b"medsam"))
    while True:
        model, tensors, worst = outputs(generator)
        print(f"medsam: float32 differs by {worst:.1e}")
        if worst < WELL_CONDITIONED:
            break
    prompts = [{"box": box, "multimask": False} for box in BOXES]
    write("medsam", model.state_dict(), "pth", tensors, prompts)
    config = {"architecture": "segment_anything", "preprocessing": "medsam"}
    (ROOT / "medsam" / "config.json").write_text(json.dumps(config) + "\n")


main()
