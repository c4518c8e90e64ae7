#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the bytes of FAISS's index files that tests/analysis/flat_index_test.cpp compares (pip install faiss-cpu)."""

import faiss
import numpy as np

ROWS = np.array([[0.25, -1, 0.5], [1, 0, -0.5], [0.314, -0.299, 0.099]], np.float32)

eight_bits = faiss.IndexScalarQuantizer(3, faiss.ScalarQuantizer.QT_8bit, faiss.METRIC_INNER_PRODUCT)
for index in (faiss.IndexFlatIP(3), eight_bits):
    index.train(ROWS)
    index.add(ROWS)
    print(type(index).__name__, faiss.serialize_index(index).tobytes().hex())
