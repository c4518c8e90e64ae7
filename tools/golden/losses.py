# SPDX-License-Identifier: Apache-2.0
"""Fixtures of loss functions: tests/fixtures/ops/losses.safetensors.

A case NAME has `NAME.loss` and `NAME.grad` (the gradient with respect to the logits, in float64 by PyTorch's autograd)
for the common tensors `logits`, `teacher`, `labels` and `soft`.  The metadata's "config" has the options of each case.
"""

import json
import pathlib
import zlib

import safetensors.torch
import torch
from timm.loss import BinaryCrossEntropy, LabelSmoothingCrossEntropy, SoftTargetCrossEntropy
from torch.nn import functional as F

ROOT = pathlib.Path(__file__).resolve().parents[2] / "tests" / "fixtures" / "ops"


def draw(name, *shape, scale=1.0):
    """N(0, scale²), exactly representable in float32, seeded by name and shape."""
    seed = zlib.crc32(f"{name} {shape}".encode())
    return (torch.randn(shape, generator=torch.Generator().manual_seed(seed)) * scale).double()


def deit(student, teacher, temperature, per_element):
    """DeiT's soft distillation.  Its code divides by the number of elements, Hinton et al. by the batch size."""
    log_p, log_q = F.log_softmax(teacher / temperature, 1), F.log_softmax(student / temperature, 1)
    total = F.kl_div(log_q, log_p, reduction="sum", log_target=True) * temperature**2
    return total / (student.numel() if per_element else student.shape[0])


def main():
    rows, cols = 6, 11
    logits, teacher = draw("logits", rows, cols, scale=3.0), draw("teacher", rows, cols, scale=3.0)
    labels = torch.tensor([0, 10, 3, 3, 7, 1])
    mixed = draw("mix", rows).sigmoid()[:, None]
    soft = (mixed * F.one_hot(labels, cols) + (1 - mixed) * F.one_hot(labels.flip(0), cols)).float().double()
    weights = soft * 1.5  # rows that do not sum to 1
    class_weights = draw("class weights", cols).exp().float().double()
    several = (draw("several", rows, cols) > 0.8).double()  # some rows have several labels, or none
    cases = {
        "ce": ({"loss": "ce"}, lambda x: F.cross_entropy(x, labels)),
        "ce_smooth": ({"loss": "ce", "smoothing": 0.1}, lambda x: F.cross_entropy(x, labels, label_smoothing=0.1)),
        "ce_timm": ({"loss": "ce", "smoothing": 0.1}, lambda x: LabelSmoothingCrossEntropy(0.1)(x, labels)),
        "ce_soft": ({"loss": "ce", "targets": "soft"}, lambda x: F.cross_entropy(x, soft)),
        "ce_soft_timm": ({"loss": "ce", "targets": "soft"}, lambda x: SoftTargetCrossEntropy()(x, soft)),
        "ce_soft_smooth": (
            {"loss": "ce", "targets": "soft", "smoothing": 0.2},
            lambda x: F.cross_entropy(x, soft, label_smoothing=0.2),
        ),
        "ce_weights": ({"loss": "ce", "targets": "weights"}, lambda x: F.cross_entropy(x, weights)),
        "ce_class_weights": (
            {"loss": "ce", "class_weights": True},
            lambda x: F.cross_entropy(x, labels, weight=class_weights),
        ),
        "ce_class_weights_smooth": (
            {"loss": "ce", "class_weights": True, "smoothing": 0.1},
            lambda x: F.cross_entropy(x, labels, weight=class_weights, label_smoothing=0.1),
        ),
        "ce_class_weights_soft": (
            {"loss": "ce", "class_weights": True, "smoothing": 0.1, "targets": "soft"},
            lambda x: F.cross_entropy(x, soft, weight=class_weights, label_smoothing=0.1),
        ),
        "ce_ignored": (
            {"loss": "ce", "ignored": 3},
            lambda x: F.cross_entropy(x, labels, ignore_index=3),
        ),
        "ce_ignored_smooth": (
            {"loss": "ce", "ignored": 3, "smoothing": 0.1},
            lambda x: F.cross_entropy(x, labels, ignore_index=3, label_smoothing=0.1),
        ),
        "ce_ignored_class_weights_smooth": (
            {"loss": "ce", "ignored": 3, "class_weights": True, "smoothing": 0.1},
            lambda x: F.cross_entropy(x, labels, weight=class_weights, ignore_index=3, label_smoothing=0.1),
        ),
        "bce_several": (
            {"loss": "bce", "targets": "several"},
            lambda x: F.binary_cross_entropy_with_logits(x, several),
        ),
        "bce": ({"loss": "bce"}, lambda x: BinaryCrossEntropy(0.0)(x, labels)),
        "bce_smooth": ({"loss": "bce", "smoothing": 0.1}, lambda x: BinaryCrossEntropy(0.1)(x, labels)),
        "bce_soft": ({"loss": "bce", "targets": "soft", "smoothing": 0.1}, lambda x: BinaryCrossEntropy(0.1)(x, soft)),
        "bce_threshold": (
            {"loss": "bce", "targets": "soft", "threshold": 0.2},
            lambda x: BinaryCrossEntropy(0.0, target_threshold=0.2)(x, soft),
        ),
        "bce_sum": (
            {"loss": "bce", "smoothing": 0.1, "sum_classes": True},
            lambda x: BinaryCrossEntropy(0.1, sum_classes=True)(x, labels),
        ),
        "hard": ({"loss": "distillation", "hard": True}, lambda x: F.cross_entropy(x, teacher.argmax(1))),
    }
    for temperature in (1.0, 3.0):
        for per_element in (False, True):
            cases[f"soft_{temperature:.0f}_{per_element}"] = (
                {"loss": "distillation", "temperature": temperature, "per_element": per_element},
                lambda x, t=temperature, e=per_element: deit(x, teacher, t, e),
            )
    tensors = {"logits": logits, "teacher": teacher, "labels": labels, "soft": soft}
    tensors |= {"weights": weights, "class_weights": class_weights, "several": several}
    for name, (_, function) in cases.items():
        x = logits.clone().requires_grad_()
        loss = function(x)
        tensors[f"{name}.loss"], tensors[f"{name}.grad"] = loss.detach(), torch.autograd.grad(loss, x)[0]
    ROOT.mkdir(parents=True, exist_ok=True)
    safetensors.torch.save_file(
        {key: value.contiguous().clone() for key, value in tensors.items()},
        ROOT / "losses.safetensors",
        metadata={"config": json.dumps({name: config for name, (config, _) in cases.items()})},
    )
    print("ops/losses")


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
