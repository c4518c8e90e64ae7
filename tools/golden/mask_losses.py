# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the losses of masks: tests/fixtures/ops/mask_losses.safetensors.

A case NAME has `NAME.loss` [B, M], and `NAME.grad`, the gradient of its sum with `weights` with respect to `logits`, in
float64 by PyTorch's autograd.  focal: torchvision.ops.sigmoid_focal_loss, written out; dice: DETR's and MaskFormer's.
`segment.loss` is the loss of a recipe of segmentation for `logits` as masks of 3×3 cells and `iou`, with the gradients
`segment.grad` and `segment.iou_grad`.
"""

import json

import safetensors.torch
import torch
from losses import ROOT, draw
from torch.nn import functional as F


def focal(logits, targets, alpha, gamma):
    targets = targets[:, None].expand_as(logits)
    p = logits.sigmoid()
    cross_entropy = F.binary_cross_entropy_with_logits(logits, targets, reduction="none")
    p_t = p * targets + (1 - p) * (1 - targets)
    alpha_t = alpha * targets + (1 - alpha) * (1 - targets)
    return (alpha_t * (1 - p_t) ** gamma * cross_entropy).mean(2)


def dice(logits, targets):
    targets = targets[:, None].expand_as(logits)
    p = logits.sigmoid()
    return 1 - (2 * (p * targets).sum(2) + 1) / (p.sum(2) + targets.sum(2) + 1)


def segment(logits, targets, iou):
    """20 · focal + dice of mask 0 and of the best of the others, and the squared error of the predicted IoU."""
    masks = 20 * focal(logits, targets, 0.25, 2) + dice(logits, targets)
    inside, target = logits > 0, targets[:, None] > 0
    real = (inside & target).sum(2).double() / (inside | target).sum(2)
    return (masks[:, 0] + masks[:, 1:].min(1).values).mean() + ((iou - real) ** 2).mean()


def main():
    batch, masks, pixels = 4, 4, 9
    logits, weights = draw("logits", batch, masks, pixels, scale=3.0), draw("weights", batch, masks)
    targets = (draw("targets", batch, pixels) > 0).double()
    targets[2] = 0  # an empty mask
    soft, iou = draw("soft", batch, pixels).sigmoid().float().double(), draw("iou", batch, masks)
    cases = {
        "focal": ({"loss": "focal", "alpha": 0.25, "gamma": 2}, lambda x: focal(x, targets, 0.25, 2)),
        "focal_gamma_0": ({"loss": "focal", "alpha": 0.5, "gamma": 0}, lambda x: focal(x, targets, 0.5, 0)),
        "focal_gamma_3": ({"loss": "focal", "alpha": 0.6, "gamma": 3}, lambda x: focal(x, targets, 0.6, 3)),
        "focal_soft": (
            {"loss": "focal", "alpha": 0.25, "gamma": 2, "targets": "soft"},
            lambda x: focal(x, soft, 0.25, 2),
        ),
        "dice": ({"loss": "dice"}, lambda x: dice(x, targets)),
        "dice_soft": ({"loss": "dice", "targets": "soft"}, lambda x: dice(x, soft)),
    }
    tensors = {"logits": logits, "weights": weights, "targets": targets, "soft": soft, "iou": iou}
    for name, (_, function) in cases.items():
        x = logits.clone().requires_grad_()
        loss = function(x)
        tensors[f"{name}.loss"] = loss.detach()
        tensors[f"{name}.grad"] = torch.autograd.grad((loss * weights).sum(), x)[0]
    x, y = logits.clone().requires_grad_(), iou.clone().requires_grad_()
    loss = segment(x, targets, y)
    tensors["segment.loss"] = loss.detach()
    tensors["segment.grad"], tensors["segment.iou_grad"] = torch.autograd.grad(loss, (x, y))
    safetensors.torch.save_file(
        {key: value.contiguous().clone() for key, value in tensors.items()},
        ROOT / "mask_losses.safetensors",
        metadata={"config": json.dumps({name: config for name, (config, _) in cases.items()})},
    )
    print("ops/mask_losses")


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
