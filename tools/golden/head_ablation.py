# SPDX-License-Identifier: Apache-2.0
"""Mean ablation of attention heads: tests/fixtures/head_ablation/NAME.safetensors.

"change" [blocks, heads, B, classes]: the logits for both inputs of a model fixture when the context of a head is
replaced by its mean over tokens, minus the logits.  The reference runs in float64, with hooks in front of the norm and
the projection of timm's attention.
"""

import safetensors.torch
import timm
import torch
from models_common import ROOT as MODELS

ROOT = MODELS.parent / "head_ablation"
FIXTURES = "token avg distilled reg_tokens map qk_norm scale_norms non_square".split()


def ablated(model, images, block, head):
    attention = model.blocks[block].attn
    width = attention.proj.in_features // attention.num_heads
    columns = slice(head * width, (head + 1) * width)

    def replace(_, arguments):
        context = arguments[0].clone()
        context[..., columns] = context[..., columns].mean(1, keepdim=True)
        return (context, *arguments[1:])

    first = attention.norm if isinstance(getattr(attention, "norm", None), torch.nn.Module) else attention.proj
    handle = first.register_forward_pre_hook(replace)
    try:
        return model(images)
    finally:
        handle.remove()


@torch.no_grad()
def write(name):
    model = timm.create_model(f"local-dir:{MODELS / name}", pretrained=True).double().eval()
    images = safetensors.torch.load_file(MODELS / name / "golden.safetensors")["input"].double()
    logits = model(images)
    blocks, heads = len(model.blocks), model.blocks[0].attn.num_heads
    changes = [ablated(model, images, block, head) - logits for block in range(blocks) for head in range(heads)]
    change = torch.stack(changes).view(blocks, heads, *logits.shape).float()
    ROOT.mkdir(exist_ok=True)
    file = ROOT / f"{name}.safetensors"
    safetensors.torch.save_file({"change": change.contiguous()}, file)
    print(f"{name:20} {list(change.shape)} largest {change.abs().max():.3f} {file.stat().st_size} bytes")


if __name__ == "__main__":
    for fixture in FIXTURES:
        write(f"timm_{fixture}")
