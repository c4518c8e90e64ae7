# SPDX-License-Identifier: Apache-2.0
"""What the fixtures of Segment Anything and of SAM 2 have in common: prompts, random parameters, files."""

import json
import pathlib

import safetensors.torch
import torch

ROOT = pathlib.Path(__file__).resolve().parents[2] / "tests" / "fixtures" / "sam"
WELL_CONDITIONED = 1e-5
# What a prompt is made of: points with labels in fractions of the image, a box, a mask, three masks or one.
PROMPTS = {
    "point": dict(points=[(0.4, 0.55, 1)]),
    "points": dict(points=[(0.2, 0.3, 1), (0.9, 0.1, 0), (0.5, 0.75, 1)]),
    "box": dict(box=(0.1, 0.2, 0.7, 0.95)),
    "box and points": dict(points=[(0.3, 0.3, 1), (0.6, 0.8, 0)], box=(0.05, 0.1, 0.8, 0.9)),
    "mask": dict(mask=True),
    "mask and point": dict(mask=True, points=[(0.5, 0.5, 0)]),
    "single mask": dict(points=[(0.7, 0.2, 1)], multimask=False),
    "box, mask, single": dict(mask=True, box=(0, 0, 1, 1), multimask=False),
}


def draw_parameters(model, generator):
    """Gain 2 for matrices; norms near 1; everything else, biases and tables as well, of order 1."""
    norms = {id(p) for m in model.modules() if "Norm" in type(m).__name__ for p in m.parameters()}
    with torch.no_grad():
        for name, parameter in [*model.named_parameters(), *model.named_buffers()]:
            if name.startswith("pixel_") or not parameter.is_floating_point() or name.endswith("attn.ab"):
                continue
            values = torch.randn(parameter.shape, generator=generator)
            if name.endswith("running_var"):
                values = 0.5 + values.abs()
            elif id(parameter) in norms:
                values = (1 if name.endswith("weight") else 0) + 0.3 * values
            elif any(part in name for part in ("token", "embed.weight", "point_embed", "gaussian", "positional_emb")):
                pass
            elif parameter.dim() >= 2 and "rel_pos" not in name and "pos_embed" not in name:
                values *= 2 / parameter[0].numel() ** 0.5
            else:
                values *= 0.5
            parameter.copy_(values.half().float())
    return model.eval()


def prompt_of(kind, c, number, generator, tensors):
    """The prompt in pixels, as vitrail gets it, and its mask."""
    height, width = c["size"]
    spec = PROMPTS[kind]
    prompt = {"multimask": spec.get("multimask", True)}
    if "points" in spec:
        prompt["points"] = [[round(x * width, 2), round(y * height, 2), label] for x, y, label in spec["points"]]
    if "box" in spec:
        x0, y0, x1, y1 = spec["box"]
        prompt["box"] = [round(x0 * width, 2), round(y0 * height, 2), round(x1 * width, 2), round(y1 * height, 2)]
    if "mask" in spec:
        tensors[f"mask_{number}"] = 4 * torch.randn((4 * c["grid"],) * 2, generator=generator)
    return prompt


def write(name, state, suffix, tensors, prompts):
    folder = ROOT / name
    folder.mkdir(parents=True, exist_ok=True)
    halves = {k: v.half().contiguous() if v.is_floating_point() else v for k, v in state.items()}
    if suffix == "pth":
        torch.save(halves, folder / "model.pth")
    else:
        safetensors.torch.save_file(halves, folder / "model.safetensors")
    safetensors.torch.save_file(
        {key: value.contiguous() for key, value in tensors.items()},
        folder / "golden.safetensors",
        {"config": json.dumps({"prompts": prompts})},
    )
    largest = max(value.abs().max() for key, value in tensors.items() if key.startswith(("logits", "embedding")))
    print(f"{name}: {sum(v.numel() for v in state.values())} parameters, values up to {largest:.3g}")


def difference(exact, approximate):
    return float((exact - approximate.double()).abs().max() / exact.abs().max())
