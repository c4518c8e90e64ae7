# SPDX-License-Identifier: Apache-2.0
"""Parameters, tensors, heads and image size of each architecture that vitrail registers under timm's name.

Writes tests/fixtures/registry.csv: name, parameters, tensors, image size, heads.  Models are built on the meta device.
"""

import pathlib

import timm
import torch

NAMES = [
    *(
        f"vit_{size}_patch{patch}_{image}"
        for size, patch, image in [
            ("tiny", 16, 224),
            ("tiny", 16, 384),
            ("small", 32, 224),
            ("small", 32, 384),
            ("small", 16, 224),
            ("small", 16, 384),
            ("small", 8, 224),
            ("base", 32, 224),
            ("base", 32, 384),
            ("base", 16, 224),
            ("base", 16, 384),
            ("base", 8, 224),
            ("large", 32, 224),
            ("large", 32, 384),
            ("large", 16, 224),
            ("large", 16, 384),
            ("large", 14, 224),
            ("huge", 14, 224),
            ("giant", 14, 224),
        ]
    ),
    *(f"deit_{size}_patch16_224" for size in ("tiny", "small", "base")),
    "deit_base_patch16_384",
    *(f"deit_{size}_distilled_patch16_224" for size in ("tiny", "small", "base")),
    "deit_base_distilled_patch16_384",
    *(
        f"deit3_{name}"
        for name in (
            "small_patch16_224",
            "small_patch16_384",
            "medium_patch16_224",
            "base_patch16_224",
            "base_patch16_384",
            "large_patch16_224",
            "large_patch16_384",
            "huge_patch14_224",
        )
    ),
    *(
        f"vit_{size}_clip_{'quickgelu_' if quick else ''}{image}"
        for size, quick, image in [
            ("base_patch32", True, 224),
            ("base_patch16", True, 224),
            ("large_patch14", True, 224),
            ("large_patch14", True, 336),
            ("huge_patch14", True, 224),
            ("huge_patch14", True, 378),
            ("medium_patch32", False, 224),
            ("medium_patch16", False, 224),
            ("base_patch32", False, 224),
            ("base_patch32", False, 256),
            ("base_patch32", False, 384),
            ("base_patch32", False, 448),
            ("base_patch16", False, 224),
            ("base_patch16", False, 384),
            ("large_patch14", False, 224),
            ("large_patch14", False, 336),
            ("huge_patch14", False, 224),
            ("huge_patch14", False, 336),
            ("huge_patch14", False, 378),
            ("giant_patch14", False, 224),
            ("gigantic_patch14", False, 224),
        ]
    ),
    *(
        f"vit_{size}_patch14_{variant}"
        for size in ("small", "base", "large", "giant")
        for variant in ("dinov2", "reg4_dinov2")
    ),
]

rows = ["name,parameters,tensors,image,heads"]
for name in NAMES:
    with torch.device("meta"):
        # Where timm has no ImageNet-1k head, vitrail has 1,000 classes, except for DINOv2.
        model = timm.create_model(name, pretrained=False, num_classes=0 if "dinov2" in name else 1000)
    parameters = list(model.parameters())
    image = model.patch_embed.img_size[0]
    heads = model.blocks[0].attn.num_heads
    rows.append(f"{name},{sum(p.numel() for p in parameters)},{len(parameters)},{image},{heads}")
path = pathlib.Path("tests/fixtures/registry.csv")
path.write_text("\n".join(rows) + "\n")
print(f"{path}: {len(rows) - 1} architectures, timm {timm.__version__}")
