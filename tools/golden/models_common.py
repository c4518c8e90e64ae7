# SPDX-License-Identifier: Apache-2.0
"""Shared by the generators of model fixtures: random weights, float64 references, and the files of a fixture.

A fixture is a folder tests/fixtures/models/NAME with
  the weights   in the family's own format and key names,
  config.json   as users of the family have it (for some families with preprocessor_config.json),
  golden.safetensors  input, logits, tokens and, for models that resize position embeddings, input2, logits2, tokens2.

Weights are rounded to their stored dtype; the reference is computed from the rounded values in float64 and stored as
float32.  `tokens` are all tokens after the final norm (timm's forward_features).  `logits` is the model's output: class
scores, or without a head the pooled features.
"""

import contextlib
import copy
import json
import pathlib
import tempfile
import zlib

import numpy
import safetensors.torch
import torch

ROOT = pathlib.Path(__file__).resolve().parents[2] / "tests" / "fixtures" / "models"
IMAGENET = {"mean": [0.485, 0.456, 0.406], "std": [0.229, 0.224, 0.225]}
HALF = {"mean": [0.5, 0.5, 0.5], "std": [0.5, 0.5, 0.5]}
worst = {}  # fixture name → maximum difference between float32 and float64 logits, for report()


def saved_pretrained(model, hub_keys=True):
    """The tensors and the config.json that a model of transformers saves.

    hub_keys: with the key names of the checkpoints on the hub, else with the module names of transformers 5.
    """
    with tempfile.TemporaryDirectory() as folder:
        model.save_pretrained(folder, save_original_format=hub_keys)
        state = safetensors.torch.load_file(folder + "/model.safetensors")
        return state, json.loads((pathlib.Path(folder) / "config.json").read_text())


def generator(name):
    return torch.Generator().manual_seed(zlib.crc32(name.encode()))


def randomise(model, name, embed_scale=0.01):
    """Fills every parameter with values large enough that a mistake in any of them changes the logits.

    embed_scale scales the input of the first block (patch projection, CLS, position embeddings).  At 0.01 its variance
    is near 1e-5, so that a wrong LayerNorm eps has an effect as well.
    """
    draw = generator(name)
    norms = {id(p) for m in model.modules() if isinstance(m, torch.nn.LayerNorm) for p in m.parameters()}
    embedding = (
        "patch_embed",
        "to_patch",
        "conv_proj",
        "embeddings.",
        "cls_token",
        "class_token",
        "class_embedding",
        "dist_token",
        "reg_token",
        "register_tokens",
        "pos_embed",
        "position_embedding",
        "patch_embedding",
    )
    with torch.no_grad():
        for key, parameter in model.named_parameters():
            values = torch.randn(parameter.shape, generator=draw, dtype=torch.float64) * 0.2
            if id(parameter) in norms and key.endswith(("weight", "gamma")):
                values += 1
            elif key.endswith(("gamma", "lambda1")):  # LayerScale
                values += 0.5
            elif any(word in key for word in embedding):
                is_token = parameter.dim() >= 2 and not key.endswith("weight")
                values *= embed_scale * (2.5 if is_token else 1)
            parameter.copy_(values)
    return model.eval()


def round_to(model, dtype):
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.copy_(parameter.to(dtype))


@contextlib.contextmanager
def exact_interpolation():
    """F.interpolate in float64, even if a family casts its position embeddings to another dtype first."""
    original = torch.nn.functional.interpolate

    def interpolate(x, *args, **kwargs):
        return original(x.double(), *args, **kwargs).to(torch.get_default_dtype())

    torch.nn.functional.interpolate = interpolate
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.nn.functional.interpolate = original
        torch.set_default_dtype(torch.float32)


def preprocessing(size, in_chans=3, mean_std=IMAGENET, interpolation="bicubic", crop_pct=0.9):
    height, width = (size, size) if isinstance(size, int) else size
    return {
        "input_size": [in_chans, height, width],
        "interpolation": interpolation,
        "crop_pct": crop_pct,
        "crop_mode": "center",
        "mean": mean_std["mean"][:in_chans],
        "std": mean_std["std"][:in_chans],
    }


def write_json(path, value):
    path.write_text(json.dumps(value, indent=2) + "\n")


def write_weights(folder, state, form, wrap=lambda state: state):
    """Writes the weights; wrap puts the state into a checkpoint.

    form: safetensors, open_clip (the same under OpenCLIP's name), pth (PyTorch's zip), legacy_pth (before 1.6) or npz.
    """
    state = {
        key: value.detach().clone().contiguous() if torch.is_tensor(value) else value for key, value in state.items()
    }
    if form in ("safetensors", "open_clip"):
        file = "open_clip_model.safetensors" if form == "open_clip" else "model.safetensors"
        safetensors.torch.save_file(state, folder / file, metadata={"format": "pt"})
    elif form == "pth":
        torch.save(wrap(state), folder / "model.pth")
    elif form == "legacy_pth":
        torch.save(wrap(state), folder / "model_legacy.pth", _use_new_zipfile_serialization=False)
    else:
        save = numpy.savez_compressed if form == "npz_compressed" else numpy.savez
        save(folder / "model.npz", **{key: numpy.asarray(value) for key, value in state.items()})


def write_fixture(
    name,
    model,
    forward,
    config,
    *,
    size,
    reference,
    size2=None,
    in_chans=3,
    dtype=torch.float32,
    state=None,
    form="safetensors",
    wrap=lambda state: state,
    extra_files=None,
    extra=None,
    note="",
):
    """Writes a fixture.  forward(model, image) → (logits, tokens); state: tensors to store, by default the model's."""
    folder = ROOT / name
    folder.mkdir(parents=True, exist_ok=True)
    round_to(model, dtype)
    state = state if state is not None else model.state_dict()
    if form in ("safetensors", "pth", "legacy_pth"):
        state = {k: v.to(dtype) if torch.is_tensor(v) and v.is_floating_point() else v for k, v in state.items()}
    write_weights(folder, state, form, wrap)
    if config is not None:
        write_json(folder / "config.json", config)
    for file, content in (extra_files or {}).items():
        write_json(folder / file, content)

    exact = copy.deepcopy(model).double()
    draw = generator(name + " input")
    golden = {}
    for suffix, extent in (("", size), ("2", size2)):
        if extent is None:
            continue
        height, width = (extent, extent) if isinstance(extent, int) else extent
        image = torch.randn(2, in_chans, height, width, generator=draw)
        with torch.no_grad(), exact_interpolation():
            logits, tokens = forward(exact, image.double())
        with torch.no_grad():
            single = forward(copy.deepcopy(model).float(), image)[0]
        error = (single.double() - logits).abs().max().item() if logits.numel() else 0.0
        worst[name] = max(worst.get(name, 0.0), error)
        golden |= {f"input{suffix}": image, f"logits{suffix}": logits, f"tokens{suffix}": tokens}
    if extra is not None:
        with torch.no_grad(), exact_interpolation():
            golden |= extra(exact, golden["input"].double())
    golden = {key: value.detach().float().contiguous().clone() for key, value in golden.items()}
    about = json.dumps({"reference": reference, "weights_dtype": str(dtype).removeprefix("torch."), "note": note})
    safetensors.torch.save_file(golden, folder / "golden.safetensors", metadata={"config": about})


def report():
    """Prints the written fixtures and the difference of PyTorch in float32 to the float64 reference."""
    for name, error in worst.items():
        kib = sum(f.stat().st_size for f in (ROOT / name).iterdir()) / 1024
        print(f"{name:32} {kib:7.1f} KiB   float32 differs by {error:.1e}")
