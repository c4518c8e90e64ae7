#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures `vitrail train FOLDER` with its own choices on three small sets of photographs, and a sweep of recipes.

    benchmarks/finetuning.py WORK --cifar10 cifar10.zip -m MODEL [--seeds 5] [--sets three ten unequal]
    benchmarks/finetuning.py WORK --cifar10 cifar10.zip -m MODEL --sweep      # on the first set, all with seed 0

The sets are made from CIFAR-10 (a zip file with train/CLASS/*.jpg and test/CLASS/*.jpg): images of 32 pixels are
enlarged to 160 to 900 pixels, in ratios from 3:4 to 4:3.  `three` has 3 classes of 60 images, `ten` 10 classes of 50,
`unequal` 5 classes of 10 to 100.  Each has 300 unseen images, from the test images, equally many of each class.  A line
of JSON per run is printed and appended to WORK/runs.jsonl: the accuracy on the unseen images of the kept weights and
of those of the last epoch, the wall-clock time, and the CPU time.  A run that is there already is not repeated.
Needs pillow.
"""

import argparse
import json
import os
import pathlib
import random
import subprocess
import time
import zipfile

from PIL import Image

CLASSES = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
SETS = {  # images of each class
    "three": {"automobile": 60, "cat": 60, "horse": 60},
    "ten": dict.fromkeys(CLASSES, 50),
    "unequal": {"airplane": 100, "bird": 56, "dog": 32, "frog": 18, "truck": 10},
}
UNSEEN = 300
# A sweep of the settings that practitioners vary first: peak rate, epochs, layer decay, crops, label smoothing.
RATES, EPOCHS = [0.25, 0.5, 1, 2, 4], [0.5, 1, 2]
VARIANTS = {
    "layer decay 0.65": ["optimizer.layer_decay=0.65"],
    "layer decay 0.9": ["optimizer.layer_decay=0.9"],
    "no label smoothing": ["loss.label_smoothing=0"],
    "crops from 8 %": ["augment.random_resized_crop.scale=[0.08,1]"],
    "crops from 70 %": ["augment.random_resized_crop.scale=[0.7,1]"],
}


def enlarged(image, rng):
    """The image at 160 to 900 pixels, with both sides drawn so that their ratio is between 3:4 and 4:3."""
    width = round(160 * (900 / 160) ** rng.random())
    height = min(900, max(160, round(width * (4 / 3) ** rng.uniform(-1, 1))))
    return image.convert("RGB").resize((width, height), Image.Resampling.BICUBIC)


def make_set(name, archive, out):
    rng = random.Random(name)
    for split, counts in [("train", SETS[name]), ("unseen", dict.fromkeys(SETS[name], UNSEEN // len(SETS[name])))]:
        for label, count in counts.items():
            folder = out / split / label
            folder.mkdir(parents=True)
            prefix = f"{'train' if split == 'train' else 'test'}/{label}/"
            files = sorted(entry for entry in archive.namelist() if entry.startswith(prefix) and entry[-1] != "/")
            for entry in rng.sample(files, count):
                with archive.open(entry) as file:
                    enlarged(Image.open(file), rng).save(folder / pathlib.Path(entry).name, quality=90)


def run(arguments):
    """(standard output, wall-clock seconds, CPU seconds)"""
    start, before = time.monotonic(), os.times()
    done = subprocess.run(arguments, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{' '.join(map(str, arguments))}\n{done.stderr}")
    after = os.times()
    cpu = after.children_user + after.children_system - before.children_user - before.children_system
    return done.stdout, time.monotonic() - start, cpu


def unseen_accuracy(args, model, images):
    out, _, _ = run([args.program, "eval", "-m", model, images, "--format", "json", *args.global_options])
    return json.loads(out)["top1"]


def measure(args, name, label, seed, options):
    log = args.work / "runs.jsonl"
    done = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    if any((row["set"], row["recipe"], row["seed"]) == (name, label, seed) for row in done):
        return
    images, folder = args.work / name, args.work / "runs" / f"{name}-{label}-{seed}".replace(" ", "_")
    command = [args.program, "train", images / "train", "-o", folder, "-m", args.model, "--set", f"seed={seed}"]
    _, seconds, cpu = run([*command, *options, *args.global_options])
    recipe = json.loads((folder / "recipe.json").read_text())
    row = {"set": name, "recipe": label, "seed": seed, "epochs": recipe["epochs"]}
    row |= {part: unseen_accuracy(args, folder / part, images / "unseen") for part in ("model", "last")}
    row |= {"seconds": round(seconds, 1), "cpu_seconds": round(cpu, 1)}
    print(json.dumps(row), flush=True)
    with log.open("a") as file:
        file.write(json.dumps(row) + "\n")


def sweep(args):
    """20 recipes: every rate with every number of epochs, then one change at a time."""
    base = json.loads((args.work / "runs/three-default-0/recipe.json").read_text())
    rate, epochs = base["optimizer"]["lr"], base["epochs"]
    for factor in RATES:
        for share in EPOCHS:
            options = ["--epochs", str(round(share * epochs)), "--set", f"optimizer.lr={factor * rate}"]
            if (factor, share) != (1, 1):
                measure(args, "three", f"rate × {factor}, epochs × {share}", 0, options)
    for label, settings in VARIANTS.items():
        measure(args, "three", label, 0, [part for setting in settings for part in ("--set", setting)])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("work", type=pathlib.Path)
    parser.add_argument("--cifar10", type=pathlib.Path, required=True)
    parser.add_argument("-m", "--model", required=True)
    parser.add_argument("--program", default="build/release/vitrail")
    parser.add_argument("--sets", nargs="+", default=list(SETS), choices=list(SETS))
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--sweep", action="store_true")
    parser.add_argument("--threads", type=int)
    args = parser.parse_args()
    args.global_options = ["--threads", str(args.threads)] if args.threads else []
    with zipfile.ZipFile(args.cifar10) as archive:
        for name in args.sets:
            if not (args.work / name).exists():
                make_set(name, archive, args.work / name)
    for seed in range(args.seeds):
        for name in args.sets:
            measure(args, name, "default", seed, [])
    if args.sweep:
        sweep(args)


if __name__ == "__main__":
    main()
