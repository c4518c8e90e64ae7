# SPDX-License-Identifier: Apache-2.0
"""Fixtures of torchvision's VisionTransformer (small versions of vit_b_16 and others), with its key names, as .pth."""

import torch
import torchvision
from models_common import preprocessing, randomise, report, write_fixture
from torchvision.models.vision_transformer import VisionTransformer

ARGS = dict(image_size=16, patch_size=4, num_layers=2, num_heads=3, hidden_dim=24, mlp_dim=40, num_classes=10)


def forward(model, image):
    patches = model._process_input(image)
    tokens = model.encoder(torch.cat([model.class_token.expand(len(image), -1, -1), patches], 1))
    return model(image), tokens


def older_names(state):
    """Checkpoints of torchvision before 0.13 name the MLP's layers linear_1 and linear_2."""
    return {k.replace("mlp.0.", "mlp.linear_1.").replace("mlp.3.", "mlp.linear_2."): v for k, v in state.items()}


def write(name, rename=lambda state: state, vit_changes=None, **changes):
    model = randomise(VisionTransformer(**ARGS | changes), name)
    config = {
        "architecture": "vit",
        "num_classes": 10,
        "model_args": {
            "img_size": 16,
            "patch_size": 4,
            "embed_dim": 24,
            "depth": 2,
            "num_heads": 3,
            "mlp_hidden": 40,
            "norm_eps": 1e-6,
            **(vit_changes or {}),
        },
        "pretrained_cfg": preprocessing(16, interpolation="bilinear", crop_pct=0.875),
    }
    write_fixture(
        name,
        model,
        forward,
        config,
        size=16,
        form="pth",
        state=rename(model.state_dict()),
        reference=f"torchvision {torchvision.__version__}",
    )


if __name__ == "__main__":
    torch.manual_seed(0)
    write("torchvision_vit", dropout=0.1, attention_dropout=0.1)
    write("torchvision_vit_old_names", older_names)
    write("torchvision_vit_representation", vit_changes={"head_hidden": 20, "head_act": "tanh"}, representation_size=20)
    report()
