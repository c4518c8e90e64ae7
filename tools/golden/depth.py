# SPDX-License-Identifier: Apache-2.0
"""Fixtures of Depth Anything and DPT: small random models of transformers with their outputs.

    tools/golden/depth.py                        writes the fixtures
    tools/golden/depth.py --check build/release/vitrail [NAME...]   runs the program on larger random models too

tests/fixtures/depth has images.safetensors, image_N [H, W, 3] u8, and for each model a folder with
  model.safetensors   the weights as f16, config.json, preprocessor_config.json, as save_pretrained writes them,
  golden.safetensors  every third row and column of predicted_N, the model's output, and of depth_N, the map at the
                      image's size.
"""

import copy
import re
import zlib

import dense_common
import numpy
import safetensors.torch
import torch
import transformers
from dense_common import IMAGENET, STEP, images
from transformers.models.dpt.image_processing_pil_dpt import DPTImageProcessorPil

ROOT = dense_common.FIXTURES / "depth"
PROCESSOR = dict(keep_aspect_ratio=True, ensure_multiple_of=14, **IMAGENET)


def anything(backbone, neck, processor, **config):
    return dict(backbone=backbone, config=dict(neck, **config), processor=dict(PROCESSOR, **processor))


def dpt(backbone, processor, **config):
    """DPT on its own ViT, or on the backbone of a class."""
    return dict(backbone=backbone, config=dict(DPT_NECK, **config), processor=dict(PROCESSOR, **processor), dpt=True)


