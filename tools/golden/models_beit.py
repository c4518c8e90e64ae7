# SPDX-License-Identifier: Apache-2.0
"""Fixtures of BEiT and data2vec-vision: timm's Beit and transformers' models, which resample the tables of relative
positions to other image sizes in two ways.
"""

import timm
import torch
import transformers
from models_common import HALF, preprocessing, randomise, report, saved_pretrained, write_fixture
from models_hf import LABELS, processor
from timm.models.beit import Beit

transformers.logging.set_verbosity_error()
transformers.logging.disable_progress_bar()
TIMM = dict(img_size=16, patch_size=4, embed_dim=18, depth=2, num_heads=3, mlp_ratio=1.5)
OWN = dict(attn_type="eva", global_pool="avg", pos_embed="none")  # vitrail's fields of what is fixed in timm's Beit
HF = dict(hidden_size=18, num_hidden_layers=2, num_attention_heads=3, image_size=16, patch_size=4, intermediate_size=30)
PROCESSOR = processor("BeitImageProcessor", HALF, 3, size={"height": 16, "width": 16})


def write_timm(name, fields, *, size2=None, **args):
    """fields: those of vitrail that differ from OWN; args: those of timm."""
    args = TIMM | args
    model = Beit(num_classes=10, use_abs_pos_emb=False, init_values=0.1, **args)
    randomise(model, name)

    def forward(model, image):
        model.set_input_size(tuple(image.shape[-2:]))  # resamples the tables
        tokens = model.forward_features(image)
        return model.forward_head(tokens), tokens

    config = {
        "architecture": "vit",
        "num_classes": 10,
        "model_args": args | OWN | {"init_values": 0.1} | fields,
        "pretrained_cfg": preprocessing(16, mean_std=HALF),
    }
    write_fixture(name, model, forward, config, size=16, size2=size2, reference=f"timm {timm.__version__} Beit")


def timm_beit():
    write_timm("timm_beit", {}, use_rel_pos_bias=True, size2=(24, 12))
    write_timm("timm_beit_shared", {}, use_shared_rel_pos_bias=True, size2=28)
    write_timm("timm_beit_token", {"global_pool": "token"}, use_rel_pos_bias=True, global_pool="token")


def write_hf(name, model_class, config, *, size2=None, hub_keys=True, logits):
    """logits(model, image): the model's output."""
    config.id2label, config.label2id = LABELS, {label: i for i, label in LABELS.items()}
    model = model_class(config)
    randomise(model, name, 0.003)
    with torch.no_grad():
        for key, parameter in model.named_parameters():
            if "lambda_" in key:
                parameter += 0.5

    def forward(model, image):
        base = getattr(model, model.base_model_prefix, model)
        how = {"interpolate_pos_encoding": True} if size2 else {}
        tokens = base(image, **how).last_hidden_state
        if hasattr(model, "lm_head"):
            tokens = model.layernorm(tokens)
        return logits(model, image, how, tokens), tokens

    state, saved = saved_pretrained(model, hub_keys)
    write_fixture(
        name,
        model,
        forward,
        saved,
        size=16,
        size2=size2,
        state=state,
        extra_files={"preprocessor_config.json": PROCESSOR},
        reference=f"transformers {transformers.__version__} {model_class.__name__}",
    )


def hugging_face():
    beit, data2vec = transformers.BeitConfig, transformers.Data2VecVisionConfig
    own = dict(use_relative_position_bias=True)
    shared = dict(use_shared_relative_position_bias=True)

    def classes(model, image, how, tokens):
        return model(image, **how).logits

    def pooled(model, image, how, tokens):
        return model(image, **how).pooler_output

    def mean(model, image, how, tokens):
        return tokens[:, 1:].mean(1)

    write_hf("hf_beit", transformers.BeitForImageClassification, beit(**HF, **own), size2=28, logits=classes)
    write_hf(
        "hf_beit_model",
        transformers.BeitModel,
        beit(**HF, **own, **shared, use_absolute_position_embeddings=True, use_mask_token=True),
        hub_keys=False,
        logits=pooled,
    )
    write_hf(
        "hf_beit_token",
        transformers.BeitModel,
        beit(**HF, **own, use_mean_pooling=False, layer_scale_init_value=0.0),
        logits=pooled,
    )
    masked = beit(**HF, **shared, vocab_size=12)
    write_hf("hf_beit_masked", transformers.BeitForMaskedImageModeling, masked, logits=mean)
    write_hf("hf_data2vec", transformers.Data2VecVisionForImageClassification, data2vec(**HF, **own), logits=classes)
    write_hf("hf_data2vec_model", transformers.Data2VecVisionModel, data2vec(**HF, **shared), size2=20, logits=mean)


if __name__ == "__main__":
    torch.manual_seed(0)
    timm_beit()
    hugging_face()
    report()
