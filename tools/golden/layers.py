# SPDX-License-Identifier: Apache-2.0
"""Fixtures of single layers: tests/fixtures/layers/NAME.safetensors.

Each has the parameters under vitrail's native names, `input…` and `output…` tensors, and in its metadata "config" the
constructor's arguments as JSON.  The references are timm, torch and transformers where they have the layer, otherwise a
few lines of PyTorch below.  Computed in float64, stored as float32 (grad_* in float64).
"""

import json
import math
import pathlib
import zlib

import safetensors.torch
import timm.layers
import torch
from models_common import exact_interpolation, randomise
from models_timm import sinusoid
from timm.layers import LayerNorm2d, Mlp, SwiGLUPacked
from timm.layers.pos_embed import resample_abs_pos_embed
from timm.models.vision_transformer import Block
from torch.nn import functional as F

ROOT = pathlib.Path(__file__).resolve().parents[2] / "tests" / "fixtures" / "layers"
ACTIVATIONS = {
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "silu": F.silu,
    "relu": F.relu,
    "quick_gelu": lambda x: x * torch.sigmoid(1.702 * x),
}


def draw(name, *shape, scale=1.0):
    """N(0, scale²), exactly representable in float32, seeded by name and shape."""
    seed = zlib.crc32(f"{name} {shape}".encode())
    return (torch.randn(shape, generator=torch.Generator().manual_seed(seed)) * scale).double()


def save(name, tensors, config, dtype=torch.float32):
    plain = {}
    for key, value in tensors.items():
        value = value.detach()
        plain[key] = (value.to(dtype) if value.is_floating_point() else value).contiguous().clone()
    safetensors.torch.save_file(plain, ROOT / f"{name}.safetensors", metadata={"config": json.dumps(config)})
    print(f"layers/{name}")


def parameters_of(module, name):
    """Randomises a module in float64, with values exact in float32, and returns its parameters by name."""
    randomise(module.float(), name)
    module.double()
    return dict(module.named_parameters())


class Activation(torch.nn.Module):
    def __init__(self, name):
        super().__init__()
        self.function = ACTIVATIONS[name]

    def forward(self, x):
        return self.function(x)


# ---- patch embedding


def patch_embed():
    cases = {
        "plain": {},
        "no_bias": {"bias": False},
        "norm": {"norm": True},
        "feature_map": {"flatten": False},
        "rectangle": {"img_size": [12, 10], "patch_size": [3, 5], "in_chans": 2},
        "input_norm": {"input_norm": True},
        "both_norms": {"input_norm": True, "norm": True},
        "remainder": {"img_size": [14, 13], "allow_remainder": True},
    }
    for name, change in cases.items():
        config = {
            "img_size": [12, 8],
            "patch_size": [4, 4],
            "in_chans": 3,
            "embed_dim": 10,
            "bias": True,
            "norm": False,
            "input_norm": False,
            "flatten": True,
            "allow_remainder": False,
            "norm_eps": 1e-6,
        } | change
        rows, columns = config["patch_size"]
        pixels = config["in_chans"] * rows * columns
        layer = torch.nn.Module()
        layer.proj = torch.nn.Conv2d(
            config["in_chans"], config["embed_dim"], (rows, columns), (rows, columns), bias=config["bias"]
        )
        if config["norm"]:
            layer.norm = torch.nn.LayerNorm(config["embed_dim"], eps=1e-6)
        if config["input_norm"]:
            layer.input_norm = torch.nn.LayerNorm(pixels, eps=1e-6)
        parameters = parameters_of(layer, "patch_embed_" + name)
        image = draw(name, 2, config["in_chans"], *config["img_size"])
        if config["input_norm"]:  # pixels of a patch in the order (channel, row, column), like the projection
            patches = F.unfold(image, (rows, columns), stride=(rows, columns)).transpose(1, 2)
            tokens = F.linear(layer.input_norm(patches), layer.proj.weight.flatten(1), layer.proj.bias)
        else:
            feature_map = layer.proj(image)
            tokens = feature_map.flatten(2).transpose(1, 2)
        output = layer.norm(tokens) if config["norm"] else tokens
        save(
            f"patch_embed_{name}",
            parameters | {"input": image, "output": output if config["flatten"] else feature_map},
            config,
        )


# ---- attention


def attend(q, k, v, scale, bias=None):
    """q [B,H,T,D], k and v [B,H,S,D] → result and weights.  A query whose scores are all −∞ has zeros in both."""
    scores = scale * q @ k.transpose(-2, -1)
    if bias is not None:
        scores = scores + bias
    weights = torch.nan_to_num(scores.softmax(-1), nan=0.0)
    return weights @ v, weights


