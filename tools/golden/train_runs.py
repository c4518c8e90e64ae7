# SPDX-License-Identifier: Apache-2.0
"""Fixture of complete training runs, tests/fixtures/train/runs.safetensors: each option of a recipe alone, then all.

PyTorch and timm train in float64 on the batches that vitrail draws.  The draws are written here a second time: they are
functions of (seed, epoch, step, sample), see vitrail/base/random.h.  Each case has the learning rate, the loss and the
gradient norm of every step, and every STRIDE-th element of the final weights and of their average.
"""

import fnmatch
import json
import math
import pathlib

import numpy
import safetensors.torch
import timm.optim
import torch
from timm.data.mixup import mixup_target
from timm.loss import BinaryCrossEntropy
from timm.models.vision_transformer import VisionTransformer
from timm.scheduler import CosineLRScheduler, PolyLRScheduler, StepLRScheduler
from timm.utils import ModelEmaV3

FILE = pathlib.Path(__file__).resolve().parents[2] / "tests" / "fixtures" / "train" / "runs.safetensors"
CLASSES, IMAGES, BATCH, STRIDE = 4, 32, 8, 7
MODEL = {"img_size": 8, "patch_size": 4, "embed_dim": 16, "depth": 2, "num_heads": 2, "mlp_ratio": 2}
BASE = {
    "epochs": 5,
    "seed": 7,
    "optimizer": {"lr": 3e-3, "weight_decay": 0},
    "schedule": {"name": "constant"},
}
COSINE = {"name": "cosine", "final_lr": 2e-4, "warmup_epochs": 1.25, "warmup_lr": 1e-4}
# The settings of each case, which replace those of BASE.
CASES = {
    "plain": {},
    "seed": {"seed": 8},
    "cosine": {"schedule": COSINE},
    "cosine_from_step_0": {"schedule": {**COSINE, "warmup_prefix": False}},
    "linear": {"schedule": {**COSINE, "name": "linear"}},
    "step": {"schedule": {"name": "step", "decay_epochs": 1.5, "decay_factor": 0.5, "warmup_epochs": 0.5}},
    "label_smoothing": {"loss": {"label_smoothing": 0.2}},
    "class_weights": {"loss": {"class_weights": [0.25, 1, 2, 5], "label_smoothing": 0.1}},
    "class_weights_mixup": {"loss": {"class_weights": [0.25, 1, 2, 5]}, "augment": {"mixup": 1}},
    "several_labels": {"loss": {"name": "bce"}},
    "bce": {"loss": {"name": "bce", "label_smoothing": 0.1}},
    "bce_sum": {"loss": {"name": "bce", "bce_sum": True}},
    "bce_threshold": {"loss": {"name": "bce", "bce_threshold": 0.3}, "augment": {"mixup": 1}},
    "mixup": {"augment": {"mixup": 0.8, "mix_probability": 0.7}, "loss": {"label_smoothing": 0.1}},
    "cutmix": {"augment": {"cutmix": 1}},
    "mix_elements": {"augment": {"mixup": 1, "cutmix": 1, "switch_probability": 0.4, "mix_mode": "element"}},
    "unmixed_epochs": {"augment": {"mixup": 1, "unmixed_epochs": 2}, "loss": {"label_smoothing": 0.1}},
    "repeats": {"augment": {"repeats": 2}},
    "clip": {"clip": 0.5},
    "accumulate": {"accumulate": 3, "epochs": 10},
    "weight_decay": {"optimizer": {"lr": 3e-3, "weight_decay": 2}},
    "no_decay": {"optimizer": {"lr": 3e-3, "weight_decay": 2, "no_decay": ["blocks.0.*"]}},
    "layer_decay": {"optimizer": {"lr": 3e-3, "weight_decay": 0, "layer_decay": 0.5}},
    "betas": {"optimizer": {"lr": 3e-3, "weight_decay": 0, "beta1": 0.8, "beta2": 0.95, "eps": 1e-3}},
    "sgd": {"optimizer": {"name": "sgd", "lr": 0.03, "weight_decay": 0.1, "momentum": 0.8, "nesterov": True}},
    "lamb": {"optimizer": {"name": "lamb", "lr": 0.01, "weight_decay": 0.1}},
    "lion": {"optimizer": {"name": "lion", "lr": 3e-4, "weight_decay": 0.5}},
    "ema": {"ema": {"decay": 0.8}},
    "ema_warmup": {"ema": {"decay": 0.9, "warmup": True, "warmup_power": 0.75, "after_step": 3}},
    "dropout": {"model": {"proj_drop_rate": 0.2}},
    "drop_path": {"model": {"drop_path_rate": 0.4}},
    "all": {
        "model": {"proj_drop_rate": 0.1, "drop_path_rate": 0.2},
        "seed": 3,
        "accumulate": 3,
        "epochs": 10,
        "clip": 2,
        "optimizer": {"lr": 3e-3, "weight_decay": 0.3, "layer_decay": 0.8, "no_decay": ["head.*"], "beta2": 0.98},
        "schedule": COSINE,
        "augment": {"mixup": 0.8, "cutmix": 1, "mix_probability": 0.8, "repeats": 2, "unmixed_epochs": 3},
        "loss": {"name": "bce", "label_smoothing": 0.1, "bce_sum": True},
        "ema": {"decay": 0.9, "warmup": True},
    },
}


