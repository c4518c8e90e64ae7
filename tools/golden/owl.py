# SPDX-License-Identifier: Apache-2.0
"""Fixtures of OWLv2 and OWL-ViT: small random models of transformers with their outputs.

    tools/golden/owl.py                        writes the fixtures
    tools/golden/owl.py --check build/release/vitrail [NAME...]   runs the program on larger random models too

tests/fixtures/owl has for each model a folder with
  model.safetensors   the weights as f16, config.json, preprocessor_config.json,
  vocab.json, merges.txt   the tokenizer of tests/fixtures/text/clip,
  golden.safetensors  for image N of tests/fixtures/depth/images.safetensors: pixels_N, every third row and column of
                      the model's input; logits_N, boxes_N and, of OWLv2, objectness_N, the outputs for TEXTS;
                      scores_N, labels_N and found_N, the objects above THRESHOLD with the best first; and
                      like_scores_N, like_N, those that are like the one in the other image, with the best first.
"""

import copy
import json
import shutil
import subprocess
import zlib

import dense_common
import torch
import transformers
from clipseg import TOKENIZER, tokenizer
from dense_common import STEP, images
from transformers.models.owlv2.image_processing_pil_owlv2 import Owlv2ImageProcessorPil
from transformers.models.owlvit.image_processing_pil_owlvit import OwlViTImageProcessorPil

ROOT = dense_common.FIXTURES / "owl"
TEXTS = ["a cat", "two dogs", "grass"]
THRESHOLD = 0.1  # the program's default
CLASSES = {
    "owlv2": (transformers.Owlv2Config, transformers.Owlv2ForObjectDetection, Owlv2ImageProcessorPil),
    "owlvit": (transformers.OwlViTConfig, transformers.OwlViTForObjectDetection, OwlViTImageProcessorPil),
}
TEXT = dict(
    hidden_size=12, intermediate_size=30, num_hidden_layers=2, num_attention_heads=3, max_position_embeddings=16
)
VISION = dict(hidden_size=24, intermediate_size=40, num_hidden_layers=3, num_attention_heads=3)


def spec(kind, text, vision, projection_dim):
    special = tokenizer()
    text = dict(text, vocab_size=special.vocab_size, bos_token_id=special.bos_token_id)
    text |= dict(eos_token_id=special.eos_token_id, pad_token_id=special.pad_token_id)
    size = {"height": vision["image_size"], "width": vision["image_size"]}
    config = dict(text_config=text, vision_config=vision, projection_dim=projection_dim)
    return dict(kind=kind, config=config, processor=dict(size=size))


# Images of SIZES are larger than the input of one model and in part smaller than that of the other.
MODELS = {
    "v2": spec("owlv2", TEXT, dict(VISION, image_size=48, patch_size=8), 12),
    "v1": spec("owlvit", TEXT, dict(VISION, image_size=128, patch_size=16, layer_norm_eps=1e-3), 12),
}
# Configurations of published sizes, for --check.
PUBLISHED = {
    "v2-base": spec("owlv2", {}, dict(image_size=960, patch_size=16), 512),
    "v1-base": spec("owlvit", {}, dict(image_size=768, patch_size=32), 512),
}


def scaled(key, parameter, values):
    """Matrices with gain 1, norms near 1, everything else, biases and positions as well, not 0."""
    if "norm" in key:
        values = (1 if key.endswith("weight") else 0) + 0.3 * values
    elif parameter.dim() >= 2 and "embedding" not in key:
        values /= (parameter.numel() / parameter.shape[0]) ** 0.5
    else:
        values *= 0.3
    # Patches differ in their scores.
    return values * 3 if "logit_s" in key and key.endswith("weight") else values


def model_of(spec, seed):
    config, model, processor = CLASSES[spec["kind"]]
    model = dense_common.draw_parameters(model(config(**spec["config"])), seed, scaled)
    return model, processor(**spec["processor"])


def best_first(found):
    order = found["scores"].argsort(descending=True, stable=True)
    return {key: values[order] for key, values in found.items() if values is not None}


