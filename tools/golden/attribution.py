# SPDX-License-Identifier: Apache-2.0
"""Attributions of a class's logit, and curves of removed patches: tests/fixtures/attribution/NAME.safetensors.

Each method's map [rows, columns] for the first input of a model fixture; for the photograph of DeiT-Tiny (shared
assets) those of methods with one pass.  The metadata's "config" has the class and, of integrated gradients, the sum
and the difference of logits.
References run in float64: captum where it has the method; the formulas of Transformer-MM-Explainability (relevance)
and Transformer-Explainability (generate_cam_attn) with PyTorch's gradients of the attention weights.
"""

import json
import os
import pathlib

import safetensors.torch
import timm
import torch
from captum.attr import InputXGradient, IntegratedGradients, Occlusion
from models_common import ROOT as MODELS
from PIL import Image
from train_runs import Stream, random_key

ROOT = MODELS.parent / "attribution"
FIXTURES = "token avg avg_no_class_token distilled reg_tokens map map_prefix qk_norm non_square".split()
STEPS, DRAWS, NOISE = 50, 25, 0.15


class Weights:
    """The softmax weights of all attention, which timm's unfused layers compute by Tensor.softmax."""

    def __enter__(self):
        self.found, self.softmax = [], torch.Tensor.softmax
        torch.Tensor.softmax = self.record
        return self

    def __exit__(self, *_):
        torch.Tensor.softmax = self.softmax

    @property
    def record(self):
        def softmax(tensor, *arguments, **named):
            self.found.append(self.softmax(tensor, *arguments, **named))
            return self.found[-1]

        return softmax


def unfused(model):
    for module in model.modules():
        if hasattr(module, "fused_attn"):
            module.fused_attn = False
    return model.double().eval()


def readers(model, tokens, pool):
    """What the head reads of each token."""
    share = torch.zeros(tokens, dtype=torch.float64)
    prefix = model.num_prefix_tokens
    if pool is not None:
        share[tokens - pool.shape[1] :] = pool[0]
    elif hasattr(model, "head_dist"):
        share[:2] = 0.5
    elif model.global_pool == "token":
        share[0] = 1
    elif model.global_pool == "token_avg":
        share[0], share[prefix:] = 0.5, 0.5 / (tokens - prefix)
    else:
        share[prefix:] = 1 / (tokens - prefix)
    return share


def attention_methods(model, image, target):
    with Weights() as weights:
        logit = model(image)[0, target]
    gradients = [gradient[0] for gradient in torch.autograd.grad(logit, weights.found)]
    maps = [found[0].detach() for found in weights.found]
    relevances = [(gradient * found).clamp(min=0).mean(0) for gradient, found in zip(gradients, maps, strict=True)]
    depth, tokens, prefix = len(model.blocks), maps[0].shape[-1], model.num_prefix_tokens
    relevance = torch.eye(tokens, dtype=torch.float64)
    for block in relevances[:depth]:
        relevance = relevance + block @ relevance
    pool = relevances[depth] if len(relevances) > depth else None
    chefer = readers(model, tokens, pool) @ relevance
    plain = readers(model, tokens, None)
    cam = torch.einsum("n,hns->hs", plain, maps[depth - 1])[:, prefix:]
    slopes = torch.einsum("n,hns->hs", plain, gradients[depth - 1])[:, prefix:].mean(1, keepdim=True)
    return {"gradient_attention": chefer[prefix:], "grad_cam": (cam * slopes).mean(0).clamp(min=0)}


def randn(shape, seed):
    """Tensor::randn() of the library."""
    stream = Stream(random_key("randn", seed))
    return torch.tensor([stream.normal() for _ in range(shape.numel())], dtype=torch.float32).view(shape).double()


def gradient(model, image, target):
    image = image.detach().requires_grad_()
    return torch.autograd.grad(model(image)[0, target], image)[0]


def smooth_grad(model, image, target):
    deviation = NOISE * (image.max() - image.min())
    noisy = [image + deviation * randn(image.shape, seed) for seed in range(DRAWS)]
    return torch.stack([gradient(model, at, target) for at in noisy]).mean(0)


def blurred(image):
    taps = torch.exp(-0.5 * ((torch.arange(11, dtype=torch.float64) - 5) / 5) ** 2)
    kernel = (taps[:, None] * taps / taps.sum() ** 2).expand(image.shape[1], 1, 11, 11)
    padded = torch.nn.functional.pad(image, (5,) * 4, mode="replicate")
    return torch.nn.functional.conv2d(padded, kernel, groups=image.shape[1])


def curve(model, start, end, order, patch, columns, target):
    images = [start]
    for at in order.tolist():
        images.append(images[-1].clone())
        rows, cols = at // columns * patch[0], at % columns * patch[1]
        images[-1][..., rows : rows + patch[0], cols : cols + patch[1]] = end[
            ..., rows : rows + patch[0], cols : cols + patch[1]
        ]
    return torch.stack([model(image).softmax(-1)[0, target] for image in images])


