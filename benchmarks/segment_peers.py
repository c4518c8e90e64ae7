#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares vitrail's Segment Anything with PyTorch, ONNX Runtime and OpenVINO: the image encoder of ViT-B at 1024×1024,
and one click after the embedding.

usage: benchmarks/segment_peers.py --python PYTHON [--rounds 3] [--seconds 5] [--precisions fp32 half int8]
                                   [--peers pytorch onnxruntime openvino] [--program build/release/vitrail]
                                   [--output build/segment_peers] [--gain 1]

PYTHON is an interpreter with PyPI's segment-anything and requirements.txt.  Every tensor of sam_vit_b is drawn from a
seed; ONNX files come from `vitrail convert`.  Each round runs every program, one after the other, each as its own
process with all cores.  Before that, the embedding and the logits of vitrail are compared with PyTorch's in fp32, and
segment_peer.py compares the peers'.  Writes OUTPUT/segment_peers.json and prints a table.
"""

import argparse
import json
import math
import pathlib
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
TASKS = ["image_encoder", "click"]
# Run by PYTHON: a checkpoint with every tensor drawn, gain × 1/√inputs for matrices, and an image of smooth noise.
PREPARE = """
import sys, numpy, segment_anything, torch
from PIL import Image
folder, gain = sys.argv[1], float(sys.argv[2])
model = segment_anything.sam_model_registry["vit_b"]()
random = torch.Generator().manual_seed(0)
embeddings = ("embed.weight", "token.weight", "tokens.weight", "gaussian_matrix")
norms = {id(p) for m in model.modules() if "Norm" in type(m).__name__ for p in m.parameters()}
with torch.no_grad():
    for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
        if name.startswith("pixel_"):
            continue
        values = torch.randn(tensor.shape, generator=random)
        if id(tensor) in norms:
            values = float(name.endswith("weight")) + 0.3 * values
        elif "rel_pos" in name or "pos_embed" in name or tensor.dim() == 1:
            values *= 0.5
        elif not name.endswith(embeddings) and "point_embeddings" not in name:
            values *= gain / tensor[0].numel() ** 0.5
        tensor.copy_(values)
torch.save(model.state_dict(), folder + "/model.pth")
noise = torch.rand(1, 3, 24, 24, generator=random)
pixels = torch.nn.functional.interpolate(noise, (1024, 1024), mode="bicubic").clamp(0, 1)[0]
Image.fromarray((255 * pixels).byte().permute(1, 2, 0).numpy()).save(folder + "/image.png")
"""
# Run by PYTHON: the errors of vitrail's files.
COMPARE = """
import sys, json, pathlib, numpy
sys.path.insert(0, sys.argv[1])
from segment_peer import error_of
folder = pathlib.Path(sys.argv[2])
expected = numpy.load(folder / "expected.npz")
embedding, logits = numpy.load(folder / "embedding.npy"), numpy.load(folder / "logits.npy")
print(json.dumps({"image_encoder": error_of(embedding, expected["embedding"]),
                  "click": error_of(logits, expected["logits"][:, 1:])}))
"""


def run(command, **more):
    return subprocess.run([str(part) for part in command], check=True, text=True, **more)


def prepare(options):
    """The model, the image, the ONNX files and PyTorch's outputs, each once."""
    folder = options.output
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "model.pth").exists():
        run([options.python, "-c", PREPARE, folder, options.gain])
    if not (folder / "model.decoder.onnx").exists():
        run([options.program, "convert", folder / "model.pth", "-o", folder / "model.onnx"])
    if not (folder / "expected.npz").exists():
        run([options.python, HERE / "segment_peer.py", "reference", folder, "fp32"])


def errors_of_vitrail(options, precision):
    folder = options.output
    command = [options.program, "segment", "-m", folder / "model.pth", folder / "image.png", "--point", "300,420"]
    command += ["--embedding", folder / "embedding.npy", "--logits", folder / "logits.npy", "--precision", precision]
    run(command, stdout=subprocess.DEVNULL)
    compared = run([options.python, "-c", COMPARE, HERE, folder], stdout=subprocess.PIPE)
    return json.loads(compared.stdout)