def heads_of(x, heads):
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def merged(x):
    return x.transpose(1, 2).flatten(2)


def attention():
    cases = {
        "plain": {},
        "qkv_bias": {"qkv_bias": True},
        "qk_scale": {"qk_scale": 0.3},
        "qk_norm": {"qkv_bias": True, "qk_norm": True},
        "head_dim": {"head_dim": 5, "qkv_bias": True},
        "one_head": {"num_heads": 1, "qkv_bias": True},
        "wide": {"dim": 64, "num_heads": 2, "qkv_bias": True},
        "single_token": {"tokens": 1, "qkv_bias": True},
    }
    for name, change in cases.items():
        config = {
            "dim": 24,
            "num_heads": 3,
            "head_dim": None,
            "qkv_bias": False,
            "qk_scale": None,
            "qk_norm": False,
            "norm_eps": 1e-6,
        } | change
        tokens = config.pop("tokens", 17)
        dim, heads = config["dim"], config["num_heads"]
        layer = timm.layers.Attention(
            dim,
            heads,
            attn_head_dim=config["head_dim"],
            qkv_bias=config["qkv_bias"],
            qk_norm=config["qk_norm"],
            norm_layer=timm.layers.LayerNorm,
        )
        layer.fused_attn = False
        layer.scale = config["qk_scale"] or layer.scale
        parameters = parameters_of(layer, "attention_" + name)
        x = draw(name, 2, tokens, dim)
        q, k, v = (heads_of(part, heads) for part in layer.qkv(x).chunk(3, -1))
        result, weights = attend(layer.q_norm(q), layer.k_norm(k), v, layer.scale)
        output = layer.proj(merged(result))
        assert torch.allclose(output, layer(x), atol=1e-12)
        save(f"attention_{name}", parameters | {"input": x, "output": output, "output_weights": weights}, config)


def projections(names, dim, inner, bias=True):
    layer = torch.nn.Module()
    for name in names[:3]:
        setattr(layer, name, torch.nn.Linear(dim, inner, bias=bias))
    setattr(layer, names[3], torch.nn.Linear(inner, dim, bias=bias))
    return layer


def split_attention():
    """Separate query, key, value and out layers, as in jeonsworld/ViT-pytorch; computes the same as the fused layer."""
    layer = projections(("query", "key", "value", "out"), 24, 24)
    parameters = parameters_of(layer, "attention_split")
    x = draw("attention_split", 2, 17, 24)
    result, weights = attend(*(heads_of(getattr(layer, n)(x), 3) for n in ("query", "key", "value")), 8**-0.5)
    save(
        "attention_split",
        parameters | {"input": x, "output": layer.out(merged(result)), "output_weights": weights},
        {"dim": 24, "num_heads": 3, "qkv_bias": True},
    )


