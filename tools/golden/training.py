# SPDX-License-Identifier: Apache-2.0
"""Fixtures of training runs, tests/fixtures/train/steps_*: 50 steps of AdamW in float64 on timm's VisionTransformer.

Each has the initial and final weights, the batches, and the loss of every step.  As in vitrail, weight decay does not
apply to vectors, position embeddings and prefix tokens.
"""

import json
import pathlib

import safetensors.torch
import torch
from timm.models.vision_transformer import VisionTransformer

ROOT = pathlib.Path(__file__).resolve().parents[2] / "tests" / "fixtures" / "train"
STEPS, BATCHES, BATCH, RATE, DECAY, SMOOTHING = 50, 3, 6, 1e-3, 0.05, 0.1
BASE = {"img_size": 8, "patch_size": 4, "embed_dim": 16, "depth": 2, "num_heads": 2, "mlp_ratio": 2, "num_classes": 4}
CASES = {
    "plain": {},
    "options": {"class_token": False, "global_pool": "avg", "init_values": 0.1, "qk_norm": True, "reg_tokens": 2},
}


def train(name, options):
    torch.manual_seed(3)
    torch.set_num_threads(1)
    model = VisionTransformer(**BASE, **options)
    with torch.no_grad():
        for parameter in model.parameters():  # makes the head and the biases non-zero; exact in float32
            parameter.add_(0.05 * torch.randn(parameter.shape))
    before = {f"before.{key}": p.detach().clone() for key, p in model.named_parameters()}
    images, labels = torch.randn(BATCHES, BATCH, 3, 8, 8), torch.randint(0, 4, (BATCHES, BATCH))
    model.double().train()
    no_decay = [
        p for key, p in model.named_parameters() if p.dim() <= 1 or key in ("pos_embed", "cls_token", "reg_token")
    ]
    decayed = [p for p in model.parameters() if not any(p is s for s in no_decay)]
    optimizer = torch.optim.AdamW(
        [{"params": decayed, "weight_decay": DECAY}, {"params": no_decay, "weight_decay": 0.0}], lr=RATE
    )
    losses = []
    for step in range(STEPS):
        logits = model(images[step % BATCHES].double())
        loss = torch.nn.functional.cross_entropy(logits, labels[step % BATCHES], label_smoothing=SMOOTHING)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    after = {f"after.{key}": p.detach().clone() for key, p in model.named_parameters()}
    config = {"model_args": {**BASE, **options}, "rate": RATE, "decay": DECAY, "smoothing": SMOOTHING}
    tensors = {
        **before,
        **after,
        "images": images,
        "labels": labels,
        "losses": torch.tensor(losses, dtype=torch.float64),
    }
    safetensors.torch.save_file(
        {k: v.contiguous() for k, v in tensors.items()},
        ROOT / f"steps_{name}.safetensors",
        metadata={"config": json.dumps(config)},
    )
    print(f"train/steps_{name}: loss {losses[0]:.4f} -> {losses[-1]:.4f}")


if __name__ == "__main__":
    ROOT.mkdir(parents=True, exist_ok=True)
    for name, options in CASES.items():
        train(name, options)
