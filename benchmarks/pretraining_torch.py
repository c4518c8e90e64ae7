#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Repeats a run of `vitrail pretrain` in PyTorch: prints {"losses", "step_ms", "compute_ms"} as one line of JSON.

usage: benchmarks/pretraining_torch.py RUN OUT [--threads 2] [--workers 1] [--prepared STEPS]

RUN is the folder of a finished run.  Its recipe.json gives the method, the images and all settings, and the
config.json of its last weights gives the model, which timm makes.  The trained model is written to OUT with that
config.json, so that vitrail opens it.

The images are decoded before the first step.  Worker processes augment them with torchvision while the model learns.
`step_ms` is the mean time of a step of the last epoch, and includes waiting for images.  `compute_ms` is that of STEPS
more steps with two batches that are ready.  A teacher's features are computed before the first step.
"""

import argparse
import copy
import functools
import json
import math
import pathlib
import shutil
import time

import numpy
import safetensors.torch
import timm
import timm.optim
import torch
from PIL import Image, ImageFilter, ImageOps
from timm.layers.pos_embed_sincos import build_sincos2d_pos_embed
from timm.models.vision_transformer import Block
from torch import nn
from torch.nn import functional as F
from torchvision import transforms


def read_json(path):
    return json.loads(path.read_text())


class Run:
    """What a run's folder says."""

    patch = None  # side of a patch, set with the model

    def __init__(self, folder):
        self.recipe, self.config = read_json(folder / "recipe.json"), read_json(folder / "last" / "config.json")
        self.pretrain, self.preprocessing = self.recipe["pretrain"], self.config["pretrained_cfg"]
        self.seed, self.batch, self.epochs = (self.recipe[key] for key in ("seed", "batch_size", "epochs"))
        self.side = self.preprocessing["input_size"][1]
        self.images = self.training_images()
        self.steps = len(self.images) // self.batch

    def training_images(self):
        """The decoded images of the list, without as many as vitrail holds out."""
        path = pathlib.Path(self.recipe["data"]["train"])
        names = path.read_text().split()
        order = numpy.random.default_rng(self.seed).permutation(len(names))[self.recipe["data"]["holdout"] :]
        return [Image.open(path.parent / names[i]).convert("RGB") for i in sorted(order)]

    def draw(self, *parts):
        """A seed of its own for the numbers `parts`."""
        return int(numpy.random.SeedSequence([self.seed, *parts]).generate_state(1)[0])


# --- Views -----------------------------------------------------------------------------------------------------------


class Blur:
    def __call__(self, image):
        return image.filter(ImageFilter.GaussianBlur(torch.empty(1).uniform_(0.1, 2.0).item()))


class Solarize:
    def __call__(self, image):
        return ImageOps.solarize(image, 128)


def view_of(run, side, scale, blur=0.0, solarize=0.0):
    """The recipe's augmentation for a view of this side and these shares of the image's area."""
    augment, crop = run.recipe["augment"], run.recipe["augment"]["random_resized_crop"]
    steps = [
        transforms.RandomResizedCrop(side, scale, crop["ratio"], transforms.InterpolationMode.BICUBIC),
        transforms.RandomHorizontalFlip(0.5 if augment["flip"] == "random" else 0.0),
    ]
    if augment["color_jitter"]:
        jitter = dict(augment["color_jitter"])
        probability = jitter.pop("probability")
        steps.append(transforms.RandomApply([transforms.ColorJitter(**jitter)], probability))
    steps.append(transforms.RandomGrayscale(augment["grayscale"]))
    steps += [transforms.RandomApply([Blur()], blur)] if blur else []
    steps += [transforms.RandomApply([Solarize()], solarize)] if solarize else []
    return transforms.Compose(
        [*steps, transforms.ToTensor(), transforms.Normalize(run.preprocessing["mean"], run.preprocessing["std"])]
    )


def local_side(run):
    """By default 3/7 of the image in whole patches: 96 of 224 pixels."""
    return run.pretrain["local_size"] or max(1, round(3 / 7 * run.side / run.patch)) * run.patch


def views_of(run):
    """The augmentations of an image's views, one for each view."""
    p = run.pretrain
    if p["method"] == "lejepa":
        groups = [view_of(run, run.side, p["global_scale"])] * p["global_views"]
        return groups + [view_of(run, local_side(run), p["local_scale"])] * p["local_views"]
    if p["method"] == "dino":
        first = view_of(run, run.side, p["global_scale"], blur=1.0)
        second = view_of(run, run.side, p["global_scale"], blur=0.1, solarize=0.2)
        return [first, second] + [view_of(run, local_side(run), p["local_scale"], blur=0.5)] * p["local_views"]
    return [view_of(run, run.side, run.recipe["augment"]["random_resized_crop"]["scale"])]


