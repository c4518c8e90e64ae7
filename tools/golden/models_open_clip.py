# SPDX-License-Identifier: Apache-2.0
"""Fixtures of OpenCLIP's own towers, in the layout of its folders on the hub.

golden.safetensors also has ids [T, N], text_embeds [T, D] and logits_per_image [B, T], as models_clip.py describes.
open_clip has the tokenizer of tests/fixtures/text/clip (text_tokenizers.py).
"""

import shutil

import open_clip
import torch
from models_common import IMAGENET, ROOT, randomise, report, write_fixture

VISION = dict(image_size=16, layers=2, width=20, head_width=10, patch_size=4, mlp_ratio=2.0)
TEXT = dict(context_length=24, vocab_size=758, width=18, heads=3, layers=2, mlp_ratio=2.0)
IDS = [[756, 5, 17, 3, 757, 0, 0, 0], [756, 2, 757, 0, 0, 0, 0, 0], [756, 1, 30, 31, 8, 9, 22, 757]]


def write(name, model_class, config, *, preprocess, size2=None):
    model = randomise(model_class(**config, output_dict=True), name)
    torch.nn.init.constant_(model.logit_scale, 2.5)
    if model.logit_bias is not None:
        torch.nn.init.constant_(model.logit_bias, -1.5)

    def forward(model, image):
        tower = model.visual
        tokens = []
        hook = tower.ln_post.register_forward_hook(lambda module, inputs, output: tokens.append(output))
        logits = model.encode_image(image)
        hook.remove()
        return logits, tokens[0]

    def text_outputs(model, image):
        ids = torch.tensor(IDS)
        padded = torch.nn.functional.pad(ids, (0, TEXT["context_length"] - ids.shape[1]))
        logits = model.get_logits(image, padded)[0]
        return {"ids": ids, "text_embeds": model.encode_text(padded), "logits_per_image": logits}

    write_fixture(
        name,
        model,
        forward,
        None,
        size=16,
        size2=size2,
        form="open_clip",
        extra_files={"open_clip_config.json": {"model_cfg": config, "preprocess_cfg": preprocess}},
        extra=text_outputs,
        reference=f"open_clip {open_clip.__version__} {model_class.__name__}",
    )


if __name__ == "__main__":
    torch.manual_seed(0)
    write(
        "open_clip",
        open_clip.CLIP,
        dict(embed_dim=10, quick_gelu=True, vision_cfg=VISION, text_cfg=TEXT),
        preprocess=IMAGENET | {"interpolation": "bicubic", "resize_mode": "shortest"},
    )
    for file in ("vocab.json", "merges.txt"):
        shutil.copy(ROOT.parent / "text" / "clip" / file, ROOT / "open_clip" / file)
    write(
        "open_clip_custom_text",
        open_clip.CustomTextCLIP,
        dict(
            embed_dim=10,
            init_logit_bias=-10,
            vision_cfg=VISION | dict(pool_type="avg", ls_init_value=1e-4),
            text_cfg=TEXT | dict(vocab_size=760, proj_bias=True),
        ),
        preprocess={"resize_mode": "squash"},
    )
    report()
