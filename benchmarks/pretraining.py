#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares `vitrail pretrain` with the same recipes in PyTorch (pretraining_torch.py), on images of CIFAR-10.

    benchmarks/pretraining.py steps --cifar10 cifar10.zip --teacher FOLDER    # time of a step, peak memory
    benchmarks/pretraining.py knn --cifar10 cifar10.zip --teacher FOLDER      # k-NN accuracy of what was learned

A run of vitrail chooses the recipe, and the run in PyTorch reads it.  The model is a new cifar_vit_d192, or the folder
--model with inputs of --image-size pixels.  --teacher is the folder of the model that `distill` learns from.  Both have
config.json and model.safetensors.  cifar10.zip has train/CLASS/*.jpg and test/CLASS/*.jpg.

`steps`: each round runs both programs for each method and precision, one after the other, with two epochs of --steps
steps.  The time of a step is the mean of the second epoch, and the best of all rounds counts.  It includes
augmentation, which both do in the background, and the update of the weights; images are decoded and the teacher's
features are computed before.  "Images ready" is the step in PyTorch with augmented images in memory.  Peak memory is
that of the process from its start to its end: for vitrail with the evaluation of 100 held-out images and the report,
for PyTorch without the processes that augment.

`knn`: both train for --epochs epochs on --images images with each seed.  `vitrail knn` classifies the test images by 20
nearest neighbours among the training images, with either model.

By default `steps` measures fp32 and bf16, in PyTorch by autocast, and `knn` fp32.  OUTPUT/steps.jsonl has a line for
each round, OUTPUT/knn.jsonl for each seed.  What is there already is not repeated.

Packages of requirements.txt are installed into OUTPUT/venv, if --python names no interpreter that has them.  --record
writes benchmarks/results/pretraining-steps-NAME.json or pretraining-knn-NAME.json.
"""

import argparse
import csv
import functools
import json
import os
import pathlib
import shlex
import shutil
import statistics
import subprocess
import sys
import zipfile

import peer_records
from peers import Interpreters, print_table

HERE = pathlib.Path(__file__).resolve().parent
# The methods with the batch sizes that vitrail chooses for 10,000 images.
BATCHES = {"diet": 64, "lejepa": 128, "mae": 256, "distill": 64, "dino": 64}
JUDGED_BY_KNN = ["diet", "lejepa", "distill"]
HELD_OUT = 100
# A larger relative difference of the first losses means that something else was trained.
MAX_LOSS_DIFFERENCE = 0.25
# Options that a line of the logs is a result of, beside method and precision.
STEPS_OPTIONS = ["steps", "threads", "workers", "model", "image_size", "teacher"]
KNN_OPTIONS = ["epochs", "images", "model", "image_size", "teacher"]
COLUMNS = {
    "steps": {
        "method": "{method}",
        "batch": "{batch}",
        "precision": "{precision}",
        "vitrail": "{vitrail}",
        "PyTorch": "{torch}",
        "speedup": "{speedup:.2f} ({speedup_median:.2f})",
        "images ready": "{torch_ready} ({speedup_ready:.2f})",
        "peak MB": "{peak_mb}",
        "PyTorch MB": "{torch_peak_mb}",
        "memory ratio": "{memory_ratio:.2f}",
    },
    "knn": {
        "method": "{method}",
        "epochs": "{epochs}",
        "images": "{images}",
        "precision": "{precision}",
        "vitrail: mean (range)": "{vitrail}",
        "PyTorch: mean (range)": "{torch}",
        "difference of the means": "{difference:+.2f}",
    },
}
UNITS = {
    "steps": "ms per step, best of all rounds; speedup by best times (by medians)",
    "knn": "20-NN accuracy in percent of the test images",
}


# --- Runs ------------------------------------------------------------------------------------------------------------


def run(command, log):
    """(standard output, peak memory in MB)"""
    command = [str(part) for part in command]
    with log.open("w") as messages:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=messages, text=True)
        try:
            output = process.stdout.read()
        except KeyboardInterrupt:
            process.kill()
            raise
        _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{shlex.join(command)}\n{log.read_text()[-2000:]}")
    return output, usage.ru_maxrss / 1024


def make_images(options, count):
    """The list of `count` training images in a folder with train/CLASS/*.jpg and as many images of test/, made once."""
    folder = options.output / f"images-{count}"
    listed = folder / "train.txt"
    if listed.exists():
        return listed
    with zipfile.ZipFile(options.cifar10) as archive:
        for split in ("test", "train"):
            names = [name for name in archive.namelist() if name.startswith(split + "/") and name.endswith(".jpg")]
            names.sort(key=lambda name: name.split("/")[::-1])  # the first of each class, then the second of each
            archive.extractall(folder, names[:count])
    listed.write_text("\n".join(names[:count]))
    return listed


def train_vitrail(options, method, images, epochs, settings):
    """(the run's folder, peak memory in MB)"""
    folder = options.output / "runs" / f"{method}-vitrail"
    shutil.rmtree(folder, ignore_errors=True)
    folder.parent.mkdir(parents=True, exist_ok=True)
    command = [options.program, "--threads", options.threads, "--quiet", "pretrain", images, "-o", folder]
    command += ["--method", method, "--epochs", epochs, "--keep", "last"]
    command += ["-m", options.model, "--image-size", options.image_size] if options.model else ["--preset", "scratch"]
    command += ["--teacher", options.teacher] if method == "distill" else []
    for name, value in {"data.holdout": HELD_OUT, **settings}.items():
        command += ["--set", f"{name}={value}"]
    _, peak = run(command, folder.with_suffix(".log"))
    return folder, peak


def train_torch(options, run_folder, prepared=0):
    """(the model's folder, the line of JSON, peak memory in MB)"""
    folder = run_folder.with_name(run_folder.name.replace("-vitrail", "-torch"))
    command = [options.interpreter, HERE / "pretraining_torch.py", run_folder, folder]
    command += ["--threads", options.threads, "--workers", options.workers, "--prepared", prepared]
    output, peak = run(command, folder.with_suffix(".log"))
    return folder, json.loads(output.splitlines()[-1]), peak


def once(options, key, measure):
    """The line of OUTPUT/MODE.jsonl with the fields of `key`; if there is none, measure() makes it."""
    log = options.output / f"{options.mode}.jsonl"
    lines = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
    found = [line for line in lines if all(line.get(name) == value for name, value in key.items())]
    if found:
        return found[0]
    line = key | measure()
    with log.open("a") as file:
        file.write(json.dumps(line) + "\n")
    return line


def cells_of(options):
    return [(method, precision) for method in options.methods for precision in options.precisions]


# --- Steps -----------------------------------------------------------------------------------------------------------


def metrics_of(folder, batch):
    """The losses of a run of two epochs, and the mean time of a step of the second."""
    with (folder / "metrics.csv").open() as file:
        rows = [row for row in csv.DictReader(file) if row["event"] == "train"]
    times = [1e3 * batch / float(row["images_per_second"]) for row in rows if float(row["epoch"]) > 1]
    return {"losses": [float(row["loss"]) for row in rows], "step_ms": statistics.mean(times)}


def check_losses(method, ours, torch):
    if not abs(ours[0] - torch[0]) <= MAX_LOSS_DIFFERENCE * abs(ours[0]):
        raise SystemExit(f"{method}: the first loss is {ours[0]:.4f} in vitrail and {torch[0]:.4f} in PyTorch")


def measure_round(options, method, precision):
    """{program: result} of one round."""
    batch = BATCHES[method]
    settings = {
        "precision": precision,
        "batch_size": batch,
        "log_every": 1,
        "optimizer.lr": 1e-5,  # vitrail ends a run whose features collapse, as those of a few large steps can
    }
    settings |= {"pretrain.views": 1} if method == "distill" else {}
    images = make_images(options, options.steps * batch + HELD_OUT)
    folder, peak = train_vitrail(options, method, images, 2, settings)
    ours = metrics_of(folder, batch) | {"peak_mb": peak}
    _, torch, peak = train_torch(options, folder, prepared=options.steps)
    check_losses(method, ours["losses"], torch["losses"])
    return {"vitrail": ours, "torch": torch | {"peak_mb": peak}}


def steps_row(method, precision, rounds):
    def of(program, field, choose):
        return choose([result[program][field] for result in rounds])

    best = {name: of(name, "step_ms", min) for name in ("vitrail", "torch")}
    median = {name: of(name, "step_ms", statistics.median) for name in ("vitrail", "torch")}
    peak = {name: of(name, "peak_mb", max) for name in ("vitrail", "torch")}
    ready = of("torch", "compute_ms", min)
    return {
        "method": method,
        "batch": BATCHES[method],
        "precision": precision,
        "vitrail": round(best["vitrail"]),
        "torch": round(best["torch"]),
        "speedup": round(best["torch"] / best["vitrail"], 2),
        "speedup_median": round(median["torch"] / median["vitrail"], 2),
        "torch_ready": round(ready),
        "speedup_ready": round(ready / best["vitrail"], 2),
        "peak_mb": round(peak["vitrail"]),
        "torch_peak_mb": round(peak["torch"]),
        "memory_ratio": round(peak["vitrail"] / peak["torch"], 2),
    }


def steps(options):
    rows = []
    for method, precision in cells_of(options):
        key = {"method": method, "precision": precision, **{name: getattr(options, name) for name in STEPS_OPTIONS}}
        measure = functools.partial(measure_round, options, method, precision)
        rounds = [once(options, key | {"round": i}, measure) for i in range(options.rounds)]
        rows.append(steps_row(method, precision, rounds))
        for program in ("vitrail", "torch"):
            result = rounds[-1][program]
            text = f"loss {result['losses'][0]:.4f} -> {result['losses'][-1]:.4f}, {result['step_ms']:.0f} ms"
            print(f"pretraining: {method} {precision}, {program}: {text}", file=sys.stderr, flush=True)
    return rows


# --- k-NN ------------------------------------------------------------------------------------------------------------


def knn_accuracy(options, model, images):
    command = [options.program, "--threads", options.threads, "--quiet", "knn", "-m", model, images, images]
    output, _ = run(command, model.parent / "knn.log")
    return 100 * json.loads(output)["top1"]


def measure_seed(options, method, precision, seed):
    """The accuracies of both programs."""
    images = make_images(options, options.images)
    settings = {"precision": precision, "seed": seed}
    folder, _ = train_vitrail(options, method, images, options.epochs, settings)
    torch_folder, result, _ = train_torch(options, folder)
    return {
        "vitrail": knn_accuracy(options, folder / "last", images.parent),
        "torch": knn_accuracy(options, torch_folder, images.parent),
        "torch_loss": result["losses"][-1],
    }


def range_text(values):
    return f"{statistics.mean(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def knn(options):
    rows = []
    for method, precision in cells_of(options):
        key = {"method": method, "precision": precision, **{name: getattr(options, name) for name in KNN_OPTIONS}}
        lines = []
        for seed in range(options.seeds):
            measure = functools.partial(measure_seed, options, method, precision, seed)
            lines.append(once(options, key | {"seed": seed}, measure))
            accuracies = f"{lines[-1]['vitrail']:.2f} %, PyTorch {lines[-1]['torch']:.2f} %"
            print(f"pretraining: {method} {precision}, seed {seed}: {accuracies}", file=sys.stderr, flush=True)
        ours, torch = ([line[program] for line in lines] for program in ("vitrail", "torch"))
        row = {"method": method, "epochs": options.epochs, "images": options.images, "precision": precision}
        row |= {"vitrail": range_text(ours), "torch": range_text(torch)}
        rows.append(row | {"difference": round(statistics.mean(ours) - statistics.mean(torch), 2)})
    return rows


# --- Results ---------------------------------------------------------------------------------------------------------


def command_of(options):
    command = ["benchmarks/pretraining.py", options.mode, "--cifar10", "cifar10.zip"]
    command += ["--teacher", "FOLDER"] if "distill" in options.methods else []
    command += ["--model", "FOLDER", "--image-size", options.image_size] if options.model else []
    for name in ["rounds", "steps"] if options.mode == "steps" else ["epochs", "images", "seeds"]:
        command += [f"--{name}", getattr(options, name)]
    command += ["--threads", options.threads, "--workers", options.workers]
    command += ["--methods", *options.methods, "--precisions", *options.precisions]
    return shlex.join(map(str, command))


def write_record(options, rows):
    name, processor = options.record
    packages = ("torch", "timm", "torchvision")
    versions = {package: peer_records.package_version(options.interpreter, package) for package in packages}
    record = {
        "kind": "table",
        "processor": processor,
        "cores": len(os.sched_getaffinity(0)),
        "versions": {"vitrail": peer_records.vitrail_version(options.program)} | versions,
        "command": command_of(options),
        "unit": UNITS[options.mode],
        "columns": COLUMNS[options.mode],
        "rows": rows,
    }
    peer_records.save(record, HERE / "results" / f"pretraining-{options.mode}-{name}.json")


def parse_options():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("mode", choices=["steps", "knn"])
    parser.add_argument("--cifar10", type=pathlib.Path, required=True)
    parser.add_argument("--teacher", default="")
    parser.add_argument("--model", default="")
    parser.add_argument("--image-size", type=int, default=32)
    parser.add_argument("--methods", nargs="+", choices=list(BATCHES))
    parser.add_argument("--precisions", nargs="+", choices=["fp32", "bf16"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--steps", type=int, default=8)
    parser.add_argument("--epochs", type=int, default=20)
    parser.add_argument("--images", type=int, default=10000, help="training images; 100 of them are held out")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--workers", type=int, default=1, help="processes that augment for PyTorch")
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("build/pretraining"))
    parser.add_argument("--program", default="build/release/vitrail")
    parser.add_argument("--python", type=pathlib.Path, help="an interpreter that has requirements.txt")
    parser.add_argument("--record", nargs=2, metavar=("NAME", "PROCESSOR"))
    options = parser.parse_args()
    options.methods = options.methods or (list(BATCHES) if options.mode == "steps" else JUDGED_BY_KNN)
    options.precisions = options.precisions or (["fp32", "bf16"] if options.mode == "steps" else ["fp32"])
    if "distill" in options.methods and not options.teacher:
        parser.error("--teacher: expected the folder of a model for the method distill")
    return options


def main():
    options = parse_options()
    options.output.mkdir(parents=True, exist_ok=True)
    options.interpreter = Interpreters(options.output, options.python).of("train")
    rows = steps(options) if options.mode == "steps" else knn(options)
    columns = COLUMNS[options.mode]
    print_table(list(columns), [[template.format_map(row) for template in columns.values()] for row in rows])
    if options.record:
        write_record(options, rows)


if __name__ == "__main__":
    main()
