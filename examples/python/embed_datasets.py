# SPDX-License-Identifier: Apache-2.0
"""Features of a folder's images with Hugging Face datasets, in two processes:
python embed_datasets.py FOLDER OUTPUT.npz [MODEL]

A process that dies ends the run with an error; a second run reads the finished parts from the cache."""

import glob
import os
import sys

import datasets
import numpy as np

import vitrail


def main(folder, output, model="imagenet-tiny"):
    paths = sorted(glob.glob(os.path.join(folder, "**", "*.*"), recursive=True))
    dataset = datasets.Dataset.from_dict({"image": paths})
    embed = vitrail.Embedder(model, normalize=True, threads=1, errors="nan")
    rows = dataset.map(embed, batched=True, batch_size=16, num_proc=2)
    np.savez(output, paths=rows["image"], features=np.array(rows["embedding"], np.float32))


if __name__ == "__main__":
    main(*sys.argv[1:])
