# SPDX-License-Identifier: Apache-2.0
"""Fixtures of models with rotary positions: timm's Eva (DINOv3, EVA-02, EVA-CLIP, Perception Encoder, RoPE-ViT),
transformers' DINOv3, and DINOv3's own files."""

import json
import pathlib

import timm
import torch
import transformers
from models_common import IMAGENET, preprocessing, randomise, report, saved_pretrained, write_fixture

transformers.logging.disable_progress_bar()
TIMM = f"timm {timm.__version__}"
ROWS = pathlib.Path(__file__).resolve().parents[2] / "vitrail" / "models" / "architectures" / "eva.json"
SMALL = dict(img_size=16, patch_size=4, embed_dim=24, depth=2, num_heads=3, mlp_ratio=2.0)
PE_CORE = {"embed_dim": 32, "num_heads": 2, "depth": 1, "attn_pool_mlp_ratio": 1.0}
EMBED_SCALE = 1.0  # attention must differ between patches, or their positions have no effect


def arguments_of(architecture):
    return next(row["model_args"] for row in json.loads(ROWS.read_text()) if row["name"] == architecture)


def forward(model, image):
    tokens = model.forward_features(image)
    return model.forward_head(tokens), tokens


def strengthen(model):
    """Larger queries and keys: the scores, and so the rotary positions, must matter."""
    with torch.no_grad():
        for key, parameter in model.named_parameters():
            if any(word in key for word in ("qkv.weight", "q_proj.weight", "k_proj.weight")):
                parameter.mul_(2)


def hub(name, architecture, changes=None, *, num_classes=10, size2=None, global_pool=None, **options):
    """A model that timm builds from a config.json with a registered name."""
    args = SMALL | (changes or {})
    pool = {"global_pool": global_pool} if global_pool else {}
    model = timm.create_model(architecture, pretrained=False, num_classes=num_classes, **args, **pool)
    randomise(model, name, EMBED_SCALE)
    strengthen(model)
    config = {"architecture": "vit", "num_classes": num_classes}
    config |= {"model_args": arguments_of(architecture) | args | pool | {"num_classes": num_classes}}
    config |= {"pretrained_cfg": preprocessing(args["img_size"])}
    if names := options.pop("names", None):
        options["state"] = names(model.state_dict())
    if size2 is not None:
        options.setdefault("forward", with_set_input_size)
    write_fixture(
        "timm_" + name,
        model,
        options.pop("forward", forward),
        config,
        size=args["img_size"],
        size2=size2,
        reference=TIMM,
        **options,
    )


def with_set_input_size(model, image):
    """timm resizes positions when a model is built for another size."""
    size = tuple(image.shape[2:])
    if not model.dynamic_img_size and model.patch_embed.img_size != size:
        model.set_input_size(img_size=size)
    return forward(model, image)


def dinov3():
    hub("dinov3", "vit_small_patch16_dinov3", size2=(24, 12), num_classes=0)
    hub("dinov3_qkvb", "vit_small_patch16_dinov3_qkvb", size2=(12, 20), global_pool="token")
    hub("dinov3_plus", "vit_small_plus_patch16_dinov3_qkvb", size2=(20, 28))
    hub("dinov3_7b", "vit_7b_patch16_dinov3", num_classes=0)


def dinov3_hub(name, architecture):
    """The names and layouts of DINOv3's repository: one qkv.bias whose part for k is masked, bfloat16 periods."""
    model = timm.create_model(architecture, pretrained=False, num_classes=0, global_pool="token", **SMALL)
    randomise(model, name, EMBED_SCALE)
    strengthen(model)
    model.rope.periods = model.rope.periods.bfloat16().float()
    gated = any("fc1_g" in key for key in model.state_dict())
    state = {"mask_token": torch.ones(1, 24), "rope_embed.periods": model.rope.periods.bfloat16()}
    for key, value in model.state_dict().items():
        if key.endswith("q_bias"):
            masked = torch.ones_like(value)
            state[key.replace("q_bias", "qkv.bias")] = torch.cat(
                [value, masked, model.state_dict()[key.replace("q_bias", "v_bias")]]
            )
            state[key.replace("q_bias", "qkv.bias_mask")] = torch.cat([masked, 0 * masked, masked])
        elif not key.endswith("v_bias"):
            for own, hub_name in {
                "gamma_1": "ls1.gamma",
                "gamma_2": "ls2.gamma",
                "reg_token": "storage_tokens",
                "fc1_g": "w1",
                "fc1_x": "w2",
                "fc2": "w3" if gated else "fc2",
            }.items():
                key = key.replace(own, hub_name)
            state[key] = value
    args = arguments_of(architecture) | SMALL | {"num_classes": 0, "global_pool": "token"}
    write_fixture(
        name,
        model,
        forward,
        {"architecture": "vit", "num_classes": 0, "model_args": args, "pretrained_cfg": preprocessing(16)},
        size=16,
        size2=(12, 20),
        state=state,
        form="pth",
        reference=f"{TIMM} with DINOv3's bfloat16 periods",
    )


