# SPDX-License-Identifier: Apache-2.0
"""Fixtures of Hiera as a classifier: small random models of transformers and timm, with their outputs.

    tools/golden/hiera.py

Each is a folder tests/fixtures/hiera/NAME with
  model.safetensors, config.json, preprocessor_config.json  as the library writes them, the weights as f16,
  golden.safetensors                                         image [H, W, 3] u8, of the size of the model's input;
                                                             logits [classes], features [C].
  transformers          HieraForImageClassification
  transformers_resized  the same with images of another size, to which positions are resized
  transformers_encoder  HieraModel, without a classifier
  timm                  hiera_tiny_224
"""

import json
import pathlib

import safetensors.torch
import timm
import torch
import transformers
from sam_fixture import draw_parameters

ROOT = pathlib.Path(__file__).resolve().parents[2] / "tests" / "fixtures" / "hiera"
SIDE, LARGER, CLASSES = 64, (96, 128), 5
MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


def write(name, state, files, tensors):
    folder = ROOT / name
    folder.mkdir(parents=True, exist_ok=True)
    halves = {key: value.half().contiguous() for key, value in state.items()}
    safetensors.torch.save_file(halves, folder / "model.safetensors", {"format": "pt"})
    golden = {key: value.contiguous() for key, value in tensors.items()}
    safetensors.torch.save_file(golden, folder / "golden.safetensors")
    for file, content in files.items():
        (folder / file).write_text(json.dumps(content) + "\n")
    for file in folder.iterdir():
        file.chmod(0o644)


def image_of(size, generator):
    """The image, squares with noise, and its pixels normalised, in double."""
    squares = torch.randint(0, 256, (size[0] // 16, size[1] // 16, 3), generator=generator, dtype=torch.uint8)
    noise = torch.randint(0, 64, (*size, 3), generator=generator, dtype=torch.uint8)
    image = squares.repeat_interleave(16, 0).repeat_interleave(16, 1) // 4 * 3 + noise
    pixels = (image.double() / 255 - torch.tensor(MEAN)) / torch.tensor(STD)
    return image, pixels.permute(2, 0, 1)[None]


def draw(model, seed):
    generator = torch.Generator().manual_seed(seed)
    draw_parameters(model, generator)
    return model.double(), generator


def processor(size):
    return dict(
        image_processor_type="BitImageProcessor",
        do_resize=True,
        size=dict(height=size[0], width=size[1]),
        do_center_crop=False,
        resample=3,
        do_rescale=True,
        rescale_factor=1 / 255,
        do_normalize=True,
        image_mean=MEAN,
        image_std=STD,
    )


@torch.no_grad()
def of_transformers():
    config = transformers.HieraConfig(
        embed_dim=4,
        image_size=[SIDE, SIDE],
        depths=[1, 2, 2, 1],
        num_heads=[1, 2, 2, 4],
        mlp_ratio=2.0,
        layer_norm_eps=1e-3,
        num_labels=CLASSES,
        id2label={i: f"animal {i}" for i in range(CLASSES)},
    )
    model, generator = draw(transformers.HieraForImageClassification(config), 1)
    state = {key: value.float() for key, value in model.state_dict().items()}
    fields = dict(config.to_dict(), architectures=["HieraForImageClassification"], model_type="hiera")
    for name, size in (("transformers", (SIDE, SIDE)), ("transformers_resized", LARGER)):
        image, pixels = image_of(size, generator)
        arguments = dict(interpolate_pos_encoding=size != (SIDE, SIDE))
        tensors = dict(image=image, logits=model(pixels, **arguments).logits[0].float())
        if size == (SIDE, SIDE):
            tensors["features"] = model.hiera(pixels, **arguments).pooler_output[0].float()
        write(name, state, {"config.json": fields, "preprocessor_config.json": processor(size)}, tensors)
        print(name, tensors["logits"])
    image, pixels = image_of((SIDE, SIDE), generator)
    tensors = dict(image=image, features=model.hiera(pixels).pooler_output[0].float())
    encoder = {key.removeprefix("hiera."): value for key, value in state.items() if key.startswith("hiera.")}
    fields = dict(fields, architectures=["HieraModel"])
    files = {"config.json": fields, "preprocessor_config.json": processor((SIDE, SIDE))}
    write("transformers_encoder", encoder, files, tensors)


@torch.no_grad()
def of_timm():
    arguments = dict(img_size=[SIDE, SIDE], embed_dim=4, stages=[1, 1, 2, 1], mlp_ratio=3.0)
    model = timm.create_model("hiera_tiny_224", num_classes=CLASSES, **arguments)
    model, generator = draw(model, 2)
    image, pixels = image_of((SIDE, SIDE), generator)
    tensors = dict(
        image=image,
        logits=model(pixels)[0].float(),
        features=model.forward_head(model.forward_features(pixels), pre_logits=True)[0].float(),
    )
    config = dict(
        architecture="hiera_tiny_224",
        num_classes=CLASSES,
        global_pool="avg",
        model_args=arguments,
        pretrained_cfg=dict(
            input_size=[3, SIDE, SIDE],
            fixed_input_size=True,
            interpolation="bicubic",
            crop_pct=1.0,
            crop_mode="center",
            mean=MEAN,
            std=STD,
            num_classes=CLASSES,
        ),
    )
    state = {key: value.float() for key, value in model.state_dict().items()}
    write("timm", state, {"config.json": config}, tensors)
    print("timm", tensors["logits"])


if __name__ == "__main__":
    of_transformers()
    of_timm()
