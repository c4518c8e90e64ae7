# SPDX-License-Identifier: Apache-2.0
"""Fixtures of EoMT: small random models of transformers with their outputs.

    tools/golden/eomt.py                        writes the fixtures
    tools/golden/eomt.py --check build/release/vitrail [NAME...]   runs the program on larger random models too

tests/fixtures/eomt has for each model a folder with
  model.safetensors   the weights as f16 (of one model in shards), config.json, preprocessor_config.json,
  golden.safetensors  for the images of tests/fixtures/depth/images.safetensors: classes_N and masks_N, the outputs for
                      each crop; and the maps semantic_N or panoptic_N and instance_N, i8, with UNCLEAR where the two
                      best labels are near each other; its metadata has the segments.
"""

import copy
import zlib

import dense_common
import numpy
import torch
import transformers
from dense_common import images
from transformers.models.eomt.image_processing_pil_eomt import EomtImageProcessorPil

ROOT = dense_common.FIXTURES / "eomt"
UNCLEAR = -2
MARGIN = 1e-3
# A random model's masks overlap more than a trained one's.
PANOPTIC = dict(threshold=0.5, mask_threshold=0.5, overlap_mask_area_threshold=0.25)
INSTANCE = dict(threshold=0.5)
SMALL = dict(
    hidden_size=24, num_hidden_layers=4, num_attention_heads=3, num_register_tokens=2, num_queries=7, patch_size=8
)


def spec(dinov3, side, probabilities, split=False, labels=5, stuff=(), **config):
    size = {"shortest_edge": side, "longest_edge": None if split else side}
    return dict(
        dinov3=dinov3,
        config=dict(SMALL, image_size=side, num_labels=labels, num_blocks=len(probabilities), **config),
        processor=dict(size=size, do_split_image=split, do_pad=not split),
        probabilities=probabilities,
        stuff=list(stuff),
    )


MODELS = {
    "semantic": spec(False, 64, [0, 0], split=True, mlp_ratio=2),
    "panoptic": spec(False, 72, [0, 1, 1], stuff=(0, 2), use_swiglu_ffn=True, mlp_ratio=2, num_upscale_blocks=1),
    "dinov3_semantic": spec(True, 48, [0, 0], split=True, intermediate_size=40, key_bias=True),
    "dinov3_panoptic": spec(True, 64, [1, 0], stuff=(1,), intermediate_size=40, use_gated_mlp=True, hidden_act="silu"),
}

# Configurations of published sizes, for --check.
BASE = dict(hidden_size=384, num_attention_heads=6, num_hidden_layers=12, patch_size=16, num_queries=100)
PUBLISHED = {
    "small_semantic": spec(False, 512, [0] * 3, split=True, labels=150, **BASE),
    "small_panoptic": spec(False, 640, [0] * 3, labels=133, **BASE),
    "small_dinov3": spec(True, 640, [0] * 3, labels=133, intermediate_size=1536, **BASE),
}


def scaled(key, parameter, values):
    """Matrices with gain 1, norms and LayerScale near 1, everything else, biases and positions as well, not 0."""
    if "norm" in key or "lambda" in key:
        values = (1 if key.endswith(("weight", "lambda1")) else 0) + 0.3 * values
    elif parameter.dim() >= 2 and key.endswith("weight") and "embeddings.position" not in key:
        values = values / (parameter.numel() / parameter.shape[0]) ** 0.5
    else:
        values = 0.3 * values
    return 5 * values if key.startswith(("class_predictor", "query")) else values  # queries differ, and are sure


def model_of(spec, seed):
    if spec["dinov3"]:
        model = transformers.EomtDinov3ForUniversalSegmentation(transformers.EomtDinov3Config(**spec["config"]))
    else:
        model = transformers.EomtForUniversalSegmentation(transformers.EomtConfig(**spec["config"]))
    model.set_attn_implementation("eager")  # torch's fused attention in float64 adds the masks wrongly
    model.attn_mask_probs.copy_(torch.tensor(spec["probabilities"]))
    return dense_common.draw_parameters(model, seed, scaled)


def outputs_of(model, processor, image, dtype=torch.float64):
    model = copy.deepcopy(model).to(dtype)
    inputs = processor(image, return_tensors="pt")
    with torch.no_grad():
        out = model(inputs.pixel_values.to(dtype))
    out.patch_offsets = inputs.patch_offsets
    return out


def set_unclear(labels, values):
    """Where the two largest of values [N, H, W] are near each other."""
    if values.shape[0] > 1:
        best = values.topk(2, dim=0).values
        labels[best[0] - best[1] < MARGIN] = UNCLEAR


