# SPDX-License-Identifier: Apache-2.0
"""Golden data of tests/image/resize_floats_test.cpp: DINOv3's processor, which resizes the rescaled floats.

Writes tests/fixtures/image/resize_floats.safetensors: sources [height, width, 3] and results [3, 12, 16].
"""

import pathlib

import safetensors.torch
import torch
from transformers import DINOv3ViTImageProcessor

SIZES = {"smaller": (45, 37), "larger": (7, 9), "wide": (10, 50)}

if __name__ == "__main__":
    draw = torch.Generator().manual_seed(1)
    processor = DINOv3ViTImageProcessor(size={"height": 12, "width": 16})
    golden = {}
    for name, (height, width) in SIZES.items():
        image = torch.randint(0, 256, (height, width, 3), generator=draw, dtype=torch.uint8)
        golden[name + ".source"] = image
        golden[name + ".result"] = processor(image.permute(2, 0, 1), return_tensors="pt").pixel_values[0].contiguous()
    safetensors.torch.save_file(golden, pathlib.Path("tests/fixtures/image/resize_floats.safetensors"))
