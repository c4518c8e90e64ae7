# SPDX-License-Identifier: Apache-2.0
"""Features of a folder's images with Spark, on two workers:   python embed_spark.py FOLDER OUTPUT.npz [MODEL]

Spark runs the task of a worker that dies again."""

import glob
import os
import sys

import numpy as np
from pyspark.sql import SparkSession

import vitrail


def main(folder, output, model="imagenet-tiny"):
    paths = sorted(glob.glob(os.path.join(folder, "**", "*.*"), recursive=True))
    # Two workers, and four attempts for a task.
    session = SparkSession.builder.master("local[2,4]").config("spark.ui.enabled", "false").getOrCreate()
    frame = session.createDataFrame([(path,) for path in paths], "image string").repartition(4)
    embed = vitrail.Embedder(model, normalize=True, threads=1, errors="nan")
    schema = "image string, embedding array<float>"
    rows = frame.mapInPandas(lambda frames: map(embed, frames), schema).orderBy("image").collect()
    session.stop()
    np.savez(output, paths=[row.image for row in rows], features=np.array([row.embedding for row in rows], np.float32))


if __name__ == "__main__":
    main(*sys.argv[1:])
