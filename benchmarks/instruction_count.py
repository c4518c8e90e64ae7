#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counts the instructions that a program executes per image.  The counts do not depend on clocks or other processes.

    benchmarks/instruction_count.py [MODEL]                                  AVX2
    benchmarks/instruction_count.py [MODEL] --isa neon --program PROGRAM     NEON: PROGRAM is a build for 64-bit ARM

`vitrail bench` runs the model on one thread with two batch sizes, under QEMU's user-mode emulation (7.2 or later).  The
difference of the two counts, divided by the difference of the images, is the count per image: start, packing of weights
and compilation are in both.  QEMU counts with the plugin qemu_instructions.c, which needs a C compiler.  The libraries
of another architecture are looked for in the folder that QEMU_LD_PREFIX names.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

BATCHES = (1, 2)
WARM_UP_RUNS = 3  # `vitrail bench` does not report them
PLUGIN = pathlib.Path(__file__).parent / "qemu_instructions.c"
COUNT = re.compile(r"^insns: (\d+)$", re.MULTILINE)


def executed(emulator, options, batch, precision):
    """(instructions, images) of a process."""
    command = [*emulator, options.program, "bench", options.model, "--batch", str(batch), "--precision", precision]
    command += ["--threads", "1", "--seconds", "1e-9"]
    environment = {**os.environ, "VITRAIL_CPU": options.isa}
    result = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    counts = COUNT.findall(result.stderr)
    if result.returncode != 0 or not counts:
        sys.exit(f"instruction_count: {' '.join(command)} counted nothing:\n{result.stderr}{result.stdout}")
    runs = json.loads(result.stdout.splitlines()[0])["runs"] + WARM_UP_RUNS
    return int(counts[-1]), runs * batch


def per_image(emulator, options, precision):
    (fewer, few_images), (more, more_images) = (executed(emulator, options, batch, precision) for batch in BATCHES)
    return (more - fewer) / (more_images - few_images)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", default="cifar10-vit", metavar="MODEL")
    parser.add_argument("--program", default="build/release/vitrail")
    parser.add_argument("--isa", default="avx2", help="a value of VITRAIL_CPU (default: avx2)")
    parser.add_argument("--precision", default="fp32,int8")
    options = parser.parse_args()
    machine = "aarch64" if options.isa.startswith("neon") else "x86_64"
    with tempfile.TemporaryDirectory() as folder:
        plugin = f"{folder}/count.so"
        subprocess.run(["cc", "-shared", "-fPIC", "-O2", "-o", plugin, PLUGIN], check=True)
        emulator = [f"qemu-{machine}", "-cpu", "max", "-plugin", plugin]
        for precision in options.precision.split(","):
            count = per_image(emulator, options, precision)
            print(f"{options.model} {options.isa} {precision}: {count / 1e6:.1f} million instructions", flush=True)


if __name__ == "__main__":
    main()
