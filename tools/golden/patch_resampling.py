# SPDX-License-Identifier: Apache-2.0
"""Patch embeddings resampled to other patch sizes by timm's resample_patch_embed.

Writes tests/fixtures/nn/patch_resampling.safetensors: `weight` [4, 3, 16, 16] from N(0, 1), and for each size h×w the
tensor `to_HxW` [4, 3, h, w], computed in float32 as timm does.
"""

import pathlib

import torch
from safetensors.torch import save_file
from timm.layers import resample_patch_embed

SIZES = [(8, 8), (4, 4), (12, 12), (14, 14), (20, 20), (32, 32), (8, 12), (1, 1)]


def main():
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(20)
    weight = torch.randn(4, 3, 16, 16, generator=generator)
    tensors = {"weight": weight}
    for height, width in SIZES:
        tensors[f"to_{height}x{width}"] = resample_patch_embed(weight, [height, width]).contiguous()
    folder = pathlib.Path(__file__).resolve().parents[2] / "tests/fixtures/nn"
    save_file(tensors, folder / "patch_resampling.safetensors")


if __name__ == "__main__":
    main()
