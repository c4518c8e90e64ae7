# SPDX-License-Identifier: Apache-2.0
"""Fixtures of Google's .npz checkpoints, with and without the pre_logits layer and the optimizer's prefix.

The names and axes are Flax's.  timm's loader reads the file back as a check of the format.
"""

import timm
import torch
from models_common import HALF, ROOT, preprocessing, randomise, report, write_fixture
from models_timm import WithPreLogits, forward
from timm.models.vision_transformer import VisionTransformer

ARGS = dict(img_size=16, patch_size=4, embed_dim=24, depth=2, num_heads=3, mlp_ratio=2.0, num_classes=10)
HEADS, WIDTH = 3, 8


def dense(state, source, target, out):
    out[target + "/kernel"], out[target + "/bias"] = state[source + ".weight"].T, state[source + ".bias"]


def norm(state, source, target, out):
    out[target + "/scale"], out[target + "/bias"] = state[source + ".weight"], state[source + ".bias"]


def attention(state, source, target, out):
    weights, biases = state[source + ".qkv.weight"].chunk(3), state[source + ".qkv.bias"].chunk(3)
    for name, weight, bias in zip(("query", "key", "value"), weights, biases, strict=True):
        out[f"{target}/{name}/kernel"] = weight.T.reshape(-1, HEADS, WIDTH)
        out[f"{target}/{name}/bias"] = bias.reshape(HEADS, WIDTH)
    out[target + "/out/kernel"] = state[source + ".proj.weight"].T.reshape(HEADS, WIDTH, -1)
    out[target + "/out/bias"] = state[source + ".proj.bias"]


def flax_names(state):
    out = {
        "cls": state["cls_token"],
        "Transformer/posembed_input/pos_embedding": state["pos_embed"],
        "embedding/kernel": state["patch_embed.proj.weight"].permute(2, 3, 1, 0),
        "embedding/bias": state["patch_embed.proj.bias"],
    }
    for i in range(ARGS["depth"]):
        block, theirs = f"blocks.{i}", f"Transformer/encoderblock_{i}"
        norm(state, block + ".norm1", theirs + "/LayerNorm_0", out)
        attention(state, block + ".attn", theirs + "/MultiHeadDotProductAttention_1", out)
        norm(state, block + ".norm2", theirs + "/LayerNorm_2", out)
        dense(state, block + ".mlp.fc1", theirs + "/MlpBlock_3/Dense_0", out)
        dense(state, block + ".mlp.fc2", theirs + "/MlpBlock_3/Dense_1", out)
    norm(state, "norm", "Transformer/encoder_norm", out)
    if "pre_logits.fc.weight" in state:
        dense(state, "pre_logits.fc", "pre_logits", out)
    dense(state, "head", "head", out)
    return {key: value.contiguous() for key, value in out.items()}


def write(name, model, vit_changes, form="npz", prefix=""):
    randomise(model, name)
    model_args = {k: v for k, v in ARGS.items() if k != "num_classes"} | vit_changes
    config = {
        "architecture": "vit",
        "num_classes": 10,
        "model_args": model_args,
        "pretrained_cfg": preprocessing(16, mean_std=HALF),
    }
    state = {prefix + key: value for key, value in flax_names(model.state_dict()).items()}
    write_fixture(name, model, forward, config, size=16, form=form, state=state, reference=f"timm {timm.__version__}")
    if not vit_changes:
        again = VisionTransformer(**ARGS)
        again.load_pretrained(str(ROOT / name / "model.npz"), prefix)
        assert all(torch.equal(value, model.state_dict()[key]) for key, value in again.state_dict().items())


if __name__ == "__main__":
    torch.manual_seed(0)
    write("google_npz", VisionTransformer(**ARGS), {})
    write("google_npz_compressed", VisionTransformer(**ARGS), {}, "npz_compressed", "opt/target/")
    write("google_npz_pre_logits", WithPreLogits(24, torch.tanh, **ARGS), {"head_hidden": 24, "head_act": "tanh"})
    report()
