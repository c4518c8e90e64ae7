# SPDX-License-Identifier: Apache-2.0
"""Fixtures of three small Vision Transformers of PyTorch tutorials, as .pth with their own key names.

- seed_000: a ViT for CIFAR-10.  The tutorial shows PatchEmbedding (`projection`), attention (`qkv`, `proj`), MLP
  (`fc1`, `fc2`) and block (`norm1`, `attn`, `norm2`, `mlp`).  Other names follow timm; every LayerNorm has eps 1e-5.
- seed_003: jeonsworld/ViT-pytorch, which loads Google's checkpoints; names as in its printed module tree.
- seed_004: a ViT from scratch, with MultiHeadAttention in `msa_block` and MLPBlock in `mlp_block`.  The tutorial does
  not show PatchEmbedding; here it is `patch_embedding.patcher`, a convolution.  Every LayerNorm has eps 1e-5.
"""

import torch
from models_common import preprocessing, randomise, report, write_fixture
from torch import nn
from torch.nn import functional as F

CIFAR = {"mean": [0.4914, 0.4822, 0.4465], "std": [0.2470, 0.2435, 0.2616]}


def attend(q, k, v, heads):
    """Scaled dot-product attention of [B, N, C] projections → [B, N, C] with the heads concatenated."""
    q, k, v = (x.unflatten(-1, (heads, -1)).transpose(1, 2) for x in (q, k, v))
    weights = (q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5).softmax(-1)
    return (weights @ v).transpose(1, 2).flatten(2)


def module(**children):
    made = nn.Module()
    for name, child in children.items():
        setattr(made, name, child)
    return made


class Vit000(nn.Module):
    def __init__(self, dim=24, depth=2, heads=2, classes=10, grid=8):
        super().__init__()
        self.heads = heads
        self.patch_embed = module(projection=nn.Conv2d(3, dim, 4, 4))
        self.cls_token = nn.Parameter(torch.zeros(1, 1, dim))
        self.pos_embed = nn.Parameter(torch.zeros(1, grid * grid + 1, dim))
        self.blocks = nn.ModuleList(
            module(
                norm1=nn.LayerNorm(dim),
                attn=module(qkv=nn.Linear(dim, 3 * dim, bias=False), proj=nn.Linear(dim, dim)),
                norm2=nn.LayerNorm(dim),
                mlp=module(fc1=nn.Linear(dim, 2 * dim), fc2=nn.Linear(2 * dim, dim)),
            )
            for _ in range(depth)
        )
        self.norm, self.head = nn.LayerNorm(dim), nn.Linear(dim, classes)

    def tokens(self, image):
        x = self.patch_embed.projection(image).flatten(2).transpose(1, 2)
        x = torch.cat([self.cls_token.expand(len(x), -1, -1), x], 1) + self.pos_embed
        for block in self.blocks:
            x = x + block.attn.proj(attend(*block.attn.qkv(block.norm1(x)).chunk(3, -1), self.heads))
            x = x + block.mlp.fc2(F.gelu(block.mlp.fc1(block.norm2(x))))
        return self.norm(x)

    def forward(self, image):
        return self.head(self.tokens(image)[:, 0])


class Vit003(nn.Module):
    def __init__(self, dim=24, depth=2, heads=3, hidden=40, classes=10, grid=4):
        super().__init__()
        self.heads = heads
        embeddings = module(
            patch_embeddings=nn.Conv2d(3, dim, 4, 4),
            cls_token=nn.Parameter(torch.zeros(1, 1, dim)),
            position_embeddings=nn.Parameter(torch.zeros(1, grid * grid + 1, dim)),
        )
        layers = nn.ModuleList(
            module(
                attention_norm=nn.LayerNorm(dim, eps=1e-6),
                ffn_norm=nn.LayerNorm(dim, eps=1e-6),
                ffn=module(fc1=nn.Linear(dim, hidden), fc2=nn.Linear(hidden, dim)),
                attn=module(**{name: nn.Linear(dim, dim) for name in ("query", "key", "value", "out")}),
            )
            for _ in range(depth)
        )
        encoder = module(layer=layers, encoder_norm=nn.LayerNorm(dim, eps=1e-6))
        self.transformer = module(embeddings=embeddings, encoder=encoder)
        self.head = nn.Linear(dim, classes)

    def tokens(self, image):
        start, encoder = self.transformer.embeddings, self.transformer.encoder
        x = start.patch_embeddings(image).flatten(2).transpose(1, 2)
        x = torch.cat([start.cls_token.expand(len(x), -1, -1), x], 1) + start.position_embeddings
        for layer in encoder.layer:
            y, attn = layer.attention_norm(x), layer.attn
            x = x + attn.out(attend(attn.query(y), attn.key(y), attn.value(y), self.heads))
            x = x + layer.ffn.fc2(F.gelu(layer.ffn.fc1(layer.ffn_norm(x))))
        return encoder.encoder_norm(x)

    def forward(self, image):
        return self.head(self.tokens(image)[:, 0])


