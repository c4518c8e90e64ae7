# SPDX-License-Identifier: Apache-2.0
"""Fixtures of CLIPSeg: small random models of transformers with their outputs.

    tools/golden/clipseg.py                        writes the fixtures
    tools/golden/clipseg.py --check build/release/vitrail [NAME...]   runs the program on larger random models too

tests/fixtures/clipseg has a folder for each model with
  model.safetensors   the weights as f16, config.json, preprocessor_config.json, as save_pretrained writes them,
  vocab.json, merges.txt   the tokenizer of tests/fixtures/text/clip,
  golden.safetensors  for image N of depth.py, every third row and column of logits_N [texts, h, w], the model's output,
                      and of probabilities_N [texts, H, W] at the image's size.  The texts are TEXTS.
Outputs are computed in float64 from the stored weights and the pixels of the Pillow processor.
"""

import argparse
import copy
import json
import pathlib
import shutil
import subprocess
import tempfile
import zlib

import depth
import numpy
import safetensors.torch
import torch
import transformers
from PIL import Image
from transformers.models.vit.image_processing_pil_vit import ViTImageProcessorPil

FIXTURES = pathlib.Path(__file__).resolve().parents[2] / "tests" / "fixtures"
ROOT = FIXTURES / "clipseg"
TEXTS = ["a photo of a cat", "two dogs playing in the snow", "grass"]
TOKENIZER = FIXTURES / "text" / "clip"
PROCESSOR = dict(size={"height": 352, "width": 352}, resample=2, **depth.IMAGENET)


def tokenizer():
    vocab = json.loads((TOKENIZER / "vocab.json").read_text())
    merges = [tuple(line.split()) for line in (TOKENIZER / "merges.txt").read_text().splitlines()[1:]]
    return transformers.CLIPTokenizer(vocab=vocab, merges=merges)


def model_spec(text, vision, processor=None, **config):
    special = tokenizer()
    text = dict(text, vocab_size=special.vocab_size, bos_token_id=special.bos_token_id)
    text |= dict(eos_token_id=special.eos_token_id, pad_token_id=special.pad_token_id)
    config = dict(config, text_config=text, vision_config=vision)
    return dict(config=config, processor=dict(PROCESSOR, **(processor or {})))


TEXT = dict(
    hidden_size=18, intermediate_size=30, num_hidden_layers=2, num_attention_heads=3, max_position_embeddings=24
)
VISION = dict(hidden_size=24, intermediate_size=40, num_hidden_layers=5, num_attention_heads=3, patch_size=8)
DECODER = dict(projection_dim=10, reduce_dim=8, decoder_num_attention_heads=2, decoder_intermediate_size=20)
MODELS = {
    "plain": model_spec(
        TEXT, dict(VISION, image_size=40), dict(size={"height": 64, "width": 64}), extract_layers=[1, 2, 4], **DECODER
    ),
    "refined": model_spec(
        TEXT,
        dict(VISION, patch_size=16, image_size=96, layer_norm_eps=1e-3),
        dict(size={"height": 96, "width": 96}, resample=3),
        extract_layers=[0, 3],
        conditional_layer=1,
        use_complex_transposed_convolution=True,
        **DECODER,
    ),
}
# Published configurations, for --check.
PUBLISHED = {
    name: model_spec(
        dict(num_hidden_layers=12), dict(patch_size=16), reduce_dim=dim, use_complex_transposed_convolution=refined
    )
    for name, dim, refined in (("rd16", 16, False), ("rd64", 64, False), ("rd64-refined", 64, True))
}


def draw_parameters(model, name):
    """Matrices with gain 1, norms near 1, everything else, biases and positions as well, not 0."""
    draw = torch.Generator().manual_seed(zlib.crc32(name.encode()))
    with torch.no_grad():
        for key, parameter in model.named_parameters():
            values = torch.randn(parameter.shape, generator=draw)
            if "norm" in key or "layrnorm" in key:
                values = (1 if key.endswith("weight") else 0) + 0.3 * values
            elif parameter.dim() >= 2 and "embedding" not in key:
                transposed = "transposed_convolution" in key and not key.endswith("convolution.0.weight")
                values /= (parameter.shape[0] if transposed else parameter.numel() / parameter.shape[0]) ** 0.5
            else:
                values *= 0.5
            parameter.copy_(values.half().float())
    return model.eval()