def philox(key, counter):
    """Salmon et al. 2011, Philox 4x32-10."""
    k0, k1 = key
    c0, c1, c2, c3 = counter
    for _ in range(10):
        p0, p1 = 0xD2511F53 * c0, 0xCD9E8D57 * c2
        c0, c1, c2, c3 = (p1 >> 32) ^ c1 ^ k0, p1 & 0xFFFFFFFF, (p0 >> 32) ^ c3 ^ k1, p0 & 0xFFFFFFFF
        k0, k1 = (k0 + 0x9E3779B9) & 0xFFFFFFFF, (k1 + 0xBB67AE85) & 0xFFFFFFFF
    return c0, c1, c2, c3


def random_key(name, a=0, b=0):
    """FNV-1a."""
    value = 0xCBF29CE484222325
    for byte in name.encode() + a.to_bytes(8, "little") + b.to_bytes(8, "little"):
        value = ((value ^ byte) * 0x100000001B3) & 0xFFFFFFFFFFFFFFFF
    return value


class Stream:
    def __init__(self, key, stream=0):
        self.key, self.stream, self.block, self.words = (key & 0xFFFFFFFF, key >> 32), stream, 0, []

    def bits(self):
        if not self.words:
            counter = (self.block & 0xFFFFFFFF, self.block >> 32, self.stream & 0xFFFFFFFF, self.stream >> 32)
            self.words = list(philox(self.key, counter))
            self.block += 1
        return self.words.pop(0)

    def uniform(self):
        high, low = self.bits() >> 5, self.bits() >> 6
        return (high << 26 | low) * 2.0**-53

    def index(self, count):
        return min(int(self.uniform() * count), count - 1)

    def normal(self):
        radius = math.sqrt(-2 * math.log(1 - self.uniform()))
        return radius * math.cos(2 * math.pi * self.uniform())

    def log_gamma(self, alpha):  # Marsaglia & Tsang 2000
        d = alpha + 1 - 1 / 3
        c = 1 / math.sqrt(9 * d)
        while True:
            x = self.normal()
            root = 1 + c * x
            if root <= 0:
                continue
            v, u = root**3, 1 - self.uniform()
            if math.log(u) < 0.5 * x * x + d - d * v + d * math.log(v):
                return math.log(d * v) + math.log(1 - self.uniform()) / alpha

    def beta(self, alpha):
        a, b = self.log_gamma(alpha), self.log_gamma(alpha)
        return 1 / (1 + math.exp(b - a))


def epoch_order(seed, epoch):
    order, random = list(range(IMAGES)), Stream(random_key("order", seed, epoch))
    for i in range(IMAGES - 1, 0, -1):
        j = random.index(i + 1)
        order[i], order[j] = order[j], order[i]
    return order


