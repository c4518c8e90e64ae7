# SPDX-License-Identifier: Apache-2.0
"""Gradients of a class's logit by PyTorch's autograd: tests/fixtures/gradients/NAME.safetensors.

Of the input ("images"), of what modules give, and of some parameters, by their names: every n-th element of each
gradient, at most 512.  The metadata's "config" has the model (a fixture, or DeiT-Tiny of the shared assets with the
image), the class, the shapes of the values and the names of the parameters.  References run in float64.
"""

import json
import os
import pathlib

import safetensors.torch
import timm
import torch
from models_common import ROOT as MODELS
from PIL import Image

ROOT = MODELS.parent / "gradients"
FIXTURES = "token avg distilled reg_tokens pre_norm qk_norm map".split()
ELEMENTS = 512
PARAMETERS = "cls_token", "patch_embed.proj.weight", "blocks.0.attn.qkv.weight", "blocks.1.mlp.fc2.bias", "head.weight"


def wanted(name):
    """The patches, the tokens that enter the blocks (an Identity's output), those after each block, two branches."""
    block = name.startswith("blocks.") and name.count(".") == 1
    return block or name in ("patch_embed", "patch_drop", "norm", "blocks.0.attn", "blocks.1.mlp")


def sampled(tensor):
    flat = tensor.detach().float().flatten()
    return flat[:: -(-len(flat) // ELEMENTS)].contiguous()


def write(name, model, images, target, about):
    values = {"images": images.double().requires_grad_()}
    for path, module in model.named_modules():
        if wanted(path):
            module.register_forward_hook(lambda _, __, output, path=path: values.update({path: output}))
    logits = model.double().eval()(values["images"])
    parameters = {path: value for path, value in model.named_parameters() if path in PARAMETERS}
    sources = values | parameters
    gradients = torch.autograd.grad(logits[:, target].sum(), list(sources.values()))
    tensors = {path: sampled(gradient) for path, gradient in zip(sources, gradients, strict=True)}
    shapes = {path: list(value.shape) for path, value in values.items()}
    if len(shapes["patch_embed"]) == 4:  # timm keeps the grid [B, h, w, C] where images of other sizes are allowed
        shapes["patch_embed"] = list(values["patch_embed"].flatten(1, 2).shape)
    config = about | {"target": target, "shapes": shapes, "parameters": list(parameters)}
    ROOT.mkdir(exist_ok=True)
    metadata = {"config": json.dumps(config, separators=(",", ":"))}
    safetensors.torch.save_file(tensors, ROOT / f"{name}.safetensors", metadata=metadata)
    print(f"{name:16} {len(tensors):3} values {(ROOT / f'{name}.safetensors').stat().st_size / 1024:6.1f} KiB")


def deit_tiny(assets):
    folder, file = assets / "weights" / "deit_tiny_patch16_224.fb_in1k", "images/nips2017/56e9d5f63cfc507e.png"
    config = json.loads((folder / "config.json").read_text())
    model = timm.create_model(config["architecture"], checkpoint_path=str(folder / "model.safetensors"))
    settings = timm.data.resolve_data_config(config["pretrained_cfg"])
    image = timm.data.create_transform(**settings, is_training=False)(Image.open(assets / file).convert("RGB"))[None]
    write("deit_tiny", model, image, 281, {"assets": "weights/deit_tiny_patch16_224.fb_in1k", "image": file})


if __name__ == "__main__":
    for fixture in FIXTURES:
        folder = MODELS / f"timm_{fixture}"
        reference = timm.create_model(f"local-dir:{folder}", pretrained=True)
        inputs = safetensors.torch.load_file(folder / "golden.safetensors")["input"]
        write(f"timm_{fixture}", reference, inputs, 3, {"model": f"timm_{fixture}"})
    if assets := os.environ.get("VITRAIL_ASSETS"):
        deit_tiny(pathlib.Path(assets))
