# SPDX-License-Identifier: Apache-2.0
"""The logit lens, token norms and statistics of attention heads: tests/fixtures/token_statistics/NAME.safetensors.

Of the first input of a model fixture: "lens" [blocks, classes], "norms" [blocks, tokens], "heads" [blocks, heads, 3]
with entropy in nats, mean distance in pixels and share on the special tokens.  References run in float64.
"""

import safetensors.torch
import timm
import torch
from attribution import Weights, unfused
from models_common import ROOT as MODELS

ROOT = MODELS.parent / "token_statistics"
FIXTURES = "token avg avg_no_class_token distilled reg_tokens map non_square".split()


def distances(model):
    """Between the centres of patches [patches, patches]."""
    rows, columns = model.patch_embed.grid_size
    height, width = model.patch_embed.patch_size
    y, x = torch.meshgrid(torch.arange(rows) * height, torch.arange(columns) * width, indexing="ij")
    centres = torch.stack([y.flatten(), x.flatten()], 1).double()
    return torch.cdist(centres, centres)


def heads_of(weights, prefix, distance):
    entropy = -(weights * weights.log()).sum(-1).mean(-1)
    patches = weights[:, prefix:, prefix:]
    far = ((patches * distance).sum(-1) / patches.sum(-1)).mean(-1)
    return torch.stack([entropy, far, weights[:, prefix:, :prefix].sum(-1).mean(-1)], 1)


@torch.no_grad()
def write(name, model, image):
    model = unfused(model)
    streams = []
    for block in model.blocks:
        block.register_forward_hook(lambda _, __, output: streams.append(output))
    with Weights() as weights:
        logits = model(image.double())
    maps = [found[0] for found in weights.found[: len(model.blocks)]]
    tensors = {
        "lens": torch.cat([model.forward_head(model.norm(stream)) for stream in streams]),
        "norms": torch.stack([stream[0].norm(dim=-1) for stream in streams]),
        "heads": torch.stack([heads_of(found, model.num_prefix_tokens, distances(model)) for found in maps]),
    }
    assert torch.equal(tensors["lens"][-1], logits[0])
    ROOT.mkdir(exist_ok=True)
    file = ROOT / f"{name}.safetensors"
    safetensors.torch.save_file({key: value.float().contiguous() for key, value in tensors.items()}, file)
    print(f"{name:24} {file.stat().st_size / 1024:6.1f} KiB")


if __name__ == "__main__":
    for fixture in FIXTURES:
        folder = MODELS / f"timm_{fixture}"
        reference = timm.create_model(f"local-dir:{folder}", pretrained=True)
        write(f"timm_{fixture}", reference, safetensors.torch.load_file(folder / "golden.safetensors")["input"][:1])
