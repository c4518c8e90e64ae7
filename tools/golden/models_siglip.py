# SPDX-License-Identifier: Apache-2.0
"""Fixtures of SigLIP's image towers: transformers' SiglipModel, SiglipVisionModel and SiglipForImageClassification, and
a .npz as big_vision writes it, which timm reads.

hf_siglip is a dual model: golden.safetensors also has ids, text_embeds and logits_per_image; it has the tokenizer of
tests/fixtures/text/siglip (text_tokenizers.py) and the texts of its ids in texts.json.  hf_siglip2 is the same with
SigLIP 2's tokenizer.
"""

import shutil
import tempfile

import numpy
import timm
import torch
import transformers
from models_common import HALF, ROOT, randomise, report, saved_pretrained, write_fixture
from models_hf import LABELS, processor
from timm.models.vision_transformer import VisionTransformer

transformers.logging.disable_progress_bar()
VISION = dict(hidden_size=18, intermediate_size=30, num_hidden_layers=2, num_attention_heads=3, patch_size=4)
TEXT = dict(hidden_size=12, intermediate_size=16, num_hidden_layers=1, num_attention_heads=2, vocab_size=20)
TEXTS = ["a photo of a cat", "Two dogs, playing in the SNOW!", "猫の写真です"]
PROCESSOR = processor("SiglipImageProcessor", HALF, 3, size={"height": 16, "width": 16})


def write(name, model, *, size=16, size2=None, logits=None, extra_files=None, **options):
    """logits(model, image, how): the model's output, by default the pooled features."""
    randomise(model, name)
    if hasattr(model, "logit_bias"):
        torch.nn.init.constant_(model.logit_scale, 2.5)
        torch.nn.init.constant_(model.logit_bias, -1.5)

    def forward(model, image):
        how = {"interpolate_pos_encoding": True} if size2 else {}
        tower = getattr(model, "vision_model", model)
        out = tower(image, **how)
        return logits(model, image, how) if logits else out.pooler_output, out.last_hidden_state

    state, saved = saved_pretrained(model)
    write_fixture(
        name,
        model,
        forward,
        saved,
        size=size,
        size2=size2,
        state=state,
        extra_files={"preprocessor_config.json": PROCESSOR} | (extra_files or {}),
        reference=f"transformers {transformers.__version__} {type(model).__name__}",
        **options,
    )


def vision(image_size=16, **changes):
    return transformers.SiglipVisionConfig(**VISION | {"image_size": image_size} | changes)


def dual(image_size=16, **changes):
    config = transformers.SiglipConfig(vision_config=vision(image_size).to_dict(), text_config=TEXT, **changes)
    config.id2label, config.label2id = LABELS, {label: i for i, label in LABELS.items()}
    return config


def towers():
    write("hf_siglip_vision", transformers.SiglipVisionModel(vision()), size2=(24, 12))
    write(
        "hf_siglip_no_head",
        transformers.SiglipVisionModel(vision(vision_use_head=False)),
        logits=lambda model, image, how: model(image, **how).last_hidden_state,
        note="without a pooling head, logits are the tokens",
    )
    write(
        "hf_siglip_remainder",
        transformers.SiglipVisionModel(vision(18, hidden_act="gelu")),
        size=18,
        note="18 = 4·4 + 2: the last two pixels are no patch, as of so400m/14 at 384",
    )
    write(
        "hf_siglip_classifier",
        transformers.SiglipForImageClassification(dual()),
        size2=(12, 20),
        logits=lambda model, image, how: model(image, **how).logits,
    )


def dual_models():
    text = ROOT.parent / "text"
    gemma = transformers.Siglip2Tokenizer(tokenizer_file=str(text / "gemma" / "tokenizer.json"), padding_side="right")
    siglip = text / "siglip" / "spiece.model"
    with_texts("hf_siglip", transformers.SiglipTokenizer(str(siglip)), siglip)
    with_texts("hf_siglip2", gemma, text / "gemma" / "tokenizer.json")


