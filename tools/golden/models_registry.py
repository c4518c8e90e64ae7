# SPDX-License-Identifier: Apache-2.0
"""What timm's model has under each name of vitrail/models/architectures/.

Writes tests/fixtures/registry.csv.  Models are built on the meta device; the value of LayerScale needs one real block.
"""

import json
import pathlib

import timm
import torch


def first_layer_scale(name):
    block = timm.create_model(name, depth=1, num_classes=0).blocks[0]
    gamma = block.ls1.gamma if hasattr(getattr(block, "ls1", None), "gamma") else getattr(block, "gamma_1", None)
    return f"{gamma[0].item():.6g}" if gamma is not None else "0"


def native_tensors(model):
    """vitrail joins the matrices of q, k and v, and of a gate and its values."""
    joined = {"k_proj.weight", "v_proj.weight", "fc1_x.weight", "fc1_x.bias"}
    return sum(".".join(name.split(".")[-2:]) not in joined for name, _ in model.named_parameters())


def line(row):
    # Where timm's first weights have the projection of a CLIP model as head, vitrail has 1,000 classes.
    num_classes = row["model_args"].get("num_classes", 1000)
    with torch.device("meta"):
        model = timm.create_model(row["name"], num_classes=num_classes)
    parameters, block = list(model.parameters()), model.blocks[0]
    values = (
        row["name"],
        sum(p.numel() for p in parameters),
        native_tensors(model),
        model.patch_embed.img_size[0],
        block.attn.num_heads,
        model.num_prefix_tokens,
        block.norm1.eps,
        type(block.mlp.act).__name__,
        first_layer_scale(row["name"]),
        model.global_pool,
    )
    return ",".join(map(str, values))


lines = ["name,parameters,tensors,image,heads,prefix,eps,activation,layer_scale,pool"]
for file in sorted(pathlib.Path("vitrail/models/architectures").glob("*.json")):
    lines += [line(row) for row in json.loads(file.read_text()) if row.get("timm", True)]
path = pathlib.Path("tests/fixtures/registry.csv")
path.write_text("\n".join(lines) + "\n")
print(f"{path}: {len(lines) - 1} architectures, timm {timm.__version__}")
