# SPDX-License-Identifier: Apache-2.0
"""Fixtures of YOLOS: small random models of transformers with their outputs.

    tools/golden/yolos.py                        writes the fixtures
    tools/golden/yolos.py --check build/release/vitrail [NAME...]   runs the program on larger random models too

tests/fixtures/yolos has for each model a folder with
  model.safetensors   the weights as f16 (of one model in shards), config.json, preprocessor_config.json,
  golden.safetensors  for the images of tests/fixtures/depth/images.safetensors: logits_N and boxes_N, the model's
                      outputs; and scores_N, labels_N and found_N, the objects above THRESHOLD with the best first;
  and sizes.json      the size at the model's input by YolosImageProcessor, for sizes of images.
"""

import copy
import json
import subprocess
import zlib

import dense_common
import torch
import transformers
from dense_common import images
from transformers.models.yolos.image_processing_pil_yolos import (
    YolosImageProcessorPil,
    get_size_with_aspect_ratio_yolos,
)

ROOT = dense_common.FIXTURES / "yolos"
THRESHOLD = 0.5
NAMES = ("cat", "dog", "N/A", "traffic light", "cup")
SMALL = dict(
    hidden_size=24,
    num_hidden_layers=3,
    num_attention_heads=3,
    intermediate_size=40,
    num_detection_tokens=9,
    patch_size=16,
    id2label=dict(enumerate(NAMES)),
)


def spec(longest, shortest, **config):
    return dict(config=config, processor=dict(size={"shortest_edge": shortest, "longest_edge": longest}))


MODELS = {
    "mid": spec(150, 96, **SMALL, image_size=[64, 96]),
    "plain": spec(128, 112, **SMALL, image_size=[80, 48], use_mid_position_embeddings=False, hidden_act="relu"),
}
# Configurations of published sizes, for --check.
TINY = dict(hidden_size=192, num_hidden_layers=12, num_attention_heads=3, intermediate_size=768)
PUBLISHED = {
    "tiny": spec(1333, 800, **TINY, image_size=[800, 1333], use_mid_position_embeddings=False, num_labels=91),
    "small": spec(
        1333, 800, **(TINY | dict(hidden_size=384, num_attention_heads=6, intermediate_size=1536)), num_labels=91
    ),
}


def scaled(key, parameter, values):
    """Matrices with gain 1, norms near 1, everything else, biases and positions as well, not 0."""
    if "norm" in key:
        values = (1 if key.endswith("weight") else 0) + 0.3 * values
    elif parameter.dim() >= 2 and key.endswith("weight"):
        values /= (parameter.numel() / parameter.shape[0]) ** 0.5
    else:
        values *= 0.3
    # Tokens differ, and are sure of their class.
    return values * 4 if key.startswith("class_labels_classifier.layers.2") or "detection_tokens" in key else values


def model_of(spec, seed):
    model = transformers.YolosForObjectDetection(transformers.YolosConfig(**spec["config"]))
    return dense_common.draw_parameters(model, seed, scaled), YolosImageProcessorPil(**spec["processor"])


def outputs_of(model, processor, image, dtype=torch.float64):
    """The outputs, and the objects: scores, labels and boxes, the best first."""
    with torch.no_grad():
        out = copy.deepcopy(model).to(dtype)(processor(image, return_tensors="pt").pixel_values.to(dtype))
    found = processor.post_process_object_detection(out, THRESHOLD, [image.shape[:2]])[0]
    order = found["scores"].argsort(descending=True)
    return out, {key: values[order] for key, values in found.items()}


def fixture_of(name, spec, seed):
    """None if it finds few or only one class, or if a score is near another one or the threshold."""
    model, processor = model_of(spec, seed)
    golden = {}
    for i, image in enumerate(images()):
        out, found = outputs_of(model, processor, image)
        single, _ = outputs_of(model, processor, image, torch.float32)
        scores = torch.cat([found["scores"], torch.tensor([THRESHOLD])])
        if not 3 <= len(scores) - 1 < spec["config"]["num_detection_tokens"] or len(found["labels"].unique()) < 2:
            return None
        if (scores[:-1] - scores[1:]).min() < 1e-3:
            return None
        error = float((single.logits - out.logits).abs().max() / out.logits.abs().max())
        print(f"{name} {i}: float32 differs by {error:.1e} of the largest; {len(scores) - 1} objects")
        golden |= {f"logits_{i}": out.logits[0], f"boxes_{i}": out.pred_boxes[0], f"scores_{i}": found["scores"]}
        golden |= {f"labels_{i}": found["labels"], f"found_{i}": found["boxes"]}
    return model, processor, {key: values.float().contiguous() for key, values in golden.items()}


def write_fixture(name, spec):
    seed = zlib.crc32(name.encode())
    while not (fixture := fixture_of(name, spec, seed)):
        seed += 1
    model, processor, golden = fixture
    dense_common.save(ROOT / name, model, processor, **({"max_shard_size": "40KB"} if name == "mid" else {}))
    dense_common.save_golden(ROOT / name, model, golden)
    sides = (1, 3, 10, 99, 100, 640, 800, 801, 1066, 1335, 1400, 4000)
    sizes = [[h, w, *get_size_with_aspect_ratio_yolos((h, w), 800, 1333)] for h in sides for w in sides]
    (ROOT / "sizes.json").write_text(json.dumps(sizes) + "\n")


def check(program, folder, name, spec):
    """Compares the program's objects with those of transformers in float32."""
    model, processor = model_of(spec, zlib.crc32(name.encode()))
    dense_common.save(folder / "model", model, processor)
    for image, file in zip(images(), dense_common.write_images(folder, images()), strict=True):
        want = outputs_of(model, processor, image, torch.float32)[1]
        command = [program, "detect", "-m", folder / "model", file, "--threshold", THRESHOLD]
        output = subprocess.run([str(word) for word in command], check=True, stdout=subprocess.PIPE).stdout
        got = json.loads(output)["detections"]
        assert [each["index"] for each in got] == want["labels"].tolist()
        boxes = torch.tensor([each["box"] for each in got]).reshape(-1, 4)
        error = float((boxes - want["boxes"]).abs().max()) if got else 0
        print(f"{name} {file.stem}: {len(got)} objects, boxes differ by {error:.1e} px", flush=True)
        assert error < 0.05


if __name__ == "__main__":
    dense_common.main(MODELS, PUBLISHED, write_fixture, check)
