# SPDX-License-Identifier: Apache-2.0
"""Fixtures of timm's VisionTransformer: every option, with timm's key names.

config.json is timm's hub form where that can express the model (a registered name and model_args in plain JSON),
otherwise vitrail's "vit" form.
"""

import functools

import timm
import torch
from models_common import preprocessing, randomise, report, write_fixture
from timm.layers import LayerNorm, SwiGLUPacked
from timm.models.vision_transformer import ResPostBlock, VisionTransformer

REFERENCE = f"timm {timm.__version__}"
SMALL = dict(img_size=16, patch_size=4, embed_dim=18, depth=2, num_heads=3, mlp_ratio=1.5)
CLASSES = 10


def with_bilinear_positions(model, image):
    """FlexiViT and RADIO: timm resamples their positions so when it loads them for another size."""
    size = tuple(image.shape[2:])
    if size != model.patch_embed.img_size:
        grid = [side // patch for side, patch in zip(size, model.patch_embed.patch_size, strict=True)]
        positions = timm.layers.resample_abs_pos_embed(
            model.pos_embed, new_size=grid, num_prefix_tokens=0, interpolation="bilinear", antialias=False
        )
        model.set_input_size(img_size=size)
        model.pos_embed = torch.nn.Parameter(positions)
    return forward(model, image)


def forward(model, image):
    tokens = model.forward_features(image)
    return model.forward_head(tokens), tokens


def config_of(architecture, args, num_classes, size, in_chans, global_pool=None, **pre):
    config = {"architecture": architecture, "num_classes": num_classes}
    if global_pool is not None:
        config["global_pool"] = global_pool
    return config | {"model_args": args, "pretrained_cfg": preprocessing(size, in_chans, **pre)}


def write(name, model, config, args, **options):
    embed_scale = options.pop("embed_scale", 0.01)
    randomise(model, name, embed_scale)
    write_fixture(
        name,
        model,
        options.pop("forward", forward),
        config,
        size=args["img_size"],
        in_chans=args.get("in_chans", 3),
        reference=REFERENCE,
        **options,
    )


def hub(name, changes=None, *, architecture="vit_tiny_patch16_224", num_classes=CLASSES, **options):
    """A model that timm builds from a config.json."""
    args = SMALL | (changes or {})
    model = timm.create_model(architecture, pretrained=False, num_classes=num_classes, **args)
    config = config_of(
        architecture, args, num_classes, args["img_size"], args.get("in_chans", 3), args.get("global_pool")
    )
    write("timm_" + name, model, config, args, **options)


def own(
    name,
    timm_changes=None,
    vit_changes=None,
    *,
    model_class=VisionTransformer,
    num_classes=CLASSES,
    edit=None,
    **options,
):
    """A model whose arguments timm cannot express in JSON; vit_changes are the corresponding fields of vitrail."""
    args = SMALL | (timm_changes or {})
    model = model_class(num_classes=num_classes, **args)
    if edit:
        edit(model)
    plain = {k: v for k, v in args.items() if isinstance(v, (int, float, str, list, tuple, bool))}
    model_args = {k: v for k, v in (plain | (vit_changes or {})).items() if v is not None}
    config = config_of("vit", model_args, num_classes, args["img_size"], args.get("in_chans", 3))
    write("timm_" + name, model, config, args, **options)


class WithPreLogits(VisionTransformer):
    """timm's `representation` before 0.8: Linear and tanh between the pooled features and the head."""

    def __init__(self, hidden, activation, **args):
        super().__init__(**args)
        self.pre_logits = torch.nn.Module()
        self.pre_logits.fc = torch.nn.Linear(self.embed_dim, hidden)
        self.activation = activation
        self.head = torch.nn.Linear(hidden, self.num_classes)

    def forward_head(self, tokens):
        return self.head(self.activation(self.pre_logits.fc(self.fc_norm(self.pool(tokens)))))


class WithPixelNorm(VisionTransformer):
    """A LayerNorm over each patch's pixels, in the order of the projection's weight (channel, row, column)."""

    def __init__(self, **args):
        super().__init__(**args)
        proj = self.patch_embed.proj
        channels, p1, p2 = proj.weight.shape[1:]
        self.patch_embed.input_norm = LayerNorm(channels * p1 * p2, eps=1e-6)

    def forward_features(self, image):
        proj = self.patch_embed.proj
        _, channels, p1, p2 = proj.weight.shape
        b, _, height, width = image.shape
        patches = image.reshape(b, channels, height // p1, p1, width // p2, p2).permute(0, 2, 4, 1, 3, 5)
        patches = self.patch_embed.input_norm(patches.reshape(b, -1, channels * p1 * p2))
        x = torch.nn.functional.linear(patches, proj.weight.flatten(1), proj.bias)
        return self.norm(self.blocks(self.norm_pre(self._pos_embed(x))))


def sinusoid(rows, dim):
    """P[i, 2j] = sin(i / 10000^(2j/dim)), P[i, 2j+1] = cos(the same) (Vaswani et al. 2017)."""
    table = torch.zeros(1, rows, dim, dtype=torch.float64)
    angle = torch.arange(rows, dtype=torch.float64)[:, None] / 10000 ** (
        torch.arange(0, dim, 2, dtype=torch.float64) / dim
    )
    table[0, :, 0::2], table[0, :, 1::2] = angle.sin(), angle.cos()
    return table


class Sinusoidal(VisionTransformer):
    """Sine and cosine position encodings of all tokens, CLS at position 0; not stored in the checkpoint."""

    def __init__(self, **args):
        super().__init__(pos_embed="none", **args)

    def _pos_embed(self, x):
        x = super()._pos_embed(x)
        return x + sinusoid(x.shape[1], x.shape[2]).to(x)


def head_width(width):
    """Gives every attention heads of `width`, independent of embed_dim / num_heads."""

    def edit(model):
        for block in model.blocks:
            heads, dim = block.attn.num_heads, model.embed_dim
            block.attn = timm.layers.Attention(dim, heads, attn_head_dim=width, qkv_bias=True)

    return edit


def scale_scores(scale):
    def edit(model):
        for block in model.blocks:
            block.attn.fused_attn, block.attn.scale = False, scale

    return edit


def pooling():
    hub("token", {"img_size": 32, "patch_size": 8, "num_heads": 2, "mlp_ratio": 4.0}, embed_scale=1.0)
    hub("avg", {"global_pool": "avg"})
    hub("avg_no_class_token", {"global_pool": "avg", "class_token": False})
    hub("num_classes_0", num_classes=0)
    hub("no_pool", {"global_pool": ""}, num_classes=0)
    hub("no_final_norm", {"final_norm": False})
    hub("avg_no_final_norm", {"global_pool": "avg", "final_norm": False})
    hub("token_fc_norm", {"fc_norm": True})
    hub("avg_norm_first", {"global_pool": "avg", "fc_norm": False})
    hub("map", {"global_pool": "map", "class_token": False, "dynamic_img_size": True}, size2=(24, 12))
    hub("map_prefix", {"global_pool": "map", "reg_tokens": 2, "pool_include_prefix": True})
    hub("map_no_prefix", {"global_pool": "map", "reg_tokens": 2, "act_layer": "gelu_tanh"})
    for name, activation in (("tanh", torch.tanh), ("relu", torch.relu)):
        own(
            "pre_logits_" + name,
            {},
            {"head_hidden": 20, "head_act": name},
            model_class=functools.partial(WithPreLogits, 20, activation),
        )


def tokens_and_positions():
    hub("reg_tokens", {"reg_tokens": 3, "dynamic_img_size": True}, size2=(12, 24))
    hub("no_embed_class", {"no_embed_class": True, "dynamic_img_size": True}, size2=(24, 12))
    hub(
        "reg_no_embed_class",
        {"reg_tokens": 4, "no_embed_class": True, "init_values": 1e-5, "dynamic_img_size": True},
        size2=(8, 20),
    )
    hub("dynamic", {"dynamic_img_size": True}, size2=(28, 12))
    hub("dynamic_avg_no_class", {"global_pool": "avg", "class_token": False, "dynamic_img_size": True}, size2=24)
    hub("pos_none", {"pos_embed": "none"})
    own(
        "pos_bilinear",
        {"no_embed_class": True},
        {"dynamic_img_size": True, "pos_interp": {"antialias": False, "bilinear": True}},
        forward=with_bilinear_positions,
        size2=(24, 12),
    )
    own("sinusoidal", {}, {"pos_embed": "sinusoidal"}, model_class=Sinusoidal, embed_scale=1.0)
    hub("non_square", {"img_size": [24, 16], "patch_size": [4, 8], "dynamic_img_size": True}, size2=(16, 40))
    own("allow_remainder", {"img_size": 18}, {"allow_remainder": True})
    hub("gray", {"in_chans": 1})
    hub("pre_norm", {"pre_norm": True})
    hub("distilled", {"dynamic_img_size": True}, architecture="deit_tiny_distilled_patch16_224", size2=(20, 12))
    own("patch_norm_post", {"embed_norm_layer": functools.partial(LayerNorm, eps=1e-6)}, {"patch_norm": "post"})
    own("patch_norm_pre", {}, {"patch_norm": "pre"}, model_class=WithPixelNorm)


def blocks():
    hub("no_qkv_bias", {"qkv_bias": False})
    hub("qk_norm", {"qk_norm": True})
    hub("layer_scale", {"init_values": 1e-5})
    post_norm = {"block_fn": ResPostBlock, "init_values": 1e-5, "class_token": False, "global_pool": "avg"}
    own("post_norm", post_norm, {"use_post_norm": True}, note="init_values are the norms' first weights")
    hub("scale_norms", {"scale_attn_norm": True, "scale_mlp_norm": True}, note="BEiT-3 and Normformer")
    own("qk_scale", {}, {"qk_scale": 0.5}, edit=scale_scores(0.5))
    own("head_dim", {}, {"head_dim": 5}, edit=head_width(5))
    hub("mlp_ratio_odd", {"embed_dim": 27, "num_heads": 3, "mlp_ratio": 2.33})
    own("mlp_hidden", {"mlp_ratio": 50 / 18}, {"mlp_ratio": None, "mlp_hidden": 50})
    for act in ("gelu_tanh", "quick_gelu", "silu", "relu"):
        hub("act_" + act, {"act_layer": act})
    # DINOv2's width after the gate for mlp_ratio 4: 8·⌈⌊2/3 · 80⌋ / 8⌉ = 56.  timm's argument counts both halves.  Its
    # Block overrides SwiGLUPacked's activation, so SiLU must be requested (as its DINOv2 giant does).
    packed = {"mlp_layer": SwiGLUPacked, "act_layer": torch.nn.SiLU}
    own(
        "swiglu",
        packed | {"embed_dim": 20, "num_heads": 2, "mlp_ratio": 2 * 56 / 20},
        {"mlp_layer": "swiglu", "mlp_ratio": 4.0},
    )
    own(
        "swiglu_hidden",
        packed | {"mlp_ratio": 2 * 37 / 18},
        {"mlp_layer": "swiglu", "mlp_ratio": None, "mlp_hidden": 37},
        note="mlp_hidden is the width after the gate",
    )
    own("eps", {"norm_layer": functools.partial(LayerNorm, eps=1e-3)}, {"norm_eps": 1e-3}, embed_scale=0.1)
    hub(
        "drop_rates",
        dict.fromkeys(
            ("drop_rate", "pos_drop_rate", "patch_drop_rate", "proj_drop_rate", "attn_drop_rate", "drop_path_rate"), 0.2
        ),
    )


def formats():
    hub("fp16", dtype=torch.float16)
    hub("bf16", dtype=torch.bfloat16)
    own("f64", dtype=torch.float64, edit=lambda model: model.double())
    hub("pth", form="pth", wrap=lambda state: {"model": state, "epoch": 3})  # as in the checkpoints of the DeiT authors
    hub("legacy_pth", form="legacy_pth")
    hub(
        "pth_bf16",
        form="pth",
        dtype=torch.bfloat16,
        wrap=lambda state: {"state_dict": {"module." + k: v for k, v in state.items()}},
    )


if __name__ == "__main__":
    torch.manual_seed(0)
    pooling()
    tokens_and_positions()
    blocks()
    formats()
    report()