def multihead_attention():
    """Attention with masks, as in vitrail/nn/multihead_attention.h: 0 masks a key, fully masked rows give zeros."""
    b, t, s, dim, heads = 2, 5, 7, 24, 3
    names = ("q_proj", "k_proj", "v_proj", "out_proj")
    bits = lambda *shape: draw("mask", *shape) > -0.4
    padding = torch.zeros(b, s, dtype=torch.bool)
    padding[0, 5:], padding[1, 2] = True, True
    all_padded = padding.clone()
    all_padded[1] = True
    rows = bits(t, s)
    rows[3] = False
    per_head = bits(b, heads, t, s)
    per_head[1, 2, 0] = False
    bias = draw("attn_bias", t, s)
    bias_inf = draw("attn_bias", b, heads, t, s)
    bias_inf[0, 1, 2], bias_inf[1, 0, 4, 3:] = -math.inf, -math.inf
    cases = {
        "self": {},
        "cross": {},
        "no_bias": {},
        "padding": {"key_padding_mask": padding},
        "padding_all": {"key_padding_mask": all_padded},
        "mask_ts": {"attn_mask": rows},
        "mask_b1ts": {"attn_mask": bits(b, 1, t, s)},
        "mask_bhts": {"attn_mask": per_head},
        "mask_i64": {"attn_mask": rows.long() * 3},
        "mask_u8": {"attn_mask": per_head.byte()},
        "mask_and_padding": {"attn_mask": rows, "key_padding_mask": padding},
        "bias_ts": {"attn_bias": bias},
        "bias_bhts": {"attn_bias": bias_inf},
        "everything": {"attn_mask": bits(b, 1, t, s), "key_padding_mask": all_padded, "attn_bias": bias},
    }
    for name, masks in cases.items():
        layer = projections(names, dim, dim, bias=name != "no_bias")
        parameters = parameters_of(layer, "multihead_attention_" + name)
        query = draw(name + " query", b, t, dim)
        key = value = query
        if name not in ("self", "no_bias"):
            key, value = draw(name + " key", b, s, dim), draw(name + " value", b, s, dim)
        total = masks.get("attn_bias", torch.zeros(()).double())
        ignored = lambda where: torch.zeros(where.shape).double().masked_fill(where, -math.inf)
        if "attn_mask" in masks:
            total = total + ignored(masks["attn_mask"] == 0)
        if "key_padding_mask" in masks:
            total = total + ignored(masks["key_padding_mask"][:, None, None])
        result, weights = attend(
            heads_of(layer.q_proj(query), heads),
            heads_of(layer.k_proj(key), heads),
            heads_of(layer.v_proj(value), heads),
            (dim // heads) ** -0.5,
            total,
        )
        save(
            f"multihead_attention_{name}",
            parameters
            | masks
            | {
                "input_query": query,
                "input_key": key,
                "input_value": value,
                "output": layer.out_proj(merged(result)),
                "output_weights": weights,
                "output_weights_average": weights.mean(1),
            },
            {"embed_dim": dim, "num_heads": heads, "bias": name != "no_bias"},
        )


def downsampled_attention():
    names = ("q_proj", "k_proj", "v_proj", "out_proj")
    for rate in (1, 2):
        layer = projections(names, 24, 24 // rate)
        parameters = parameters_of(layer, f"downsampled_attention_{rate}")
        q, k, v = draw("q", 2, 5, 24), draw("k", 2, 9, 24), draw("v", 2, 9, 24)
        heads = 3
        result, _ = attend(
            heads_of(layer.q_proj(q), heads),
            heads_of(layer.k_proj(k), heads),
            heads_of(layer.v_proj(v), heads),
            (24 // rate // heads) ** -0.5,
        )
        save(
            f"downsampled_attention_{rate}",
            parameters | {"input_query": q, "input_key": k, "input_value": v, "output": layer.out_proj(merged(result))},
            {"embedding_dim": 24, "num_heads": heads, "downsample_rate": rate},
        )


# ---- feed-forward layers and blocks


def mlp():
    cases = {name: {"act": name} for name in ACTIVATIONS} | {
        "hidden_out": {"hidden_features": 17, "out_features": 9},
        "no_bias": {"bias": False},
    }
    for name, change in cases.items():
        config = {
            "in_features": 12,
            "hidden_features": None,
            "out_features": None,
            "act": "gelu",
            "bias": True,
        } | change
        layer = Mlp(
            12,
            config["hidden_features"] or 48,
            config["out_features"],
            lambda: Activation(config["act"]),
            bias=config["bias"],
        )
        parameters = parameters_of(layer, "mlp_" + name)
        x = draw(name, 2, 7, 12, scale=2)
        save(f"mlp_{name}", parameters | {"input": x, "output": layer(x)}, config)

    layer = torch.nn.ModuleDict(
        {"norm": torch.nn.LayerNorm(12, eps=1e-5), "fc1": torch.nn.Linear(12, 20), "fc2": torch.nn.Linear(20, 12)}
    )
    parameters = parameters_of(layer, "mlp_with_norm")
    x = draw("mlp_with_norm", 2, 7, 12, scale=0.01)  # small, so that eps has an effect
    output = layer["fc2"](F.gelu(layer["fc1"](layer["norm"](x))))
    save(
        "mlp_with_norm",
        parameters | {"input": x, "output": output},
        {"in_features": 12, "hidden_features": 20, "norm_eps": 1e-5},
    )


def swiglu():
    """timm's names, as in its DINOv2 giant: fc1 is DINOv2's w12 (gate rows before value rows), fc2 its w3."""
    for name, hidden, bias in (("default", 32, True), ("hidden", 13, True), ("no_bias", 16, False)):
        layer = SwiGLUPacked(12, 2 * hidden, bias=bias)  # DINOv2: 8·⌈⌊2/3 · 48⌋ / 8⌉ = 32
        own = parameters_of(layer, "swiglu_" + name)
        x = draw(name, 2, 7, 12, scale=2)
        gate, up = F.linear(x, own["fc1.weight"], own.get("fc1.bias")).chunk(2, -1)
        assert torch.allclose(layer(x), F.linear(F.silu(gate) * up, own["fc2.weight"], own.get("fc2.bias")), atol=1e-12)
        save(
            f"swiglu_{name}",
            own | {"input": x, "output": layer(x)},
            {"in_features": 12, "hidden_features": None if name == "default" else hidden, "bias": bias},
        )


def block():
    cases = {
        "pre_norm": {},
        "layer_scale": {"init_values": 0.1},
        "mlp_ratio": {"mlp_ratio": 1.7, "qkv_bias": True},
        "qk_norm": {"qk_norm": True},
        "post_norm": {"norm_first": False, "qkv_bias": True},
        "post_norm_layer_scale": {"norm_first": False, "init_values": 0.1},
        "eps": {"norm_eps": 1e-2, "qkv_bias": True},
        "post_norm_eps": {"norm_first": False, "norm_eps": 1e-2},
    }
    for name, change in cases.items():
        config = {
            "dim": 24,
            "num_heads": 3,
            "mlp_ratio": 4.0,
            "qkv_bias": False,
            "qk_norm": False,
            "init_values": None,
            "norm_first": True,
            "norm_eps": 1e-6,
        } | change
        norm = lambda width, **kw: torch.nn.LayerNorm(width, eps=config["norm_eps"])
        layer = Block(
            24,
            3,
            config["mlp_ratio"],
            config["qkv_bias"],
            config["qk_norm"],
            init_values=config["init_values"],
            norm_layer=norm,
        )
        parameters = parameters_of(layer, "block_" + name)
        x = draw(name, 2, 9, 24)
        if config["norm_first"]:
            output = layer(x)
        else:
            y = layer.norm1(x + layer.ls1(layer.attn(x)))
            output = layer.norm2(y + layer.ls2(layer.mlp(y)))
        save(f"block_{name}", parameters | {"input": x, "output": output}, config)

    layer = torch.nn.TransformerEncoderLayer(24, 3, 40, activation="gelu", batch_first=True, norm_first=False)
    parameters = parameters_of(layer, "block_torch_post_norm")
    names = {"self_attn.in_proj_": "attn.qkv.", "self_attn.out_proj": "attn.proj", "linear": "mlp.fc"}
    for old, new in names.items():
        parameters = {key.replace(old, new): value for key, value in parameters.items()}
    x = draw("block_torch_post_norm", 2, 9, 24)
    save(
        "block_torch_post_norm",
        parameters | {"input": x, "output": layer.train(False)(x)},
        {"dim": 24, "num_heads": 3, "mlp_hidden": 40, "qkv_bias": True, "norm_first": False, "norm_eps": 1e-5},
    )


# ---- normalisation and positions


def layer_norm():
    for eps in (1e-12, 1e-6, 1e-5, 1e-3):
        layer = torch.nn.LayerNorm(19, eps=eps)
        parameters = parameters_of(layer, f"layer_norm_{eps}")
        x = draw("layer_norm", 2, 6, 19)
        x[0, 1] *= 1e-3  # variance near eps
        x[0, 2] = x[0, 2] * 0.1 + 10  # a mean much larger than the standard deviation
        x[0, 3] = 0.5  # zero variance
        x = x.float().double()
        save(
            f"layer_norm_eps_{eps:.0e}".replace("e-", "e"),
            parameters | {"input": x, "output": layer(x)},
            {"features": 19, "eps": eps},
        )
    for eps in (1e-6, 1e-2):
        layer = LayerNorm2d(11, eps=eps)
        parameters = parameters_of(layer, f"layer_norm_2d_{eps}")
        x = draw("layer_norm_2d", 2, 11, 3, 5)
        save(
            f"layer_norm_2d_eps_{eps:.0e}".replace("e-", "e"),
            parameters | {"input": x, "output": layer(x)},
            {"channels": 11, "eps": eps},
        )


def positional_encoding():
    for dim, rows in ((8, 5), (24, 60)):
        x = draw("positions", 2, rows, dim)
        save(f"positional_encoding_{dim}", {"input": x, "output": x + sinusoid(rows, dim)}, {"dim": dim, "max_len": 64})


def position_interpolation():
    """Position embeddings resized to other grids by each family.  input [1, prefix + h·w, D]; output_HxW."""
    dim = 6
    grids = {"square": (4, 4), "rectangle": (3, 5), "large": (14, 14)}
    targets = ((4, 4), (7, 7), (2, 2), (3, 6), (9, 4), (5, 3), (16, 10))
    families = {
        "timm": {"antialias": True, "offset": 0.0},
        "hf": {"antialias": False, "offset": 0.0},
        "dinov2": {"antialias": False, "offset": 0.1},
        "dinov2_antialias": {"antialias": True, "offset": 0.1},
        "radio": {"antialias": False, "offset": 0.0, "mode": "bilinear", "align_corners": True},
    }
    for family, options in families.items():
        for grid_name, (rows, columns) in grids.items():
            prefix = 2 if grid_name == "square" else 1
            table = draw(f"interpolation {grid_name}", 1, prefix + rows * columns, dim)
            tensors = {"input": table}
            for target in targets:
                tensors["output_{}x{}".format(*target)] = resized(table, prefix, (rows, columns), target, **options)
                if family == "timm":
                    with exact_interpolation():
                        theirs = resample_abs_pos_embed(table, list(target), [rows, columns], prefix)
                    assert torch.allclose(theirs, tensors["output_{}x{}".format(*target)], atol=1e-12)
            save(
                f"position_interpolation_{family}_{grid_name}",
                tensors,
                {"grid": [rows, columns], "prefix": prefix, "targets": targets} | options,
            )


def resized(table, prefix, grid, target, antialias, offset, mode="bicubic", align_corners=False):
    if tuple(grid) == tuple(target):  # no family resizes to its own grid
        return table
    image = table[:, prefix:].reshape(1, *grid, -1).permute(0, 3, 1, 2)
    if offset:  # the scale factor is (target + offset) / grid instead of target / grid
        extent = {"scale_factor": tuple((t + offset) / g for t, g in zip(target, grid, strict=True))}
    else:
        extent = {"size": tuple(target)}
    image = F.interpolate(image, mode=mode, align_corners=align_corners, antialias=antialias, **extent)
    assert tuple(image.shape[-2:]) == tuple(target)
    return torch.cat([table[:, :prefix], image.permute(0, 2, 3, 1).flatten(1, 2)], 1)


# ---- gradients, in float64


def gradients():
    for act in ("none", *ACTIVATIONS):
        x, weight, bias = draw("x", 2, 5, 7), draw("w", 6, 7, scale=0.5), draw("b", 6)
        function = ACTIVATIONS.get(act, lambda y: y)
        backward(
            f"grad_linear_{act}",
            {"x": x, "weight": weight, "bias": bias},
            lambda x, weight, bias: function(F.linear(x, weight, bias)),
            {"activation": act},
        )
    backward("grad_linear_no_bias", {"x": draw("x", 4, 7), "weight": draw("w", 6, 7)}, F.linear, {"activation": "none"})
    for eps in (1e-6, 1e-2):
        backward(
            f"grad_layer_norm_eps_{eps:.0e}".replace("e-", "e"),
            {"x": draw("x", 3, 4, 9), "weight": 1 + draw("w", 9, scale=0.2), "bias": draw("b", 9)},
            lambda x, weight, bias: F.layer_norm(x, (9,), weight, bias, eps),
            {"eps": eps},
        )
    backward("grad_residual_add", {"x": draw("x", 3, 4, 9), "y": draw("y", 3, 4, 9)}, lambda x, y: x + y, {})
    backward(
        "grad_residual_add_scale",
        {"x": draw("x", 3, 4, 9), "y": draw("y", 3, 4, 9), "scale": draw("s", 9)},
        lambda x, y, scale: x + y * scale,
        {},
    )


def backward(name, inputs, function, config):
    """Saves inputs, output, the incoming gradient (grad_output) and the gradients of the inputs (grad_NAME)."""
    inputs = {key: value.requires_grad_() for key, value in inputs.items()}
    output = function(*inputs.values())
    incoming = draw("incoming", *output.shape)
    grads = torch.autograd.grad(output, list(inputs.values()), incoming)
    save(
        name,
        inputs
        | {"output": output, "grad_output": incoming}
        | {f"grad_{k}": g for k, g in zip(inputs, grads, strict=True)},
        config,
        torch.float64,
    )


if __name__ == "__main__":
    ROOT.mkdir(parents=True, exist_ok=True)
    for make in (
        patch_embed,
        attention,
        split_attention,
        multihead_attention,
        downsampled_attention,
        mlp,
        swiglu,
        block,
        layer_norm,
        positional_encoding,
        position_interpolation,
        gradients,
    ):
        make()
