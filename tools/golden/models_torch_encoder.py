# SPDX-License-Identifier: Apache-2.0
"""Fixtures of a ViT on torch.nn.TransformerEncoder, pre-norm and post-norm, and one with a custom key map.

There is no standard ViT of this kind.  The names outside the encoder are patch_embed (a convolution), cls_token,
pos_embed, encoder.layers.N.…, encoder.norm and head.
"""

import torch
from models_common import preprocessing, randomise, report, write_fixture
from torch import nn


class EncoderVit(nn.Module):
    def __init__(
        self, norm_first, activation, final_norm=True, eps=1e-5, dim=24, heads=3, hidden=40, classes=10, grid=4
    ):
        super().__init__()
        self.patch_embed = nn.Conv2d(3, dim, 4, 4)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, dim))
        self.pos_embed = nn.Parameter(torch.zeros(1, grid * grid + 1, dim))
        layer = nn.TransformerEncoderLayer(
            dim, heads, hidden, activation=activation, batch_first=True, norm_first=norm_first, layer_norm_eps=eps
        )
        norm = nn.LayerNorm(dim, eps) if final_norm else None
        self.encoder = nn.TransformerEncoder(layer, 2, norm, enable_nested_tensor=False)
        self.head = nn.Linear(dim, classes)

    def tokens(self, image):
        x = self.patch_embed(image).flatten(2).transpose(1, 2)
        return self.encoder(torch.cat([self.cls_token.expand(len(x), -1, -1), x], 1) + self.pos_embed)

    def forward(self, image):
        return self.head(self.tokens(image)[:, 0])


def own_names(state):
    """Names and layouts of no built-in family: the example in the documentation of key maps, with additions."""
    out = {}
    for key, value in state.items():
        key = key.replace("encoder.layers", "encoder").replace("self_attn", "attn").replace("patch_embed.", "to_patch.")
        if key == "to_patch.weight":
            value = value.permute(0, 2, 3, 1).flatten(1)  # [d, (p1 p2 c)]
        elif key in ("cls_token", "pos_embed"):
            value = value.squeeze(0)
        if key.startswith("encoder.1.attn.in_proj_"):  # the second block has separate projections
            for name, part in zip(("query", "key", "value"), value.chunk(3), strict=True):
                out[key.replace("in_proj_", name + ".")] = part
        else:
            out[key] = value
    return out | {"momentum.encoder": torch.ones(3), "momentum.head": torch.zeros(2, 2)}


OWN_KEY_MAP = {
    "name": "my_vit",
    "detect": ["encoder.0.attn.in_proj_weight", "to_patch.weight"],
    "rules": [
        {"from": r"encoder\.(\d+)\.attn\.in_proj_(weight|bias)", "to": "blocks.$1.attn.qkv.$2"},
        {"from": r"encoder\.(\d+)\.attn\.query\.(weight|bias)", "to": "blocks.$1.attn.qkv.$2", "part": [0, 3]},
        {"from": r"encoder\.(\d+)\.attn\.key\.(weight|bias)", "to": "blocks.$1.attn.qkv.$2", "part": [1, 3]},
        {"from": r"encoder\.(\d+)\.attn\.value\.(weight|bias)", "to": "blocks.$1.attn.qkv.$2", "part": [2, 3]},
        {"from": r"encoder\.(\d+)\.attn\.out_proj\.(weight|bias)", "to": "blocks.$1.attn.proj.$2"},
        {"from": r"encoder\.(\d+)\.linear([12])\.(weight|bias)", "to": "blocks.$1.mlp.fc$2.$3"},
        {"from": r"encoder\.(\d+)\.(norm[12])\.(weight|bias)", "to": "blocks.$1.$2.$3"},
        {"from": r"encoder\.norm\.(weight|bias)", "to": "norm.$1"},
        {
            "from": r"to_patch\.weight",
            "to": "patch_embed.proj.weight",
            "rearrange": "d (p1 p2 c) -> d c p1 p2",
            "sizes": {"p1": "patch_size", "p2": "patch_size"},
        },
        {"from": r"to_patch\.bias", "to": "patch_embed.proj.bias"},
        {"from": "cls_token", "to": "cls_token", "rearrange": "n d -> 1 n d"},
        {"from": "pos_embed", "to": "pos_embed", "rearrange": "n d -> 1 n d"},
        {"from": r"momentum\..*", "drop": True},
    ],
}


def write(name, model, vit_changes, form="pth", state=lambda s: s, **extra):
    # Post-norm blocks attend before they normalise: with small inputs, the first attention would be nearly uniform.
    randomise(model, name, embed_scale=0.01 if vit_changes.get("norm_first", True) else 1.0)
    model_args = {
        "img_size": 16,
        "patch_size": 4,
        "embed_dim": 24,
        "depth": 2,
        "num_heads": 3,
        "mlp_hidden": 40,
        "norm_eps": 1e-5,
    }
    config = {
        "architecture": "vit",
        "num_classes": 10,
        "model_args": model_args | vit_changes,
        "pretrained_cfg": preprocessing(16),
        **extra,
    }
    write_fixture(
        name,
        model,
        lambda m, x: (m(x), m.tokens(x)),
        config,
        size=16,
        form=form,
        state=state(model.state_dict()),
        reference=f"torch {torch.__version__} nn.TransformerEncoder",
    )


if __name__ == "__main__":
    torch.manual_seed(0)
    torch.backends.mha.set_fastpath_enabled(False)
    write("torch_encoder_pre_norm", EncoderVit(True, "gelu"), {})
    write(
        "torch_encoder_post_norm",
        EncoderVit(False, "relu", final_norm=False),
        {"norm_first": False, "act_layer": "relu", "final_norm": False},
    )
    write(
        "torch_encoder_post_norm_final",
        EncoderVit(False, "gelu", eps=1e-2),
        {"norm_first": False, "norm_eps": 1e-2},
        "safetensors",
    )
    write("own_key_map", EncoderVit(True, "gelu"), {}, "safetensors", own_names, key_map=OWN_KEY_MAP)
    report()