def outputs_of(model, processor, image, example, dtype=torch.float64):
    """The input, the outputs, the objects of TEXTS, and those like the one in an example."""
    model = copy.deepcopy(model).to(dtype)
    pixels = processor(image, return_tensors="pt").pixel_values.to(dtype)
    query = processor(example, return_tensors="pt").pixel_values.to(dtype)
    ids = tokenizer()(TEXTS, padding="max_length", max_length=TEXT["max_position_embeddings"], return_tensors="pt")
    with torch.no_grad():
        out = model(**ids, pixel_values=pixels)
        guided = model.image_guided_detection(pixel_values=pixels, query_pixel_values=query)
    sizes = torch.tensor([image.shape[:2]])
    found = best_first(processor.post_process_object_detection(out, THRESHOLD, sizes)[0])
    like = best_first(processor.post_process_image_guided_detection(guided, 0.0, 0.3, sizes)[0])
    like = {key: values[like["scores"] > THRESHOLD] for key, values in like.items()}
    return pixels, out, found, like


def far_apart(scores):
    """Whether no score is near another one or the threshold."""
    scores = torch.cat([scores, torch.tensor([THRESHOLD])]).double()
    return len(scores) < 2 or (scores[:-1] - scores[1:]).min() > 1e-4


def fixture_of(name, spec, seed):
    """None if it finds few objects or those of one text, or if a score is near another one or the threshold."""
    model, processor = model_of(spec, seed)
    golden = {}
    samples = images()
    for i, image in enumerate(samples):
        pixels, out, found, like = outputs_of(model, processor, image, samples[1 - i])
        if len(found["labels"].unique()) < 2 or not 3 <= len(found["scores"]) < out.logits.shape[1]:
            return None
        if len(like["scores"]) < 2 or not far_apart(found["scores"]) or not far_apart(like["scores"]):
            return None
        print(f"{name} {i}: {len(found['scores'])} objects of texts, {len(like['scores'])} like the example")
        golden |= {f"pixels_{i}": pixels[0, :, ::STEP, ::STEP], f"logits_{i}": out.logits[0]}
        golden[f"boxes_{i}"] = out.pred_boxes[0]
        if spec["kind"] == "owlv2":
            golden[f"objectness_{i}"] = out.objectness_logits[0]
        golden |= {f"scores_{i}": found["scores"], f"labels_{i}": found["labels"], f"found_{i}": found["boxes"]}
        golden |= {f"like_scores_{i}": like["scores"], f"like_{i}": like["boxes"]}
    return model, processor, {key: values.float().contiguous() for key, values in golden.items()}


def save(folder, model, processor):
    dense_common.save(folder, model, processor)
    for file in ("vocab.json", "merges.txt"):
        shutil.copy(TOKENIZER / file, folder / file)


def write_fixture(name, spec):
    seed = zlib.crc32(name.encode())
    while not (fixture := fixture_of(name, spec, seed)):
        seed += 1
    model, processor, golden = fixture
    save(ROOT / name, model, processor)
    dense_common.save_golden(ROOT / name, model, golden)


def check(program, folder, name, spec):
    """Compares the program's objects with those of transformers in float32."""
    model, processor = model_of(spec, zlib.crc32(name.encode()))
    save(folder / "model", model, processor)
    samples = images()
    files = dense_common.write_images(folder, samples)
    for i, (image, file) in enumerate(zip(samples, files, strict=True)):
        _, _, found, like = outputs_of(model, processor, image, samples[1 - i], torch.float32)
        for want, query in ((found, ["--labels", json.dumps(TEXTS)]), (like, ["--like", files[1 - i]])):
            command = [program, "detect", "-m", folder / "model", file, *query]
            output = subprocess.run([str(word) for word in command], check=True, stdout=subprocess.PIPE).stdout
            got = json.loads(output)["detections"]
            assert len(got) == len(want["scores"]), (len(got), len(want["scores"]))
            boxes = torch.tensor([each["box"] for each in got]).reshape(-1, 4)
            error = float((boxes - want["boxes"]).abs().max()) if got else 0
            print(f"{name} {file.stem} {query[0]}: {len(got)} objects, boxes differ by {error:.1e} px", flush=True)
            assert error < 0.05


if __name__ == "__main__":
    dense_common.main(MODELS, PUBLISHED, write_fixture, check)
