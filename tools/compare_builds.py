#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares what two builds of the program print, write and serve, byte for byte, after a change that must not show.

    tools/compare_builds.py BASE_PROGRAM NEW_PROGRAM [--quick] [--only REGEX] [--list] [--jobs N]

Each case runs with both programs in a folder of the same name.  Compared are exit status, standard output, standard
error and all files that appear; times, rates, ports and the commit are replaced first.  VITRAIL_CPU selects
another instruction set.  Status 1 if a case differs.  --quick leaves out most fixtures and long cases.
"""

import argparse
import base64
import concurrent.futures
import hashlib
import io
import json
import os
import pathlib
import re
import shlex
import shutil
import signal
import struct
import subprocess
import sys
import tarfile
import tempfile
import urllib.error
import urllib.request
import zipfile
import zlib

ROOT = pathlib.Path(__file__).resolve().parents[1]
FIXTURES = ROOT / "tests" / "fixtures"
WEIGHTS = ("*.pth", "*.npz", "*model.safetensors")
PRECISIONS = ("fp32", "half", "int8")
TIMEOUT = 1800  # seconds for a program
CLASSES = ("cat", "dog", "ship")

# Commands of every kind: a name and command lines, separated by " ; ".  A name that ends in * is no part of --quick.
COMMANDS = """
classify      classify inputs/photos --top 3 --format json --logits l.npy ; classify inputs/photos --format csv
classify-text classify inputs/photos/0.png inputs/none.png ; classify inputs/photos --labels inputs/labels.txt
preprocess    classify inputs/photos/0.png --mean 0.4,0.5,0.6 --std 0.2 --interpolation lanczos --crop-pct 0.8
preprocess-2  classify inputs/photos/1.png --image-size 64 --crop-mode border --format json --tome 2
zeroshot      zeroshot inputs/photos -m models/hf_clip --labels cat,dog --format json ; zeroshot inputs/photos \
 -m models/hf_siglip --labels cat,dog --template 'a {}' --template 'the {}' --format json
embed         embed inputs/photos -o a.npy --layer -1,-2 --tokens cls ; embed inputs/photos -o b.npz --normalize \
 ; embed inputs/photos -o c.csv --no-norm ; embed inputs/photos -o d.npy --tokens patch --dtype fp16
embed-text    embed -m models/hf_clip --text 'a cat' -o a.npy ; embed inputs/photos -m models/hf_clip -o b.npy
shards        embed inputs/set.tar -o out ; embed inputs/set.tar -o out
attention     attention inputs/photos/0.png -o a.png --raw a.npy --layer all --head all \
 ; attention inputs/photos/1.png -o b.png --rollout ; attention inputs/photos/1.png -o c.png --query 20,10 --layer 1
pca           pca inputs/photos -o out --raw --foreground first ; pca inputs/photos -o out2 --invert --foreground 0.4
eval          eval inputs/set --format json --predictions p.csv --logits l.npy --report r.html ; eval inputs/set
eval-files    eval inputs/set.zip --format json ; eval inputs/set.tar --format json --split val \
 ; eval inputs/set.csv --format json ; eval inputs/several.csv --format json
eval-digits*  eval examples/digits.zip -m bundled/cifar10-vit --split test
eval-zeroshot eval inputs/set --zeroshot -m models/hf_clip --format json
eval-segment  eval -m sam/windows/model.pth inputs/segment --split val --format json
knn           knn inputs/set inputs/set --k 3 ; knn inputs/set.zip inputs/set.zip --plain
search        embed inputs/photos -o e.npy ; index e.npy -o index ; search index inputs/photos/0.png --format json \
 ; index e.npy -o index8 --dtype int8 --format json ; search index8 inputs/photos/1.png
duplicates    duplicates inputs/photos inputs/set --format json --threshold 0.9 ; duplicates inputs/photos
inspect       inspect bundled/cifar10-vit ; inspect models/timm_token --tree --keys ; inspect vit_tiny_patch16_224
inspect-trace inspect models/timm_token --trace inputs/photos/0.png --slice 'blocks.0.attn.q[0, :, :3, 1]'
inspect-layer inspect layer:multihead_attention --set mask=causal ; inspect layer: ; inspect layer:block
inspect-sam   inspect bundled/segment-tiny ; inspect sam/padded_windows/model.pth --trace random --slice \
 'prompt_encoder.sparse_embeddings[0, 1, :3]'
