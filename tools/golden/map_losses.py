# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the heads for pixels and their loss: tests/fixtures/train/{map_loss,dpt_loss}.safetensors.

map_loss: `features` [B, h, w, D] go through BatchNorm2d in eval mode and a 1×1 convolution; the logits are enlarged
bilinearly to the size of `labels` [B, H, W], whose 255 belong to no class.  `logits`, `loss`, `smoothed.loss` (label
smoothing 0.1 and `class_weights`), and the gradients `grad.NAME` and `smoothed.grad.NAME`, in float64 by PyTorch's
autograd.

dpt_loss: `tokens.I` [B, 1 + h·w, D] of four blocks, CLS first, go through transformers' neck of Depth Anything, a 3×3
convolution, relu and a 1×1 convolution; the logits are enlarged to twice their size with align_corners.  `loss`
and the gradients `grad.NAME` as above.
"""

import safetensors.torch
import torch
from losses import ROOT, draw
from torch.nn import functional as F
from transformers import DepthAnythingConfig
from transformers.models.depth_anything.modeling_depth_anything import DepthAnythingNeck

TRAIN = ROOT.parent / "train"


def save(name, tensors):
    tensors = {key: value.detach().contiguous().clone() for key, value in tensors.items()}
    safetensors.torch.save_file(tensors, TRAIN / f"{name}.safetensors")
    print("train/" + name)


def map_labels(batch, classes, size):
    labels = (draw("labels", batch, *size) * 2).abs().long() % classes
    labels[draw("ignored", batch, *size) > 1] = 255
    return labels


def dpt_loss():
    batch, dim, classes, (rows, columns), size = 2, 6, 3, (3, 4), (13, 11)
    config = DepthAnythingConfig(
        reassemble_hidden_size=dim,
        neck_hidden_sizes=[2, 3, 4, 5],
        reassemble_factors=[4, 2, 1, 0.5],
        fusion_hidden_size=4,
    )
    neck = DepthAnythingNeck(config).double()
    conv1 = torch.nn.Conv2d(4, 4, 3, padding=1).double()
    conv2 = torch.nn.Conv2d(4, classes, 1).double()
    modules = {"neck": neck, "conv1": conv1, "conv2": conv2}
    parameters = {f"{name}.{key}": value for name, each in modules.items() for key, value in each.named_parameters()}
    unused = "neck.fusion_stage.layers.0.residual_layer1."
    parameters = {name: value for name, value in parameters.items() if not name.startswith(unused)}
    for name, parameter in parameters.items():
        parameter.data.copy_(draw(name, *parameter.shape, scale=0.5))
    trained = dict(parameters)
    for i in range(4):
        trained[f"tokens.{i}"] = draw(f"tokens {i}", batch, 1 + rows * columns, dim).requires_grad_()
    fused = neck([trained[f"tokens.{i}"] for i in range(4)], rows, columns)[-1]
    logits = F.interpolate(conv2(conv1(fused).relu()), scale_factor=2, mode="bilinear", align_corners=True)
    labels = map_labels(batch, classes, size)
    scores = F.interpolate(logits, size, mode="bilinear", align_corners=False)
    loss = F.cross_entropy(scores, labels, ignore_index=255)
    gradients = torch.autograd.grad(loss, list(trained.values()))
    tensors = trained | {"labels": labels, "loss": loss}
    tensors |= {f"grad.{name}": gradient for name, gradient in zip(trained, gradients, strict=True)}
    save("dpt_loss", tensors)


def map_loss():
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
    labels = map_labels(batch, classes, size)
    class_weights = draw("class weights", classes).exp().float().double()
    logits = layer(norm(features.permute(0, 3, 1, 2)))
    scores = F.interpolate(logits, size, mode="bilinear", align_corners=False)
    tensors = names | {"features": features, "labels": labels, "class_weights": class_weights}
    tensors["logits"] = logits.permute(0, 2, 3, 1)
    trained = {name: tensor for name, tensor in names.items() if "running" not in name} | {"features": features}
    for prefix, options in (("", {}), ("smoothed.", {"label_smoothing": 0.1, "weight": class_weights})):
        loss = F.cross_entropy(scores, labels, ignore_index=255, **options)
        tensors[f"{prefix}loss"] = loss
        gradients = torch.autograd.grad(loss, list(trained.values()), retain_graph=True)
        tensors |= {f"{prefix}grad.{name}": gradient for name, gradient in zip(trained, gradients, strict=True)}
    save("map_loss", tensors)


if __name__ == "__main__":
    torch.set_num_threads(1)
    map_loss()
    dpt_loss()