def processor_of(spec):
    return ViTImageProcessorPil(**spec["processor"])


def model_of(name, spec):
    config = transformers.CLIPSegConfig(**spec["config"])
    model = draw_parameters(transformers.CLIPSegForImageSegmentation(config), name)
    last = model.decoder.transposed_convolution
    last = last[-1] if isinstance(last, torch.nn.Sequential) else last
    logits = outputs_of(copy.deepcopy(model), processor_of(spec), depth.images()[0])[0]
    with torch.no_grad():  # half of the probabilities are above 0.5
        last.bias.copy_((last.bias - logits.median()).half())
    return model


def outputs_of(model, processor, image):
    """The model's output in float64, and the probabilities at the image's size."""
    pixels = processor(image, return_tensors="pt").pixel_values.double()
    ids = tokenizer()(TEXTS, padding=True, return_tensors="pt")
    with torch.no_grad():
        logits = model.double()(**ids, pixel_values=pixels.expand(len(TEXTS), -1, -1, -1)).logits
    full = torch.nn.functional.interpolate(logits[None], image.shape[:2], mode="bilinear")[0]
    return logits, full.sigmoid()


def save(folder, model, processor):
    depth.save(folder, model, processor)
    for file in ("vocab.json", "merges.txt"):
        shutil.copy(TOKENIZER / file, folder / file)


def write_fixtures():
    ROOT.mkdir(parents=True, exist_ok=True)
    for name, spec in MODELS.items():
        model, processor = model_of(name, spec), processor_of(spec)
        save(ROOT / name, model, processor)
        golden = {}
        for i, image in enumerate(depth.images()):
            logits, probabilities = outputs_of(copy.deepcopy(model), processor, image)
            print(f"{name} {i}: {tuple(logits.shape)}, {[f'{(p > 0.5).double().mean():.2f}' for p in probabilities]}")
            for key, values in (("logits", logits), ("probabilities", probabilities)):
                golden[f"{key}_{i}"] = values[:, :: depth.STEP, :: depth.STEP].float().contiguous()
        about = json.dumps({"reference": f"transformers {transformers.__version__} {type(model).__name__}"})
        safetensors.torch.save_file(golden, ROOT / name / "golden.safetensors", metadata={"config": about})


def check(program, names):
    """Compares the program's probabilities with those of transformers, for files in f16 and in shards."""
    for name, spec in (MODELS | PUBLISHED).items():
        if names and name not in names:
            continue
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            model, processor = model_of(name, spec), processor_of(spec)
            save(root / "f16", model, processor)
            shutil.copytree(root / "f16", root / "shards", ignore=shutil.ignore_patterns("model.safetensors"))
            model.save_pretrained(root / "shards", max_shard_size="20KB" if name in MODELS else "100MB")
            for i, image in enumerate(depth.images()):
                Image.fromarray(image).save(root / f"{i}.png")
            wanted = [outputs_of(copy.deepcopy(model), processor, image)[1].numpy() for image in depth.images()]
            for file in ("f16", "shards"):
                command = [program, "segment", "-m", root / file, "--arrays", root / "out", "--force"]
                command += [root / "0.png", root / "1.png", *(word for text in TEXTS for word in ("--text", text))]
                subprocess.run([*map(str, command)], check=True, stdout=subprocess.DEVNULL)
                for i, want in enumerate(wanted):
                    got = numpy.load(root / "out" / f"{i}.npy")
                    error = abs(got - want).max() / (want.max() - want.min())
                    print(f"{name} {file} {i}: {got.shape}, differs by {error:.1e} of the range", flush=True)
                    assert got.shape == want.shape and error < 1e-4


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", metavar="VITRAIL")
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    transformers.logging.set_verbosity_error()
    if options.check:
        check(options.check, options.names)
    else:
        write_fixtures()