DPT_NECK = dict(neck_hidden_sizes=[8, 10, 12, 16], fusion_hidden_size=8)
VIT = dict(hidden_size=24, num_hidden_layers=4, num_attention_heads=3, intermediate_size=40)
SMALL = dict(hidden_size=24, num_hidden_layers=5, num_attention_heads=3, image_size=70, patch_size=14)
SMALL_NECK = dict(
    reassemble_hidden_size=24, neck_hidden_sizes=[8, 10, 12, 16], fusion_hidden_size=12, head_hidden_size=6
)
MODELS = {
    "relative": anything(
        dict(SMALL, out_indices=[2, 3, -2, 5]), SMALL_NECK, dict(size={"height": 98, "width": 98}), max_depth=1
    ),
    "metric": anything(
        dict(
            SMALL,
            patch_size=8,
            image_size=40,
            use_swiglu_ffn=True,
            apply_layernorm=False,
            out_features=["stage1", "stage2", "stage4"],
        ),
        dict(SMALL_NECK, neck_hidden_sizes=[10, 12, 16], reassemble_factors=[2, 1, 0.25]),
        dict(size={"height": 60, "width": 88}, keep_aspect_ratio=False, ensure_multiple_of=8, resample=2),
        patch_size=8,
        depth_estimation_type="metric",
        max_depth=20,
    ),
    "dpt_vit": dpt(
        None,
        dict(size={"height": 80, "width": 80}, keep_aspect_ratio=False, ensure_multiple_of=1),
        **VIT,
        image_size=64,
        backbone_out_indices=[0, 1, 2, 3],
    ),
    "dpt_dinov2": dpt(
        dict(SMALL, class_name="Dinov2Config", out_indices=[1, 2, 4, 5]),
        dict(size={"height": 98, "width": 98}),
        readout_type="add",
        use_batch_norm_in_fusion_residual=True,
    ),
    "dpt_beit": dpt(
        dict(
            VIT,
            class_name="BeitConfig",
            image_size=64,
            use_relative_position_bias=True,
            layer_scale_init_value=0.5,
            out_features=["stage1", "stage2", "stage3", "stage4"],
        ),
        dict(size={"height": 64, "width": 64}, keep_aspect_ratio=False, ensure_multiple_of=1),
        hidden_act="relu",
    ),
}
# Published configurations, for --check.
BACKBONES = {
    "small": (dict(hidden_size=384, num_attention_heads=6, num_hidden_layers=12), [48, 96, 192, 384], 64),
    "base": (dict(hidden_size=768, num_attention_heads=12, num_hidden_layers=12), [96, 192, 384, 768], 128),
    "large": (dict(hidden_size=1024, num_attention_heads=16, num_hidden_layers=24), [256, 512, 1024, 1024], 256),
}
LAYERS = {
    "v1": {"small": [9, 10, 11, 12], "base": [9, 10, 11, 12], "large": [21, 22, 23, 24]},
    "v2": {"small": [3, 6, 9, 12], "base": [3, 6, 9, 12], "large": [5, 12, 18, 24]},
}
PUBLISHED = {
    f"{version}_{size}": anything(
        dict(backbone, image_size=518, patch_size=14, out_indices=LAYERS[version][size]),
        dict(reassemble_hidden_size=backbone["hidden_size"], neck_hidden_sizes=neck, fusion_hidden_size=fusion),
        dict(size={"height": 518, "width": 518}),
    )
    for version in LAYERS
    for size, (backbone, neck, fusion) in BACKBONES.items()
}
PUBLISHED["v2_metric_small"] = copy.deepcopy(PUBLISHED["v2_small"])
PUBLISHED["v2_metric_small"]["config"] |= dict(depth_estimation_type="metric", max_depth=80)
# The names of the authors' code, for --check.
AUTHORS_BACKBONE = (
    (r"^backbone\.embeddings\.patch_embeddings\.projection", "pretrained.patch_embed.proj"),
    (r"^backbone\.embeddings\.position_embeddings", "pretrained.pos_embed"),
    (r"^backbone\.embeddings\.", "pretrained."),
    (r"^backbone\.layernorm", "pretrained.norm"),
    (r"attention\.(attention\.)?(query|key|value)", r"attn.\2"),
    (r"attention\.([qkv])_proj", lambda match: "attn." + {"q": "query", "k": "key", "v": "value"}[match[1]]),
    (r"attention\.(output\.dense|o_proj)", "attn.proj"),
    (r"layer_scale(\d)\.lambda1", r"ls\1.gamma"),
)
AUTHORS_HEAD = (
    (r"^neck\.reassemble_stage\.layers\.(\d)\.projection", r"depth_head.projects.\1"),
    (r"^neck\.reassemble_stage\.layers\.(\d)\.resize", r"depth_head.resize_layers.\1"),
    (r"residual_layer(\d)\.convolution(\d)", r"resConfUnit\1.conv\2"),
    (r"^(neck\.fusion_stage\.layers\.\d)\.projection", r"\1.out_conv"),
    (r"^head\.conv1", "depth_head.scratch.output_conv1"),
    (r"^head\.conv2", "depth_head.scratch.output_conv2.0"),
    (r"^head\.conv3", "depth_head.scratch.output_conv2.2"),
)


def scaled(key, parameter, values):
    """Matrices with gain 1, norms and LayerScale near 1, everything else, biases and positions as well, not 0."""
    if "norm" in key or "lambda" in key or "bn" in key:
        return (1 if key.endswith(("weight", "lambda1")) else 0) + 0.3 * values
    if parameter.dim() >= 2 and key.endswith("weight"):
        return values / (parameter.numel() / parameter.shape[1 if "resize" in key else 0]) ** 0.5
    return 0.3 * values


def processor_of(spec):
    return DPTImageProcessorPil(**spec["processor"])


def model_of(name, spec):
    options = dict(spec["backbone"] or {})
    backbone_class = getattr(transformers, options.pop("class_name", "Dinov2Config"))
    backbone = backbone_class(**options, reshape_hidden_states=False) if options else None
    if "dpt" in spec:
        config = transformers.DPTConfig(backbone_config=backbone, **spec["config"])
        model = transformers.DPTForDepthEstimation(config)
        last = model.head.head[4]
    else:
        config = transformers.DepthAnythingConfig(backbone_config=backbone, **spec["config"])
        model = transformers.DepthAnythingForDepthEstimation(config)
        last = model.head.conv3
    dense_common.draw_parameters(model, zlib.crc32(name.encode()), scaled)
    hidden = dense_common.output_of(last, lambda: model(**processor_of(spec)(images()[0], return_tensors="pt")))
    with torch.no_grad():  # the largest part of the map is above 0, where relu passes it
        metric = spec["config"].get("depth_estimation_type") == "metric"
        last.bias -= hidden.mean() if metric else hidden.quantile(0.1)
        last.bias.copy_(last.bias.half())
    return model