class Cell:
    """A precision with the results of each program."""

    def __init__(self, precision, errors):
        self.precision = precision
        self.errors = {"vitrail": errors}
        self.runs = {}  # program: the tasks of each round
        self.failures = {}  # program: the reason

    def run_round(self, options):
        bench = [options.program, "bench", options.output / "model.pth", "--precision", self.precision]
        lines = run([*bench, "--seconds", options.seconds], stdout=subprocess.PIPE).stdout.splitlines()
        self.runs.setdefault("vitrail", []).append({line["task"]: line for line in map(json.loads, lines)})
        for peer in options.peers:
            if peer in self.failures:
                continue
            command = [options.python, HERE / "segment_peer.py", peer, options.output, self.precision, options.seconds]
            ended = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
            if ended.returncode:
                self.failures[peer] = (ended.stderr.strip().splitlines() or ["failed"])[-1]
                continue
            result = json.loads(ended.stdout.splitlines()[-1])
            self.errors[peer] = result["errors"]
            self.runs.setdefault(peer, []).append(result["tasks"])

    def best(self, program, task):
        return min((tasks[task]["min_ms"] for tasks in self.runs.get(program, [])), default=math.nan)

    def median(self, program, task):
        times = [tasks[task]["median_ms"] for tasks in self.runs.get(program, [])]
        return statistics.median(times) if times else math.nan

    def speedup(self, peers, task, time):
        """Time of the fastest peer over time of vitrail; `time` is Cell.best or Cell.median."""
        measured = [time(self, peer, task) for peer in peers if peer in self.runs]
        return min(measured, default=math.nan) / time(self, "vitrail", task)

    def record(self):
        return {"precision": self.precision, "runs": self.runs, "errors": self.errors, "failures": self.failures}


def print_table(cells, peers):
    heading = ["task, precision", "vitrail ms: best, median", *peers, "speedup: best, median", "error", "MB"]
    print(f"\n| {' | '.join(heading)} |")
    print("| --- " * len(heading) + "|")
    for cell in cells:
        for task in TASKS:
            row = [
                f"{task} {cell.precision}",
                f"{cell.best('vitrail', task):.1f}, {cell.median('vitrail', task):.1f}",
                *(f"{cell.best(peer, task):.1f}" if peer in cell.runs else "" for peer in peers),
                f"{cell.speedup(peers, task, Cell.best):.2f}, {cell.speedup(peers, task, Cell.median):.2f}",
                f"{cell.errors['vitrail'][task]:.1e}",
                f"{max(tasks[task]['peak_rss_mb'] for tasks in cell.runs['vitrail']):.0f}",
            ]
            print(f"| {' | '.join(row)} |")
        everything = min(tasks["everything"]["min_ms"] for tasks in cell.runs["vitrail"])
        print(f"\neverything with 32×32 points, {cell.precision}: {everything / 1e3:.1f} s", file=sys.stderr)


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", type=pathlib.Path, required=True)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=5)
    parser.add_argument("--precisions", nargs="+", default=["fp32", "half", "int8"], choices=["fp32", "half", "int8"])
    parser.add_argument("--peers", nargs="*", default=["pytorch", "onnxruntime", "openvino"])
    parser.add_argument("--program", default="build/release/vitrail")
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("build/segment_peers"))
    parser.add_argument("--gain", type=float, default=1)
    return parser.parse_args()


def main():
    options = parse_options()
    prepare(options)
    cells = []
    for precision in options.precisions:
        cells.append(Cell(precision, errors_of_vitrail(options, precision)))
        for _ in range(options.rounds):
            cells[-1].run_round(options)
            with open(options.output / "segment_peers.json", "w") as file:
                json.dump([cell.record() for cell in cells], file, indent=1)
        for peer, reason in cells[-1].failures.items():
            print(f"segment_peers: {peer} {precision}: {reason}", file=sys.stderr)
    print_table(cells, options.peers)


if __name__ == "__main__":
    main()
