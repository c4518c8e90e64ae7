# SPDX-License-Identifier: Apache-2.0
"""Features of a folder's images with Ray Data, on two workers:   python embed_ray.py FOLDER OUTPUT.npz [MODEL]

Ray runs the batches of a worker that dies again on another."""

import glob
import os
import sys

import numpy as np
import ray

import vitrail


def main(folder, output, model="imagenet-tiny"):
    paths = sorted(glob.glob(os.path.join(folder, "**", "*.*"), recursive=True))
    ray.init(num_cpus=2, include_dashboard=False)
    dataset = ray.data.from_items([{"image": path} for path in paths], override_num_blocks=4)
    embed = vitrail.Embedder(model, normalize=True, threads=1, errors="nan")
    rows = dataset.map_batches(embed, batch_size=16, concurrency=2).take_all()
    rows.sort(key=lambda row: row["image"])
    np.savez(output, paths=[row["image"] for row in rows], features=np.stack([row["embedding"] for row in rows]))


if __name__ == "__main__":
    main(*sys.argv[1:])
