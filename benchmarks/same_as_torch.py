#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares a training in vitrail with the same training in PyTorch, in fp32.

usage: benchmarks/same_as_torch.py [--steps 200] [--program build/release/benchmarks/training_steps]

AdamW trains `cifar_vit_d192` three times from the same weights and batches: in PyTorch on one thread, in PyTorch on two
threads, and in vitrail.  The two trainings in PyTorch differ by rounding only.  The weights of vitrail should be within
three times that distance of PyTorch.  Needs torch, timm and safetensors (tools/golden/requirements.txt).
"""

import argparse
import copy
import json
import pathlib
import subprocess
import tempfile

import safetensors.torch
import torch
from timm.models.vision_transformer import VisionTransformer

BATCHES, BATCH, LEARNING_RATE, LABEL_SMOOTHING = 20, 32, 3e-4, 0.1
ARGS = {
    "img_size": 32,
    "patch_size": 4,
    "embed_dim": 192,
    "depth": 9,
    "num_heads": 12,
    "mlp_ratio": 2,
    "num_classes": 10,
}


def make_batches():
    """Images that can be learned: each class has a pattern, with noise added."""
    draw = torch.Generator().manual_seed(1)
    patterns = torch.randn(10, 3, 32, 32, generator=draw)
    labels = torch.randint(0, 10, (BATCHES, BATCH), generator=draw)
    return 0.5 * patterns[labels] + torch.randn(BATCHES, BATCH, 3, 32, 32, generator=draw), labels


def has_decay(name, parameter):
    return parameter.dim() > 1 and name not in ("pos_embed", "cls_token")


def train(model, images, labels, steps, threads):
    """(the trained weights, the loss of each step)"""
    torch.set_num_threads(threads)
    model = copy.deepcopy(model).train()
    named = list(model.named_parameters())
    groups = [
        {"params": [p for name, p in named if has_decay(name, p)], "weight_decay": 0.05},
        {"params": [p for name, p in named if not has_decay(name, p)], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=LEARNING_RATE)
    losses = []
    for step in range(steps):
        logits = model(images[step % BATCHES])
        loss = torch.nn.functional.cross_entropy(logits, labels[step % BATCHES], label_smoothing=LABEL_SMOOTHING)
        losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return {name: p.detach().clone() for name, p in model.named_parameters()}, losses


def weight_distance(a, b):
    """Relative L2 distance of all weights."""
    difference = sum(((a[k].double() - b[k].double()) ** 2).sum() for k in a)
    return (difference / sum((a[k].double() ** 2).sum() for k in a)).sqrt().item()


def max_difference(a, b):
    return max(abs(x - y) for x, y in zip(a, b, strict=True))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--program", default="build/release/benchmarks/training_steps")
    options = parser.parse_args()
    torch.manual_seed(0)
    model = VisionTransformer(**ARGS)
    images, labels = make_batches()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        (folder / "config.json").write_text(json.dumps({"architecture": "vit", "num_classes": 10, "model_args": ARGS}))
        safetensors.torch.save_file(model.state_dict(), folder / "model.safetensors")
        safetensors.torch.save_file({"images": images, "labels": labels}, folder / "batches.safetensors")
        subprocess.run(
            [options.program, folder, str(options.steps), str(LEARNING_RATE), str(LABEL_SMOOTHING)], check=True
        )
        vitrail = safetensors.torch.load_file(folder / "vitrail.safetensors")
    vitrail_losses = vitrail.pop("losses").tolist()
    one, one_losses = train(model, images, labels, options.steps, 1)
    two, two_losses = train(model, images, labels, options.steps, 2)
    print(f"{options.steps} steps of AdamW, loss {one_losses[0]:.4f} -> {one_losses[-1]:.4f}")
    print(
        f"PyTorch, 1 thread to 2 threads: weights {weight_distance(one, two):.3e}, "
        f"losses {max_difference(one_losses, two_losses):.3e}"
    )
    print(
        f"PyTorch, 1 thread to vitrail:   weights {weight_distance(one, vitrail):.3e}, "
        f"losses {max_difference(one_losses, vitrail_losses):.3e}"
    )
    print(f"ratio of the distances: {weight_distance(one, vitrail) / weight_distance(one, two):.2f}")


if __name__ == "__main__":
    main()
