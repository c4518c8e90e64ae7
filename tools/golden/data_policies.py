# SPDX-License-Identifier: Apache-2.0
"""Golden data of tests/data/auto_augment_test.cpp: magnitudes of timm and torchvision, and the resulting images.

Run from the repository root: python tools/golden/data_policies.py
Writes tests/fixtures/data/policies.json.
"""

import importlib.metadata
import json
import pathlib
import zlib

import numpy as np
from PIL import Image
from timm.data import auto_augment as timm_policies
from torchvision.transforms import InterpolationMode
from torchvision.transforms import autoaugment as torchvision_policies

FILE = pathlib.Path("tests/fixtures/data/policies.json")
SIZES = [(32, 32), (37, 23), (224, 224)]  # width, height
MAGNITUDES = [0, 0.3, 1, 2.5, 5, 7, 8.7, 9, 9.99, 10]
NAMES = {
    "AutoContrast": "autocontrast",
    "ShearX": "shear_x",
    "ShearY": "shear_y",
    "TranslateX": "translate_x",
    "TranslateY": "translate_y",
    "TranslateXRel": "translate_x",
    "TranslateYRel": "translate_y",
    "SolarizeAdd": "solarize_add",
}


def op_name(name):
    return NAMES.get(name) or name.replace("Increasing", "").lower()


def synthetic_image(width, height):
    """A deterministic image, which the test reproduces."""
    y, x, c = np.mgrid[:height, :width, :3]
    return ((x * 7 + y * 13 + c * 29 + (x * y) % 11 * 5) % 256).astype(np.uint8)


def timm_cases():
    """[operation, increasing, magnitude, sign, width, height, argument] of each operation that has an argument."""
    cases = []
    for increasing, names in (
        (False, timm_policies._RAND_TRANSFORMS),
        (True, timm_policies._RAND_INCREASING_TRANSFORMS),
    ):
        for name in names:
            level_to_arg = timm_policies.LEVEL_TO_ARG[name]
            if level_to_arg is None:
                continue
            for negative in (False, True):
                timm_policies._randomly_negate = (lambda v: -v) if negative else (lambda v: v)
                for magnitude in MAGNITUDES:
                    for width, height in SIZES if "Translate" in name else SIZES[:1]:
                        argument = level_to_arg(magnitude, {})[0]
                        if "Translate" in name:  # as translate_x_rel does
                            argument *= width if "X" in name else height
                        cases.append(
                            [op_name(name), int(increasing), magnitude, -1 if negative else 1, width, height, argument]
                        )
    return cases


def torchvision_cases():
    """[space, operation, bin, sign, width, height, CRC-32 of the image] of each policy's augmentation space."""
    spaces = {
        "rand": (torchvision_policies.RandAugment(), 31, True),
        "auto": (torchvision_policies.AutoAugment(), 10, True),
        "wide": (torchvision_policies.TrivialAugmentWide(), 31, False),
    }
    cases = []
    for space, (policy, bins, sized) in spaces.items():
        for width, height in SIZES[:2]:
            image = Image.fromarray(synthetic_image(width, height))
            table = policy._augmentation_space(bins, (height, width)) if sized else policy._augmentation_space(bins)
            for name, (magnitudes, signed) in table.items():
                for chosen in range(bins) if magnitudes.ndim else (0,):
                    for sign in (1, -1) if signed else (1,):
                        magnitude = float(magnitudes[chosen]) if magnitudes.ndim else 0.0
                        result = torchvision_policies._apply_op(
                            image, name, sign * magnitude, InterpolationMode.NEAREST, None
                        )
                        cases.append(
                            [
                                space,
                                op_name(name),
                                chosen,
                                sign,
                                width,
                                height,
                                zlib.crc32(np.asarray(result).tobytes()),
                            ]
                        )
    return cases


def auto_augment_tables():
    """The 25 pairs of [operation, probability, magnitude] of each policy; magnitude 0 if the operation has none."""
    Policy = torchvision_policies.AutoAugmentPolicy
    return {
        name: [
            [[op_name(op), probability, magnitude or 0] for op, probability, magnitude in pair]
            for pair in torchvision_policies.AutoAugment(policy).policies
        ]
        for name, policy in (("cifar10", Policy.CIFAR10), ("imagenet", Policy.IMAGENET))
    }


def main():
    content = {
        "made_with": {
            name: importlib.metadata.version(name).split("+")[0] for name in ("timm", "torchvision", "pillow")
        },
        "timm_weights": {op_name(name): weight for name, weight in timm_policies._RAND_WEIGHTED_0.items()},
    }
    head = json.dumps(content)[:-1]
    parts = {"auto_augment": auto_augment_tables(), "timm": timm_cases(), "torchvision": torchvision_cases()}
    text = head
    for name, part in parts.items():
        rows = part if isinstance(part, list) else None
        body = (
            json.dumps(part)
            if rows is None
            else "[\n" + ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows) + "\n]"
        )
        text += f',\n"{name}": {body}'
    FILE.write_text(text + "}\n")
    print({name: len(part) for name, part in parts.items()}, FILE.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
