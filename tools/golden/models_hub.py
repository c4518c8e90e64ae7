# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the DINO and DINOv2 hub models, which no package on PyPI has.

Their blocks and keys equal timm's.  They differ in the resizing of position embeddings, the tokens that have one, the
names of the registers and of the SwiGLU layers, the unused mask token, and blocks stored in chunks.
"""

import math

import timm
import torch
from models_common import preprocessing, randomise, report, write_fixture
from timm.models.vision_transformer import VisionTransformer
from torch.nn import functional as F

SMALL = dict(img_size=16, patch_size=4, embed_dim=18, depth=2, num_heads=3, mlp_ratio=2.0)


class HubTransformer(VisionTransformer):
    """Position embeddings for CLS and patches, resized bicubically.  Registers follow CLS and have none."""

    def __init__(self, offset, antialias, registers=0, **args):
        super().__init__(num_classes=0, dynamic_img_size=True, **args)
        self.offset, self.antialias = offset, antialias
        self.register_tokens = torch.nn.Parameter(torch.zeros(1, registers, self.embed_dim)) if registers else None

    def resized(self, rows, columns):
        count = self.pos_embed.shape[1] - 1
        if rows * columns == count and rows == columns:
            return self.pos_embed
        side = math.isqrt(count)
        grid = self.pos_embed[:, 1:].reshape(1, side, side, -1).permute(0, 3, 1, 2)
        if self.offset:  # meant against rounding errors, but it also shifts the sampling positions
            extent = {"scale_factor": ((rows + self.offset) / side, (columns + self.offset) / side)}
        else:
            extent = {"size": (rows, columns)}
        grid = F.interpolate(grid, mode="bicubic", antialias=self.antialias, **extent)
        assert tuple(grid.shape[-2:]) == (rows, columns)
        return torch.cat([self.pos_embed[:, :1], grid.permute(0, 2, 3, 1).flatten(1, 2)], 1)

    def _pos_embed(self, x):
        batch, rows, columns, _ = x.shape
        x = torch.cat([self.cls_token.expand(batch, -1, -1), x.flatten(1, 2)], 1) + self.resized(rows, columns)
        if self.register_tokens is not None:
            x = torch.cat([x[:, :1], self.register_tokens.expand(batch, -1, -1), x[:, 1:]], 1)
        return x


class SwiGLU(torch.nn.Module):
    def __init__(self, in_features, hidden_features, **unused):
        super().__init__()
        gated = (int(hidden_features * 2 / 3) + 7) // 8 * 8
        self.w12, self.w3 = torch.nn.Linear(in_features, 2 * gated), torch.nn.Linear(gated, in_features)

    def forward(self, x):
        gate, up = self.w12(x).chunk(2, -1)
        return self.w3(F.silu(gate) * up)


def chunked(state, per_chunk=1):
    """Key names of models trained with block_chunks: blocks.CHUNK.BLOCK, with block indices over all chunks."""

    def rename(key):
        parts = key.split(".")
        return key if parts[0] != "blocks" else ".".join(["blocks", str(int(parts[1]) // per_chunk), *parts[1:]])

    return {rename(key): value for key, value in state.items()}


def write(
    name,
    vit_changes,
    size2,
    *,
    mask=True,
    registers=0,
    offset=0.1,
    antialias=False,
    rename=None,
    wrap=lambda s: s,
    **args,
):
    args = SMALL | args
    model = HubTransformer(offset, antialias, registers, **args)
    if mask:
        model.mask_token = torch.nn.Parameter(torch.zeros(1, args["embed_dim"]))
    randomise(model, name)
    plain = {key: value for key, value in args.items() if isinstance(value, (int, float))}
    model_args = (
        plain | {"dynamic_img_size": True, "pos_interp": {"antialias": antialias, "offset": offset}} | vit_changes
    )
    config = {"architecture": "vit", "num_classes": 0, "model_args": model_args, "pretrained_cfg": preprocessing(16)}
    state = model.state_dict()
    write_fixture(
        name,
        model,
        lambda m, x: (m(x), m.forward_features(x)),
        config,
        size=16,
        size2=size2,
        form="pth",
        wrap=wrap,
        state=rename(state) if rename else state,
        reference=f"{'DINOv2' if mask else 'DINO'} hub, restated on timm {timm.__version__}",
    )


if __name__ == "__main__":
    torch.manual_seed(0)
    write("dino_hub", {}, (24, 20), mask=False)
    write("dino_hub_larger", {}, 28, mask=False, img_size=8)
    scale = dict(init_values=1.0)
    write("dinov2_hub", {}, (28, 12), **scale)
    write("dinov2_hub_chunked", {}, (12, 20), rename=chunked, wrap=lambda state: {"model": state}, **scale)
    write(
        "dinov2_hub_swiglu",
        {"mlp_layer": "swiglu"},
        None,
        mlp_layer=SwiGLU,
        mlp_ratio=4.0,
        embed_dim=20,
        num_heads=2,
        **scale,
    )
    write(
        "dinov2_hub_registers",
        {"reg_tokens": 4, "no_embed_reg": True},
        (24, 12),
        registers=4,
        offset=0.0,
        antialias=True,
        **scale,
    )
    report()
