# SPDX-License-Identifier: Apache-2.0
"""Logits of DeiT-Tiny for the shared images: the 64 PNGs of images/nips2017, then the 7 photos, each sorted by name.

Writes tests/fixtures/deit_tiny_logits.safetensors: `logits` [71, 1000], computed by timm in float64 and stored as
float32, from images preprocessed by timm's evaluation transform (Pillow).  `input0` [3, 8, 8] is the top left corner of
the first preprocessed image and `input_sum` [71] the sum of each; they separate differences in preprocessing from
differences in the model.  The metadata's "config" lists the files in order and the versions.
"""

import json
import os
import pathlib

import PIL
import safetensors.torch
import timm
import torch
from PIL import Image

ROOT = pathlib.Path(__file__).resolve().parents[2]
ASSETS = pathlib.Path(os.environ["VITRAIL_ASSETS"])


def main():
    folder = ASSETS / "weights" / "deit_tiny_patch16_224.fb_in1k"
    config = json.loads((folder / "config.json").read_text())
    model = timm.create_model(config["architecture"], checkpoint_path=str(folder / "model.safetensors")).eval()
    settings = timm.data.resolve_data_config(config["pretrained_cfg"])
    transform = timm.data.create_transform(**settings, is_training=False)
    paths = sorted((ASSETS / "images/nips2017").glob("*.png")) + sorted((ASSETS / "images/photos").glob("*.jpg"))

    images = torch.stack([transform(Image.open(path).convert("RGB")) for path in paths])
    exact = model.double()
    with torch.no_grad():
        logits = torch.cat([exact(image[None].double()) for image in images])
        single = torch.cat([model.float()(image[None]) for image in images])
    about = {
        "files": [str(path.relative_to(ASSETS)) for path in paths],
        "versions": {"timm": timm.__version__, "torch": torch.__version__, "pillow": PIL.__version__},
        "transform": {key: settings[key] for key in ("input_size", "interpolation", "crop_pct", "mean", "std")},
    }
    tensors = {
        "logits": logits.float(),
        "input0": images[0, :, :8, :8].contiguous(),
        "input_sum": images.double().sum((1, 2, 3)).float(),
    }
    safetensors.torch.save_file(
        tensors, ROOT / "tests/fixtures/deit_tiny_logits.safetensors", metadata={"config": json.dumps(about)}
    )
    print(f"{len(paths)} images; float32 differs from float64 by {(single.double() - logits).abs().max().item():.1e}")
    print("top-1 of the first five:", logits[:5].argmax(1).tolist())


if __name__ == "__main__":
    main()