profile*      bench models/timm_token --profile --format json
bench*        bench models/timm_token --seconds 0.1 --format json ; bench models/timm_token --train --seconds 0.1
bench-sam*    bench sam/windows/model.pth --seconds 0.1 --format json
int8          convert bundled/cifar10-vit -o a --dtype int8 ; classify inputs/photos -m a --format json --logits l.npy
calibrate*    convert models/timm_token -o a --dtype int8 --calibrate inputs/photos inputs/set \
 ; classify inputs/photos -m a --format json --logits l.npy
onnx          convert models/hf_clip -o a.onnx ; convert sam/windows/model.pth -o b.onnx --single-mask \
 ; convert bundled/cifar10-vit -o c.onnx --input uint8 --dynamic-batch --opset 18
onnx-int8*    convert bundled/cifar10-vit -o a.onnx --dtype int8 --activations uint8 --calibrate inputs/photos
models        models ; info ; --version ; --license ; completion bash ; completion man
cache         cache ls ; cache verify ; cache prune --dry-run ; pull none/none
segment       segment inputs/photos/0.png --point 20,20 --format json ; segment inputs/photos/0.png --box 4,4,40,30 -o o
segment-write segment inputs/photos/1.png -m sam/windows/model.pth --point 9,9 --point 20,20,0 --single -o o \
 --write overlay,masks,csv,coco,polygons --logits l.npy --embedding e.npy --format json
segment-file  segment --prompts inputs/prompts.jsonl -m sam/windows/model.pth --format json --cache cache
segment-all*  segment inputs/photos/1.png --everything --format json -o o --write masks,coco,sa1b,csv
everything    segment inputs/photos/1.png -m sam/windows/model.pth --everything --points-per-side 4 --format json
train-refused train recipes/digits.json -o a --set epochs=x --set optimizer.name=none ; train recipes/none.json -o a
digits*       train recipes/digits.json -o run DIGITS
digits-short  train recipes/digits.json -o run DIGITS --set data.holdout=1300 --set epochs=1
resume*       train recipes/digits.json -o run DIGITS ; @shorten run/checkpoints/last.safetensors \
 ; train recipes/digits.json -o run DIGITS --resume
finetune*     train inputs/set -o run --epochs 2 --threads 1 ; eval inputs/set -m run --format json
several*      train inputs/several.csv -o run --preset scratch --epochs 1 --threads 1
probe         train inputs/set -o run --preset probe --threads 1 ; classify inputs/photos -m run --format json
folds*        train inputs/one.csv -o run --folds 2 --epochs 1 --set batch_size=8 --threads 1
distil*       train recipes/digits.json -o teacher DIGITS --set epochs=1 ; \
 train recipes/digits.json -o run DIGITS --set epochs=1 \
 --set 'loss.distillation={"teacher":"teacher/model","kind":"soft"}'
segment-30*   train recipes/segment-tiny.json -o run SEGMENT --set model.init=bundled/segment-tiny
segment-run   train recipes/segment-tiny.json -o run SEGMENT --set model.init=sam/windows/model.pth \
 --set segment.image_size=0 --set segment.prompts=2 --set segment.rounds=1 --set 'ema=null' --set precision=fp32
segment-resume train recipes/segment-tiny.json -o run SEGMENT --set model.init=sam/windows/model.pth --set epochs=2 \
 --set segment.image_size=0 ; @shorten run/checkpoints/last.safetensors ; train recipes/segment-tiny.json -o run \
 SEGMENT --set model.init=sam/windows/model.pth --set epochs=2 --set segment.image_size=0 --resume
