# SPDX-License-Identifier: Apache-2.0
"""Fixture of training RF-DETR: tests/fixtures/rf_detr/training.safetensors.

Ten steps of gradient descent of the model of tests/fixtures/rf_detr/windows on `images` with the objects `classes_N`
and `boxes_N`, with all groups of queries: `losses` before each step, in float64.
"""

import safetensors.torch
import torch
import transformers
from losses import draw
from rf_detr import ROOT

STEPS, RATE = 10, 1e-3


def main():
    model = transformers.RfDetrForObjectDetection.from_pretrained(ROOT / "windows", dropout=0.0).double().train()
    images = draw("images", 2, 3, 64, 64).half().double()
    labels, tensors = [], {"images": images.half()}
    for i, count in enumerate((3, 1)):
        boxes = draw(f"boxes {i}", count, 4).sigmoid()
        boxes[:, 2:] = 0.1 + 0.4 * boxes[:, 2:]
        labels.append({"class_labels": torch.arange(count) + 1, "boxes": boxes.float().double()})
        tensors |= {f"classes_{i}": labels[-1]["class_labels"], f"boxes_{i}": boxes.float()}
    optimizer, losses = torch.optim.SGD(model.parameters(), RATE), []
    for _ in range(STEPS):
        loss = model(images, labels=labels).loss
        losses.append(loss.detach())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(torch.stack(losses))
    tensors["losses"] = torch.stack(losses)
    safetensors.torch.save_file(tensors, ROOT / "training.safetensors")


if __name__ == "__main__":
    main()
