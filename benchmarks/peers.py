#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""vitrail beside PyTorch, ONNX Runtime and OpenVINO, cell by cell: one command.

usage: benchmarks/peers.py [--rounds 3] [--seconds 3] [--patience 300] [--only TEXT …] [--peers …]
                           [--output build/peers] [--program build/release/vitrail]

In each round every program runs once, in turn, each as a process of its own with all cores, and between them the rate
of the machine's matrix products over the model's own shapes (machine_rate; needs cmake -DVITRAIL_BENCHMARKS=ON).
"Share" is the operations of vitrail's products in its best time over the best rate measured.  --only keeps the cells
whose name has the text, such as "vit_tiny", "b8 fp32" or "train".  A program that needs more than --patience and ten
times --seconds for a cell is left out of it: a training cell of PyTorch's in bf16 did
not end within two minutes where the processor has no bf16.

The first time, an environment with requirements.txt is made in OUTPUT/venv.  Writes OUTPUT/peers.json (every run) and
OUTPUT/peers.png, and prints the tables.
"""
import argparse
import json
import math
import pathlib
import statistics
import subprocess
import sys
import venv

HERE = pathlib.Path(__file__).resolve().parent
INFERENCE = [("vit_tiny_patch16_224", 1), ("vit_tiny_patch16_224", 8), ("vit_small_patch16_224", 1),
             ("vit_small_patch16_224", 8), ("vit_base_patch16_224", 1), ("vit_base_patch16_224", 8),
             ("cifar_vit_d192", 64)]
TRAINING = [("cifar_vit_d192", 64), ("cifar_vit_d384", 64), ("vit_tiny_patch16_224", 16)]
# Those that have led a cell.  PyTorch's fp32 was behind ONNX Runtime's or OpenVINO's wherever it was run, its int8 has not
# been, and ONNX Runtime has no bf16 for the CPU: --peers asks for them all the same.
PEERS = {"fp32": ["onnxruntime", "openvino"], "bf16": ["compiled", "openvino"], "int8": ["onnxruntime", "openvino"]}


class Cell:
    def __init__(self, model, batch, precision, train=False):
        self.model, self.batch, self.precision, self.train = model, batch, precision, train
        self.runs = {}  # program: what each round gave
        self.failures = {}  # program: why

    def name(self):
        return f"{'train ' if self.train else ''}{self.model} b{self.batch} {self.precision}"

    def programs(self, options):
        """name: command, in the order in which they take turns"""
        cell = [self.model, str(self.batch), self.precision, str(options.seconds)]
        vitrail = [options.program, "bench", self.model, "--batch", str(self.batch), "--precision", self.precision,
                   "--seconds", str(options.seconds)] + (["--train"] if self.train else [])
        rate = str(pathlib.Path(options.program).parent / "benchmarks" / "machine_rate")
        programs = {"vitrail": vitrail}
        for peer in ["train"] if self.train else options.peers or PEERS[self.precision]:
            programs[peer] = [str(options.python), str(HERE / "peer.py"), peer, *cell]
        if self.train:
            programs["checkpointed"] = vitrail + ["--checkpointing"]
        programs["rate"] = [rate, *cell]
        return programs

    def run(self, options):
        for _ in range(options.rounds):
            for program, command in self.programs(options).items():
                if program in self.failures:
                    continue
                try:
                    ended = subprocess.run(command, capture_output=True, text=True, timeout=options.patience + 10 * options.seconds)
                except subprocess.TimeoutExpired:
                    self.failures[program] = f"not done after {options.patience + 10 * options.seconds:.0f} s"
                    continue
                if ended.returncode:
                    self.failures[program] = (ended.stderr.strip().splitlines() or ["failed"])[-1]
                else:
                    self.runs.setdefault(program, []).append(json.loads(ended.stdout.splitlines()[-1]))

    def best(self, program):
        return min((run["min_ms"] for run in self.runs.get(program, [])), default=math.nan)

    def median(self, program):
        return statistics.median([run["median_ms"] for run in self.runs[program]]) if program in self.runs else math.nan

    def memory(self, program):
        return max((run["peak_rss_mb"] for run in self.runs.get(program, [])), default=math.nan)

    def rate(self):
        return max((run["gflop_per_s"] for run in self.runs.get("rate", [])), default=math.nan)

    def share(self):
        ours = max((run["gflop_per_s"] for run in self.runs.get("vitrail", [])), default=math.nan)
        return ours / self.rate()

    def leader(self, peers):
        """the fastest peer"""
        there = [peer for peer in peers if peer in self.runs]
        return min(there, key=self.best) if there else None

    def gain(self, peers, of):
        leader = self.leader(peers)
        return of(self, leader) / of(self, "vitrail") if leader else math.nan


def print_inference(cells, peers):
    print(f"\n| model, batch, precision | vitrail best, median ms | {' | '.join(peers)} | ahead of the best: best, median | share | rate |")
    print("| --- " * (5 + len(peers)) + "|")
    for cell in cells:
        others = " | ".join(f"{cell.best(peer):.1f}" if peer in cell.runs else "" for peer in peers)
        print(f"| {cell.name()} | {cell.best('vitrail'):.1f}, {cell.median('vitrail'):.1f} | {others} | "
              f"{cell.gain(peers, Cell.best):.2f}, {cell.gain(peers, Cell.median):.2f} | {cell.share():.0%} | {cell.rate():.0f} |")
    gains = [gain for gain in (cell.gain(peers, Cell.best) for cell in cells) if gain == gain]
    if gains:
        print(f"\ngeometric mean of the lead over {len(gains)} cells: {math.exp(statistics.mean(map(math.log, gains))):.2f}")


def print_training(cells):
    print("\n| model, batch, precision | vitrail best, median ms | PyTorch | ahead: best, median | share | rate | MB: vitrail, PyTorch | checkpointed: time, MB |")
    print("| --- " * 8 + "|")
    for cell in cells:
        print(f"| {cell.name()} | {cell.best('vitrail'):.0f}, {cell.median('vitrail'):.0f} | {cell.best('train'):.0f}, {cell.median('train'):.0f} | "
              f"{cell.gain(['train'], Cell.best):.2f}, {cell.gain(['train'], Cell.median):.2f} | {cell.share():.0%} | {cell.rate():.0f} | "
              f"{cell.memory('vitrail'):.0f}, {cell.memory('train'):.0f} | "
              f"{cell.best('checkpointed') / cell.best('vitrail'):.2f}x, {cell.memory('checkpointed'):.0f} |")


def plot(cells, peers, file):
    try:
        import matplotlib
    except ImportError:
        print(f"no plot: run by a Python with matplotlib to have {file}", file=sys.stderr)
        return
    matplotlib.use("Agg")
    import matplotlib.pyplot as pyplot
    rows = [cell for cell in cells if "vitrail" in cell.runs and cell.leader(peers)]
    figure, axes = pyplot.subplots(figsize=(9, 1 + 0.5 * len(rows)))
    height = 0.8 / max(len(peers), 1)
    for i, peer in enumerate(peers):
        axes.barh([row - 0.4 + height * (i + 0.5) for row in range(len(rows))],
                  [cell.best(peer) / cell.best("vitrail") for cell in rows], height, label=peer)
    axes.axvline(1, color="black", linewidth=1)
    axes.set_yticks(range(len(rows)), [cell.name() for cell in rows])
    axes.invert_yaxis()
    axes.set_xlabel("time of the peer / time of vitrail (best of all runs)")
    axes.legend()
    figure.tight_layout()
    figure.savefig(file)


def python_with_peers(output):
    """This Python where it has the peers, else that of an environment made for them."""
    environment = output / "venv"
    python = environment / "bin" / "python"
    if not python.exists():
        print(f"peers: installing requirements.txt into {environment}", file=sys.stderr)
        venv.create(environment, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "-q", "-r", HERE / "requirements.txt"], check=True)
    return python


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--patience", type=float, default=300)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--peers", nargs="*", choices=["eager", "compiled", "onnxruntime", "openvino"],
                        help="default: those that can lead a cell")
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("build/peers"))
    parser.add_argument("--program", default="build/release/vitrail")
    parser.add_argument("--python", type=pathlib.Path, help="one that has the peers already")
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)
    if not options.python:
        options.python = python_with_peers(options.output)
        if pathlib.Path(sys.executable) != options.python.absolute():
            sys.exit(subprocess.run([options.python, *sys.argv, "--python", options.python]).returncode)

    inference = [Cell(model, batch, precision) for precision in ("fp32", "bf16", "int8") for model, batch in INFERENCE]
    training = [Cell(model, batch, precision, True) for precision in ("fp32", "bf16") for model, batch in TRAINING]
    wanted = [cell for cell in inference + training
              if not options.only or any(text in cell.name() for text in options.only)]
    for cell in wanted:
        cell.run(options)
        print(f"peers: {cell.name()}: " + ", ".join(f"{program} {cell.best(program):.1f} ms" for program in cell.runs if program != "rate")
              + "".join(f"; {program}: {why}" for program, why in cell.failures.items()), file=sys.stderr, flush=True)
        with open(options.output / "peers.json", "w") as file:
            json.dump([{"model": c.model, "batch": c.batch, "precision": c.precision, "train": c.train, "runs": c.runs,
                        "failures": c.failures} for c in wanted], file, indent=1)
    kept = [cell for cell in wanted if not cell.train]
    if kept:
        asked = [peer for peer in ("eager", "compiled", "onnxruntime", "openvino")
                 if any(peer in cell.runs or peer in cell.failures for cell in kept)]
        print_inference(kept, asked)
        plot(kept, asked, options.output / "peers.png")
    if len(kept) < len(wanted):
        print_training([cell for cell in wanted if cell.train])


if __name__ == "__main__":
    main()
