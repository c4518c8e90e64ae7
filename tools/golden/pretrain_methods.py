# SPDX-License-Identifier: Apache-2.0
"""Fixture of the methods of pretraining: tests/fixtures/train/pretrain_methods.safetensors.

A tiny Vision Transformer of timm (`model.NAME`) and two global and three local views of four images (`view_0` to
`view_4`), in float64, learn by each method for three steps of torch's AdamW with the rate 1e-3 and weight decay 0.05
(none for vectors, biases and tokens):

- `diet`: cross-entropy with label smoothing 0.3; the label of image i is 2 i.
- `lejepa`: its invariance term alone.  The regulariser has drawn directions and a fixture of its own (ops).
- `dino`: DINOHead, DINOLoss and the update of the teacher of facebookresearch/dino, with the last layer frozen in the
  first step, and a momentum of 0.9.

METHOD.layers.NAME are the layers behind the model at the start, METHOD.loss_STEP the losses, METHOD.grad.NAME two
gradients of the first step, and METHOD.after.NAME all weights after the last step.
"""

import copy
import pathlib
import zlib

import safetensors.torch
import torch
from timm.models import VisionTransformer
from torch import nn
from torch.nn import functional as F

ROOT = pathlib.Path(__file__).resolve().parents[2] / "tests" / "fixtures" / "train"
IMAGES, WIDTH, HIDDEN, OUT, STEPS = 4, 16, 8, 6, 3
GLOBAL, LOCAL = (16, 2), (8, 3)  # side, views


def draw(name, *shape, scale=1.0):
    seed = zlib.crc32(f"{name} {shape}".encode())
    return (torch.randn(shape, generator=torch.Generator().manual_seed(seed)) * scale).double()


def draw_weights(module, prefix):
    for name, parameter in module.named_parameters():
        scale = 0.2 if parameter.dim() < 2 else parameter[0].numel() ** -0.5
        offset = 1.0 if "norm" in name and name.endswith("weight") else 0.0
        parameter.data = draw(prefix + name, *parameter.shape, scale=scale) + offset


def backbone():
    sizes = {"img_size": 16, "patch_size": 4, "embed_dim": WIDTH, "depth": 1, "num_heads": 2, "mlp_ratio": 2}
    model = VisionTransformer(**sizes, num_classes=0, dynamic_img_size=True).double()
    draw_weights(model, "model.")
    return model


class Projector(nn.Module):
    def __init__(self):
        super().__init__()
        self.fc1, self.norm1 = nn.Linear(WIDTH, HIDDEN), nn.BatchNorm1d(HIDDEN)
        self.fc2, self.norm2 = nn.Linear(HIDDEN, HIDDEN), nn.BatchNorm1d(HIDDEN)
        self.fc3 = nn.Linear(HIDDEN, OUT)

    def forward(self, x):
        return self.fc3(F.relu(self.norm2(self.fc2(F.relu(self.norm1(self.fc1(x)))))))


class DinoHead(nn.Module):
    """DINOHead with three layers and norm_last_layer: the weight's rows have length 1."""

    def __init__(self):
        super().__init__()
        self.fc1, self.fc2, self.fc3 = nn.Linear(WIDTH, HIDDEN), nn.Linear(HIDDEN, HIDDEN), nn.Linear(HIDDEN, 256)
        self.last_layer = nn.Parameter(torch.zeros(OUT, 256))

    def forward(self, x):
        x = F.normalize(self.fc3(F.gelu(self.fc2(F.gelu(self.fc1(x))))), dim=-1)
        return x @ (self.last_layer / self.last_layer.norm(dim=1, keepdim=True)).T


class Classifier(nn.Module):
    def __init__(self, name, out, bias):
        super().__init__()
        setattr(self, name, nn.Linear(WIDTH, out, bias=bias))

    def forward(self, x):
        return next(iter(self.children()))(x)


def of_all_views(model, views):
    """DINO's MultiCropWrapper: views of one size together; the result is in the order of the views."""
    return torch.cat([model(torch.cat(views[:2])), model(torch.cat(views[2:]))])


def lejepa_loss(model, layers, views):
    z = layers(of_all_views(model, views)).view(len(views), IMAGES, OUT)
    return (z - z[:2].mean(0)).square().mean()


