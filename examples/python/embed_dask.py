# SPDX-License-Identifier: Apache-2.0
"""Features of a folder's images with Dask, on two workers:   python embed_dask.py FOLDER OUTPUT.npz [MODEL]

Dask runs the partitions of a worker that dies again on another."""

import glob
import os
import sys

import dask.dataframe
import distributed
import numpy as np
import pandas as pd

import vitrail


def main(folder, output, model="imagenet-tiny"):
    paths = sorted(glob.glob(os.path.join(folder, "**", "*.*"), recursive=True))
    with distributed.Client(n_workers=2, threads_per_worker=1, dashboard_address=None):
        frame = dask.dataframe.from_pandas(pd.DataFrame({"image": paths}), npartitions=8)
        embed = vitrail.Embedder(model, normalize=True, threads=1, errors="nan")
        rows = frame.map_partitions(embed, meta={"image": object, "embedding": object}).compute()
    np.savez(output, paths=list(rows["image"]), features=np.stack(rows["embedding"].to_list()))


if __name__ == "__main__":
    main(*sys.argv[1:])
