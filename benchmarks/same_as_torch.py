#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The same training in vitrail and in PyTorch, fp32: how far apart do the weights end?

usage: benchmarks/same_as_torch.py [--steps 200] [--program build/release/benchmarks/training_steps]
From the same weights and batches, `cifar_vit_d192` is trained by AdamW three times: by PyTorch on one thread, by PyTorch on
two, and by vitrail.  Rounding alone separates the first two; vitrail is to stay within three times their distance.
Needs torch, timm and safetensors (tools/golden/requirements.txt).
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

BATCHES, BATCH, RATE, SMOOTHING = 20, 32, 3e-4, 0.1
ARGS = {"img_size": 32, "patch_size": 4, "embed_dim": 192, "depth": 9, "num_heads": 12, "mlp_ratio": 2, "num_classes": 10}


def make_batches():
    """Pictures with something to learn: each class has a pattern, under noise."""
    draw = torch.Generator().manual_seed(1)
    patterns = torch.randn(10, 3, 32, 32, generator=draw)
    labels = torch.randint(0, 10, (BATCHES, BATCH), generator=draw)
    return 0.5 * patterns[labels] + torch.randn(BATCHES, BATCH, 3, 32, 32, generator=draw), labels


def train(model, images, labels, steps, threads):
    torch.set_num_threads(threads)
    model = copy.deepcopy(model).train()
    spared = lambda name, p: p.dim() <= 1 or name in ("pos_embed", "cls_token")
    named = list(model.named_parameters())
    groups = [{"params": [p for n, p in named if not spared(n, p)], "weight_decay": 0.05},
              {"params": [p for n, p in named if spared(n, p)], "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=RATE)
    losses = []
    for step in range(steps):
        loss = torch.nn.functional.cross_entropy(model(images[step % BATCHES]), labels[step % BATCHES], label_smoothing=SMOOTHING)
        losses.append(loss.item())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return {name: p.detach().clone() for name, p in model.named_parameters()}, losses


def distance(a, b):
    """Relative L2 distance of all weights."""
    difference = sum(((a[k].double() - b[k].double()) ** 2).sum() for k in a)
    return (difference / sum((a[k].double() ** 2).sum() for k in a)).sqrt().item()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--program", default="build/release/benchmarks/training_steps")
    options = parser.parse_args()
    torch.manual_seed(0)
    model = VisionTransformer(**ARGS)
    images, labels = make_batches()
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "config.json").write_text(json.dumps({"architecture": "vit", "num_classes": 10, "model_args": ARGS}))
        safetensors.torch.save_file(model.state_dict(), folder / "model.safetensors")
        safetensors.torch.save_file({"images": images, "labels": labels}, folder / "batches.safetensors")
        subprocess.run([options.program, folder, str(options.steps), str(RATE), str(SMOOTHING)], check=True)
        ours = safetensors.torch.load_file(folder / "vitrail.safetensors")
    one, losses_one = train(model, images, labels, options.steps, 1)
    two, losses_two = train(model, images, labels, options.steps, 2)
    own_losses = ours.pop("losses").tolist()
    between = lambda a, b: max(abs(x - y) for x, y in zip(a, b))
    print(f"{options.steps} steps of AdamW, loss {losses_one[0]:.4f} -> {losses_one[-1]:.4f}")
    print(f"PyTorch, 1 thread to 2 threads: weights {distance(one, two):.3e}, losses {between(losses_one, losses_two):.3e}")
    print(f"PyTorch, 1 thread to vitrail:   weights {distance(one, ours):.3e}, losses {between(losses_one, own_losses):.3e}")
    print(f"ratio of the weights' distances: {distance(one, ours) / distance(one, two):.2f}")


if __name__ == "__main__":
    main()
