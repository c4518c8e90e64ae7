# SPDX-License-Identifier: Apache-2.0
"""Fixtures of lucidrains' vit-pytorch: the installed version, and two older layouts of its checkpoints.

    lucidrains_vit, _mean    current: LayerNorm before and after the patch projection, norms in the layers, a final norm
    lucidrains_fn            older: the same patch norms, layers wrapped in PreNorm (`.norm`, `.fn.`), norm in mlp_head
    lucidrains_old           oldest: like lucidrains_fn without patch norms (to_patch_embedding.1 is the projection)

The head width is dim_head, independent of dim / heads; qkv has no bias; eps is 1e-5.  SimpleViT has no fixture: its 2-D
sine and cosine position embeddings differ from pos_embed "sinusoidal".
"""

import importlib.metadata

import torch
from einops.layers.torch import Rearrange
from models_common import preprocessing, randomise, report, write_fixture
from torch import nn
from vit_pytorch import ViT

ARGS = dict(image_size=16, patch_size=4, num_classes=10, dim=24, depth=2, heads=3, dim_head=10, mlp_dim=40)


class PreNorm(nn.Module):
    def __init__(self, dim, fn):
        super().__init__()
        self.norm, self.fn = nn.LayerNorm(dim), fn

    def forward(self, x):
        return self.fn(self.norm(x))


class OldAttention(nn.Module):
    def __init__(self, dim, heads, dim_head):
        super().__init__()
        self.heads = heads
        self.to_qkv = nn.Linear(dim, 3 * heads * dim_head, bias=False)
        self.to_out = nn.Sequential(nn.Linear(heads * dim_head, dim), nn.Dropout(0.0))

    def forward(self, x):
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in self.to_qkv(x).chunk(3, -1))
        weights = (q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5).softmax(-1)
        return self.to_out((weights @ v).transpose(1, 2).flatten(2))


class OldFeedForward(nn.Module):
    def __init__(self, dim, hidden):
        super().__init__()
        self.net = nn.Sequential(
            nn.Linear(dim, hidden), nn.GELU(), nn.Dropout(0.0), nn.Linear(hidden, dim), nn.Dropout(0.0)
        )

    def forward(self, x):
        return self.net(x)


class OldVit(nn.Module):
    """The ViT of older package versions, with its key names and CLS pooling."""

    def __init__(self, patch_norms, image_size, patch_size, num_classes, dim, depth, heads, dim_head, mlp_dim):
        super().__init__()
        pixels, count = 3 * patch_size**2, (image_size // patch_size) ** 2
        cut = Rearrange("b c (h p1) (w p2) -> b (h w) (p1 p2 c)", p1=patch_size, p2=patch_size)
        project = nn.Linear(pixels, dim)
        self.to_patch_embedding = nn.Sequential(
            *([cut, nn.LayerNorm(pixels), project, nn.LayerNorm(dim)] if patch_norms else [cut, project])
        )
        self.pos_embedding = nn.Parameter(torch.zeros(1, count + 1, dim))
        self.cls_token = nn.Parameter(torch.zeros(1, 1, dim))
        self.transformer = nn.Module()
        self.transformer.layers = nn.ModuleList(
            nn.ModuleList(
                [PreNorm(dim, OldAttention(dim, heads, dim_head)), PreNorm(dim, OldFeedForward(dim, mlp_dim))]
            )
            for _ in range(depth)
        )
        self.mlp_head = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, num_classes))

    def tokens(self, image):
        x = self.to_patch_embedding(image)
        x = torch.cat([self.cls_token.expand(len(x), -1, -1), x], 1) + self.pos_embedding
        for attention, feed_forward in self.transformer.layers:
            x = x + attention(x)
            x = x + feed_forward(x)
        return self.mlp_head[0](x)

    def forward(self, image):
        return self.mlp_head[1](self.tokens(image)[:, 0])


def current(model, image):
    head, model.mlp_head = model.mlp_head, None  # without a head, the package returns all tokens
    tokens = model(image)
    model.mlp_head = head
    return model(image), tokens


def old(model, image):
    return model(image), model.tokens(image)


def write(name, model, forward, vit_changes):
    randomise(model, name, embed_scale=1.0)
    with torch.no_grad():  # small block inputs, so that eps has an effect in the first block
        for parameter in (model.cls_token, model.pos_embedding, *model.to_patch_embedding[-1].parameters()):
            parameter *= 0.01
    model_args = {
        "img_size": 16,
        "patch_size": 4,
        "embed_dim": 24,
        "depth": 2,
        "num_heads": 3,
        "head_dim": 10,
        "mlp_hidden": 40,
        "qkv_bias": False,
        "norm_eps": 1e-5,
        **vit_changes,
    }
    config = {"architecture": "vit", "num_classes": 10, "model_args": model_args, "pretrained_cfg": preprocessing(16)}
    version = "vit-pytorch " + importlib.metadata.version("vit-pytorch")
    write_fixture(
        name,
        model,
        forward,
        config,
        size=16,
        form="pth",
        reference=version + (", an older layout" if forward is old else ""),
    )


if __name__ == "__main__":
    torch.manual_seed(0)
    write("lucidrains_vit", ViT(**ARGS), current, {"patch_norm": "both"})
    write(
        "lucidrains_vit_mean",
        ViT(**ARGS, pool="mean"),
        current,
        {"patch_norm": "both", "class_token": False, "global_pool": "avg", "final_norm": True, "fc_norm": False},
    )
    write("lucidrains_fn", OldVit(True, **ARGS), old, {"patch_norm": "both"})
    write("lucidrains_old", OldVit(False, **ARGS), old, {})
    report()
