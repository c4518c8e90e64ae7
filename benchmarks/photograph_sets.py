#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Photographs to judge precisions by, from Debian's packages: two folders, of which docs/performance.md tells results.

    python benchmarks/photograph_sets.py OUT      # where `apt-get download` works; 450 MB are fetched; needs pillow, numpy

OUT/ordinary has landscapes, cities, rooms, people and desktop backgrounds; OUT/things has animals, plants, food, tools
and vehicles, most of them on white.  Pictures are scaled down so that no side is longer than 800; what is smaller than
100, what is mostly flat (drawings, skies; not of things on white) and what looks like one already taken is left out.
"""
import argparse
import pathlib
import subprocess
import tempfile

import numpy
from PIL import Image

ORDINARY = {
    "endless-sky-data": ["usr/share/games/endless-sky/images/land/*.jpg"],
    "scratch": ["usr/share/scratch/Media/Backgrounds/*/*"],
    "kphotoalbum": ["usr/share/kphotoalbum/demo/*.jpg"],
    "lomiri-wallpapers-16.04": ["usr/share/backgrounds/*"],
    "lomiri-wallpapers-20.04": ["usr/share/backgrounds/*"],
    "gnome-control-center-data": ["usr/share/pixmaps/faces/**/*.jpg"],
    "plasma-workspace-wallpapers": ["usr/share/wallpapers/*/contents/images/*"],
    "labelme-examples": ["usr/share/doc/labelme-examples/examples/**/*.jpg"],
}
THINGS = {
    "tuxpaint-stamps-default": ["usr/share/tuxpaint/stamps/**/*.png"],
    "mate-backgrounds": ["usr/share/backgrounds/mate/nature/*"],
}
DRAWN = {  # folders
    *("cartoon", "symbols", "flags", "roadsigns", "toys", "arttools", "clothes", "hats", "newyears", "easter", "hanukkah"),
    *("Altai", "Flow", "Kay", "Kite", "MilkyWay", "Opal", "PastelHills", "Patak", "SafeLanding", "Shell", "Volna"),
    *(".readme", "SegmentationClassVisualization", "SegmentationObjectVisualization", "Visualization"),
    *("AnnotationsVisualization", "tutorial"),
}
ENDINGS = {".jpg", ".jpeg", ".png", ".webp"}
LONGEST, SHORTEST = 800, 100


def unpacked(package, under):
    subprocess.run(["apt-get", "download", "-q", package], cwd=under, check=True, stdout=subprocess.DEVNULL)
    (archive,) = under.glob(f"{package}_*.deb")
    subprocess.run(["dpkg-deb", "-x", archive, under / package], check=True)
    return under / package


def paths_of(folder, patterns):
    paths = sorted({path for pattern in patterns for path in folder.glob(pattern)})
    return [path for path in paths if path.suffix.lower() in ENDINGS and not DRAWN & set(path.parts)]


def opened(path):
    picture = Image.open(path).convert("RGBA")
    white = Image.new("RGBA", picture.size, "white")
    return Image.alpha_composite(white, picture).convert("RGB")


def flat_share(picture):
    """Of its tiles of 8 × 8, how many have no more contrast than a painted surface."""
    grey = numpy.asarray(picture.convert("L"), dtype=numpy.float32)
    height, width = (edge // 8 * 8 for edge in grey.shape)
    tiles = grey[:height, :width].reshape(height // 8, 8, width // 8, 8)
    return float((tiles.std(axis=(1, 3)) < 1.5).mean())


def is_double(look, looks):
    return any(numpy.abs(look - other).mean() < 3 for other in looks)


def fill(out, packages, most_flat):
    out.mkdir(parents=True)
    looks = []
    with tempfile.TemporaryDirectory() as scratch:
        for package, patterns in packages.items():
            folder = unpacked(package, pathlib.Path(scratch))
            for path in paths_of(folder, patterns):
                picture = opened(path)
                if min(picture.size) < SHORTEST:
                    continue
                picture.thumbnail((LONGEST, LONGEST), Image.Resampling.LANCZOS)
                look = numpy.asarray(picture.resize((16, 16), Image.Resampling.BOX), dtype=numpy.float32)
                if flat_share(picture) > most_flat or is_double(look, looks):
                    continue
                looks.append(look)
                picture.save(out / f"{package}-{len(looks):04d}.png")
            print(f"{out.name}: {len(looks)} with those of {package}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    out = parser.parse_args().out
    fill(out / "ordinary", ORDINARY, most_flat=0.5)
    fill(out / "things", THINGS, most_flat=0.97)


if __name__ == "__main__":
    main()