def with_texts(name, tokenizer, file):
    ids = tokenizer(TEXTS, padding="max_length", truncation=True, max_length=24, return_tensors="pt")["input_ids"]
    changes = dict(vocab_size=len(tokenizer), max_position_embeddings=24, hidden_size=18, projection_size=18)
    config = transformers.SiglipConfig(vision_config=vision().to_dict(), text_config=TEXT | changes)

    def text_outputs(model, image):
        out = model(input_ids=ids, pixel_values=image)
        embeds = model.get_text_features(input_ids=ids)
        embeds = embeds if torch.is_tensor(embeds) else embeds.pooler_output
        return {"ids": ids, "text_embeds": embeds, "logits_per_image": out.logits_per_image}

    write(name, transformers.SiglipModel(config), extra=text_outputs, extra_files={"texts.json": TEXTS})
    shutil.copy(file, ROOT / name / file.name)


def flax_names(state, heads):
    """timm's parameters under big_vision's names and layouts (one block after the other)."""
    flat = {}

    def linear(name, to, weight=lambda w: w.T, bias=lambda b: b):
        flat[to + "/kernel"] = weight(state[name + ".weight"])
        flat[to + "/bias"] = bias(state[name + ".bias"])

    def norm(name, to):
        flat[to + "/scale"], flat[to + "/bias"] = state[name + ".weight"], state[name + ".bias"]

    def split(weights, names, parts, to):
        for at, part in enumerate(names):
            weight, bias = (state[f"{weights}.{kind}"].chunk(parts)[at] for kind in ("weight", "bias"))
            flat[f"{to}/{part}/kernel"] = weight.T.reshape(weight.shape[1], heads, -1)
            flat[f"{to}/{part}/bias"] = bias.reshape(heads, -1)

    def out(name, to):
        linear(name, to + "/out", lambda w: w.T.reshape(heads, -1, w.shape[0]))

    linear("patch_embed.proj", "embedding", lambda w: w.permute(2, 3, 1, 0))
    flat["pos_embedding"] = state["pos_embed"]
    for i in range(2):
        block, to = f"blocks.{i}", f"Transformer/encoderblock_{i}"
        norm(f"{block}.norm1", f"{to}/LayerNorm_0")
        norm(f"{block}.norm2", f"{to}/LayerNorm_1")
        split(f"{block}.attn.qkv", ("query", "key", "value"), 3, f"{to}/MultiHeadDotProductAttention_0")
        out(f"{block}.attn.proj", f"{to}/MultiHeadDotProductAttention_0")
        for layer in (0, 1):
            linear(f"{block}.mlp.fc{layer + 1}", f"{to}/MlpBlock_0/Dense_{layer}")
    norm("norm", "Transformer/encoder_norm")
    pool, to = "attn_pool", "MAPHead_0"
    flat[f"{to}/probe"] = state[f"{pool}.latent"]
    split(f"{pool}.q", ("query",), 1, f"{to}/MultiHeadDotProductAttention_0")
    split(f"{pool}.kv", ("key", "value"), 2, f"{to}/MultiHeadDotProductAttention_0")
    out(f"{pool}.proj", f"{to}/MultiHeadDotProductAttention_0")
    norm(f"{pool}.norm", f"{to}/LayerNorm_0")
    for layer in (0, 1):
        linear(f"{pool}.mlp.fc{layer + 1}", f"{to}/MlpBlock_0/Dense_{layer}")
    return {"params/img/" + key: value for key, value in flat.items()}


def big_vision():
    small = dict(img_size=16, patch_size=4, embed_dim=18, depth=2, num_heads=3, mlp_ratio=1.5)
    args = small | dict(num_classes=0, class_token=False, global_pool="map")
    model = VisionTransformer(**args)
    name = "google_npz_siglip"
    randomise(model, name)

    def forward(model, image):
        tokens = model.forward_features(image)
        return model.forward_head(tokens), tokens

    state = flax_names({key: value.detach() for key, value in model.state_dict().items()}, args["num_heads"])
    copy = VisionTransformer(**args)
    with tempfile.TemporaryDirectory() as folder:  # timm reads the same names
        path = folder + "/model.npz"
        numpy.savez(path, **{key: value.numpy() for key, value in state.items()})
        copy.load_pretrained(path)
    for key, value in model.state_dict().items():
        assert torch.equal(copy.state_dict()[key], value), key
    config = {"architecture": "vit", "model_args": args}
    write_fixture(
        name,
        model,
        forward,
        config,
        size=16,
        state=state,
        form="npz",
        reference=f"timm {timm.__version__}, names of big_vision",
    )


if __name__ == "__main__":
    torch.manual_seed(0)
    towers()
    dual_models()
    big_vision()
    report()