class Views(torch.utils.data.Dataset):
    """Views of the image of a key (epoch, position).  The draws are a function of the key."""

    def __init__(self, run):
        self.run, self.views = run, views_of(run)

    def __getitem__(self, key):
        torch.manual_seed(self.run.draw(*key))
        return [view(self.run.images[key[1]]) for view in self.views], *key


def loader_of(run, keys, workers):
    """A loader of the batches of keys."""
    return torch.utils.data.DataLoader(Views(run), batch_sampler=keys, num_workers=workers)


def training_keys(run):
    keys = []
    for epoch in range(run.epochs):
        order = numpy.random.default_rng(run.draw(epoch)).permutation(len(run.images))
        draw = epoch % run.pretrain["views"] if run.pretrain["method"] == "distill" else epoch
        keys += [[(draw, int(i)) for i in order[s * run.batch : (s + 1) * run.batch]] for s in range(run.steps)]
    return keys


# --- Methods ---------------------------------------------------------------------------------------------------------


def features_of(model, views):
    """The features of all views; those of one size together."""
    sides = [view.shape[-1] for view in views]
    return torch.cat(
        [model(torch.cat([v for v in views if v.shape[-1] == side])) for side in sorted(set(sides), reverse=True)]
    ).float()


class Method(nn.Module):
    """The layers that are no part of the model; called, the loss of a batch (views, epochs, positions)."""

    def __init__(self, run):
        super().__init__()
        self.run, self.pretrain = run, run.pretrain

    def prepare(self, workers):
        """What is computed before the first step."""

    def end_step(self, model, progress):
        """After a step of the optimiser; `progress` is the share of the steps that are done."""

    def saved(self, model):
        return model


class Diet(Method):
    """Each image is a class (arXiv 2302.10260)."""

    def __init__(self, run, model):
        super().__init__(run)
        self.classifier = nn.Linear(model.num_features, len(run.images), bias=False)

    def forward(self, model, views, epochs, positions):
        logits = self.classifier(model(views[0])).float()
        return F.cross_entropy(logits, positions, label_smoothing=self.run.recipe["loss"]["label_smoothing"])


def sigreg(z, directions):
    """Epps–Pulley's test of normality of z [V, B, K] in each direction, by the trapezoidal rule on 17 knots."""
    knots = torch.linspace(0, 3, 17)
    phi = torch.exp(-knots.square() / 2)
    weights = torch.full((17,), 2 * 3 / 16)
    weights[[0, -1]] = 3 / 16
    angles = (z @ directions)[..., None] * knots
    error = (angles.cos().mean(-3) - phi).square() + angles.sin().mean(-3).square()
    return z.shape[1] * (error @ (weights * phi)).mean()


class Lejepa(Method):
    """Views of an image have close projections, and SIGReg keeps them close to normal draws (arXiv 2511.08544)."""

    def __init__(self, run, model):
        super().__init__(run)
        if self.pretrain["regularizer"] != "sigreg":
            raise SystemExit(f"regularizer {self.pretrain['regularizer']}: only sigreg is written in PyTorch")
        hidden = self.pretrain["projector_dim"]
        self.projector = nn.Sequential(
            *(nn.Linear(model.num_features, hidden), nn.BatchNorm1d(hidden), nn.ReLU()),
            *(nn.Linear(hidden, hidden), nn.BatchNorm1d(hidden), nn.ReLU()),
            nn.Linear(hidden, self.pretrain["projection_dim"]),
        )

    def forward(self, model, views, epochs, positions):
        z = self.projector(features_of(model, views)).float().unflatten(0, (len(views), -1))
        weight = 0.02 if self.pretrain["lambda"] is None else self.pretrain["lambda"]
        directions = F.normalize(torch.randn(z.shape[-1], self.pretrain["directions"]), dim=0)
        with torch.autocast("cpu", enabled=False):
            invariance = (z - z[: self.pretrain["global_views"]].mean(0)).square().mean()
            return (1 - weight) * invariance + weight * sigreg(z, directions)