"""
# Two epochs of 15 steps; 30 steps.
DIGITS = "--threads 1 --set schedule=cosine --set epochs=2 --set data.holdout=477 --set validate_every=1"
SEGMENT = "--threads 1 --set epochs=1 --set batch_size=1 --set data.train=inputs/segment --set data.val=inputs/segment"

# Requests of `serve`: name, path, body (a file of inputs/, JSON, or empty), content type.
SERVED = {"small": "models/timm_token", "clip": "models/hf_clip", "sam": "sam/windows/model.pth"}
JSON = "application/json"
REQUESTS = [
    ("classify", "/v1/classify?top=3", "photos/0.png", "image/png"),
    ("classify-json", "/v1/classify", {"images": ["@photos/0.png", "@photos/1.png"], "top": 2}, JSON),
    ("classify-refused", "/v1/classify?top=x", "photos/0.png", "image/png"),
    ("classify-option", "/v1/classify?none=1", "photos/0.png", "image/png"),
    ("classify-image", "/v1/classify", "labels.txt", "image/png"),
    ("classify-sam", "/v1/classify?model=sam", "photos/0.png", "image/png"),
    ("no-model", "/v1/classify?model=none", "photos/0.png", "image/png"),
    ("no-route", "/v1/none", "", ""),
    ("zeroshot", "/v1/zeroshot?model=clip&labels=cat,dog&template=a%20{}", "photos/0.png", "image/png"),
    ("zeroshot-small", "/v1/zeroshot?labels=cat", "photos/0.png", "image/png"),
    ("embed", "/v1/embed?tokens=all&layer=-1&normalize=true", "photos/0.png", "image/png"),
    ("embed-patch", "/v1/embed?tokens=patch&no-norm=true&model=clip", "photos/0.png", "image/png"),
    ("attention", "/v1/attention?head=0&layer=1", "photos/0.png", "image/png"),
    ("attention-png", "/v1/attention?rollout=true&format=png", "photos/0.png", "image/png"),
    ("pca", "/v1/pca?foreground=first&raw=true", "photos/0.png", "image/png"),
    ("pca-png", "/v1/pca?format=png&invert=true&foreground=0.5", "photos/1.png", "image/png"),
    ("segment", "/v1/segment?model=sam&point=9,9&single=true", "photos/0.png", "image/png"),
    ("segment-box", "/v1/segment", {"model": "sam", "image": "@photos/0.png", "box": [2, 3, 30, 20]}, JSON),
    ("segment-png", "/v1/segment?model=sam&point=9,9&format=png", "photos/0.png", "image/png"),
    ("everything", "/v1/segment?model=sam&everything=true&points-per-side=3", "photos/1.png", "image/png"),
    ("segment-small", "/v1/segment?point=9,9", "photos/0.png", "image/png"),
    ("embeddings", "/v1/embeddings", {"model": "clip", "input": ["a cat", "@photos/0.png"]}, JSON),
    ("embeddings-64", "/v1/embeddings", {"model": "clip", "input": "a cat", "encoding_format": "base64"}, JSON),
    ("infer", "/v2/models/small/infer",
     {"id": "7", "inputs": [{"name": "images", "datatype": "BYTES", "shape": [1], "data": ["@photos/0.png"]}]}, JSON),
    ("infer-sam", "/v2/models/sam/infer",
     {"inputs": [{"name": "images", "datatype": "BYTES", "shape": [1], "data": ["@photos/0.png"]}]}, JSON),
    ("index", "/v2/repository/index", {}, JSON),
    ("unload", "/v2/repository/models/small/unload", {}, JSON),
    *((path, path, "", "") for path in (
        "/", "/page/none", "/openapi.json", "/livez", "/healthz", "/metrics", "/v1/models", "/v2", "/v2/health/live",
        "/v2/health/ready", "/v2/models/small", "/v2/models/clip", "/v2/models/sam", "/v2/models/small/ready",
        "/v2/models/stats", "/v2/models/sam/stats")),
]  # fmt: skip

# What may differ between two runs of one program, and its replacement.
CHANGING = [(re.compile(pattern), text) for pattern, text in [
    (rb'"(\w*seconds\w*|\w*_ms|\w*per_s\w*|\w*_mb|ns|last_inference|data_wait|share)": ?"?[-+.\w]+"?', rb'"\1":_'),
    (rb"\b\d[\d.,]* ?(ms|s|min|h|images/s|MiB/s|GFLOP/s|MiB)\b", rb"_ \1"),
    (rb'(?s)<svg[^>]* against time">.*?</svg>', b"<svg>"),
    (rb"\b\d+(:\d\d)+\b", b"_"),
    (rb"127\.0\.0\.1:\d+", b"ADDRESS"),
    (rb"(?m)^(vitrail_\w+(\{[^}]*\})?) [-+.\w]+$", rb"\1 _"),
    (rb"(commit +)[0-9a-f]{7,40}", rb"\1_"),
]]  # fmt: skip
CHANGING_COLUMNS = {"images_per_second", "data_wait", "seconds"}
CHANGING_METADATA = {"checksum", "counters", "fingerprint"}  # Times and the program in checkpoints.
IGNORED = re.compile(r"(^|/)(tensorboard|\.lock)(/|$)")


def png(width, height, pixel, channels=3):
    """The bytes of a PNG file whose pixels are pixel(x, y)."""
    rows = b"".join(b"\0" + b"".join(bytes(pixel(x, y)) for x in range(width)) for y in range(height))

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2 if channels == 3 else 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def pattern(seed, width=32, height=24):
    """An image of stripes and noise that depends on the seed."""
    return png(width, height, lambda x, y: [(x * (3 + seed) + y * k * 5 + seed * 37 + (x * y * 7919) % 13) % 256
                                            for k in (1, 2, 3)])  # fmt: skip


def make_inputs(folder):
    """Images, a labelled set in four forms, one of several labels, one with masks, and prompts."""
    files = {f"photos/{i}.png": pattern(i, 48 + 8 * i, 40) for i in range(2)}
    rows, several = ["file,label,split"], ["file,labels"]
    for split, count in (("train", 8), ("val", 4), ("test", 5)):
        for index, name in enumerate(CLASSES):
            for i in range(count):
                path = f"{split}/{name}/{i}.png"
                files["set/" + path] = pattern(17 * index + i + len(split))
                rows.append(f"set/{path},{name},{split}")
                several.append(f"set/{path},{name if i % 2 else '|'.join(CLASSES[: index + 1])}")
    for split, count in (("train", 30), ("val", 2)):
        for i in range(count):
            square = range(4 + i // 2, 24 + i // 2)
            files[f"segment/{split}/{i}.png"] = pattern(i, 48, 48)
            mask = png(48, 48, lambda x, y, square=square: [int(x in square and y in square)], channels=1)
            files[f"segment/{split}/{i}/0.png"] = mask
    files["set.csv"] = "\n".join(rows).encode()
    files["one.csv"] = "\n".join(row.rsplit(",", 1)[0] for row in rows).encode()
    files["several.csv"] = "\n".join(several).encode()
    files["labels.txt"] = "\n".join(f"class {i}" for i in range(10)).encode()
    prompts = [
        {"image": "photos/0.png", "points": [[20, 10, 1], [3, 4, 0]]},
        {"image": "photos/1.png", "box": [2, 2, 40, 30]},
        {"image": "photos/0.png", "points": [[5, 6]], "multimask": False},
    ]
    files["prompts.jsonl"] = "\n".join(map(json.dumps, prompts)).encode()
    for name, data in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    with tarfile.open(folder / "set.tar", "w") as tar, zipfile.ZipFile(folder / "set.zip", "w") as archive:
        for name, data in files.items():
            if name.startswith("set/"):
                info = tarfile.TarInfo(name)
                info.size = len(data)
                tar.addfile(info, io.BytesIO(data))
                archive.writestr(zipfile.ZipInfo(name), data)


def weights_of(folder):
    return sorted(path for path in folder.iterdir() for pattern in WEIGHTS if path.match(pattern))


def fixture_cases(quick):
    """Features, logits, converted folders and ONNX files of the fixtures, in every precision."""
    cases = {}
    for index, folder in enumerate(sorted((FIXTURES / "models").iterdir())):
        if quick and index % 8:
            continue
        for path in weights_of(folder):
            model = f"models/{folder.name}/{path.name}"
            image = f"inputs/photos/0.png -m {model} --preset imagenet"
            for precision in PRECISIONS:
                cases[f"{folder.name} {precision}"] = (
                    f"embed {image} -o pooled.npy --precision {precision} ; embed {image} -o all.npy --tokens all"
                    f" --precision {precision} ; classify {image} --format json --logits l.npy --precision {precision}"
                )
            dtypes = " ; ".join(f"convert {model} -o {dtype} --dtype {dtype}" for dtype in ("fp32", "fp16", "int8"))
            cases[f"{folder.name} convert"] = f"{dtypes} ; convert {model} -o m.onnx ; inspect {model}"
    for index, folder in enumerate(sorted(path for path in (FIXTURES / "sam").iterdir() if path.is_dir())):
        if quick and index % 4:
            continue
        for path in weights_of(folder):
            model = f"sam/{folder.name}/{path.name}"
            cases[f"sam/{folder.name}"] = " ; ".join(
                f"segment inputs/photos/1.png -m {model} --point 9,9 --format json --precision {precision}"
                f" --logits {precision}.npy --embedding {precision}-embedding.npy"
                for precision in PRECISIONS
            )
            cases[f"sam/{folder.name} convert"] = f"convert {model} -o m ; convert {model} -o m.onnx ; inspect {model}"
    return cases


def command_cases(quick):
    cases = {}
    for line in COMMANDS.replace("\\\n", "").strip().splitlines():
        name, commands = line.split(maxsplit=1)
        if not quick or not name.endswith("*"):
            cases[name.rstrip("*")] = commands.replace("DIGITS", DIGITS).replace("SEGMENT", SEGMENT)
    return cases


def run_commands(program, commands, folder, environment):
    """What the commands print, by their number."""
    results = {}
    for number, command in enumerate(commands.split(" ; ")):
        arguments = shlex.split(command)
        if arguments[0] == "@shorten":  # a damaged file: the program reads the one before it
            path = folder / arguments[1]
            if path.is_file():
                path.write_bytes(path.read_bytes()[:-100])
            continue
        ended = subprocess.run([program, *arguments], cwd=folder, env=environment, stdin=subprocess.DEVNULL,
                               capture_output=True, timeout=TIMEOUT)  # fmt: skip
        results[f"{number} status"] = str(ended.returncode).encode()
        results[f"{number} stdout"], results[f"{number} stderr"] = ended.stdout, ended.stderr
    return results


def body_of(body, inputs):
    """The bytes of a request; "@FILE" in JSON becomes a data URI."""
    if isinstance(body, str):
        return (inputs / body).read_bytes() if body else None

    def uri(match):
        return '"data:image/png;base64,' + base64.b64encode((inputs / match[1]).read_bytes()).decode() + '"'

    return re.sub(r'"@([^"]+)"', uri, json.dumps(body)).encode()


def run_server(program, folder, environment):
    """The responses to REQUESTS."""
    models = [argument for name, path in SERVED.items() for argument in ("-m", f"{name}={path}")]
    command = [program, "serve", "--port", "0", "--model-control", *models]
    results = {}
    with subprocess.Popen(command, cwd=folder, env=environment, stderr=subprocess.PIPE) as server:
        line = next((line for line in server.stderr if b"serving on" in line), b"")
        url = line.split()[-1].decode() if line else ""
        for name, path, body, content_type in REQUESTS if url else []:
            request = urllib.request.Request(url + path, body_of(body, folder / "inputs"))
            if content_type:
                request.add_header("Content-Type", content_type)
            try:
                response = urllib.request.urlopen(request, timeout=60)
            except urllib.error.HTTPError as error:
                response = error
            kind = response.headers.get("Content-Type", "")
            results[name] = f"{response.status} {kind}\n".encode() + response.read()
        server.send_signal(signal.SIGTERM)
        results["end"] = line + server.stderr.read()
        results["status"] = str(server.wait(120)).encode()
    return results


def without_columns(data):
    """A CSV without the columns of times and rates."""
    rows = [line.split(b",") for line in data.splitlines()]
    kept = [i for i, name in enumerate(rows[0]) if name.decode() not in CHANGING_COLUMNS]
    return b"\n".join(b",".join(row[i] for i in kept if i < len(row)) for row in rows)


def without_times(data):
    for pattern, text in CHANGING:
        data = pattern.sub(text, data)
    return data


def normalised(name, data, program):
    """Results without what changes from run to run; long ones by their digest, but safetensors by header and data."""
    if name.endswith("metrics.csv"):
        data = without_columns(data)
    if name.endswith(".safetensors") and len(data) > 8:
        end = 8 + int.from_bytes(data[:8], "little")
        header = json.loads(data[8:end])
        header["__metadata__"] = {k: v for k, v in header.get("__metadata__", {}).items() if k not in CHANGING_METADATA}
        return without_times(json.dumps(header).encode()) + hashlib.sha256(data[end:]).digest()
    if data.isascii() or name.endswith((".html", ".json", "stdout", "stderr")):
        return without_times(data.replace(str(pathlib.Path(program).resolve().parents[2]).encode(), b"ROOT"))
    return data if len(data) < 100_000 else hashlib.sha256(data).digest()


def results_of(program, commands, folder, environment, inputs):
    """Everything that a case prints and writes, normalised."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    links = {"models": FIXTURES / "models", "sam": FIXTURES / "sam", "bundled": ROOT / "models", "inputs": inputs,
             "recipes": ROOT / "recipes", "examples": ROOT / "examples"}  # fmt: skip
    for name, path in links.items():
        (folder / name).symlink_to(path)
    environment = {**environment, "HOME": str(folder), "HF_HUB_CACHE": str(folder / "hub"), "HF_HUB_OFFLINE": "1"}
    results = (
        run_commands(program, commands, folder, environment) if commands else run_server(program, folder, environment)
    )
    for path in sorted(folder.rglob("*")):  # Links are not followed.
        name = str(path.relative_to(folder))
        if path.is_file() and name.split("/")[0] not in links and not IGNORED.search(name):
            results[name] = path.read_bytes()
    shutil.rmtree(folder)
    return {name: normalised(name, data, program) for name, data in results.items()}


