#!/usr/bin/env python3
"""vitrail beside PyTorch's eager mode, fp32: the same models, batches and threads, alternating, each run a process.

usage: benchmarks/eager.py [--rounds 3] [--seconds 3] [--program build/release/vitrail] [--models …] [--batches 1,8]
Needs torch and timm (tools/golden/requirements.txt).  Prints milliseconds, best and median over all rounds, and the ratios.
"""
import argparse
import json
import statistics
import subprocess
import sys

PEER = """
import sys, time, json, torch, timm
name, batch, seconds = sys.argv[1], int(sys.argv[2]), float(sys.argv[3])
torch.manual_seed(0)
model = timm.create_model(name, pretrained=False).eval()
x = torch.randn(batch, 3, 224, 224)
times = []
with torch.inference_mode():
    for _ in range(3):
        model(x)
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 5:
        start = time.perf_counter(); model(x); times.append(1e3 * (time.perf_counter() - start))
print(json.dumps({"min_ms": min(times), "median_ms": sorted(times)[len(times) // 2]}))
"""


def measure(command):
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--program", default="build/release/vitrail")
    parser.add_argument("--models", default="vit_tiny_patch16_224,vit_small_patch16_224,vit_base_patch16_224")
    parser.add_argument("--batches", default="1,8")
    options = parser.parse_args()
    print(f"{'model':24s} batch | vitrail best  median | eager best  median | best, median: eager / vitrail")
    for model in options.models.split(","):
        for batch in options.batches.split(","):
            ours, theirs = [], []
            for _ in range(options.rounds):
                ours.append(measure([options.program, "bench", model, "--batch", batch, "--seconds", str(options.seconds)]))
                theirs.append(measure([sys.executable, "-c", PEER, model, batch, str(options.seconds)]))
            best = [min(r["min_ms"] for r in side) for side in (ours, theirs)]
            median = [statistics.median(r["median_ms"] for r in side) for side in (ours, theirs)]
            print(f"{model:24s} {batch:>5s} | {best[0]:12.1f} {median[0]:7.1f} | {best[1]:10.1f} {median[1]:7.1f} | "
                  f"{best[1] / best[0]:.2f}, {median[1] / median[0]:.2f}", flush=True)


if __name__ == "__main__":
    main()
