# SPDX-License-Identifier: Apache-2.0
"""Throughput of torchvision's and timm's augmentation on one core, for comparison with the loader of vitrail.

    taskset -c 0 python benchmarks/augmentation.py        # needs torch, torchvision, timm and the shared assets

Prints images per second of processor time.  The images and the transforms are those of the benchmarks LoaderCifar and
LoaderPhotos (loader_benchmark.cpp); the result of each transform is one normalised tensor, without batching.
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

ASSETS = pathlib.Path(os.environ["VITRAIL_ASSETS"])
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)


def images_per_second(images, transform, seconds=3.0):
    """Applies the transform to decoded images or to image files repeatedly."""
    count, begin = 0, time.process_time()
    while time.process_time() - begin < seconds:
        for image in images:
            transform(image if isinstance(image, Image.Image) else Image.open(image).convert("RGB"))
        count += len(images)
    return count / (time.process_time() - begin)


def main():
    torch.set_num_threads(1)
    archive = zipfile.ZipFile(ASSETS / "cifar10/cifar10_jpeg.zip")
    names = [name for name in archive.namelist() if "test/" in name and name.endswith(".jpg")][::20]
    cifar = [Image.open(io.BytesIO(archive.read(name))).convert("RGB") for name in names]
    photos = sorted((ASSETS / "images/photos").glob("*.jpg"))
    to_tensor = [T.ToTensor(), T.Normalize(MEAN, STD)]
    crop = [T.RandomCrop(32, 4), T.RandomHorizontalFlip()]
    crop_at_96 = [T.Resize((96, 96), T.InterpolationMode.BICUBIC), T.RandomCrop(96, 4), T.RandomHorizontalFlip()]
    resized_crop = [T.RandomResizedCrop(224, interpolation=T.InterpolationMode.BICUBIC), T.RandomHorizontalFlip()]
    # Pillow rejects posterize with 0 bits, which timm requests at the highest magnitude.
    posterize = auto_augment.NAME_TO_OP["PosterizeIncreasing"]
    auto_augment.NAME_TO_OP["PosterizeIncreasing"] = lambda image, bits, **args: posterize(image, max(bits, 1), **args)
    timm_rand = auto_augment.rand_augment_transform("rand-m9-mstd0.5-inc1", {"img_mean": (124, 116, 104)})
    for name, images, transforms in (
        ("cifar crop_flip", cifar, crop),
        ("cifar timm_rand", cifar, [*crop, timm_rand]),
        ("cifar randaugment", cifar, [*crop, T.RandAugment()]),
        ("cifar autoaugment", cifar, [*crop, T.AutoAugment(T.AutoAugmentPolicy.CIFAR10)]),
        ("cifar crop_flip_at_96", cifar, crop_at_96),
        ("photos resized_crop", photos, resized_crop),
        ("photos timm_rand", photos, [*resized_crop, timm_rand]),
    ):
        print(f"{name:24s} {images_per_second(images, T.Compose([*transforms, *to_tensor])):9.1f} images/s", flush=True)


if __name__ == "__main__":
    main()
