# SPDX-License-Identifier: Apache-2.0
"""Fixtures of vitrail/optim: tests/fixtures/optim/*.

Optimisers run 100 steps in float64 on two parameters.  Gradients depend on the weights, so that errors propagate as in
training.  Saved are the constant part of the gradients, the initial weights, and the final weights and buffers.
Schedules are tables of learning rates, the EMA follows a random walk, and parameter groups are those of timm.
"""

import json
import pathlib
import zlib

import safetensors.torch
import timm
import timm.optim
import torch
from timm.models import group_parameters
from timm.optim import param_groups_layer_decay
from timm.scheduler import CosineLRScheduler, StepLRScheduler
from timm.scheduler.poly_lr import PolyLRScheduler
from timm.utils import ModelEmaV3

ROOT = pathlib.Path(__file__).resolve().parents[2] / "tests" / "fixtures" / "optim"
STEPS, CYCLE = 100, 10


def draw(name, *shape):
    """N(0, 1), exactly representable in float32, seeded by name and shape."""
    seed = zlib.crc32(f"{name} {shape}".encode())
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed)).double()


def save(name, tensors, config):
    plain = {key: value.detach().contiguous().clone() for key, value in tensors.items()}
    safetensors.torch.save_file(plain, ROOT / f"{name}.safetensors", metadata={"config": json.dumps(config)})
    print(f"optim/{name}")


# ---- optimisers

CASES = {
    "adamw": (torch.optim.AdamW, {}, {}),
    "adamw_betas": (torch.optim.AdamW, {"betas": (0.8, 0.95), "eps": 1e-3}, {"beta1": 0.8, "beta2": 0.95, "eps": 1e-3}),
    "sgd": (torch.optim.SGD, {}, {"momentum": 0.0}),
    "sgd_momentum": (torch.optim.SGD, {"momentum": 0.9}, {"momentum": 0.9}),
    "sgd_nesterov": (torch.optim.SGD, {"momentum": 0.9, "nesterov": True}, {"momentum": 0.9, "nesterov": True}),
    "lamb": (timm.optim.Lamb, {"max_grad_norm": None}, {}),
    "lion": (timm.optim.Lion, {}, {}),
}


def rate_of(step):
    return 0.01 * (1 - step / (2 * STEPS))


def optimiser(name, kind, arguments, config):
    matrix, vector = draw("matrix", 5, 7), draw("vector", 11)
    parts = {"matrix": draw("matrix gradients", CYCLE, 5, 7), "vector": draw("vector gradients", CYCLE, 11)}
    before = {"before.matrix": matrix.clone(), "before.vector": vector.clone()}
    weights = {"matrix": torch.nn.Parameter(matrix), "vector": torch.nn.Parameter(vector)}
    groups = [
        {"params": [weights["matrix"]], "weight_decay": 0.1},
        {"params": [weights["vector"]], "weight_decay": 0.0},
    ]
    scales = (1.0, 0.5)
    optimiser = kind(groups, lr=rate_of(0), **arguments)
    for step in range(STEPS):
        for group, scale in zip(optimiser.param_groups, scales, strict=True):
            group["lr"] = rate_of(step) * scale
        for key, weight in weights.items():
            weight.grad = 0.5 * weight.detach() + parts[key][step % CYCLE]
        optimiser.step()
    after = {f"after.{key}": value for key, value in weights.items()}
    for key, value in weights.items():
        for buffer, state in optimiser.state[value].items():
            if torch.is_tensor(state) and state.shape == value.shape:
                after[f"{buffer}.{key}"] = state
    save(
        name,
        before | after | {f"part.{key}": value for key, value in parts.items()},
        {"kind": name.split("_")[0], "steps": STEPS, "rate": 0.01} | config,
    )


# ---- schedules


def rates(scheduler, optimiser, steps):
    """In timm, step_update(t) sets the learning rate of update t."""
    values = []
    for step in range(steps):
        scheduler.step_update(step)
        values.append(optimiser.param_groups[0]["lr"])
    return torch.tensor(values, dtype=torch.float64)


