# SPDX-License-Identifier: Apache-2.0
"""Fixtures of RF-DETR and LW-DETR: small random models of transformers with their outputs.

    tools/golden/rf_detr.py                        writes the fixtures
    tools/golden/rf_detr.py --check build/release/vitrail [NAME...]   runs the program on larger random models too

tests/fixtures/rf_detr has for each model a folder with
  model.safetensors   the weights as f16 (of one model in shards), config.json, preprocessor_config.json,
  golden.safetensors  for the images of tests/fixtures/depth/images.safetensors: pixels_N, every STEP-th row and column
                      of the model's input; logits_N and boxes_N, the model's outputs; and scores_N, labels_N and
                      found_N, the objects above THRESHOLD with the best first.  Of instance segmentation masks_N, an
                      output too, and found_masks_N, every STEP-th row and column of the objects' masks.
"""

import copy
import json
import subprocess
import zlib

import dense_common
import torch
import transformers
from dense_common import STEP, images
from transformers.models.deformable_detr.image_processing_pil_deformable_detr import DeformableDetrImageProcessorPil
from transformers.models.rf_detr.image_processing_rf_detr import RfDetrImageProcessor

ROOT = dense_common.FIXTURES / "rf_detr"
THRESHOLD = 0.5
MIN_GAP = 1e-3  # between logits whose order matters, and of scores from the threshold
NAMES = ("N/A", "cat", "dog", "traffic light", "cup")
SMALL = dict(
    d_model=16,
    decoder_layers=2,
    decoder_self_attention_heads=2,
    decoder_cross_attention_heads=4,
    decoder_n_points=3,
    decoder_ffn_dim=20,
    num_queries=7,
    group_detr=3,
    c2f_num_blocks=2,
    id2label=dict(enumerate(NAMES)),
)
BACKBONE = dict(
    model_type="rf_detr_dinov2", hidden_size=24, num_hidden_layers=4, num_attention_heads=3, mlp_ratio=2, num_windows=2
)


def spec(side, backbone, model="RfDetrForObjectDetection", **config):
    return dict(
        model=model,
        config=config | dict(backbone_config=backbone),
        processor=dict(size={"height": side, "width": side}),
    )


MODELS = {
    # Positions of another grid, and a block that no map needs.
    "windows": spec(64, BACKBONE | dict(patch_size=8, image_size=48, out_features=["stage1", "stage3"]), **SMALL),
    # So many cells that those at the edges are no proposals.
    "edges": spec(
        104,
        BACKBONE | dict(patch_size=2, image_size=104, num_windows=4, out_features=["stage4"], apply_layernorm=False),
        **(SMALL | dict(activation_function="relu", decoder_activation_function="gelu", hidden_expansion=0.75)),
    ),
    "masks": spec(
        48,
        BACKBONE | dict(patch_size=6, image_size=48, out_features=["stage2", "stage4"]),
        "RfDetrForInstanceSegmentation",
        **(SMALL | dict(mask_downsample_ratio=3, intermediate_size=24)),
    ),
}
LW_BACKBONE = BACKBONE | dict(model_type="lw_detr_vit", patch_size=8, pretrain_image_size=48, num_windows=4)
MODELS |= {
    # Maps of three sizes, and a block that no map needs.
    "lw": spec(
        64,
        LW_BACKBONE | dict(image_size=64, window_block_indices=[0, 2], out_features=["stage1", "stage3"]),
        "LwDetrForObjectDetection",
        **(SMALL | dict(projector_scale_factors=[2.0, 1.0, 0.5], batch_norm_eps=1e-3)),
    ),
}
# Configurations of published sizes, for --check.
DINOV2 = dict(model_type="rf_detr_dinov2", hidden_size=384, num_attention_heads=6, image_size=518)
PUBLISHED = {
    "nano": spec(
        384,
        DINOV2 | dict(patch_size=16, image_size=384, num_windows=2, out_features=[f"stage{i}" for i in (3, 6, 9, 12)]),
        decoder_layers=2,
        decoder_n_points=2,
        num_labels=91,
    ),
    "base": spec(
        560,
        DINOV2 | dict(patch_size=14, num_windows=4, out_features=[f"stage{i}" for i in (2, 5, 8, 11)]),
        decoder_n_points=2,
        num_labels=91,
    ),
    "lw_xlarge": spec(
        640,
        dict(
            model_type="lw_detr_vit",
            image_size=1024,
            hidden_size=768,
            num_hidden_layers=10,
            window_block_indices=[0, 1, 3, 6, 7, 9],
            out_indices=[2, 4, 5, 9],
        ),
        "LwDetrForObjectDetection",
        projector_scale_factors=[2.0, 0.5],
        d_model=384,
        decoder_self_attention_heads=12,
        decoder_cross_attention_heads=24,
        num_labels=91,
    ),
    "seg_nano": spec(
        312,
        DINOV2 | dict(patch_size=12, image_size=312, num_windows=1, out_features=[f"stage{i}" for i in (3, 6, 9, 12)]),
        "RfDetrForInstanceSegmentation",
        decoder_layers=4,
        decoder_n_points=2,
        num_queries=100,
        num_labels=91,
    ),
}