def maps_of(processor, spec, out, size):
    """The maps by name, and the segments of those that have some."""
    if spec["processor"]["do_split_image"]:
        result = processor.post_process_semantic_segmentation(out, [size], return_segmentation_scores=True)[0]
        labels = result.segmentation.to(torch.int8)
        set_unclear(labels, result.segmentation_scores)
        return dict(semantic=labels), {}
    panoptic = processor.post_process_panoptic_segmentation(out, [size], stuff_classes=spec["stuff"], **PANOPTIC)[0]
    instance = processor.post_process_instance_segmentation(out, [size], **INSTANCE)[0]
    segments = dict(panoptic=panoptic["segments_info"], instance=instance["segments_info"])
    side = processor.size["shortest_edge"]
    masks = torch.nn.functional.interpolate(out.masks_queries_logits, size=(side, side), mode="bilinear")
    masks = processor.unpad_image(masks, [size], processor.size)[0].sigmoid()
    near_half = ((masks - 0.5).abs() < MARGIN).any(dim=0)
    scores, labels = out.class_queries_logits[0].softmax(-1).max(-1)
    kept = (labels != spec["config"]["num_labels"]) & (scores > PANOPTIC["threshold"])
    result = dict(panoptic=panoptic["segmentation"].to(torch.int8), instance=instance["segmentation"].to(torch.int8))
    set_unclear(result["panoptic"], scores[kept, None, None] * masks[kept])
    for labels in result.values():
        labels[near_half] = UNCLEAR
    return result, segments


def fixture_of(name, spec, seed):
    """The model and its golden tensors.  None if a mask in it depends on the precision, or if it finds little."""
    model, processor = model_of(spec, seed), EomtImageProcessorPil(**spec["processor"])
    golden, segments = {}, []
    for i, image in enumerate(images()):
        out, single = (outputs_of(model, processor, image, dtype) for dtype in (torch.float64, torch.float32))
        errors = [
            float((getattr(out, key) - getattr(single, key)).abs().max() / getattr(out, key).abs().max())
            for key in ("masks_queries_logits", "class_queries_logits")
        ]
        if max(errors) > 1e-5:
            return None
        maps, found = maps_of(processor, spec, out, image.shape[:2])
        labels = maps.get("semantic")
        if labels is not None and labels.unique(return_counts=True)[1].max() > 0.95 * labels.numel():
            return None
        segments.append(found)
        golden |= {f"{key}_{i}": values for key, values in maps.items()}
        golden[f"classes_{i}"] = out.class_queries_logits.float()
        golden[f"masks_{i}"] = out.masks_queries_logits.float()
        shares = {key: round(float((values == UNCLEAR).float().mean()), 3) for key, values in maps.items()}
        counts = {key: len(values) for key, values in found.items()}
        print(f"{name} {i}: float32 differs by {max(errors):.1e} of the largest; unclear {shares}; segments {counts}")
    if any(len(found[key]) < 2 for found in segments for key in found):
        return None
    return model, processor, golden, segments


def write_fixture(name, spec):
    seed = zlib.crc32(name.encode())
    while not (fixture := fixture_of(name, spec, seed)):
        seed += 1
    model, processor, golden, segments = fixture
    shards = {"max_shard_size": "40KB"} if name == "dinov3_semantic" else {}
    dense_common.save(ROOT / name, model, processor, **shards)
    about = dict(segments=segments, stuff=spec["stuff"], panoptic=PANOPTIC, instance=INSTANCE)
    dense_common.save_golden(ROOT / name, model, golden, **about)


def labels_of(result):
    """The label of each pixel of post-processed segments, -1 without one."""
    labels = torch.full(result["segmentation"].shape, -1.0)
    for segment in result["segments_info"]:
        labels[result["segmentation"] == segment["id"]] = segment["label_id"]
    return labels


def expected_labels(processor, spec, out, size):
    """The label maps by task, with the thresholds of transformers."""
    if spec["processor"]["do_split_image"]:
        return dict(semantic=processor.post_process_semantic_segmentation(out, [size])[0])
    return dict(
        panoptic=labels_of(processor.post_process_panoptic_segmentation(out, [size])[0]),
        instance=labels_of(processor.post_process_instance_segmentation(out, [size])[0]),
    )


def check(program, root, name, spec):
    """Compares the program's label maps with those of transformers in float32."""
    model, processor = model_of(spec, zlib.crc32(name.encode())), EomtImageProcessorPil(**spec["processor"])
    dense_common.save(root / "model", model, processor)
    for i, (image, file) in enumerate(zip(images(), dense_common.write_images(root, images()), strict=True)):
        out = outputs_of(model, processor, image, torch.float32)
        for task, want in expected_labels(processor, spec, out, image.shape[:2]).items():
            options = ["--task", task, "--arrays", root / task]
            dense_common.run_program(program, "segment", "-m", root / "model", *options, file)
            got = numpy.load(root / task / (f"{i}.npy" if task == "semantic" else f"{i}.labels.npy"))
            share = float((got != want.numpy()).mean())
            found = len(set(want.unique().tolist()) - {-1})
            print(f"{name} {i} {task}: {share:.5f} of the pixels differ, {found} labels", flush=True)
            assert share < 2e-3


if __name__ == "__main__":
    dense_common.main(MODELS, PUBLISHED, write_fixture, check)
