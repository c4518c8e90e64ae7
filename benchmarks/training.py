#!/usr/bin/env python3
"""vitrail beside PyTorch: whole training steps (forward, backward, AdamW), alternating, each run a process of its own.

usage: benchmarks/training.py [--rounds 3] [--seconds 4] [--precisions fp32] [--program build/release/vitrail] [--cells …]
Needs torch and timm (tools/golden/requirements.txt).  Prints milliseconds (best and median over all rounds), the ratios, the
peak memory of both, and vitrail's with checkpointed blocks.  PyTorch's step is AdamW(fused=True) under autocast for bf16.
"""
import argparse
import json
import statistics
import subprocess
import sys

CELLS = {  # vitrail's name: batch, arguments of timm's VisionTransformer
    "cifar_vit_d192": (64, dict(img_size=32, patch_size=4, embed_dim=192, depth=9, num_heads=12, mlp_ratio=2, num_classes=10)),
    "cifar_vit_d384": (64, dict(img_size=32, patch_size=4, embed_dim=384, depth=12, num_heads=8, mlp_ratio=4, qkv_bias=False, num_classes=10)),
    "vit_tiny_patch16_224": (16, dict(embed_dim=192, depth=12, num_heads=3)),
}
PEER = """
import json, resource, sys, time, torch
from timm.models.vision_transformer import VisionTransformer
arguments, batch, seconds, precision = json.loads(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), sys.argv[4]
torch.manual_seed(0)
model = VisionTransformer(**arguments).train()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.05, fused=True)
side = arguments.get("img_size", 224)
images, labels = torch.randn(batch, 3, side, side), torch.randint(0, 10, (batch,))
def step():
    with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
        loss = torch.nn.functional.cross_entropy(model(images).float(), labels)
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    optimizer.step()
for _ in range(2):
    step()
times, end = [], time.perf_counter() + seconds
while time.perf_counter() < end or len(times) < 3:
    start = time.perf_counter(); step(); times.append(1e3 * (time.perf_counter() - start))
print(json.dumps({"min_ms": min(times), "median_ms": sorted(times)[len(times) // 2],
                  "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}))
"""


def measure(command):
    return json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[-1])


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=4)
    parser.add_argument("--precisions", default="fp32")
    parser.add_argument("--program", default="build/release/vitrail")
    parser.add_argument("--cells", default=",".join(CELLS))
    options = parser.parse_args()
    print(f"{'model':22s} {'batch':>5s} {'':5s} | {'vitrail best':>12s} {'median':>8s} {'MB':>6s} | {'PyTorch best':>12s} {'median':>8s} {'MB':>6s} | "
          f"best, median: PyTorch / vitrail | checkpointed: time, MB")
    for cell in options.cells.split(","):
        batch, arguments = CELLS[cell]
        for precision in options.precisions.split(","):
            ours, theirs, lean = [], [], []
            bench = [options.program, "bench", cell, "--train", "--batch", str(batch), "--precision", precision, "--seconds", str(options.seconds)]
            for _ in range(options.rounds):
                ours.append(measure(bench))
                theirs.append(measure([sys.executable, "-c", PEER, json.dumps(arguments), str(batch), str(options.seconds), precision]))
                lean.append(measure([*bench, "--checkpointing"]))
            best = lambda runs: min(run["min_ms"] for run in runs)
            median = lambda runs: statistics.median(run["median_ms"] for run in runs)
            memory = lambda runs: max(run["peak_rss_mb"] for run in runs)
            print(f"{cell:22s} {batch:5d} {precision:5s} | {best(ours):12.1f} {median(ours):8.1f} {memory(ours):6.0f} | "
                  f"{best(theirs):12.1f} {median(theirs):8.1f} {memory(theirs):6.0f} | "
                  f"{best(theirs) / best(ours):.2f}, {median(theirs) / median(ours):.2f} | "
                  f"{best(lean) / best(ours):.2f}x, {memory(lean):.0f} MB", flush=True)


if __name__ == "__main__":
    main()