def eva():
    hub("eva_giant", "eva_giant_patch14_224", size2=(24, 12))
    hub("eva02_small", "eva02_small_patch14_336", size2=(12, 24))
    hub("eva02_base", "eva02_base_patch14_448", size2=(20, 12))
    hub("eva02_clip_base", "eva02_base_patch16_clip_224", size2=(24, 16))
    hub("eva02_clip_enormous", "eva02_enormous_patch14_clip_224")
    hub(
        "eva02_open_clip",
        "eva02_base_patch16_clip_224",
        {"depth": 1},
        names=lambda state: (
            {"visual.trunk." + key: value for key, value in state.items()}
            | {"logit_scale": torch.tensor(2.0), "text.ln_final.weight": torch.ones(24)}
        ),
        note="the names of OpenCLIP's models with a timm tower; the text tower is left out",
    )


def rope_vit():
    hub("rope_axial", "vit_small_patch16_rope_224", size2=(12, 24))
    hub("rope_mixed", "vit_small_patch16_rope_mixed_224", size2=(24, 12))
    hub("rope_mixed_ape", "vit_small_patch16_rope_mixed_ape_224")
    hub("rope_reg_gap", "vit_medium_patch16_rope_reg1_gap_256", size2=(20, 12))


def perception_encoder():
    hub("pe_core", "vit_pe_core_base_patch16_224", PE_CORE)
    hub("pe_spatial", "vit_pe_spatial_base_patch16_512", size2=(12, 24), num_classes=0)
    hub("pe_lang", "vit_pe_lang_large_patch14_448", num_classes=0)
    hub("pe_spatial_gigantic", "vit_pe_spatial_gigantic_patch14_448", num_classes=0)


def hf_dinov3(name, **changes):
    small = dict(
        hidden_size=24, num_hidden_layers=2, num_attention_heads=3, intermediate_size=40, image_size=16, patch_size=4
    )
    model = transformers.DINOv3ViTModel(transformers.DINOv3ViTConfig(**small | dict(num_register_tokens=4) | changes))
    randomise(model, name, EMBED_SCALE)
    strengthen(model)

    def run(model, image):
        out = model(image)
        return out.pooler_output, out.last_hidden_state

    state, saved = saved_pretrained(model)
    processor = {
        "image_processor_type": "DINOv3ViTImageProcessorFast",
        "do_resize": True,
        "resample": 2,
        "size": {"height": 16, "width": 16},
        "do_center_crop": None,
        "do_rescale": True,
        "rescale_factor": 1 / 255,
        "do_normalize": True,
        "image_mean": IMAGENET["mean"],
        "image_std": IMAGENET["std"],
    }
    write_fixture(
        name,
        model,
        run,
        saved,
        size=16,
        size2=(12, 24),
        state=state,
        extra_files={"preprocessor_config.json": processor},
        reference=f"transformers {transformers.__version__} DINOv3ViTModel",
    )


if __name__ == "__main__":
    torch.manual_seed(0)
    dinov3()
    dinov3_hub("dinov3_hub", "vit_small_patch16_dinov3_qkvb")
    dinov3_hub("dinov3_hub_swiglu", "vit_small_plus_patch16_dinov3_qkvb")
    eva()
    rope_vit()
    perception_encoder()
    hf_dinov3("hf_dinov3")
    hf_dinov3("hf_dinov3_gated", use_gated_mlp=True, hidden_act="silu", num_register_tokens=0, layer_norm_eps=1e-3)
    report()
