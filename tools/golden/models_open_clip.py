# SPDX-License-Identifier: Apache-2.0
"""Fixtures of OpenCLIP's models, in the layout of its folders on the hub.

golden.safetensors also has ids [T, N], text_embeds [T, D] and logits_per_image [B, T], as models_clip.py describes.
open_clip has the tokenizer of tests/fixtures/text/clip (text_tokenizers.py).  Image towers of timm are small ones of
their architecture; vision_cfg has the changes as "vitrail_args".
"""

import contextlib
import functools
import shutil
from unittest import mock

import open_clip
import timm
import torch
from models_common import IMAGENET, ROOT, randomise, report, write_fixture

VISION = dict(image_size=16, layers=2, width=20, head_width=10, patch_size=4, mlp_ratio=2.0)
TEXT = dict(context_length=24, vocab_size=758, width=18, heads=3, layers=2, mlp_ratio=2.0)
SMALL_TEXT = TEXT | dict(context_length=12, vocab_size=40, layers=1)
IDS = [[756, 5, 17, 3, 757, 0, 0, 0], [756, 2, 757, 0, 0, 0, 0, 0], [756, 1, 30, 31, 8, 9, 22, 757]]


# What is called forward_features: the tokens behind the last norm, or before the pooling if the norm is behind that.
def traced_tokens(tower):
    if isinstance(tower, open_clip.timm_model.TimmModel):
        return tower.trunk.norm
    if tower.attn_pool is not None:
        return tower.transformer
    return tower.transformer if tower.final_ln_after_pool else tower.ln_post


def with_vitrail_args(config):
    """The configuration as OpenCLIP reads it, and the patch that makes timm's model small."""
    vision = dict(config["vision_cfg"])
    changes = vision.pop("vitrail_args", None)
    if not changes:
        return config, contextlib.nullcontext()
    small = functools.partial(timm.create_model, **changes)
    return config | {"vision_cfg": vision}, mock.patch("open_clip.timm_model.timm.create_model", small)


class CoCa(open_clip.CoCa):
    """With the methods that OpenCLIP's other dual models have."""

    def __init__(self, output_dict, **config):
        super().__init__(**config)

    def encode_image(self, image, normalize=False):
        return super().encode_image(image, normalize)

    def encode_text(self, text, normalize=False):
        return super().encode_text(text, normalize)

    get_logits = open_clip.CustomTextCLIP.get_logits


def write(name, model_class, config, *, preprocess, size2=None):
    args, patch = with_vitrail_args(config)
    with patch:
        model = randomise(model_class(**args, output_dict=True), name)
    torch.nn.init.constant_(model.logit_scale, 2.5)
    if model.logit_bias is not None:
        torch.nn.init.constant_(model.logit_bias, -1.5)

    def forward(model, image):
        tower = model.visual
        tokens = []
        hook = traced_tokens(tower).register_forward_hook(lambda module, inputs, output: tokens.append(output))
        logits = model.encode_image(image)
        hook.remove()
        return logits, tokens[0]

    def text_outputs(model, image):
        ids = torch.tensor(IDS) % config["text_cfg"]["vocab_size"]
        padded = torch.nn.functional.pad(ids, (0, config["text_cfg"]["context_length"] - ids.shape[1]))
        logits = model.get_logits(image, padded)[0]
        if config["text_cfg"].get("no_causal_mask") or config["text_cfg"].get("embed_cls"):
            ids = padded
        return {"ids": ids, "text_embeds": model.encode_text(padded), "logits_per_image": logits}

    write_fixture(
        name,
        model,
        forward,
        None,
        size=16,
        size2=size2,
        form="open_clip",
        extra_files={"open_clip_config.json": {"model_cfg": config, "preprocess_cfg": preprocess}},
        extra=text_outputs,
        reference=f"open_clip {open_clip.__version__} {model_class.__name__}",
    )


