# SPDX-License-Identifier: Apache-2.0
"""Fixtures of linear assignment: tests/fixtures/analysis/linear_assignment.safetensors.

A case NAME has `NAME.costs` [rows, columns] and `NAME.total`, the least total cost by SciPy's linear_sum_assignment;
`NAME.columns`, where that assignment is the only one, has the column of each row, or −1.
"""

import pathlib

import numpy
import safetensors.numpy
from scipy.optimize import linear_sum_assignment

ROOT = pathlib.Path(__file__).resolve().parents[2] / "tests" / "fixtures" / "analysis"


def main():
    random, tensors = numpy.random.default_rng(1), {}
    for rows, columns in [(1, 1), (1, 7), (7, 1), (5, 3), (3, 5), (6, 6), (20, 30), (30, 20), (24, 24)]:
        kinds = {"normal": random.normal(size=(rows, columns)), "ties": random.integers(-3, 3, (rows, columns)) * 1.0}
        for kind, costs in kinds.items():
            name, (chosen, of_chosen) = f"{kind}_{rows}x{columns}", linear_sum_assignment(costs)
            tensors[f"{name}.costs"] = costs
            tensors[f"{name}.total"] = costs[chosen, of_chosen].sum(keepdims=True)
            if kind == "normal":
                tensors[f"{name}.columns"] = numpy.full(rows, -1, numpy.int64)
                tensors[f"{name}.columns"][chosen] = of_chosen
    safetensors.numpy.save_file(tensors, ROOT / "linear_assignment.safetensors")


if __name__ == "__main__":
    main()