def baselines_of(image, mean, std):
    def channels(values):
        return torch.tensor(values, dtype=torch.float64).view(1, -1, 1, 1)

    return {
        "mean": image.mean((2, 3), keepdim=True).expand_as(image).clone(),
        "black": (-channels(mean) / channels(std)).expand_as(image).clone(),
        "blurred": blurred(image),
    }


def methods_of_many_passes(model, image, baselines, by_patch, target):
    maps, sums = {"smooth_grad": by_patch(smooth_grad(model, image, target).abs())}, {}
    height, width = patch = model.patch_embed.patch_size
    with torch.no_grad():
        logits = model(image)[0]
    for kind, baseline in baselines.items():
        # The widths of captum's trapezoids add up to STEPS / (STEPS + 1).
        integral = IntegratedGradients(model).attribute(
            image, baseline, target=target, n_steps=STEPS + 1, method="riemann_trapezoid", internal_batch_size=1
        )
        integral = integral.detach() * (STEPS + 1) / STEPS
        maps[f"integrated_gradients.{kind}"] = by_patch(integral)
        with torch.no_grad():
            sums[kind] = [integral.sum().item(), (logits[target] - model(baseline)[0, target]).item()]
            window = (image.shape[1], *patch)
            occlusion = Occlusion(model).attribute(image, window, strides=window, baselines=baseline, target=target)
        maps[f"leave_one_out.{kind}"] = occlusion[0, 0, ::height, ::width]
    columns = maps["leave_one_out.mean"].shape[1]
    with torch.no_grad():
        order = maps["leave_one_out.mean"].flatten().argsort(descending=True, stable=True)
        maps["deletion"] = curve(model, image, baselines["mean"], order, patch, columns, target)
        maps["insertion"] = curve(model, baselines["blurred"], image, order, patch, columns, target)
    return maps, sums


def write(name, model, image, target, about, normalisation=None):
    """The methods of many passes need the mean and the standard deviation of the pixels."""
    model, image = unfused(model), image.double()
    height, width = model.patch_embed.patch_size
    rows, columns = model.patch_embed.dynamic_feat_size(image.shape[2:])

    def by_patch(values):
        return values.sum(1).view(rows, height, columns, width).sum((1, 3))

    maps, sums = attention_methods(model, image, target), {}
    maps["gradient_input"] = by_patch(InputXGradient(model).attribute(image.requires_grad_(), target=target))
    image = image.detach()
    if normalisation:
        baselines = baselines_of(image, *normalisation)
        more, sums = methods_of_many_passes(model, image, baselines, by_patch, target)
        maps |= more
    tensors = {key: value.detach().reshape(-1).float().contiguous() for key, value in maps.items()}
    for key in maps.keys() - {"deletion", "insertion"}:
        tensors[key] = tensors[key].view(rows, columns)
    ROOT.mkdir(exist_ok=True)
    config = about | {"target": target, "completeness": sums}
    metadata = {"config": json.dumps(config, separators=(",", ":"))}
    safetensors.torch.save_file(tensors, ROOT / f"{name}.safetensors", metadata=metadata)
    print(f"{name:22} {len(tensors):3} maps {(ROOT / f'{name}.safetensors').stat().st_size / 1024:6.1f} KiB {sums}")


def deit_tiny(assets):
    folder, file = assets / "weights" / "deit_tiny_patch16_224.fb_in1k", "images/nips2017/56e9d5f63cfc507e.png"
    config = json.loads((folder / "config.json").read_text())
    model = timm.create_model(config["architecture"], checkpoint_path=str(folder / "model.safetensors"))
    settings = timm.data.resolve_data_config(config["pretrained_cfg"])
    image = timm.data.create_transform(**settings, is_training=False)(Image.open(assets / file).convert("RGB"))[None]
    about = {"assets": "weights/deit_tiny_patch16_224.fb_in1k", "image": file}
    write("deit_tiny", model, image, 281, about)


if __name__ == "__main__":
    for fixture in FIXTURES:
        folder = MODELS / f"timm_{fixture}"
        reference = timm.create_model(f"local-dir:{folder}", pretrained=True)
        inputs = safetensors.torch.load_file(folder / "golden.safetensors")["input"][:1]
        cfg = json.loads((folder / "config.json").read_text())["pretrained_cfg"]
        about = {"model": f"timm_{fixture}"}
        write(f"timm_{fixture}", reference, inputs, 3, about, (cfg["mean"], cfg["std"]))
    if assets := os.environ.get("VITRAIL_ASSETS"):
        deit_tiny(pathlib.Path(assets))
