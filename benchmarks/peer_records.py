# SPDX-License-Identifier: Apache-2.0
"""Writes the cells of peers.py as records, from which tools/results_tables.py makes tables."""

import json
import math
import os
import shlex
import subprocess

from peer_names import RUNTIMES

# The package whose version is recorded for a peer.
PACKAGES = {
    "eager": "torch",
    "compiled": "torch",
    "tuned": "torch",
    "train": "torch",
    "zentorch": "zentorch",
    "onnxruntime": "onnxruntime",
    "onnxruntime_static": "onnxruntime",
    "openvino": "openvino",
    "litert": "ai-edge-litert",
    "mnn": "MNN",
}
VERSION = """
import importlib.metadata, sys
try:
    print(importlib.metadata.version(sys.argv[1]))
except importlib.metadata.PackageNotFoundError:
    pass
"""


def command_of(options):
    command = [
        "benchmarks/peers.py",
        "--rounds",
        f"{options.rounds}",
        "--seconds",
        f"{options.seconds:g}",
        "--patience",
        f"{options.patience:g}",
    ]
    command += ["--alternate", f"{options.alternate:g}"] if options.alternate else []
    for name, values in (("--only", options.only), ("--peers", options.peers)):
        command += [name, *values] if values else []
    return shlex.join(command)


def vitrail_version(program):
    printed = subprocess.run([program, "--version"], check=True, capture_output=True, text=True).stdout
    return printed.split()[1]


def package_version(interpreter, package):
    """None: not installed."""
    command = [interpreter, "-c", VERSION, package]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip() or None


def versions_of(options, peers):
    versions = {"vitrail": vitrail_version(options.program)}
    for peer in peers:
        versions[PACKAGES[peer]] = package_version(options.interpreters.of(peer), PACKAGES[peer])
    return versions


def inference_row(cell):
    peers = [peer for peer in RUNTIMES if peer in cell.runs]
    return common_fields(cell, peers, 1) | {"peers": {peer: round(cell.best(peer), 1) for peer in peers}}


def training_row(cell):
    return common_fields(cell, ["train"], None) | {
        "torch": round(cell.best("train")),
        "torch_median": round(cell.median("train")),
        "peak_mb": round(cell.memory("vitrail")),
        "torch_peak_mb": round(cell.memory("train")),
        "checkpointed_time": round(cell.best("checkpointed") / cell.best("vitrail"), 2),
        "checkpointed_peak_mb": round(cell.memory("checkpointed")),
    }


def common_fields(cell, peers, digits):
    fields = {
        "model": cell.model,
        "batch": cell.batch,
        "precision": cell.precision,
        "vitrail": round(cell.best("vitrail"), digits),
        "vitrail_median": round(cell.median("vitrail"), digits),
        "speedup": round(cell.speedup(peers, type(cell).best), 2),
        "speedup_median": round(cell.speedup(peers, type(cell).median), 2),
    }
    if not math.isnan(cell.gemm_share()):
        fields["gemm_share"] = round(cell.gemm_share(), 2)
    return fields


def save(record, path):
    """One line per row, so that a difference of two versions shows the cells that changed."""
    rows = record.pop("rows")
    head = json.dumps(record, indent=2, ensure_ascii=False).removesuffix("\n}")
    body = ",\n".join("    " + json.dumps(row, ensure_ascii=False) for row in rows)
    path.write_text(f'{head},\n  "rows": [\n{body}\n  ]\n}}\n')


def write(inference, training, options, folder):
    """Cells without vitrail or without a peer have no speedup and are left out."""
    name, processor = options.record
    inference_rows = [inference_row(cell) for cell in inference if "vitrail" in cell.runs and cell.fastest(RUNTIMES)]
    training_rows = [training_row(cell) for cell in training if {"vitrail", "train", "checkpointed"} <= set(cell.runs)]
    ran = [peer for peer in RUNTIMES if any(peer in row["peers"] for row in inference_rows)]
    for kind, rows, unit, peers in (
        ("inference", inference_rows, "ms per batch, best of all runs", ran),
        ("training", training_rows, "ms per step (forward, backward, AdamW), best of all runs", ["train"]),
    ):
        if rows:
            save(
                {
                    "kind": kind,
                    "processor": processor,
                    "cores": len(os.sched_getaffinity(0)),
                    "versions": versions_of(options, peers),
                    "command": command_of(options),
                    "unit": unit,
                    "rows": rows,
                },
                folder / f"{kind}-{name}.json",
            )
