# SPDX-License-Identifier: Apache-2.0
"""Fixtures of Hugging Face transformers' ViT, MSN, I-JEPA, DeiT, DINOv2 (with and without registers) and timm_wrapper.

save_pretrained writes config.json and the key names of the checkpoints on the hub.  hf_vit_new_keys has the module
names of transformers 5 instead.  preprocessor_config.json has the form of each family's files on the hub.
"""

import torch
import transformers
from models_common import HALF, IMAGENET, randomise, report, saved_pretrained, write_fixture

transformers.logging.disable_progress_bar()
SMALL = dict(hidden_size=18, num_hidden_layers=2, num_attention_heads=3, image_size=16, patch_size=4, num_labels=10)
VIT = SMALL | dict(intermediate_size=30)
LABELS = {i: f"class number {i}" for i in range(10)}


def processor(kind, mean_std, resample, **geometry):
    return {
        "image_processor_type": kind,
        "do_resize": True,
        "resample": resample,
        "do_rescale": True,
        "rescale_factor": 1 / 255,
        "do_normalize": True,
        "image_mean": mean_std["mean"],
        "image_std": mean_std["std"],
        **geometry,
    }


PROCESSORS = {
    "vit": processor("ViTImageProcessor", HALF, 2, size={"height": 16, "width": 16}),
    # An older form with plain integers, which DeiT's checkpoints on the hub have.
    "deit": {
        "crop_size": 16,
        "do_center_crop": True,
        "do_normalize": True,
        "do_resize": True,
        "feature_extractor_type": "DeiTFeatureExtractor",
        "image_mean": IMAGENET["mean"],
        "image_std": IMAGENET["std"],
        "resample": 3,
        "size": 18,
    },
    "dinov2": processor(
        "BitImageProcessor",
        IMAGENET,
        3,
        size={"shortest_edge": 18},
        do_center_crop=True,
        crop_size={"height": 16, "width": 16},
        do_convert_rgb=True,
    ),
}


def write(name, model_class, config, *, size2, embed_scale=0.01, hub_keys=True, **options):
    model = model_class(config)
    randomise(model, name, embed_scale)
    resizes_if_asked = config.model_type in ("vit", "deit", "vit_msn", "ijepa")

    def forward(model, image):
        how = {"interpolate_pos_encoding": True} if resizes_if_asked else {}
        with_head = hasattr(model, model.base_model_prefix)
        base = getattr(model, model.base_model_prefix) if with_head else model
        tokens = base(image, **how).last_hidden_state
        return model(image, **how).logits if with_head else tokens[:, 0], tokens

    state, saved = saved_pretrained(model, hub_keys)
    kind = {"vit_msn": "vit", "ijepa": "vit"}.get(config.model_type, config.model_type.removesuffix("_with_registers"))
    write_fixture(
        name,
        model,
        forward,
        saved,
        size=16,
        size2=size2,
        state=state,
        extra_files={"preprocessor_config.json": PROCESSORS[kind]},
        reference=f"transformers {transformers.__version__} {model_class.__name__}",
        **options,
    )


def internvl():
    """The mean of the patches, which no norm precedes; or the class token behind a norm."""
    small = dict(hidden_size=24, num_hidden_layers=2, num_attention_heads=3, intermediate_size=40)
    small |= dict(image_size=16, patch_size=4, layer_scale_init_value=0.5)
    for name, changes in (("", {}), ("_token", {"use_mean_pooling": False, "attention_bias": True})):
        model = transformers.InternVLVisionModel(transformers.InternVLVisionConfig(**small | changes))
        mean = model.config.use_mean_pooling

        def forward(model, image, mean=mean):
            tokens = model(image).last_hidden_state
            return tokens[:, 1:].mean(1) if mean else tokens[:, 0], tokens

        write_alone("hf_internvl" + name, model, forward, size2=(24, 12))


def tips():
    config = transformers.models.tipsv2.Tipsv2VisionConfig(
        hidden_size=24, num_hidden_layers=2, num_attention_heads=3, image_size=16, patch_size=4, num_register_tokens=2
    )

    def forward(model, image):
        out = model(image)
        return out.pooler_output, out.last_hidden_state

    write_alone("hf_tipsv2", transformers.models.tipsv2.Tipsv2VisionModel(config), forward, size2=(24, 12))


def write_alone(name, model, forward, **options):
    """A model without preprocessor_config.json."""
    randomise(model, name)
    state, saved = saved_pretrained(model)
    reference = f"transformers {transformers.__version__} {type(model).__name__}"
    write_fixture(name, model, forward, saved, size=16, state=state, reference=reference, **options)


