# SPDX-License-Identifier: Apache-2.0
"""Fixtures of AIMv2: timm's aimv2_*, and transformers' Aimv2VisionModel with and without its pooling head."""

import functools

import timm
import torch
import transformers
from models_common import preprocessing, randomise, report, saved_pretrained, write_fixture
from timm.layers import RmsNorm, SwiGLU
from timm.models.vision_transformer import VisionTransformer

transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()
SMALL = dict(img_size=16, patch_size=4, embed_dim=18, depth=2, num_heads=3)
NORM = functools.partial(RmsNorm, eps=1e-5)


def redraw_norms(model, name):
    """Root mean square norms are no torch.nn.LayerNorm: their weights are drawn around 1 here."""
    with torch.no_grad():
        for key, parameter in model.named_parameters():
            if "norm" in key:
                parameter += 1


def timm_aimv2():
    model = VisionTransformer(
        **SMALL,
        num_classes=10,
        class_token=False,
        fc_norm=False,
        mlp_ratio=2.5,
        global_pool="avg",
        qkv_bias=False,
        proj_bias=False,
        act_layer="silu",
        norm_layer=NORM,
        embed_norm_layer=NORM,
        mlp_layer=SwiGLU,
    )
    name = "timm_aimv2"
    randomise(model, name)
    redraw_norms(model, name)

    def forward(model, image):
        tokens = model.forward_features(image)
        return model.forward_head(tokens), tokens

    own = dict(class_token=False, fc_norm=False, global_pool="avg", qkv_bias=False, proj_bias=False, norm_eps=1e-5)
    own |= dict(norm_layer="rmsnorm", patch_norm="post", mlp_layer="swiglu", mlp_hidden=45)
    config = {"architecture": "vit", "num_classes": 10, "model_args": SMALL | own, "pretrained_cfg": preprocessing(16)}
    write_fixture(name, model, forward, config, size=16, reference=f"timm {timm.__version__}")


def hf(name, *, size2=None, **changes):
    sizes = dict(hidden_size=18, num_hidden_layers=2, num_attention_heads=3, image_size=16, patch_size=4)
    config = transformers.Aimv2VisionConfig(**sizes | dict(intermediate_size=30) | changes)
    model = transformers.Aimv2VisionModel(config)
    randomise(model, name)
    redraw_norms(model, name)

    def forward(model, image):
        out = model(image)
        pooled = out.pooler_output if model.config.use_head else out.last_hidden_state.mean(1)
        return pooled.flatten(1), out.last_hidden_state

    state, saved = saved_pretrained(model)
    reference = f"transformers {transformers.__version__} Aimv2VisionModel"
    write_fixture(name, model, forward, saved, size=16, size2=size2, state=state, reference=reference)


if __name__ == "__main__":
    torch.manual_seed(0)
    timm_aimv2()
    hf("hf_aimv2")
    hf("hf_aimv2_no_head", use_head=False)
    hf("hf_aimv2_biases", qkv_bias=True, mlp_bias=True)
    hf("hf_aimv2_native", size2=(24, 12), is_native=True, hidden_size=24)
    report()
