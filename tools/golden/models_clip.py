# SPDX-License-Identifier: Apache-2.0
"""Fixtures of transformers' CLIP: image towers alone, and dual models with texts.

A dual fixture has in golden.safetensors also ids [T, N] (padded), text_embeds [T, D] and logits_per_image [B, T].
hf_clip also has the tokenizer of tests/fixtures/text/clip (text_tokenizers.py), and the texts of its ids in texts.json.
"""

import json
import shutil

import torch
import transformers
from models_common import ROOT, randomise, report, saved_pretrained, write_fixture

transformers.logging.disable_progress_bar()
VISION = dict(
    hidden_size=20, intermediate_size=36, num_hidden_layers=2, num_attention_heads=2, image_size=16, patch_size=4
)
TEXT = dict(
    hidden_size=18, intermediate_size=30, num_hidden_layers=2, num_attention_heads=3, max_position_embeddings=12
)
TEXT |= dict(vocab_size=40, bos_token_id=38, eos_token_id=39, pad_token_id=39)
PROCESSOR = {
    "crop_size": 16,
    "do_center_crop": True,
    "do_normalize": True,
    "do_resize": True,
    "feature_extractor_type": "CLIPFeatureExtractor",
    "image_mean": [0.48145466, 0.4578275, 0.40821073],
    "image_std": [0.26862954, 0.26130258, 0.27577711],
    "resample": 3,
    "size": 16,
}
TEXTS = ["a photo of a cat", "a photo of two dogs playing in the snow", "猫の写真です", "It isn't the Fox's bone!"]
IDS = [[38, 5, 17, 3, 39, 39, 39, 39], [38, 2, 39, 39, 39, 39, 39, 39], [38, 1, 30, 31, 8, 9, 22, 39]]


def write(name, model_class, config, logits_of, *, size2=(20, 28), ids=None, extra_files=None):
    model = randomise(model_class(config), name)
    if hasattr(model, "logit_scale"):
        torch.nn.init.constant_(model.logit_scale, 2.5)
    state, config_json = saved_pretrained(model)

    def forward(model, image):
        tower = getattr(model, "vision_model", model)
        hidden = tower(image, interpolate_pos_encoding=True).last_hidden_state
        tokens = hidden if hasattr(model, "classifier") else tower.post_layernorm(hidden)
        return logits_of(model, image), tokens

    def text_outputs(model, image):
        out = model(input_ids=torch.tensor(ids), pixel_values=image)
        embeds = pooled(model.get_text_features(input_ids=torch.tensor(ids)))
        return {"ids": torch.tensor(ids), "text_embeds": embeds, "logits_per_image": out.logits_per_image}

    write_fixture(
        name,
        model,
        forward,
        config_json,
        size=16,
        size2=size2,
        state=state,
        extra_files={"preprocessor_config.json": PROCESSOR} | (extra_files or {}),
        extra=text_outputs if ids else None,
        reference=f"transformers {transformers.__version__} {model_class.__name__}",
    )


def pooled(output):
    return output if torch.is_tensor(output) else output.pooler_output


def image_features(model, image):
    return pooled(model.get_image_features(pixel_values=image, interpolate_pos_encoding=True))


def clip_config(text=None, vision=None):
    return transformers.CLIPConfig(
        text_config=TEXT | (text or {}), vision_config=VISION | (vision or {}), projection_dim=10
    )


def with_tokenizer(name):
    folder = ROOT.parent / "text" / "clip"
    vocab = json.loads((folder / "vocab.json").read_text())
    merges = [tuple(line.split()) for line in (folder / "merges.txt").read_text().splitlines()[1:]]
    tokenizer = transformers.CLIPTokenizer(vocab=vocab, merges=merges)
    ids = tokenizer(TEXTS, padding=True, truncation=True, max_length=24)["input_ids"]
    text = dict(vocab_size=len(vocab), max_position_embeddings=24, bos_token_id=tokenizer.bos_token_id)
    text |= dict(eos_token_id=tokenizer.eos_token_id, pad_token_id=tokenizer.pad_token_id)
    write(
        name,
        transformers.CLIPModel,
        clip_config(text),
        image_features,
        ids=ids,
        extra_files={"texts.json": TEXTS},
    )
    for file in ("vocab.json", "merges.txt"):
        shutil.copy(folder / file, ROOT / name / file)


if __name__ == "__main__":
    torch.manual_seed(0)
    with_tokenizer("hf_clip")
    write(
        "hf_clip_old_eos",
        transformers.CLIPModel,
        clip_config(text=dict(eos_token_id=2, hidden_act="gelu"), vision=dict(hidden_act="gelu")),
        image_features,
        ids=IDS,
        size2=None,
    )
    vision = transformers.CLIPVisionConfig(**VISION, projection_dim=10)
    write(
        "hf_clip_vision",
        transformers.CLIPVisionModel,
        vision,
        lambda model, image: model(image, interpolate_pos_encoding=True).pooler_output,
    )
    write(
        "hf_clip_vision_projection",
        transformers.CLIPVisionModelWithProjection,
        vision,
        lambda model, image: model(image, interpolate_pos_encoding=True).image_embeds,
    )
    config = clip_config()
    config.id2label = {i: f"class number {i}" for i in range(10)}
    config.label2id = {label: i for i, label in config.id2label.items()}
    write(
        "hf_clip_classifier",
        transformers.CLIPForImageClassification,
        config,
        lambda model, image: model(image).logits,
        size2=None,
    )
    metaclip = transformers.MetaClip2Config(text_config=TEXT, vision_config=VISION, projection_dim=10)
    write("hf_metaclip_2", transformers.MetaClip2Model, metaclip, image_features, ids=IDS)
    report()