class Block004(nn.Module):
    def __init__(self, dim, heads, hidden):
        super().__init__()
        self.heads = heads
        attention = module(**{name: nn.Linear(dim, dim) for name in ("q_proj", "k_proj", "v_proj", "out_proj")})
        self.msa_block = module(layer_norm=nn.LayerNorm(dim), multihead_attn=attention)
        mlp = nn.Sequential(nn.Linear(dim, hidden), nn.GELU(), nn.Dropout(0.1), nn.Linear(hidden, dim), nn.Dropout(0.1))
        self.mlp_block = module(layer_norm=nn.LayerNorm(dim), mlp=mlp)

    def forward(self, x):
        y, attn = self.msa_block.layer_norm(x), self.msa_block.multihead_attn
        x = x + attn.out_proj(attend(attn.q_proj(y), attn.k_proj(y), attn.v_proj(y), self.heads))
        return x + self.mlp_block.mlp(self.mlp_block.layer_norm(x))


class Vit004(nn.Module):
    def __init__(self, dim=24, depth=2, heads=3, hidden=40, classes=10, grid=4):
        super().__init__()
        self.class_embedding = nn.Parameter(torch.zeros(1, 1, dim))
        self.position_embedding = nn.Parameter(torch.zeros(1, grid * grid + 1, dim))
        self.patch_embedding = module(patcher=nn.Conv2d(3, dim, 4, 4))
        self.transformer_encoder = nn.Sequential(*(Block004(dim, heads, hidden) for _ in range(depth)))
        self.classifier = nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, classes))

    def tokens(self, image):
        x = self.patch_embedding.patcher(image).flatten(2).transpose(1, 2)
        x = torch.cat([self.class_embedding.expand(len(x), -1, -1), x], 1) + self.position_embedding
        return self.classifier[0](self.transformer_encoder(x))

    def forward(self, image):
        return self.classifier[1](self.tokens(image)[:, 0])


def write(name, model, vit_changes, pre, size=16):
    randomise(model, name)
    model_args = {"img_size": size, "patch_size": 4, "embed_dim": 24, "depth": 2, "num_heads": 3} | vit_changes
    config = {"architecture": "vit", "num_classes": 10, "model_args": model_args, "pretrained_cfg": pre}
    write_fixture(
        name,
        model,
        lambda m, x: (m(x), m.tokens(x)),
        config,
        size=size,
        form="pth",
        reference=f"written from the document, torch {torch.__version__}",
    )


if __name__ == "__main__":
    torch.manual_seed(0)
    write(
        "seed_000",
        Vit000(),
        {"num_heads": 2, "mlp_ratio": 2.0, "qkv_bias": False, "norm_eps": 1e-5},
        preprocessing(32, mean_std=CIFAR, crop_pct=1.0),
        size=32,
    )
    write(
        "seed_003",
        Vit003(),
        {"mlp_hidden": 40, "norm_eps": 1e-6, "pos_drop_rate": 0.1, "proj_drop_rate": 0.1, "weight_init": "xavier"},
        preprocessing(16, crop_pct=1.0),
    )
    write(
        "seed_004",
        Vit004(),
        {"mlp_hidden": 40, "norm_eps": 1e-5, "pos_drop_rate": 0.1, "proj_drop_rate": 0.1, "weight_init": "torch"},
        preprocessing(16, crop_pct=1.0),
    )
    report()