def schedules():
    total, warm, rate, last, first = 57, 9, 2e-3, 1e-5, 1e-6
    tensors, config = {}, {}

    def fresh():
        return torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=rate)

    def add(name, values, **options):
        tensors[name], config[name] = values, options

    common = {"t_in_epochs": False}
    for prefix in (True, False):
        length = total - warm if prefix else total
        warm_up = {"warmup_t": warm, "warmup_lr_init": first, "warmup_prefix": prefix}
        options = {
            "rate": rate,
            "final_rate": last,
            "total_steps": total,
            "warmup_steps": warm,
            "warmup_rate": first,
            "warmup_prefix": prefix,
        }
        for kind, maker, extra in (("cosine", CosineLRScheduler, {}), ("linear", PolyLRScheduler, {"power": 1.0})):
            sgd = fresh()
            scheduler = maker(sgd, t_initial=length, lr_min=last, **warm_up, **extra, **common)
            add(f"{kind}_{prefix}", rates(scheduler, sgd, total + 5), kind=kind, **options)
        sgd = fresh()
        scheduler = StepLRScheduler(sgd, decay_t=7, decay_rate=0.5, **warm_up, **common)
        add(
            f"step_{prefix}",
            rates(scheduler, sgd, total + 5),
            kind="step",
            decay_steps=7,
            decay_factor=0.5,
            **(options | {"final_rate": 0.0}),
        )

    # torch's schedule: LinearLR for warmup, then CosineAnnealingLR.
    sgd = fresh()
    chain = torch.optim.lr_scheduler.SequentialLR(
        sgd,
        [
            torch.optim.lr_scheduler.LinearLR(sgd, start_factor=0.25, total_iters=warm),
            torch.optim.lr_scheduler.CosineAnnealingLR(sgd, total - warm, eta_min=last),
        ],
        [warm],
    )
    values = []
    for _ in range(total + 1):
        values.append(sgd.param_groups[0]["lr"])
        sgd.step()
        chain.step()
    add(
        "torch_cosine",
        torch.tensor(values, dtype=torch.float64),
        kind="cosine",
        rate=rate,
        final_rate=last,
        total_steps=total,
        warmup_steps=warm,
        warmup_rate=rate / 4,
        warmup_prefix=True,
    )
    sgd = fresh()
    chain = torch.optim.lr_scheduler.ConstantLR(sgd, factor=1.0, total_iters=1)
    add("constant", torch.full((total,), rate, dtype=torch.float64), kind="constant", rate=rate)
    save("schedules", tensors, config)


# ---- exponential moving average of the weights


def averages():
    walk = draw("walk", 60, 13).cumsum(0) * 0.1
    tensors, config = {"walk": walk}, {}
    cases = {
        "plain": {"decay": 0.9},
        "near_one": {"decay": 0.9999},
        "below_half": {"decay": 0.3},
        "warmup": {"decay": 0.99, "use_warmup": True},
        "warmup_bounds": {
            "decay": 0.9,
            "use_warmup": True,
            "warmup_gamma": 3.0,
            "warmup_power": 0.75,
            "min_decay": 0.4,
            "update_after_step": 5,
        },
    }
    for name, arguments in cases.items():
        module = torch.nn.Module()
        module.w = torch.nn.Parameter(walk[0].clone())
        ema = ModelEmaV3(module, **arguments)
        seen = []
        for step in range(1, 60):
            module.w.data.copy_(walk[step])
            ema.update(module, step=step)
            seen.append(ema.module.w.detach().clone())
        tensors[name] = torch.stack(seen)
        config[name] = {
            {"use_warmup": "warmup", "update_after_step": "after_step"}.get(k, k): v for k, v in arguments.items()
        }
    save("averages", tensors, config)


# ---- parameter groups


def groups():
    tables = {}
    for name, arguments in (
        ("vit_tiny_patch16_224", {"reg_tokens": 2, "init_values": 0.1, "depth": 3}),
        ("vit_tiny_patch16_224", {"global_pool": "avg", "depth": 2}),
        ("deit_tiny_distilled_patch16_224", {"depth": 2}),
    ):
        model = timm.create_model(name, num_classes=5, **arguments)
        layers = group_parameters(model, model.group_matcher(coarse=False), reverse=True)
        names = {id(parameter): key for key, parameter in model.named_parameters()}
        rows = {}
        for group in param_groups_layer_decay(model, 0.05, model.no_weight_decay(), layer_decay=0.75):
            for parameter in group["params"]:
                key = names[id(parameter)]
                rows[key] = {
                    "shape": list(parameter.shape),
                    "weight_decay": group["weight_decay"],
                    "scale": group["lr_scale"],
                    "layer": layers.get(key),
                }
        tables[f"{name} {json.dumps(arguments)}"] = {key: rows[key] for key, _ in model.named_parameters()}
    (ROOT / "groups.json").write_text(json.dumps(tables, indent=1) + "\n")
    print("optim/groups.json")


if __name__ == "__main__":
    torch.set_num_threads(1)
    ROOT.mkdir(parents=True, exist_ok=True)
    for case, (maker, given, ours) in CASES.items():
        optimiser(case, maker, given, ours)
    schedules()
    averages()
    groups()