class Mae(Method):
    """The model sees a part of the patches; a decoder predicts the pixels of the others (arXiv 2111.06377)."""

    def __init__(self, run, model):
        super().__init__(run)
        self.patch, self.grid = run.patch, model.patch_embed.grid_size
        width = self.pretrain["decoder_dim"] or max(1, (2 * model.embed_dim // 3 + 16) // 32) * 32
        self.embed, norm = nn.Linear(model.embed_dim, width), functools.partial(nn.LayerNorm, eps=1e-6)
        self.mask_token = nn.Parameter(torch.empty(1, 1, width).normal_(std=0.02))
        heads, depth = max(1, width // 32), self.pretrain["decoder_depth"]
        self.blocks = nn.Sequential(*(Block(width, heads, qkv_bias=True, norm_layer=norm) for _ in range(depth)))
        self.norm, self.pred = norm(width), nn.Linear(width, 3 * self.patch**2)
        self.register_buffer("positions", self.sincos(model, width))
        for layers in [self] if run.recipe["model"]["init"] else [self, model]:
            layers.apply(self.draw)
        if not run.recipe["model"]["init"]:
            model.pos_embed.data = self.sincos(model, model.embed_dim)
            model.pos_embed.requires_grad = False

    @staticmethod
    def draw(module):
        """The authors' initialisation of linear layers and of the patch embedding, as a linear layer."""
        if isinstance(module, nn.Linear | nn.Conv2d):
            nn.init.xavier_uniform_(module.weight.data.flatten(1))
            nn.init.zeros_(module.bias)

    def sincos(self, model, width):
        """Fixed positions [1, prefix + patches, width]; prefix tokens have zeros."""
        patches = build_sincos2d_pos_embed(self.grid, width)
        return torch.cat([torch.zeros(model.num_prefix_tokens, width), patches])[None]

    def encode(self, model, images, kept):
        prefix = model.num_prefix_tokens
        x = model.patch_embed(images) + model.pos_embed[:, prefix:]
        x = x.gather(1, kept[..., None].expand(-1, -1, x.shape[-1]))
        if prefix:
            x = torch.cat([(model.cls_token + model.pos_embed[:, :prefix]).expand(len(x), -1, -1), x], 1)
        return model.norm(model.blocks(model.norm_pre(x)))

    def decode(self, tokens, order):
        """The pixels of all patches; `order` has the kept patches first."""
        x, prefix = self.embed(tokens), self.positions.shape[1] - order.shape[1]
        masks = self.mask_token.expand(len(x), self.positions.shape[1] - x.shape[1], -1)
        patches = torch.cat([x[:, prefix:], masks.to(x.dtype)], 1)
        patches = patches.gather(1, order.argsort(1)[..., None].expand_as(patches))
        x = self.blocks(torch.cat([x[:, :prefix], patches], 1) + self.positions)
        return self.pred(self.norm(x))[:, prefix:].float()

    def targets(self, images):
        pixels = images.unfold(2, self.patch, self.patch).unfold(3, self.patch, self.patch)
        pixels = pixels.permute(0, 2, 3, 1, 4, 5).flatten(3).flatten(1, 2)
        if not self.pretrain["norm_pix"]:
            return pixels
        return (pixels - pixels.mean(-1, keepdim=True)) / (pixels.var(-1, keepdim=True) + 1e-6).sqrt()

    def forward(self, model, views, epochs, positions):
        patches = self.grid[0] * self.grid[1]
        order = torch.rand(len(views[0]), patches).argsort(1)
        kept = order[:, : int(patches * (1 - self.pretrain["mask_ratio"]))]
        errors = (self.decode(self.encode(model, views[0], kept), order) - self.targets(views[0])).square().mean(-1)
        return errors.gather(1, order[:, kept.shape[1] :]).mean()


class Distill(Method):
    """The model learns the pooled features of a teacher by 1 − the cosine (arXiv 2312.06709)."""

    def __init__(self, run, model):
        super().__init__(run)
        folder = self.pretrain["teacher"]
        self.teacher = model_of(read_json(pathlib.Path(folder) / "config.json"), folder).eval().requires_grad_(False)
        self.projection = nn.Linear(model.num_features, self.teacher.num_features)
        if not self.pretrain["views"]:
            raise SystemExit("views 0: in PyTorch the teacher's features are cached")

    def as_teacher_input(self, images):
        """The same pixels with the teacher's size and normalisation."""
        own, teacher = self.run.preprocessing, self.teacher.pretrained_cfg
        mean, std = (torch.tensor(own[key]).view(3, 1, 1) for key in ("mean", "std"))
        teacher_mean, teacher_std = (torch.tensor(teacher[key]).view(3, 1, 1) for key in ("mean", "std"))
        pixels = F.interpolate(images * std + mean, teacher["input_size"][1:], mode="bicubic")
        return (pixels - teacher_mean) / teacher_std

    @torch.inference_mode()
    def prepare(self, workers):
        """The normalised features of all images in each view, [views, images, width]."""
        views, count = min(self.pretrain["views"], self.run.epochs), len(self.run.images)
        keys = [(view, i) for view in range(views) for i in range(count)]
        batches = [keys[i : i + 64] for i in range(0, len(keys), 64)]
        rows = [self.teacher(self.as_teacher_input(batch[0])) for batch, *_ in loader_of(self.run, batches, workers)]
        self.cache = F.normalize(torch.cat(rows), dim=-1).view(views, count, -1).clone()

    def forward(self, model, views, epochs, positions):
        features = self.projection(model(views[0])).float()
        targets = self.cache[epochs, positions]
        return (1 - (F.normalize(features, dim=-1) * targets).sum(-1)).mean()


class DinoHead(nn.Module):
    """The logits of directions of length 1 (weight normalisation with g = 1)."""

    def __init__(self, width, hidden, prototypes):
        super().__init__()
        layers = nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, hidden), nn.GELU(), nn.Linear(hidden, 256)
        self.layers, self.last = nn.Sequential(*layers), nn.Parameter(torch.empty(prototypes, 256))
        for parameter in self.parameters():
            nn.init.trunc_normal_(parameter, std=0.02) if parameter.dim() > 1 else nn.init.zeros_(parameter)

    def forward(self, x, learns_last=True):
        last = self.last if learns_last else self.last.detach()
        return (F.normalize(self.layers(x), dim=-1) @ F.normalize(last, dim=-1).T).float()


class Dino(Method):
    """The model learns from views what its moving average says of the two global ones (arXiv 2104.14294)."""

    def __init__(self, run, model):
        super().__init__(run)
        p = self.pretrain
        self.head = DinoHead(model.num_features, p["projector_dim"], p["prototypes"])
        self.teacher = copy.deepcopy(nn.ModuleList([model, self.head])).eval().requires_grad_(False)
        self.center = torch.zeros(1, p["prototypes"])

    @torch.no_grad()
    def targets(self, views):
        model, head = self.teacher
        logits = head(model(torch.cat(views[:2])))
        result = F.softmax((logits - self.center) / self.pretrain["teacher_temperature"], dim=-1)
        self.center = 0.9 * self.center + 0.1 * logits.mean(0, keepdim=True)
        return result.chunk(2)

    def forward(self, model, views, epochs, positions):
        learns_last = int(epochs[0]) > 0
        student = F.log_softmax(self.head(features_of(model, views), learns_last) / 0.1, dim=-1)
        targets, student = self.targets(views), student.chunk(len(views))
        pairs = [(target, s) for q, target in enumerate(targets) for v, s in enumerate(student) if v != q]
        return sum(-(target * s).sum(-1).mean() for target, s in pairs) / len(pairs)

    @torch.no_grad()
    def end_step(self, model, progress):
        momentum = 1 - (1 - self.pretrain["momentum"]) * (1 + math.cos(math.pi * progress)) / 2
        student = [*model.parameters(), *self.head.parameters()]
        torch._foreach_lerp_(list(self.teacher.parameters()), student, 1 - momentum)

    def saved(self, model):
        return self.teacher[0]


METHODS = {"diet": Diet, "lejepa": Lejepa, "mae": Mae, "distill": Distill, "dino": Dino}


# --- Training --------------------------------------------------------------------------------------------------------


def model_of(config, weights="", **more):
    """The model of a config.json without a head; `weights`: a folder with model.safetensors, or empty."""
    overlay = {"file": f"{weights}/model.safetensors"} if weights else None
    return timm.create_model(
        config["architecture"],
        pretrained=bool(weights),
        pretrained_cfg_overlay=overlay,
        num_classes=0,
        **config.get("model_args", {}) | more,
    )


def optimizer_of(run, model, method):
    o = run.recipe["optimizer"]
    groups = timm.optim.param_groups_layer_decay(model, o["weight_decay"], layer_decay=o["layer_decay"])
    for group in groups:
        group["peak"] = group["lr_scale"] * o["lr"]
    for group in timm.optim.param_groups_weight_decay(method, o["weight_decay"]):
        groups.append(group | {"peak": run.pretrain["head_lr"]})
    return torch.optim.AdamW(groups, lr=0.0, betas=(o["beta1"], o["beta2"]), fused=True)


def rate_share(run, step):
    """The learning rate of a step relative to the peak: a linear warm-up and a cosine."""
    schedule, total = run.recipe["schedule"], run.epochs * run.steps
    warmup = round(schedule["warmup_epochs"] * run.steps)
    if step < warmup:
        return step / warmup
    final = schedule["final_lr"] / run.recipe["optimizer"]["lr"]
    return final + (1 - final) * (1 + math.cos(math.pi * (step - warmup) / max(1, total - warmup))) / 2


def decay_share(run, step):
    """The weight decay of a step relative to the first one: a cosine to the final one, if there is one."""
    final, first = run.recipe["schedule"]["final_weight_decay"], run.recipe["optimizer"]["weight_decay"]
    if final is None:
        return 1.0
    return final / first + (1 - final / first) * (1 + math.cos(math.pi * step / (run.epochs * run.steps))) / 2


class Training:
    def __init__(self, run):
        torch.manual_seed(run.seed)
        local = run.pretrain["method"] in ("lejepa", "dino") and run.pretrain["local_views"] > 0
        size = {"dynamic_img_size": True} if local else {}
        self.run, self.model = run, model_of(run.config, run.recipe["model"]["init"], **size).train()
        run.patch = self.model.patch_embed.patch_size[0]
        self.method = METHODS[run.pretrain["method"]](run, self.model)
        self.optimizer = optimizer_of(run, self.model, self.method)
        for group in self.optimizer.param_groups:
            group["first_decay"] = group["weight_decay"]
        self.parameters = [p for group in self.optimizer.param_groups for p in group["params"]]

    def clip(self):
        maximum = self.run.recipe["clip"]
        each = [[parameter] for parameter in self.parameters]
        for parameters in each if self.run.recipe["clip_per_tensor"] else [self.parameters]:
            nn.utils.clip_grad_norm_(parameters, maximum)

    def step(self, batch, number):
        share, decay = rate_share(self.run, number), decay_share(self.run, number)
        for group in self.optimizer.param_groups:
            group["lr"], group["weight_decay"] = share * group["peak"], decay * group["first_decay"]
        with torch.autocast("cpu", torch.bfloat16, enabled=self.run.recipe["precision"] == "bf16"):
            loss = self.method(self.model, *batch)
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        if self.run.recipe["clip"]:
            self.clip()
        self.optimizer.step()
        self.method.end_step(self.model, (number + 1) / (self.run.epochs * self.run.steps))
        return loss.item()

    def learn(self, workers):
        """(the loss of each step, the mean time of a step of the last epoch, the last two batches)"""
        self.method.prepare(workers)
        losses, batches, total, start = [], [], self.run.epochs * self.run.steps, time.perf_counter()
        for number, batch in enumerate(loader_of(self.run, training_keys(self.run), workers)):
            losses.append(self.step(batch, number))
            batches = [*batches[-1:], batch]
            if number + 1 == total - self.run.steps:
                start = time.perf_counter()
        return losses, 1e3 * (time.perf_counter() - start) / self.run.steps, batches

    def time_prepared(self, batches, steps):
        start = time.perf_counter()
        for i in range(steps):
            self.step(batches[i % len(batches)], self.run.epochs * self.run.steps)
        return 1e3 * (time.perf_counter() - start) / steps

    def save(self, run_folder, out):
        out.mkdir(parents=True, exist_ok=True)
        weights = {name: tensor.contiguous() for name, tensor in self.method.saved(self.model).state_dict().items()}
        safetensors.torch.save_file(weights, out / "model.safetensors")
        shutil.copy(run_folder / "last" / "config.json", out / "config.json")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=pathlib.Path)
    parser.add_argument("out", type=pathlib.Path)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--prepared", type=int, default=0)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    training = Training(Run(options.run))
    losses, step_ms, batches = training.learn(options.workers)
    result = {"losses": losses, "step_ms": step_ms}
    training.save(options.run, options.out)
    if options.prepared:
        result["compute_ms"] = training.time_prepared(batches, options.prepared)
    print(json.dumps(result))


if __name__ == "__main__":
    main()
