# SPDX-License-Identifier: Apache-2.0
"""Images a second of processor time of torchvision's and timm's own augmentation (Pillow) on one core, beside LoaderCifar
and LoaderPhotos of the benchmarks program: the same pictures, the same steps, the normalised tensor as result, nothing batched.

    taskset -c 0 python benchmarks/augmentation.py        # needs torch, torchvision, timm and the shared assets
"""
import io
import os
import pathlib
import time
import zipfile

import torch
from PIL import Image
from timm.data import auto_augment
from torchvision import transforms as T

ASSETS = pathlib.Path(os.environ.get("VITRAIL_ASSETS", "../shared/assets"))
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def rate(pictures, transform, seconds=3.0):
    """Decoded or encoded pictures through the transform, again and again."""
    done, begin = 0, time.process_time()
    while time.process_time() - begin < seconds:
        for picture in pictures:
            transform(picture if isinstance(picture, Image.Image) else Image.open(picture).convert("RGB"))
        done += len(pictures)
    return done / (time.process_time() - begin)


def main():
    torch.set_num_threads(1)
    archive = zipfile.ZipFile(ASSETS / "cifar10/cifar10_jpeg.zip")
    names = [name for name in archive.namelist() if "test/" in name and name.endswith(".jpg")][::20]
    cifar = [Image.open(io.BytesIO(archive.read(name))).convert("RGB") for name in names]
    photos = sorted((ASSETS / "images/photos").glob("*.jpg"))
    finish = [T.ToTensor(), T.Normalize(MEAN, STD)]
    crop = [T.RandomCrop(32, 4), T.RandomHorizontalFlip()]
    resized = [T.RandomResizedCrop(224, interpolation=T.InterpolationMode.BICUBIC), T.RandomHorizontalFlip()]
    # Pillow refuses to keep 0 bits, which timm asks for at the highest magnitude.
    posterize = auto_augment.NAME_TO_OP["PosterizeIncreasing"]
    auto_augment.NAME_TO_OP["PosterizeIncreasing"] = lambda image, bits, **rest: posterize(image, max(bits, 1), **rest)
    timm_rand = auto_augment.rand_augment_transform("rand-m9-mstd0.5-inc1", {"img_mean": (124, 116, 104)})
    at_96 = [T.Resize((96, 96), T.InterpolationMode.BICUBIC), T.RandomCrop(96, 4), T.RandomHorizontalFlip()]
    for name, pictures, steps in (("cifar crop_flip", cifar, crop), ("cifar timm_rand", cifar, [*crop, timm_rand]),
                                  ("cifar randaugment", cifar, [*crop, T.RandAugment()]),
                                  ("cifar autoaugment", cifar, [*crop, T.AutoAugment(T.AutoAugmentPolicy.CIFAR10)]),
                                  ("cifar crop_flip_at_96", cifar, at_96),
                                  ("photos resized_crop", photos, resized),
                                  ("photos timm_rand", photos, [*resized, timm_rand])):
        print(f"{name:24s} {rate(pictures, T.Compose([*steps, *finish])):9.1f} images/s", flush=True)


if __name__ == "__main__":
    main()
