# SPDX-License-Identifier: Apache-2.0
"""Writes vitrail/data/datasets/imagenet_classes.txt: WordNet id and class name of ImageNet-1k's classes in index order.

The lists come from timm's package data (data/_info/imagenet_synsets.txt and imagenet_synset_to_lemma.txt), the same
files that its ImageNetInfo reads.  Run from the repository root, with timm installed:

    python tools/make_imagenet_classes.py
"""

import pathlib

import timm

OUTPUT = pathlib.Path("vitrail/data/datasets/imagenet_classes.txt")


def main():
    folder = pathlib.Path(timm.__file__).parent / "data" / "_info"
    ids = (folder / "imagenet_synsets.txt").read_text().split()
    lines = (folder / "imagenet_synset_to_lemma.txt").read_text().splitlines()
    names = dict(line.split("\t") for line in lines)
    assert len(ids) == len(set(ids)) == 1000
    OUTPUT.write_text("".join(f"{wordnet_id} {names[wordnet_id]}\n" for wordnet_id in ids))


if __name__ == "__main__":
    main()
