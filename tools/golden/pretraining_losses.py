# SPDX-License-Identifier: Apache-2.0
"""Fixtures of the losses of self-supervised pretraining: tests/fixtures/ops/pretraining_losses.safetensors.

A case NAME has its inputs as common tensors, `NAME.value` and the gradients `NAME.grad_INPUT`, in float64 by PyTorch's
autograd; gradients of values that are no scalar are those of the sum with `NAME.weights`.  batch_norm, l2_normalize
and mean_squared_error are torch's; sigreg is SlicingUnivariateTest with EppsPulley of lejepa, and visreg VISRegLoss of
stable-pretraining, both written out for given directions.
"""

import math

import safetensors.torch
import torch
from losses import ROOT, draw
from torch.nn import functional as F


def sigreg(z, directions):
    t = torch.linspace(0, 3, 17, dtype=torch.float64)
    phi = torch.exp(-t.square() / 2)
    weights = torch.full((17,), 2 * 3 / 16, dtype=torch.float64)
    weights[[0, -1]] = 3 / 16
    angles = (z @ directions)[..., None] * t  # [V, B, S, 17]
    error = (angles.cos().mean(-3) - phi).square() + angles.sin().mean(-3).square()
    return (z.shape[-2] * (error @ (weights * phi))).mean()


def visreg(z, directions):
    batch = z.shape[1]
    mean = z.mean(1, keepdim=True)
    deviation = (z - mean).norm(dim=1, keepdim=True) / math.sqrt(batch) + 1e-6
    projected = ((z - mean) / deviation.detach()) @ directions
    positions = torch.arange(1, batch + 1, dtype=torch.float64) / (batch + 1)
    quantiles = math.sqrt(2) * torch.erfinv(2 * positions - 1)
    return {
        "center": mean.square().mean(),
        "scale": (deviation - 1).square().mean(),
        "shape": (projected.sort(1).values - quantiles[:, None]).square().mean(),
    }


def main():
    views, batch, width, slices = 3, 9, 5, 7
    z = draw("z", views, batch, width) * 1.5 + 0.25
    directions = F.normalize(draw("directions", width, slices), dim=0)
    x, gamma, beta = draw("x", batch, width, scale=2.0), draw("gamma", width), draw("beta", width)
    target = draw("target", batch, width)
    rows = x.clone()
    rows[3] = 0
    inputs = {"z": z, "directions": directions, "x": x, "gamma": gamma, "beta": beta, "target": target, "rows": rows}
    cases = {
        "batch_norm": (("x", "gamma", "beta"), lambda x, g, b: F.batch_norm(x, None, None, g, b, True, 0.0, 1e-3)),
        "l2_normalize": (("rows",), lambda x: F.normalize(x, dim=-1)),
        "mean_squared_error": (("x", "target"), F.mse_loss),
        "sigreg": (("z",), lambda z: sigreg(z, directions)),
    }
    for term in ("center", "scale", "shape"):
        cases[f"visreg_{term}"] = (("z",), lambda z, term=term: visreg(z, directions)[term])
    tensors = dict(inputs)
    for name, (arguments, function) in cases.items():
        leaves = [inputs[argument].clone().requires_grad_() for argument in arguments]
        value = function(*leaves)
        weights = draw(f"{name} weights", *value.shape) if value.dim() else torch.ones((), dtype=torch.float64)
        tensors[f"{name}.value"], tensors[f"{name}.weights"] = value.detach(), weights
        gradients = torch.autograd.grad((value * weights).sum(), leaves)
        for argument, gradient in zip(arguments, gradients, strict=True):
            tensors[f"{name}.grad_{argument}"] = gradient
    safetensors.torch.save_file(
        {key: value.contiguous().clone() for key, value in tensors.items()}, ROOT / "pretraining_losses.safetensors"
    )
    print("ops/pretraining_losses")


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
