# SPDX-License-Identifier: Apache-2.0
"""Fixture of contrastive training: tests/fixtures/train/contrastive.safetensors.

transformers' CLIPModel and SiglipModel with the weights of tests/fixtures/models/hf_clip and hf_siglip (models_clip.py,
models_siglip.py) learn from four pairs, in float64, by their own losses (`return_loss`), for three steps of torch's
AdamW with the rate 1e-3, beta2 0.98, eps 1e-6 and weight decay 0.1; vectors, biases, the class token and the positions
of the image tower have none.

`pixels` [4, 3, 16, 16]; MODEL.ids [4, N]; MODEL.loss_STEP; MODEL.grad.NAME of the first step, and MODEL.after.NAME
after the third, of some tensors of both towers under the names of the file.
"""

import pathlib
import zlib

import safetensors.torch
import torch
import transformers

ROOT = pathlib.Path(__file__).resolve().parents[2] / "tests" / "fixtures"
NAMES = (
    "vision_model.embeddings.class_embedding",
    "vision_model.embeddings.patch_embedding.weight",
    "vision_model.encoder.layers.1.self_attn.v_proj.weight",
    "vision_model.encoder.layers.0.mlp.fc2.weight",
    "vision_model.post_layernorm.weight",
    "vision_model.head.attention.in_proj_weight",
    "visual_projection.weight",
    "text_model.embeddings.position_embedding.weight",
    "text_model.encoder.layers.0.self_attn.q_proj.weight",
    "text_model.encoder.layers.1.mlp.fc1.bias",
    "text_model.final_layer_norm.weight",
    "text_model.head.weight",
    "text_projection.weight",
    "logit_scale",
    "logit_bias",
)
CLIP_IDS = [
    [756, 5, 17, 3, 757, 757],
    [756, 300, 757, 757, 757, 757],
    [756, 1, 30, 31, 8, 757],
    [756, 9, 9, 757, 757, 757],
]
STEPS = 3


def draw(name, *shape):
    return torch.randn(shape, generator=torch.Generator().manual_seed(zlib.crc32(name.encode()))).double()


def is_decayed(name, parameter):
    of_image = name.startswith("vision_model.embeddings.")
    return not (parameter.dim() < 2 or name.endswith("bias") or (of_image and ("class" in name or "position" in name)))


def learn(name, model_class, ids, tensors):
    model = model_class.from_pretrained(ROOT / "models" / f"hf_{name}", dtype=torch.float64)
    parameters = dict(model.named_parameters())
    groups = [
        {"params": [p for n, p in parameters.items() if is_decayed(n, p)], "weight_decay": 0.1},
        {"params": [p for n, p in parameters.items() if not is_decayed(n, p)], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, lr=1e-3, betas=(0.9, 0.98), eps=1e-6)
    tensors[f"{name}.ids"] = torch.tensor(ids)
    for step in range(STEPS):
        loss = model(input_ids=torch.tensor(ids), pixel_values=tensors["pixels"].double(), return_loss=True).loss
        optimizer.zero_grad()
        loss.backward()
        tensors[f"{name}.loss_{step}"] = loss.detach().float()
        if step == 0:
            for key in NAMES:
                if key in parameters:
                    tensors[f"{name}.grad.{key}"] = parameters[key].grad.float().contiguous()
        optimizer.step()
    for key in NAMES:
        if key in parameters:
            tensors[f"{name}.after.{key}"] = parameters[key].detach().float().contiguous()


def main():
    tensors = {"pixels": draw("pixels", 4, 3, 16, 16).float()}
    learn("clip", transformers.CLIPModel, CLIP_IDS, tensors)
    siglip_ids = (draw("ids", 4, 24).abs() * 60).long().clamp(3, 200)
    siglip_ids[:, -4:] = 1
    learn("siglip", transformers.SiglipModel, siglip_ids.tolist(), tensors)
    safetensors.torch.save_file(tensors, ROOT / "train" / "contrastive.safetensors")
    print("train/contrastive")


if __name__ == "__main__":
    torch.set_num_threads(1)
    main()
