#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares the speed of vitrail with PyTorch, zentorch, ONNX Runtime, OpenVINO, LiteRT and MNN.

usage: benchmarks/peers.py [--rounds 3] [--seconds 3] [--alternate SECONDS] [--patience 300] [--only TEXT …] [--peers …]
                           [--output build/peers] [--program build/release/vitrail] [--record NAME PROCESSOR]

A cell is a model with a batch size and a precision.  Each round runs every program once per cell, one after the other,
each as its own process with all cores.  machine_rate (cmake -DVITRAIL_BENCHMARKS=ON) is one of the programs: it
measures the rate of oneDNN's GEMM over the shapes of the model.  "GEMM share" is the rate of vitrail over that rate.

The speed of a shared machine changes within seconds.  With --alternate, the programs of a cell are loaded first; then
one after the other runs for that many seconds while the others are stopped, until --seconds have passed for all
together.  A call that is interrupted takes longer, so SECONDS must be enough for several calls.  machine_rate is not
run then.

--only selects the cells whose name contains the text, such as "vit_tiny", "b8 fp32" or "train".  A program that needs
more than --patience plus ten times --seconds for a cell is left out of that cell: half precision in PyTorch can take
minutes on a processor without BF16 instructions.

The first run makes a virtual environment with requirements.txt in OUTPUT/venv, and one for each peer that has a
requirements-PEER.txt in OUTPUT/venv-PEER.  A peer that cannot be installed or run is left out, with the reason.  Each
peer's logits are compared with PyTorch's in fp32 first.  Every run writes OUTPUT/peers.json and OUTPUT/peers.png, and
prints tables.  --record also writes inference-NAME.json and training-NAME.json in
benchmarks/results/, from which tools/results_tables.py makes the tables of the documentation.
"""

import argparse
import json
import math
import pathlib
import statistics
import subprocess
import sys
import venv

import alternate
import peer_records
from peer_names import RUNTIMES

HERE = pathlib.Path(__file__).resolve().parent
INFERENCE = [
    ("vit_tiny_patch16_224", 1),
    ("vit_tiny_patch16_224", 8),
    ("vit_small_patch16_224", 1),
    ("vit_small_patch16_224", 8),
    ("vit_base_patch16_224", 1),
    ("vit_base_patch16_224", 8),
    ("vit_base_patch32_clip_224", 1),
    ("vit_base_patch32_clip_224", 8),
    ("vit_base_patch16_siglip_224", 1),
    ("vit_base_patch16_siglip_224", 8),
    ("vit_small_patch16_dinov3", 1),
    ("vit_small_patch16_dinov3", 8),
    ("cifar_vit_d192", 64),
]
# These models of map_models.py run in fp32 and int8.
MAPS = [("depth_anything_v2_small", 1), ("dpt_large", 1), ("eomt_base", 1)]
TRAINING = [("cifar_vit_d192", 64), ("cifar_vit_d384", 64), ("vit_tiny_patch16_224", 16)]
# The default peers are those that can be the fastest in a cell; --peers selects others.
PEERS = {
    "fp32": ["onnxruntime", "openvino", "tuned", "zentorch"],
    "half": ["compiled", "openvino", "tuned", "zentorch"],
    "int8": ["onnxruntime", "onnxruntime_static", "openvino", "tuned"],
}
# "bf16" is a name of half precision in every version of vitrail, for training too.
PRECISION_OPTION = {"fp32": "fp32", "half": "bf16", "int8": "int8"}


class Cell:
    def __init__(self, model, batch, precision, train=False):
        self.model, self.batch, self.precision, self.train = model, batch, precision, train
        self.runs = {}  # program: the result of each round
        self.failures = {}  # program: the reason

    def name(self):
        return f"{'train ' if self.train else ''}{self.model} b{self.batch} {self.precision}"

    def programs(self, options):
        """{name: command}, in the order of a round.  A peer whose environment cannot be made is a failure."""
        arguments = [self.model, str(self.batch), self.precision, str(options.seconds)]
        folder = self.folder(options)
        vitrail = [
            options.program,
            "bench",
            str(folder or self.model),
            "--batch",
            str(self.batch),
            "--precision",
            PRECISION_OPTION[self.precision],
            "--seconds",
            str(options.seconds),
        ]
        if self.train:
            vitrail.append("--train")
        programs = {"vitrail": vitrail}
        for peer in ["train"] if self.train else options.peers or PEERS[self.precision]:
            try:
                programs[peer] = [str(options.interpreters.of(peer)), str(HERE / "peer.py"), peer, *arguments]
            except OSError as error:
                self.failures[peer] = str(error)
        if self.train:
            programs["checkpointed"] = [*vitrail, "--checkpointing"]
        if not folder:  # machine_rate has no shapes of other models
            machine_rate = pathlib.Path(options.program).parent / "benchmarks" / "machine_rate"
            programs["machine_rate"] = [str(machine_rate), *arguments]
        return programs

    def folder(self, options):
        """The folder of a model that vitrail has no name for, made once; None for the others."""
        if (self.model, self.batch) not in MAPS:
            return None
        folder = options.output / self.model
        interpreter = options.interpreters.of("eager")
        subprocess.run([interpreter, HERE / "map_models.py", self.model, folder], check=True, capture_output=True)
        return folder

    def run_round(self, options):
        limit = options.patience + 10 * options.seconds
        for program, command in self.programs(options).items():
            if program in self.failures:
                continue
            try:
                ended = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=False)
            except subprocess.TimeoutExpired:
                self.failures[program] = f"not finished after {limit:.0f} s"
                continue
            self.keep(program, ended.returncode, ended.stdout, ended.stderr)

    def keep(self, program, status, output, messages):
        if status:
            self.failures[program] = (messages.strip().splitlines() or ["failed"])[-1]
        else:
            self.runs.setdefault(program, []).append(json.loads(output.splitlines()[-1]))

    def run_alternately(self, options):
        peers, others = {}, {}
        for program, command in self.programs(options).items():
            if program not in (*self.failures, "machine_rate"):
                (peers if str(HERE / "peer.py") in command else others)[program] = command
        for program, ended in alternate.run(peers, others, options.alternate, options.patience).items():
            self.keep(program, *ended)

    def best(self, program):
        return min((run["min_ms"] for run in self.runs.get(program, [])), default=math.nan)

    def median(self, program):
        runs = self.runs.get(program)
        return statistics.median([run["median_ms"] for run in runs]) if runs else math.nan

    def memory(self, program):
        return max((run["peak_rss_mb"] for run in self.runs.get(program, [])), default=math.nan)

    def rate(self, program):
        """The best rate in GFLOP/s."""
        return max((run.get("gflop_per_s", math.nan) for run in self.runs.get(program, [])), default=math.nan)

    def gemm_share(self):
        return self.rate("vitrail") / self.rate("machine_rate")

    def fastest(self, peers):
        measured = [peer for peer in peers if peer in self.runs]
        return min(measured, key=self.best) if measured else None

    def speedup(self, peers, time):
        """Time of the fastest peer over time of vitrail; `time` is Cell.best or Cell.median."""
        fastest = self.fastest(peers)
        return time(self, fastest) / time(self, "vitrail") if fastest else math.nan


def print_table(heading, rows):
    print(f"\n| {' | '.join(heading)} |")
    print("| --- " * len(heading) + "|")
    for row in rows:
        print(f"| {' | '.join(row)} |")


def print_inference(cells, peers):
    rows = []
    for cell in cells:
        rows.append(
            [
                cell.name(),
                f"{cell.best('vitrail'):.1f}, {cell.median('vitrail'):.1f}",
                *(f"{cell.best(peer):.1f}" if peer in cell.runs else "" for peer in peers),
                f"{cell.speedup(peers, Cell.best):.2f}, {cell.speedup(peers, Cell.median):.2f}",
                f"{cell.gemm_share():.0%}",
                f"{cell.rate('machine_rate'):.0f}",
            ]
        )
    print_table(
        [
            "model, batch, precision",
            "vitrail ms: best, median",
            *peers,
            "speedup: best, median",
            "GEMM share",
            "GEMM GFLOP/s",
        ],
        rows,
    )
    speedups = [cell.speedup(peers, Cell.best) for cell in cells]
    speedups = [speedup for speedup in speedups if not math.isnan(speedup)]
    if speedups:
        print(f"\ngeometric mean of the speedup over {len(speedups)} cells: {statistics.geometric_mean(speedups):.2f}")


def print_training(cells):
    rows = []
    for cell in cells:
        rows.append(
            [
                cell.name(),
                f"{cell.best('vitrail'):.0f}, {cell.median('vitrail'):.0f}",
                f"{cell.best('train'):.0f}, {cell.median('train'):.0f}",
                f"{cell.speedup(['train'], Cell.best):.2f}, {cell.speedup(['train'], Cell.median):.2f}",
                f"{cell.gemm_share():.0%}",
                f"{cell.rate('machine_rate'):.0f}",
                f"{cell.memory('vitrail'):.0f}, {cell.memory('train'):.0f}",
                f"{cell.best('checkpointed') / cell.best('vitrail'):.2f}x, {cell.memory('checkpointed'):.0f}",
            ]
        )
    print_table(
        [
            "model, batch, precision",
            "vitrail ms: best, median",
            "PyTorch",
            "speedup: best, median",
            "GEMM share",
            "GEMM GFLOP/s",
            "MB: vitrail, PyTorch",
            "checkpointed: time, MB",
        ],
        rows,
    )


def plot(cells, peers, file):
    try:
        import matplotlib
    except ImportError:
        print(f"peers: no {file}: this Python has no matplotlib", file=sys.stderr)
        return
    matplotlib.use("Agg")
    from matplotlib import pyplot

    rows = [cell for cell in cells if "vitrail" in cell.runs and cell.fastest(peers)]
    figure, axes = pyplot.subplots(figsize=(9, 1 + 0.5 * len(rows)))
    height = 0.8 / max(len(peers), 1)
    for i, peer in enumerate(peers):
        axes.barh(
            [row - 0.4 + height * (i + 0.5) for row in range(len(rows))],
            [cell.best(peer) / cell.best("vitrail") for cell in rows],
            height,
            label=peer,
        )
    axes.axvline(1, color="black", linewidth=1)
    axes.set_yticks(range(len(rows)), [cell.name() for cell in rows])
    axes.invert_yaxis()
    axes.set_xlabel("time of the peer / time of vitrail (best of all runs)")
    axes.legend()
    figure.tight_layout()
    figure.savefig(file)


class Interpreters:
    """The interpreters of virtual environments that have the peers; makes those that do not exist."""

    def __init__(self, output, given):
        self.output, self.given, self.failures = output, given, {}

    def of(self, peer):
        """Raises OSError if the packages of the peer cannot be installed."""
        own = HERE / f"requirements-{peer}.txt"
        requirements = own if own.exists() else HERE / "requirements.txt"
        if self.given and requirements != own:
            return self.given
        environment = self.output / ("venv" if requirements != own else f"venv-{peer}")
        if peer not in self.failures and not (environment / "complete").exists():
            self.install(peer, environment, requirements)
        if peer in self.failures:
            raise OSError(self.failures[peer])
        return environment / "bin" / "python"

    def install(self, peer, environment, requirements):
        print(f"peers: installing {requirements.name} into {environment}", file=sys.stderr)
        venv.create(environment, with_pip=True, clear=True)
        command = [environment / "bin" / "python", "-m", "pip", "install", "-q", "-r", requirements]
        ended = subprocess.run(command, capture_output=True, text=True, check=False)
        if ended.returncode:
            reason = (ended.stderr.strip().splitlines() or ["pip failed"])[-1]
            self.failures[peer] = f"not installed: {reason}"
        else:
            (environment / "complete").touch()


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--alternate", type=float)
    parser.add_argument("--patience", type=float, default=300)
    parser.add_argument("--only", nargs="*", default=[])
    parser.add_argument("--peers", nargs="*", choices=list(RUNTIMES), help="default: those that can be the fastest")
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("build/peers"))
    parser.add_argument("--program", default="build/release/vitrail")
    parser.add_argument("--python", type=pathlib.Path, help="an interpreter that has requirements.txt")
    parser.add_argument("--record", nargs=2, metavar=("NAME", "PROCESSOR"))
    return parser.parse_args()


def select_cells(only):
    cells = [Cell(model, batch, precision) for precision in ("fp32", "half", "int8") for model, batch in INFERENCE]
    cells += [Cell(model, batch, precision) for precision in ("fp32", "int8") for model, batch in MAPS]
    cells += [Cell(model, batch, precision, True) for precision in ("fp32", "half") for model, batch in TRAINING]
    texts = [text.replace("bf16", "half") for text in only]
    return [cell for cell in cells if not texts or any(text in cell.name() for text in texts)]


def run_cells(cells, options):
    for cell in cells:
        for _ in range(options.rounds):
            (cell.run_alternately if options.alternate else cell.run_round)(options)
        times = [f"{program} {cell.best(program):.1f} ms" for program in cell.runs if program != "machine_rate"]
        reasons = [f"; {program}: {reason}" for program, reason in cell.failures.items()]
        print(f"peers: {cell.name()}: {', '.join(times)}{''.join(reasons)}", file=sys.stderr, flush=True)
        # Written after each cell, so that an interrupted run keeps its results.
        with open(options.output / "peers.json", "w") as file:
            json.dump(
                [
                    {
                        "model": c.model,
                        "batch": c.batch,
                        "precision": c.precision,
                        "train": c.train,
                        "runs": c.runs,
                        "failures": c.failures,
                    }
                    for c in cells
                ],
                file,
                indent=1,
            )


def main():
    options = parse_options()
    options.output.mkdir(parents=True, exist_ok=True)
    options.interpreters = Interpreters(options.output, options.python)
    cells = select_cells(options.only)
    run_cells(cells, options)
    inference = [cell for cell in cells if not cell.train]
    training = [cell for cell in cells if cell.train]
    if inference:
        peers = [peer for peer in RUNTIMES if any(peer in cell.runs or peer in cell.failures for cell in inference)]
        print_inference(inference, peers)
        plot(inference, peers, options.output / "peers.png")
    if training:
        print_training(training)
    if options.record:
        peer_records.write(inference, training, options, HERE / "results")


if __name__ == "__main__":
    main()
