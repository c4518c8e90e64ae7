# SPDX-License-Identifier: Apache-2.0
"""Time of `vitrail classify` on a folder of JPEG photographs, and of its parts.

    python benchmarks/images.py MODEL [--count 1000] [--rounds 3]      # needs pillow and the shared assets

The parts are decoding with resizing, and inference, each alone on all cores.  Decoding and resizing by Pillow on one
core is timed too.  The folder has --count links to the shared photographs.  Rounds alternate between the programs; the
results are the best of all rounds, in seconds and MB.
"""

import argparse
import json
import os
import pathlib
import subprocess
import tempfile
import time

from PIL import Image

ROOT = pathlib.Path(__file__).resolve().parents[1]
BUILD = ROOT / "build" / "release"
ASSETS = pathlib.Path(os.environ.get("VITRAIL_ASSETS", ROOT.parent / "shared" / "assets"))


def fill(folder, count):
    photos = sorted((ASSETS / "images" / "photos").glob("*.jpg"))
    for i in range(count):
        (folder / f"{i:05d}.jpg").symlink_to(photos[i % len(photos)].resolve())
    return folder


def classify(model, folder):
    """(seconds, peak resident memory in MB) of the process, from its start to its end."""
    begin = time.perf_counter()
    child = subprocess.Popen(
        [BUILD / "vitrail", "classify", "-m", model, folder, "--format", "csv", "--quiet"], stdout=subprocess.DEVNULL
    )
    _, status, usage = os.wait4(child.pid, 0)
    if status != 0:
        raise SystemExit(f"vitrail classify ended with status {status}")
    return time.perf_counter() - begin, usage.ru_maxrss / 1024


def decoding(folder, count):
    """{threads: seconds} of decoding and resizing, from image_benchmark.cpp."""
    text = subprocess.run(
        [
            BUILD / "benchmarks" / "benchmarks",
            "--benchmark_filter=photographs",
            "--benchmark_format=json",
            "--benchmark_min_time=0.01",
        ],
        check=True,
        capture_output=True,
        text=True,
        env=os.environ | {"VITRAIL_IMAGES": str(folder)},
    ).stdout
    return {int(run["name"].split("/")[1]): count / run["items_per_second"] for run in json.loads(text)["benchmarks"]}


def inference(model, count):
    text = subprocess.run(
        [BUILD / "vitrail", "bench", model, "--batch", "8", "--seconds", "5"],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    return count / 8 * json.loads(text)["min_ms"] / 1e3


def pillow(folder):
    """Evaluation transform of timm: shorter side to 248 (bicubic), then a centre crop of 224 × 224."""
    begin = time.perf_counter()
    for path in sorted(folder.iterdir()):
        image = Image.open(path).convert("RGB")
        scale = 248 / min(image.size)
        image = image.resize([max(248, int(scale * side)) for side in image.size], Image.Resampling.BICUBIC)
        left, top = ((side - 224) // 2 for side in image.size)
        image.crop((left, top, left + 224, top + 224)).tobytes()
    return time.perf_counter() - begin


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    best = {}

    def keep_best(name, value):
        best[name] = min(best.get(name, value), value)

    with tempfile.TemporaryDirectory() as scratch:
        few, many = pathlib.Path(scratch) / "few", pathlib.Path(scratch) / "many"
        for folder, count in ((few, options.count // 10), (many, options.count)):
            folder.mkdir()
            fill(folder, count)
        for _ in range(options.rounds):
            seconds, megabytes = classify(options.model, many)
            keep_best("classify", seconds)
            keep_best("classify_mb", megabytes)
            keep_best("classify_few_mb", classify(options.model, few)[1])
            decoding_seconds = decoding(many, options.count)
            for threads, seconds in decoding_seconds.items():
                keep_best(f"decoding_{threads}_threads", seconds)
            keep_best("inference", inference(options.model, options.count))
            keep_best("pillow_1_thread", pillow(many))
    parts = best[f"decoding_{max(decoding_seconds)}_threads"] + best["inference"]
    best["classify_over_parts"] = best["classify"] / parts
    print(json.dumps({name: round(value, 3) for name, value in best.items()}, indent=2))


if __name__ == "__main__":
    main()
