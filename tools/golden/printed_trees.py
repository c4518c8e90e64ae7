# SPDX-License-Identifier: Apache-2.0
"""Module trees printed by PyTorch, and timm's parameter names: tests/fixtures/nn/*.txt.

The models are timm's, with their blocks in a ModuleList so that equal blocks print once.  The text omits modules that
vitrail does not have: the `norm` inside timm's attention and MLP (Identity by default) and `patch_drop`.  It also omits
`bias=True` of LayerNorm, which older versions of PyTorch do not print.
"""

import pathlib

import timm
import torch

ROOT = pathlib.Path(__file__).resolve().parents[2] / "tests" / "fixtures" / "nn"


def text_of(module):
    lines = []
    previous = ""
    for line in str(module).splitlines():
        inner_norm = line.strip() == "(norm): Identity()" and previous in ("attn_drop", "drop1")
        previous = line.strip().split(")")[0].lstrip("(")
        if not inner_norm and line.strip() != "(patch_drop): Identity()":
            lines.append(line.replace("elementwise_affine=True, bias=True", "elementwise_affine=True"))
    return "\n".join(lines) + "\n"


def vit(name, **kw):
    model = timm.create_model(name, **kw)
    model.blocks = torch.nn.ModuleList(model.blocks)
    return model


class SplitAttention(torch.nn.Module):
    """Separate projections as in jeonsworld/ViT-pytorch, with children in its order."""

    def __init__(self, dim):
        super().__init__()
        for name in ("query", "key", "value", "out"):
            setattr(self, name, torch.nn.Linear(dim, dim))
        self.q_norm, self.k_norm = torch.nn.Identity(), torch.nn.Identity()
        self.attn_drop = torch.nn.Dropout(0.0)
        self.proj_drop = torch.nn.Dropout(0.1)


SplitAttention.__name__ = "Attention"


def split_attention_blocks():
    blocks = vit("vit_base_patch16_224", proj_drop_rate=0.1).blocks
    for block in blocks:
        block.attn = SplitAttention(768)
    return blocks


def main():
    ROOT.mkdir(parents=True, exist_ok=True)
    texts = {
        "module_list_003": split_attention_blocks(),
        "vit_base": vit("vit_base_patch16_224"),
        "vit_tiny_drop_path": vit(
            "vit_tiny_patch16_224", depth=3, drop_path_rate=0.1, drop_rate=0.2, init_values=1e-5, num_classes=10
        ),
        "vit_norms": vit("vit_tiny_patch16_224", depth=2, qk_norm=True, pre_norm=True, global_pool="avg"),
    }
    for name, module in texts.items():
        (ROOT / f"{name}.txt").write_text(text_of(module))
    keys = timm.create_model("vit_base_patch16_224").state_dict()
    (ROOT / "vit_base_keys.txt").write_text("".join(f"{k} {list(v.shape)}\n" for k, v in keys.items()))
    print(f"printed trees with torch {torch.__version__}, timm {timm.__version__}")


if __name__ == "__main__":
    main()