class DinoLoss:
    """DINOLoss: targets of two global views for all other views."""

    def __init__(self, model, layers):
        self.teacher, self.teacher_head = copy.deepcopy(model), copy.deepcopy(layers)
        self.center = torch.zeros(1, OUT, dtype=torch.float64)

    def __call__(self, model, layers, views):
        student = (layers(of_all_views(model, views)) / 0.1).chunk(len(views))
        with torch.no_grad():
            logits = self.teacher_head(self.teacher(torch.cat(views[:2])))
            teacher = F.softmax((logits - self.center) / 0.04, dim=-1).chunk(2)
            self.center = self.center * 0.9 + logits.mean(0, keepdim=True) * 0.1
        terms = []
        for q, target in enumerate(teacher):
            for v, logits in enumerate(student):
                if v != q:
                    terms.append((-target * F.log_softmax(logits, dim=-1)).sum(-1).mean())
        return sum(terms) / len(terms)

    def end_step(self, model, layers, momentum):
        for average, weights in ((self.teacher, model), (self.teacher_head, layers)):
            for a, w in zip(average.parameters(), weights.parameters(), strict=True):
                a.data.mul_(momentum).add_((1 - momentum) * w.detach())


def groups(modules):
    decayed, others = [], []
    for module in modules:
        for name, parameter in module.named_parameters():
            is_token = name in ("cls_token", "pos_embed")
            (others if parameter.dim() < 2 or name.endswith("bias") or is_token else decayed).append(parameter)
    return [{"params": decayed, "weight_decay": 0.05}, {"params": others, "weight_decay": 0.0}]


def learn(method, layers, loss_of, tensors):
    layers = layers.double().train()
    draw_weights(layers, method + ".")
    model = backbone()
    tensors.update({f"{method}.layers.{name}": p.detach().clone() for name, p in layers.named_parameters()})
    views = [tensors[f"view_{i}"] for i in range(GLOBAL[1] + LOCAL[1])]
    dino = DinoLoss(model, layers) if method == "dino" else None
    optimizer = torch.optim.AdamW(groups([model, layers]), lr=1e-3)
    for step in range(STEPS):
        loss = (dino or loss_of)(model, layers, views)
        optimizer.zero_grad()
        loss.backward()
        if dino and step == 0:
            # cancel_gradients_last_layer.  vitrail's bias correction counts the step also for this layer.
            layers.last_layer.grad = None
            optimizer.state[layers.last_layer] = {
                "step": torch.tensor(1.0),
                "exp_avg": torch.zeros_like(layers.last_layer),
                "exp_avg_sq": torch.zeros_like(layers.last_layer),
            }
        tensors[f"{method}.loss_{step}"] = loss.detach()
        if step == 0:
            for name in ("patch_embed.proj.weight", "blocks.0.attn.qkv.weight"):
                tensors[f"{method}.grad.{name}"] = model.get_parameter(name).grad.clone()
        optimizer.step()
        if dino:
            dino.end_step(model, layers, 0.9)
    after = dict(model.named_parameters())
    after |= {f"pretrain.head.{n}" if dino else f"pretrain.{n}": p for n, p in layers.named_parameters()}
    if dino:
        after |= {f"pretrain.teacher.{name}": p for name, p in dino.teacher.named_parameters()}
        after |= {f"pretrain.teacher_head.{name}": p for name, p in dino.teacher_head.named_parameters()}
        after["pretrain.center"] = dino.center
    tensors.update({f"{method}.after.{name}": p.detach().clone() for name, p in after.items()})


def main():
    tensors = {f"model.{name}": p.detach().clone() for name, p in backbone().named_parameters()}
    for i in range(GLOBAL[1] + LOCAL[1]):
        side = GLOBAL[0] if i < GLOBAL[1] else LOCAL[0]
        tensors[f"view_{i}"] = draw(f"view {i}", IMAGES, 3, side, side)
    labels = 2 * torch.arange(IMAGES)
    learn(
        "diet",
        Classifier("classifier", 9, False),
        lambda model, layers, views: F.cross_entropy(layers(model(views[0])), labels, label_smoothing=0.3),
        tensors,
    )
    learn("lejepa", Projector(), lejepa_loss, tensors)
    learn("dino", DinoHead(), None, tensors)
    path = ROOT / "pretrain_methods.safetensors"
    safetensors.torch.save_file({name: t.float().contiguous() for name, t in tensors.items()}, path)
    print("train/pretrain_methods")


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
