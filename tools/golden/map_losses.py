# SPDX-License-Identifier: Apache-2.0
"""Fixture of the linear head for pixels and its loss: tests/fixtures/train/map_loss.safetensors.

`features` [B, h, w, D] go through BatchNorm2d in eval mode and a 1×1 convolution; the logits are enlarged bilinearly to
the size of `labels` [B, H, W], whose 255 belong to no class.  `logits`, `loss`, `smoothed.loss` (label smoothing 0.1
and `class_weights`), and the gradients `grad.NAME` and `smoothed.grad.NAME`, in float64 by PyTorch's autograd.
"""

import safetensors.torch
import torch
from losses import ROOT, draw
from torch.nn import functional as F


def main():
    batch, side, dim, classes, size = 2, 3, 5, 4, (8, 7)
    norm = torch.nn.BatchNorm2d(dim).double().eval()
    layer = torch.nn.Conv2d(dim, classes, 1).double()
    names = {
        "bn.weight": norm.weight,
        "bn.bias": norm.bias,
        "bn.running_mean": norm.running_mean,
        "bn.running_var": norm.running_var,
        "conv_seg.weight": layer.weight,
        "conv_seg.bias": layer.bias,
    }
    for name, tensor in names.items():
        value = draw(name, *tensor.shape)
        tensor.data.copy_(value.exp().float().double() if name == "bn.running_var" else value)
    features = draw("features", batch, side, side, dim, scale=2.0).requires_grad_()
    labels = (draw("labels", batch, *size) * 2).abs().long() % classes
    labels[draw("ignored", batch, *size) > 1] = 255
    class_weights = draw("class weights", classes).exp().float().double()
    logits = layer(norm(features.permute(0, 3, 1, 2)))
    scores = F.interpolate(logits, size, mode="bilinear", align_corners=False)
    tensors = {name: tensor.detach() for name, tensor in names.items()}
    tensors |= {"features": features.detach(), "labels": labels, "class_weights": class_weights}
    tensors["logits"] = logits.detach().permute(0, 2, 3, 1)
    trained = {name: tensor for name, tensor in names.items() if "running" not in name} | {"features": features}
    for prefix, options in (("", {}), ("smoothed.", {"label_smoothing": 0.1, "weight": class_weights})):
        loss = F.cross_entropy(scores, labels, ignore_index=255, **options)
        tensors[f"{prefix}loss"] = loss.detach()
        gradients = torch.autograd.grad(loss, list(trained.values()), retain_graph=True)
        tensors |= {f"{prefix}grad.{name}": gradient for name, gradient in zip(trained, gradients, strict=True)}
    safetensors.torch.save_file(
        {key: value.contiguous().clone() for key, value in tensors.items()},
        ROOT.parent / "train" / "map_loss.safetensors",
    )
    print("train/map_loss")


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