if __name__ == "__main__":
    torch.manual_seed(0)
    write(
        "open_clip",
        open_clip.CLIP,
        dict(embed_dim=10, quick_gelu=True, vision_cfg=VISION, text_cfg=TEXT),
        preprocess=IMAGENET | {"interpolation": "bicubic", "resize_mode": "shortest"},
    )
    for file in ("vocab.json", "merges.txt"):
        shutil.copy(ROOT.parent / "text" / "clip" / file, ROOT / "open_clip" / file)
    write(
        "open_clip_custom_text",
        open_clip.CustomTextCLIP,
        dict(
            embed_dim=10,
            init_logit_bias=-10,
            vision_cfg=VISION | dict(pool_type="avg", ls_init_value=1e-4),
            text_cfg=TEXT | dict(vocab_size=760, proj_bias=True),
        ),
        preprocess={"resize_mode": "squash"},
    )
    write(
        "open_clip_clipa",
        open_clip.CLIP,
        dict(
            embed_dim=10,
            vision_cfg=VISION
            | dict(no_ln_pre=True, pool_type="avg", final_ln_after_pool=True, pos_embed_type="sin_cos_2d"),
            text_cfg=SMALL_TEXT | dict(pool_type="last", no_causal_mask=True),
        ),
        preprocess=IMAGENET | {"resize_mode": "squash"},
    )
    write(
        "open_clip_no_projection",
        open_clip.CustomTextCLIP,
        dict(
            embed_dim=18,
            init_logit_bias=-10,
            vision_cfg=VISION | dict(layers=1),
            text_cfg=TEXT | SMALL_TEXT | dict(pool_type="last", no_causal_mask=True, proj_type="none"),
        ),
        preprocess=IMAGENET | {"resize_mode": "squash"},
    )
    small = dict(img_size=16, patch_size=4, embed_dim=24, depth=2, num_heads=3)
    write(
        "open_clip_siglip",
        open_clip.CustomTextCLIP,
        dict(
            embed_dim=24,
            init_logit_bias=-10,
            vision_cfg=dict(
                image_size=16,
                timm_model_name="vit_base_patch16_siglip_224",
                timm_pool="map",
                timm_proj="none",
                vitrail_args=small,
            ),
            text_cfg=SMALL_TEXT
            | dict(
                no_causal_mask=True,
                proj_bias=True,
                pool_type="last",
                norm_kwargs={"eps": 1e-6},
                act_kwargs={"approximate": "tanh"},
            ),
        ),
        preprocess={"mean": [0.5] * 3, "std": [0.5] * 3, "resize_mode": "squash"},
    )
    write(
        "open_clip_eva02",
        open_clip.CustomTextCLIP,
        dict(
            embed_dim=10,
            vision_cfg=dict(
                image_size=16,
                timm_model_name="eva02_base_patch16_clip_224",
                timm_pool="token",
                timm_proj=None,
                vitrail_args=small | dict(ref_feat_shape=[4, 4]),
            ),
            text_cfg=SMALL_TEXT,
        ),
        preprocess={},
    )
    # The last of the texts has no padding.
    write(
        "open_clip_coca",
        CoCa,
        dict(
            embed_dim=12,
            vision_cfg=VISION
            | dict(attentional_pool=True, attn_pooler_heads=3, attn_pooler_queries=5, output_tokens=True),
            text_cfg=SMALL_TEXT | dict(context_length=8, layers=2, embed_cls=True, output_tokens=True),
            multimodal_cfg=dict(context_length=8, vocab_size=40, width=12, heads=2, layers=1, attn_pooler_heads=2),
        ),
        preprocess={},
    )
    # The mean of the tokens behind the norm, which is not behind the pooling as in timm's own models.
    for name, proj in (("linear", dict()), ("mlp", dict(timm_proj="mlp", timm_proj_bias=True))):
        write(
            f"open_clip_timm_{name}",
            open_clip.CLIP,
            dict(
                embed_dim=10,
                vision_cfg=dict(image_size=16, timm_model_name="vit_base_patch16_224", vitrail_args=small) | proj,
                text_cfg=SMALL_TEXT,
            ),
            preprocess={},
        )
    report()