def outputs_of(model, processor, image):
    """The model's output in float64, and the map at the image's size."""
    pixels = processor(image, return_tensors="pt").pixel_values
    with torch.no_grad():
        out = model.double()(pixels.double())
    depth = processor.post_process_depth_estimation(out, [image.shape[:2]])[0]["predicted_depth"]
    return out.predicted_depth[0], depth


def write_fixture(name, spec):
    samples = {f"image_{i}": torch.tensor(image) for i, image in enumerate(images())}
    safetensors.torch.save_file(samples, ROOT / "images.safetensors")
    model, processor = model_of(name, spec), processor_of(spec)
    dense_common.save(ROOT / name, model, processor)
    golden = {}
    for i, image in enumerate(images()):
        predicted, depth = outputs_of(copy.deepcopy(model), processor, image)
        single = copy.deepcopy(model)(processor(image, return_tensors="pt").pixel_values).predicted_depth[0]
        error = (single - predicted).abs().max() / predicted.abs().max()
        print(
            f"{name} {i}: {tuple(predicted.shape)}, {(predicted > 0).double().mean():.2f} above 0, "
            f"{predicted.min():.3g} to {predicted.max():.3g}, float32 differs by {error:.1e} of the largest"
        )
        for key, values in (("predicted", predicted), ("depth", depth)):
            golden[f"{key}_{i}"] = values[::STEP, ::STEP].float()
    dense_common.save_golden(ROOT / name, model, golden)


def authors_names(state):
    """A state dict of transformers under the names of the authors' code."""
    result = {}
    for key, value in state.items():
        if key.startswith("backbone."):
            key = re.sub(r"^backbone\.(encoder\.layer|layers)\.", "pretrained.blocks.", key)
            for old, new in AUTHORS_BACKBONE:
                key = re.sub(old, new, key)
        for old, new in AUTHORS_HEAD:
            key = re.sub(old, new, key)
        for j in range(4):
            key = key.replace(f"neck.fusion_stage.layers.{j}.", f"depth_head.scratch.refinenet{4 - j}.")
            key = key.replace(f"neck.convs.{j}.", f"depth_head.scratch.layer{j + 1}_rn.")
        result[key] = value
    for block in {key.rsplit(".", 3)[0] for key in result if ".attn.query." in key}:
        for kind in ("weight", "bias"):
            parts = [result.pop(f"{block}.attn.{part}.{kind}") for part in ("query", "key", "value")]
            result[f"{block}.attn.qkv.{kind}"] = torch.cat(parts)
    return result


def authors_file(name):
    version, *words = name.split("_")
    size = words[-1][0]
    if version == "v1":
        return f"depth_anything_vit{size}14.pth"
    return f"depth_anything_v2_{'metric_vkitti_' if 'metric' in words else ''}vit{size}.pth"


def check(program, root, name, spec):
    """Compares the program's maps with those of transformers."""
    model, processor = model_of(name, spec), processor_of(spec)
    dense_common.save(root / "model", model, processor)
    photos = dense_common.write_images(root, images())
    files = [root / "model"]
    if name in PUBLISHED:
        files.append(root / authors_file(name))
        torch.save(authors_names(model.state_dict()), files[1])
    wanted = [outputs_of(copy.deepcopy(model), processor, image)[1].numpy() for image in images()]
    for file in files:
        dense_common.run_program(program, "depth", "-m", file, "--arrays", root / "out", "--force", *photos)
        for i, want in enumerate(wanted):
            got = numpy.load(root / "out" / f"{i}.npy")
            error = abs(got - want).max() / (want.max() - want.min())
            print(f"{name} {file.name} {i}: {got.shape}, differs by {error:.1e} of the range", flush=True)
            assert got.shape == want.shape and error < 1e-3


if __name__ == "__main__":
    dense_common.main(MODELS, PUBLISHED, write_fixture, check)