def difference(base, new):
    """The first difference of two results, in a line, or an empty string."""
    for name in [*base, *(name for name in new if name not in base)]:
        if name not in new or name not in base:
            return f"{name}: only in {'base' if name in base else 'new'}"
        if base[name] != new[name]:
            pairs = zip(base[name].split(b"\n"), new[name].split(b"\n"), strict=False)
            lines = next(((a, b) for a, b in pairs if a != b), (b"", b"(more lines)"))
            at = next((i for i, (a, b) in enumerate(zip(*lines, strict=False)) if a != b), 0)
            return f"{name}: " + " | ".join(repr(line[max(0, at - 40) : at + 60])[1:] for line in lines)
    return ""


def main():
    parser = argparse.ArgumentParser(description="Compares two builds of the program byte for byte.")
    parser.add_argument("base", metavar="BASE_PROGRAM")
    parser.add_argument("new", metavar="NEW_PROGRAM")
    parser.add_argument("--quick", action="store_true", help="fewer fixtures, no long cases")
    parser.add_argument("--only", default="", metavar="REGEX", help="cases whose name has this")
    parser.add_argument("--list", action="store_true", help="print the cases and end")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="cases at a time")
    options = parser.parse_args()
    programs = [shutil.which(program) for program in (options.base, options.new)]
    if None in programs:
        parser.error("there is no such program")
    programs = [os.path.abspath(program) for program in programs]
    cases = {**command_cases(options.quick), "serve": "", **fixture_cases(options.quick)}
    cases = {name: commands for name, commands in cases.items() if re.search(options.only, name)}
    if options.list:
        print("\n".join(f"{name:24} {commands}" for name, commands in cases.items()))
        return 0
    environment = {key: value for key, value in os.environ.items() if not key.startswith(("VITRAIL_", "HF_"))}
    environment |= {key: os.environ[key] for key in ("VITRAIL_CPU",) if key in os.environ}
    different = 0
    with tempfile.TemporaryDirectory(prefix="vitrail-builds-") as temporary:
        work = pathlib.Path(temporary)
        make_inputs(work / "inputs")

        def compare(name):
            folder = work / re.sub(r"\W", "_", name)
            base, new = (results_of(program, cases[name], folder, environment, work / "inputs") for program in programs)
            return name, len(base), difference(base, new)

        with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
            for name, count, found in pool.map(compare, cases):
                different += bool(found)
                print(f"{'DIFFERS' if found else 'equal':8} {name:32} {found or f'{count} results'}", flush=True)
    print(f"{len(cases)} cases, {different} differ")
    return 1 if different or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
