# SPDX-License-Identifier: Apache-2.0
"""A folder of JPEG photographs through `vitrail classify`, beside what it is made of: decoding and resizing alone, and
inference alone, each on all cores; and decoding and resizing by Pillow on one core.

    python benchmarks/images.py MODEL [--count 1000] [--rounds 3]      # needs pillow, and the shared assets

The photographs are the shared ones, again and again under other names.  Rounds alternate; the best of each is compared.
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
    """Seconds and the peak of memory in MB, start and end of the process included."""
    begin = time.perf_counter()
    child = subprocess.Popen([BUILD / "vitrail", "classify", "-m", model, folder, "--format", "csv", "--quiet"],
                             stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(child.pid, 0)
    if status != 0:
        raise SystemExit(f"vitrail classify ended with {status}")
    return time.perf_counter() - begin, usage.ru_maxrss / 1024


def decoding(folder, count):
    """Seconds by threads: {1: …, 2: …}."""
    text = subprocess.run([BUILD / "benchmarks" / "benchmarks", "--benchmark_filter=photographs",
                           "--benchmark_format=json", "--benchmark_min_time=0.01"], check=True, capture_output=True,
                          text=True, env=os.environ | {"VITRAIL_PICTURES": str(folder)}).stdout
    return {int(run["name"].split("/")[1]): count / run["items_per_second"] for run in json.loads(text)["benchmarks"]}


def inference(model, count):
    text = subprocess.run([BUILD / "vitrail", "bench", model, "--batch", "8", "--seconds", "5"], check=True,
                          capture_output=True, text=True).stdout
    return count / 8 * json.loads(text)["min_ms"] / 1e3


def pillow(folder, count):
    """As timm prepares a picture: the shorter edge to 248, bicubic, then the middle of 224 × 224."""
    begin = time.perf_counter()
    for path in sorted(folder.iterdir()):
        picture = Image.open(path).convert("RGB")
        scale = 248 / min(picture.size)
        picture = picture.resize([max(248, int(scale * side)) for side in picture.size], Image.Resampling.BICUBIC)
        left, top = ((side - 224) // 2 for side in picture.size)
        picture.crop((left, top, left + 224, top + 224)).tobytes()
    return time.perf_counter() - begin


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("model")
    parser.add_argument("--count", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    best = {}

    def keep(name, value):
        best[name] = min(best.get(name, value), value)

    with tempfile.TemporaryDirectory() as place:
        few, many = pathlib.Path(place) / "few", pathlib.Path(place) / "many"
        for folder, count in ((few, options.count // 10), (many, options.count)):
            folder.mkdir()
            fill(folder, count)
        for _ in range(options.rounds):
            seconds, megabytes = classify(options.model, many)
            keep("classify", seconds)
            keep("classify_mb", megabytes)
            keep("classify_few_mb", classify(options.model, few)[1])
            for threads, alone in decoding(many, options.count).items():
                keep(f"decoding_{threads}_threads", alone)
            keep("inference", inference(options.model, options.count))
            keep("pillow_1_thread", pillow(many, options.count))
    parts = best[f"decoding_{max(int(k.split('_')[1]) for k in best if k.startswith('decoding'))}_threads"]
    best["classify_over_parts"] = best["classify"] / (parts + best["inference"])
    print(json.dumps({name: round(value, 3) for name, value in best.items()}, indent=2))


if __name__ == "__main__":
    main()
