#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The numbers of learning pages in Chromium against forward hooks of PyTorch: timm's DeiT and DINOv2 with registers,
open_clip's CLIP and segment_anything.  Needs tools/golden/requirements.txt and playwright.

torch_check.py PROGRAM REPOSITORY [FOLDER with DeiT-Tiny's model.safetensors; without it, its weights are random]
"""

import json
import pathlib
import sys
import unittest

import numpy
import open_clip
import safetensors.torch
import timm
import timm.layers
import torch
from browser_page import FIXTURES, REPOSITORY, BrowserPage

sys.path.insert(0, str(REPOSITORY / "tools/golden"))
import sam  # noqa: E402


def hooked(model, run):
    """The output of each module by its path, and its first input as "PATH <"."""
    values = {}

    def keep(path):
        def hook(module, inputs, output):
            if inputs and torch.is_tensor(inputs[0]):
                values[f"{path} <"] = inputs[0].detach()
            if torch.is_tensor(output):
                values[path] = output.detach()

        return hook

    hooks = [module.register_forward_hook(keep(path)) for path, module in model.named_modules()]
    with torch.no_grad():
        run()
    for hook in hooks:
        hook.remove()
    return values


def of_timm(model, images):
    """The values of a ViT of timm under the names of the page."""
    values = hooked(model, lambda: model(images))
    for i, block in enumerate(model.blocks):
        attention, name = block.attn, f"blocks.{i}.attn"
        q, k, v = values[f"{name}.qkv"].unflatten(2, (3, attention.num_heads, -1)).permute(2, 0, 3, 1, 4)
        merged = values[f"{name}.proj <"]
        values |= {
            f"{name}.q": q,
            f"{name}.k": k,
            f"{name}.v": v,
            f"{name}.scores": q * attention.scale @ k.transpose(-2, -1),
            f"{name}.weights": values[f"{name}.attn_drop"],
            f"{name}.merged": merged,
            f"{name}.context": merged.unflatten(2, (attention.num_heads, -1)).transpose(1, 2),
            f"blocks.{i}.residual1": values[f"blocks.{i}.norm2 <"],
        }
    values |= {"images": images, "embedded": values["blocks.0 <"], "logits": values["head"]}
    return values


def numpy_values(values):
    return {name: value.float().numpy() for name, value in values.items()}


class TorchHooks(BrowserPage):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        timm.layers.set_fused_attn(False)
        torch.manual_seed(0)

    def check_timm(self, name, architecture, arguments, weights=None):
        model = timm.create_model(architecture, **arguments).eval()
        if weights:
            model.load_state_dict(safetensors.torch.load_file(weights))
        folder = self.folder / name
        folder.mkdir()
        safetensors.torch.save_file(model.state_dict(), folder / "model.safetensors")
        size = arguments.get("img_size", 224)
        pretrained = {"input_size": [3, size, size], "mean": [0.5] * 3, "std": [0.5] * 3}
        pretrained |= {"interpolation": "bicubic", "crop_pct": 0.9}
        config = {"architecture": architecture, "num_classes": model.num_classes, "model_args": arguments}
        config["pretrained_cfg"] = pretrained
        (folder / "config.json").write_text(json.dumps(config))
        trace = self.explain(name, folder)
        compared = self.compared_numbers(name, numpy_values(of_timm(model, torch.from_numpy(trace["images"]))))
        blocks = {f"blocks.I.attn.{part}" for part in ("q", "scores", "weights", "context", "merged")}
        self.assertLessEqual(blocks | {"images", "embedded", "blocks.I", "blocks.I.drop_pathI"}, compared)

    def test_deit(self):
        folder = pathlib.Path(sys.argv[3]) if len(sys.argv) > 3 else None
        self.check_timm("deit", "deit_tiny_patch16_224", {}, folder and folder / "model.safetensors")

    def test_dinov2_with_registers(self):
        arguments = {"img_size": 112, "embed_dim": 96, "depth": 4, "num_heads": 6}
        self.check_timm("registers", "vit_small_patch14_reg4_dinov2", arguments)

    def test_clip(self):
        fixture = FIXTURES / "open_clip"
        config = json.loads((fixture / "open_clip_config.json").read_text())["model_cfg"]
        model = open_clip.CLIP(**config).eval()
        model.load_state_dict(safetensors.torch.load_file(fixture / "open_clip_model.safetensors"))
        images = torch.from_numpy(self.explain("clip", fixture)["images"])
        found = hooked(model.visual, lambda: model.visual(images))
        values = {"norm_pre": found["ln_pre"]}
        for i in range(config["vision_cfg"]["layers"]):
            block = f"transformer.resblocks.{i}"
            before, after = found[f"{block} <"], found[block]
            middle = found[f"{block}.ln_2 <"]
            values |= {
                f"blocks.{i}": after,
                f"blocks.{i}.residual1": middle,
                f"blocks.{i}.norm1": found[f"{block}.ln_1"],
                f"blocks.{i}.drop_path1": middle - before,
                f"blocks.{i}.drop_path2": after - middle,
            }
        compared = self.compared_numbers("clip", numpy_values(values))
        self.assertLessEqual({"blocks.I", "blocks.I.residualI", "blocks.I.normI", "blocks.I.drop_pathI"}, compared)

    def test_segment_anything(self):
        fixture = REPOSITORY / "tests/fixtures/sam/windows"
        model = sam.build(sam.MODELS["windows"], torch.Generator().manual_seed(0))
        state = torch.load(fixture / "model.pth")
        model.load_state_dict({name: value.float() for name, value in state.items()})
        images = torch.from_numpy(self.explain("sam", fixture)["images"])
        points = self.manifest("sam")["prompt"]["points"]
        size, image = model.image_encoder.img_size, self.manifest("sam")["image"]
        scale = size / max(image["width"], image["height"])
        coordinates = torch.tensor([[[points[0]["x"] * scale, points[0]["y"] * scale]]])

        def run():
            embedding = model.image_encoder(images)
            sparse, dense = model.prompt_encoder((coordinates, torch.tensor([[1]])), None, None)
            masks, iou = model.mask_decoder.predict_masks(embedding, model.prompt_encoder.get_dense_pe(), sparse, dense)
            self.outputs = {"prompt_encoder.sparse_embeddings": sparse, "low_res_masks": masks, "iou_predictions": iou}

        found = hooked(model, run)
        values = self.outputs | {"image_encoder": found["image_encoder"].permute(0, 2, 3, 1)}
        compared = self.compared_numbers("sam", numpy_values(values))
        self.assertLessEqual(set(values), compared)


if __name__ == "__main__":
    numpy.set_printoptions(precision=5)
    unittest.main(argv=sys.argv[:1])
