# SPDX-License-Identifier: Apache-2.0
"""Golden data of tests/image/transform_test.cpp: evaluation transforms of timm and of Hugging Face (Pillow).

Run from the repository root: python tools/golden/image_transform.py
Writes tests/fixtures/image/transform.json (the cases, with offsets in bytes) and transform.raw (source pixels, then
float32 results).
"""

import json
import pathlib

import numpy as np
import PIL
import timm
import torchvision
import transformers
from PIL import Image
from timm.data.transforms_factory import transforms_imagenet_eval
from transformers.models.vit.image_processing_pil_vit import ViTImageProcessorPil

FOLDER = pathlib.Path("tests/fixtures/image")
MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
SOURCES = {"wide": (21, 38), "tall": (45, 17), "square": (14, 14), "tiny": (5, 9)}

# size (height, width), crop_pct, crop_mode, interpolation
TIMM = [
    ((14, 14), 0.875, "center", "bicubic"),
    ((14, 14), 0.9, "center", "bilinear"),
    ((15, 15), 0.95, "center", "lanczos"),
    ((14, 14), 1.0, "center", "bicubic"),
    ((11, 18), 0.9, "center", "bicubic"),
    ((14, 14), 1.25, "center", "bicubic"),
    ((15, 12), 0.9, "squash", "bicubic"),
    ((14, 14), 1.0, "squash", "nearest"),
    ((14, 14), 1.0, "border", "bicubic"),
    ((11, 16), 0.8, "border", "bilinear"),
]
BILINEAR, BICUBIC = 2, 3
HUGGING_FACE = [
    dict(do_resize=True, size={"height": 12, "width": 12}, resample=BILINEAR, do_center_crop=False),
    dict(
        do_resize=True,
        size={"height": 15, "width": 15},
        resample=BICUBIC,
        do_center_crop=True,
        crop_size={"height": 12, "width": 11},
    ),
    dict(
        do_resize=True,
        size={"shortest_edge": 15},
        resample=BICUBIC,
        do_center_crop=True,
        crop_size={"height": 12, "width": 12},
    ),
    dict(do_resize=True, size={"shortest_edge": 15, "longest_edge": 21}, resample=BICUBIC, do_center_crop=False),
    dict(do_resize=False, do_center_crop=True, crop_size={"height": 16, "width": 16}),
    dict(
        do_resize=True,
        size={"shortest_edge": 11},
        resample=BICUBIC,
        do_center_crop=True,
        crop_size={"height": 13, "width": 18},
        do_rescale=False,
    ),
    dict(do_resize=True, size={"height": 9, "width": 12}, resample=BILINEAR, do_center_crop=False, do_normalize=False),
    dict(
        do_resize=True,
        size={"height": 9, "width": 12},
        resample=BILINEAR,
        do_center_crop=False,
        rescale_factor=1 / 127.5,
    ),
]


def main():
    raw, sources, cases = bytearray(), {}, []

    def add(array):
        offset = len(raw)
        raw.extend(np.ascontiguousarray(array).tobytes())
        raw.extend(b"\0" * (-len(raw) % 4))
        return offset

    for name, (height, width) in SOURCES.items():
        pixels = np.random.default_rng(height).integers(0, 256, (height, width, 3)).astype(np.uint8)
        sources[name] = {"width": width, "height": height, "offset": add(pixels)}
        image = Image.fromarray(pixels)
        for size, crop_pct, crop_mode, interpolation in TIMM:
            result = transforms_imagenet_eval(
                size, crop_pct, crop_mode, interpolation=interpolation, mean=MEAN, std=STD
            )(image).numpy()
            cases.append(
                {
                    "source": name,
                    "timm": {
                        "size": size,
                        "crop_pct": crop_pct,
                        "crop_mode": crop_mode,
                        "interpolation": interpolation,
                    },
                    "shape": result.shape,
                    "offset": add(result),
                }
            )
        for options in HUGGING_FACE:
            processor = ViTImageProcessorPil(image_mean=MEAN, image_std=STD, **options)
            result = np.asarray(processor(image)["pixel_values"][0], dtype=np.float32)
            cases.append({"source": name, "hugging_face": options, "shape": result.shape, "offset": add(result)})
    (FOLDER / "transform.raw").write_bytes(raw)
    versions = {
        "pillow": PIL.__version__,
        "timm": timm.__version__,
        "torchvision": torchvision.__version__,
        "transformers": transformers.__version__,
    }
    index = {"made_with": versions, "mean": MEAN, "std": STD, "sources": sources, "cases": cases}
    (FOLDER / "transform.json").write_text(json.dumps(index, indent=0) + "\n")
    print(f"{len(cases)} cases, {len(raw)} bytes")


if __name__ == "__main__":
    main()