def vit():
    def config(**changes):
        made = transformers.ViTConfig(**VIT | changes)
        made.id2label, made.label2id = LABELS, {label: i for i, label in LABELS.items()}
        return made

    classifier = transformers.ViTForImageClassification
    small = dict(size2=(24, 12), embed_scale=0.003)  # first variance near 1e-6: eps 1e-12 is not 1e-6
    write("hf_vit", classifier, config(hidden_dropout_prob=0.1, attention_probs_dropout_prob=0.1), **small)
    write("hf_vit_gelu_new", classifier, config(hidden_act="gelu_new"), size2=None)
    write("hf_vit_quick_gelu", classifier, config(hidden_act="quick_gelu"), size2=None)
    write("hf_vit_no_qkv_bias", classifier, config(qkv_bias=False, layer_norm_eps=1e-3), size2=None, embed_scale=0.1)
    write("hf_vit_new_keys", classifier, config(), size2=None, hub_keys=False)
    write(
        "hf_vit_model",
        transformers.ViTModel,
        transformers.ViTConfig(**VIT),
        **small,
        extra=lambda model, image: {"pooler_output": model(image).pooler_output},
        note="logits are CLS after the norm; pooler.dense is in the file as in the hub's, and not part of them",
    )


def self_supervised():
    labels = {"id2label": LABELS, "label2id": {label: i for i, label in LABELS.items()}}
    msn = transformers.ViTMSNConfig(**VIT, **labels)
    # transformers 5.24 saves MSN under the old names without the prefix of the hub's files.
    write("hf_vit_msn", transformers.ViTMSNForImageClassification, msn, size2=(24, 12), hub_keys=False)
    ijepa = transformers.IJepaConfig(**VIT, **labels)
    write("hf_ijepa", transformers.IJepaForImageClassification, ijepa, size2=(12, 20), embed_scale=0.003)


def timm_wrapper():
    small = dict(img_size=16, patch_size=4, embed_dim=18, depth=2, num_heads=3)
    config = transformers.TimmWrapperConfig(architecture="vit_tiny_patch16_224", model_args=small, num_labels=10)
    name, model = "hf_timm_wrapper", transformers.TimmWrapperForImageClassification(config)
    randomise(model, name)

    def forward(model, image):
        return model(image).logits, model.timm_model.forward_features(image)

    reference = f"transformers {transformers.__version__} TimmWrapperForImageClassification"
    write_fixture(name, model, forward, config.to_dict(), size=16, reference=reference)


def deit():
    config = transformers.DeiTConfig(**VIT)
    config.id2label, config.label2id = LABELS, {label: i for i, label in LABELS.items()}
    small = dict(size2=(12, 20), embed_scale=0.003)
    write(
        "hf_deit",
        transformers.DeiTForImageClassification,
        config,
        **small,
        note="the distillation token takes part, only CLS is classified",
    )
    write("hf_deit_teacher", transformers.DeiTForImageClassificationWithTeacher, config, **small)
    write(
        "hf_deit_model",
        transformers.DeiTModel,
        transformers.DeiTConfig(**VIT),
        size2=None,
        note="logits are CLS after the norm; pooler.dense is in the file as in the hub's, and not part of them",
    )


def dinov2():
    small = SMALL | dict(mlp_ratio=2)
    plain, registers = transformers.Dinov2Config, transformers.Dinov2WithRegistersConfig
    write("hf_dinov2", transformers.Dinov2ForImageClassification, plain(**small), size2=(20, 28))
    write("hf_dinov2_model", transformers.Dinov2Model, plain(**small), size2=(28, 12))
    write(
        "hf_dinov2_swiglu",
        transformers.Dinov2Model,
        plain(**SMALL | dict(hidden_size=20, num_attention_heads=2), use_swiglu_ffn=True),
        size2=None,
        note="mlp_ratio 4: 56 features after the gate",
    )
    write(
        "hf_dinov2_registers",
        transformers.Dinov2WithRegistersForImageClassification,
        registers(**small, num_register_tokens=3),
        size2=(24, 12),
    )
    write(
        "hf_dinov2_registers_model",
        transformers.Dinov2WithRegistersModel,
        registers(**small, num_register_tokens=4),
        size2=(8, 20),
    )


if __name__ == "__main__":
    torch.manual_seed(0)
    vit()
    self_supervised()
    timm_wrapper()
    deit()
    dinov2()
    internvl()
    tips()
    report()