def scaled(key, parameter, values):
    """Matrices with gain 1, norms near 1, everything else, biases and positions as well, not 0."""
    if "norm" in key:
        values = (1 if key.endswith("weight") else 0) + 0.3 * values
    elif parameter.dim() >= 2 and key.endswith("weight") and "reference_point" not in key:
        values /= (parameter.numel() / parameter.shape[0]) ** 0.5
    else:
        values *= 0.3
    # Queries differ, and read far from their boxes too.
    if "query_feat" in key or "sampling_offsets" in key:
        values *= 4
    return values


def model_of(spec, seed):
    is_lw = spec["model"].startswith("LwDetr")
    config = (transformers.LwDetrConfig if is_lw else transformers.RfDetrConfig)(**spec["config"])
    processor = (DeformableDetrImageProcessorPil if is_lw else RfDetrImageProcessor)(**spec["processor"])
    return dense_common.draw_parameters(getattr(transformers, spec["model"])(config), seed, scaled), processor


def outputs_of(model, processor, image, dtype=torch.float64):
    """The pixels, the outputs, the objects with the best first, and the best score of each cell."""
    pixels = processor(image, return_tensors="pt").pixel_values
    model = copy.deepcopy(model).to(dtype)
    cells = []
    first_stage = next(module for name, module in model.named_modules() if name.endswith("enc_out_class_embed.0"))
    hook = first_stage.register_forward_hook(lambda module, args, out: cells.append(out))
    with torch.no_grad():
        out = model(pixels.to(dtype))
    hook.remove()
    found = processor.post_process_object_detection(out, THRESHOLD, [image.shape[:2]])[0]
    return pixels, out, found, cells[0].max(-1)[0]


def smallest_gap(scores):
    return float((scores[:-1] - scores[1:]).min())


def fixture_of(name, spec, seed):
    """None if it finds few objects or one class, or if scores whose order matters are near each other."""
    model, processor = model_of(spec, seed)
    golden = {}
    queries = spec["config"]["num_queries"]
    for i, image in enumerate(images()):
        pixels, out, found, cells = outputs_of(model, processor, image)
        single = outputs_of(model, processor, image, torch.float32)[1]
        side = round(cells.shape[1] ** 0.5)
        inner = cells.view(side, side)[1:-1, 1:-1] if side >= 50 else cells
        best = inner.flatten().sort(descending=True)[0][: queries + 1]
        count = len(found["scores"])
        every = out.logits.flatten().sort(descending=True)[0][: max(queries, count) + 1]
        # RF-DETR finds no more objects than it has queries, LW-DETR 100.
        if count < 3 or len(found["labels"].unique()) < 2 or (every.sigmoid() > THRESHOLD).sum() != count:
            return None
        near = (every.sigmoid() - THRESHOLD).abs().min()
        if min(smallest_gap(best), smallest_gap(every), near) < MIN_GAP:
            return None
        error = float((single.logits - out.logits).abs().max() / out.logits.abs().max())
        print(f"{name} {i}: float32 differs by {error:.1e} of the largest; {count} objects")
        golden |= {f"pixels_{i}": pixels[0, :, ::STEP, ::STEP], f"logits_{i}": out.logits[0]}
        golden |= {f"boxes_{i}": out.pred_boxes[0], f"scores_{i}": found["scores"], f"labels_{i}": found["labels"]}
        golden |= {f"found_{i}": found["boxes"]}
        if "pred_masks" in out:
            masks = processor.post_process_instance_segmentation(
                out, THRESHOLD, target_sizes=[image.shape[:2]], return_binary_maps=True
            )[0]["segmentation"]
            if len(masks) != len(found["scores"]):
                return None
            golden |= {f"masks_{i}": out.pred_masks[0], f"found_masks_{i}": masks[:, ::STEP, ::STEP]}
    types = {torch.bool: torch.uint8}
    return model, processor, {key: values.to(types.get(values.dtype, torch.float32)) for key, values in golden.items()}


def write_fixture(name, spec):
    seed = zlib.crc32(name.encode())
    while not (fixture := fixture_of(name, spec, seed)):
        seed += 1
    model, processor, golden = fixture
    dense_common.save(ROOT / name, model, processor, **({"max_shard_size": "40KB"} if name == "edges" else {}))
    dense_common.save_golden(ROOT / name, model, golden)


def check(program, folder, name, spec):
    """Compares the program's objects with those of transformers in float32."""
    model, processor = model_of(spec, zlib.crc32(name.encode()))
    dense_common.save(folder / "model", model, processor)
    for image, file in zip(images(), dense_common.write_images(folder, images()), strict=True):
        want = outputs_of(model, processor, image, torch.float32)[2]
        command = [program, "detect", "-m", folder / "model", file, "--threshold", THRESHOLD]
        output = subprocess.run([str(word) for word in command], check=True, stdout=subprocess.PIPE).stdout
        got = json.loads(output)["detections"]
        assert len(got) == len(want["scores"])
        scores = torch.tensor([each["score"] for each in got])
        error = float((scores - want["scores"]).abs().max()) if got else 0
        same = sum(each["index"] == int(label) for each, label in zip(got, want["labels"], strict=True))
        print(f"{name} {file.stem}: {len(got)} objects, scores differ by {error:.1e}, {same} classes equal", flush=True)
        assert error < 1e-3


if __name__ == "__main__":
    dense_common.main(MODELS, PUBLISHED, write_fixture, check)