def draw_mix(augment, seed, epoch, step, position, size):
    """Weight of the own image, and the box of CutMix or None."""
    per_image = augment.get("mix_mode") == "element"
    key = random_key("mix", random_key("epoch", seed, epoch), step)
    random = Stream(key, position + 1 if per_image else 0)
    if random.uniform() >= augment.get("mix_probability", 1):
        return 1.0, None
    mixup, cutmix = augment.get("mixup", 0), augment.get("cutmix", 0)
    cut = random.uniform() < augment.get("switch_probability", 0.5) if mixup and cutmix else bool(cutmix)
    lam = random.beta(cutmix if cut else mixup)
    if not cut:
        return lam, None
    side = int(size * math.sqrt(1 - lam))
    y, x = random.index(size), random.index(size)
    box = [min(max(v, 0), size) for v in (y - side // 2, y + (side + 1) // 2, x - side // 2, x + (side + 1) // 2)]
    return 1 - (box[1] - box[0]) * (box[3] - box[2]) / size**2, box


def mix(images, labels, settings, epoch, step):
    """Images and soft targets as timm.data.Mixup computes them from these draws."""
    augment, size = settings["augment"], images.shape[-1]
    smoothing = settings.get("loss", {}).get("label_smoothing", 0)
    mixed, targets = images.clone(), []
    for i in range(BATCH):
        partner = BATCH - 1 - i
        lam, box = draw_mix(augment, settings["seed"], epoch, step, i, size)
        if box:
            mixed[i, :, box[0] : box[1], box[2] : box[3]] = images[partner, :, box[0] : box[1], box[2] : box[3]]
        else:
            mixed[i] = images[i] * lam + images[partner] * (1 - lam)
        pair = torch.tensor([labels[i], labels[partner]])
        targets.append(mixup_target(pair, CLASSES, lam, smoothing)[0])
    return mixed, torch.stack(targets).double()


class KeyedDropout(torch.nn.Module):
    """Dropout, or stochastic depth, with the mask that vitrail draws for this layer, batch and sample."""

    def __init__(self, p, path, per_sample):
        super().__init__()
        self.p, self.path, self.per_sample, self.seed, self.batch = p, path, per_sample, 0, 0

    def forward(self, x):
        if not self.training or self.p == 0:
            return x
        shape = (x.shape[0], *([1] * (x.dim() - 1))) if self.per_sample else x.shape
        threshold, scale = int(self.p * 2**32), 1 / (1 - self.p)
        masks = []
        for sample in range(shape[0]):
            random = Stream(random_key(self.path, self.seed, self.batch), sample)
            masks.append([0.0 if random.bits() < threshold else scale for _ in range(math.prod(shape[1:]))])
        return x * torch.tensor(masks, dtype=x.dtype).reshape(shape)


def key_dropout(model, options):
    for number, block in enumerate(model.blocks):
        path, p = f"blocks.{number}", options.get("proj_drop_rate", 0)
        depth_p = options.get("drop_path_rate", 0) * number / (len(model.blocks) - 1)
        block.attn.proj_drop = KeyedDropout(p, path + ".attn.proj_drop", False)
        block.mlp.drop1 = KeyedDropout(p, path + ".mlp.drop1", False)
        block.mlp.drop2 = KeyedDropout(p, path + ".mlp.drop2", False)
        block.drop_path1 = KeyedDropout(depth_p, path + ".drop_path1", True)
        block.drop_path2 = KeyedDropout(depth_p, path + ".drop_path2", True)
    return [module for module in model.modules() if isinstance(module, KeyedDropout)]


def make_optimizer(model, options):
    decay = options.get("weight_decay", 0.05)
    excluded = set(model.no_weight_decay())
    for pattern in options.get("no_decay", []):
        excluded |= {name for name, _ in model.named_parameters() if fnmatch.fnmatchcase(name, pattern)}
    groups = timm.optim.param_groups_layer_decay(
        model, weight_decay=decay, no_weight_decay_list=excluded, layer_decay=options.get("layer_decay", 1)
    )
    name, rate = options.get("name", "adamw"), options["lr"]
    if name == "sgd":
        return torch.optim.SGD(groups, lr=rate, momentum=options["momentum"], nesterov=options["nesterov"])
    if name == "lamb":
        return timm.optim.Lamb(groups, lr=rate, max_grad_norm=None)
    if name == "lion":
        return timm.optim.Lion(groups, lr=rate)
    betas = (options.get("beta1", 0.9), options.get("beta2", 0.999))
    return torch.optim.AdamW(groups, lr=rate, betas=betas, eps=options.get("eps", 1e-8))


def make_scheduler(optimizer, options, steps_per_epoch, epochs):
    """timm's scheduler; None for a constant rate."""
    if options["name"] == "constant":
        return None
    warmup = math.floor(options.get("warmup_epochs", 0) * steps_per_epoch + 0.5)
    common = {"warmup_t": warmup, "warmup_lr_init": options.get("warmup_lr", 0), "t_in_epochs": False}
    prefix = options.get("warmup_prefix", True)
    if options["name"] == "step":
        decay_t = round(options["decay_epochs"] * steps_per_epoch)
        common["warmup_prefix"] = prefix
        return StepLRScheduler(optimizer, decay_t=decay_t, decay_rate=options["decay_factor"], **common)
    length = epochs * steps_per_epoch - (warmup if prefix else 0)
    kind, more = (CosineLRScheduler, {}) if options["name"] == "cosine" else (PolyLRScheduler, {"power": 1.0})
    return kind(optimizer, t_initial=length, lr_min=options["final_lr"], warmup_prefix=prefix, **common, **more)


def loss_of(logits, targets, options):
    if options.get("name") == "bce":
        bce = BinaryCrossEntropy(
            smoothing=options.get("label_smoothing", 0),
            target_threshold=options.get("bce_threshold"),
            sum_classes=options.get("bce_sum", False),
        )
        if targets.dim() == 1:  # timm makes float32 targets from labels
            off = bce.smoothing / CLASSES
            targets = torch.full_like(logits, off).scatter_(1, targets[:, None], 1 - bce.smoothing + off)
        return bce(logits, targets)
    smoothing = options.get("label_smoothing", 0) if targets.dim() == 1 else 0
    weights = options.get("class_weights")
    weights = torch.tensor(weights, dtype=torch.float64) if weights else None
    return torch.nn.functional.cross_entropy(logits, targets, weight=weights, label_smoothing=smoothing)


def several_labels(labels):
    """Targets of 0 and 1: every second image has the next class too, every fifth has none."""
    targets = torch.nn.functional.one_hot(labels, CLASSES).double()
    for i, label in enumerate(labels.tolist()):
        if i % 2 == 0:
            targets[i, (label + 1) % CLASSES] = 1
        if i % 5 == 0:
            targets[i] = 0
    return targets


def sampled(model):
    """Every STRIDE-th weight.  Biases of keys count as 0: softmax cancels them, so that their gradient is rounding."""
    tensors = {name: p.detach().clone() for name, p in model.named_parameters()}
    for name, tensor in tensors.items():
        if name.endswith("attn.qkv.bias"):
            tensor[len(tensor) // 3 : 2 * len(tensor) // 3] = 0
    return torch.cat([tensors[name].flatten() for name in sorted(tensors)])[::STRIDE]


def run(settings, initial, images, labels):
    model = VisionTransformer(**MODEL, num_classes=CLASSES)
    model.load_state_dict(initial)
    model.double().train()
    dropouts = key_dropout(model, settings.get("model", {}))
    optimizer = make_optimizer(model, settings["optimizer"])
    accumulate, batches, epochs = settings.get("accumulate", 1), IMAGES // BATCH, settings["epochs"]
    steps_per_epoch = -(-batches // accumulate)
    scheduler = make_scheduler(optimizer, settings["schedule"], steps_per_epoch, epochs)
    if scheduler is None:  # timm's schedulers apply the scales of layer decay
        for group in optimizer.param_groups:
            group["lr"] *= group.get("lr_scale", 1)
    augment, ema, average = settings.get("augment", {}), settings.get("ema"), None
    if ema:
        average = ModelEmaV3(
            model,
            decay=ema["decay"],
            use_warmup=ema.get("warmup", False),
            warmup_power=ema.get("warmup_power", 2 / 3),
            update_after_step=ema.get("after_step", 0),
        )
    mixing = bool(augment.get("mixup") or augment.get("cutmix"))
    rates, losses, norms = [], [], []
    for epoch in range(epochs):
        order = epoch_order(settings["seed"], epoch)
        mixed = mixing and epoch < epochs - augment.get("unmixed_epochs", 0)
        for first in range(0, batches, accumulate):
            group = range(first, min(first + accumulate, batches))
            if scheduler:
                scheduler.step_update(len(rates))
            rates.append(max(g["lr"] / g.get("lr_scale", 1) for g in optimizer.param_groups))
            optimizer.zero_grad()
            total = 0
            for step in group:
                samples = [order[p // augment.get("repeats", 1)] for p in range(step * BATCH, (step + 1) * BATCH)]
                batch, targets = images[samples], labels[samples]
                if mixed:
                    batch, targets = mix(batch, targets, settings, epoch, step)
                for dropout in dropouts:
                    dropout.seed, dropout.batch = settings["seed"], epoch * batches + step
                loss = loss_of(model(batch), targets, settings.get("loss", {}))
                (loss / len(group)).backward()
                total += loss.item() / len(group)
            norms.append(torch.nn.utils.clip_grad_norm_(model.parameters(), settings.get("clip", 0) or math.inf).item())
            optimizer.step()
            losses.append(total)
            if average:
                average.update(model, step=len(losses))
    results = {"rates": rates, "losses": losses, "norms": norms}
    results = {key: torch.tensor(values, dtype=torch.float64) for key, values in results.items()}
    results["weights"] = sampled(model).float()
    if average:
        results["average"] = sampled(average.module).float()
    return results


def main():
    torch.set_num_threads(1)
    random = numpy.random.default_rng(11)
    pixels = random.integers(0, 256, (IMAGES, 8, 8, 3), dtype=numpy.uint8)
    labels = numpy.repeat(numpy.arange(CLASSES), IMAGES // CLASSES)
    for image, label in zip(pixels, labels, strict=True):  # makes the classes different
        image[:, label * 2 : label * 2 + 2] //= 3
    torch.manual_seed(3)
    model = VisionTransformer(**MODEL, num_classes=CLASSES)
    with torch.no_grad():
        for parameter in model.parameters():  # makes the head and the biases non-zero
            parameter.add_(0.1 * torch.randn(parameter.shape))
    initial = {name: p.detach().clone() for name, p in model.named_parameters()}
    images = torch.from_numpy(pixels).permute(0, 3, 1, 2).double() / 255 * 2 - 1
    tensors = {"pixels": torch.from_numpy(pixels), "labels": torch.from_numpy(labels)}
    tensors |= {f"before.{name}": p for name, p in initial.items()}
    recipes = {}
    for name, changes in CASES.items():
        settings = {**BASE, **changes}
        recipes[name] = settings
        targets = torch.from_numpy(labels)
        if name == "several_labels":
            targets = several_labels(targets)
        results = run(settings, initial, images, targets)
        tensors |= {f"{name}/{key}": values.contiguous() for key, values in results.items()}
        losses = results["losses"]
        print(f"train/runs {name}: {len(losses)} steps, loss {losses[0]:.4f} -> {losses[-1]:.4f}")
    config = {"model": MODEL, "batch_size": BATCH, "stride": STRIDE, "recipes": recipes}
    safetensors.torch.save_file(tensors, FILE, metadata={"config": json.dumps(config)})


if __name__ == "__main__":
    main()
