#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Downloads photographs from packages of Debian, to measure the accuracy of each precision (photographs.py).

    python benchmarks/photograph_sets.py OUT      # needs `apt-get download` (450 MB), pillow and numpy

OUT/ordinary has landscapes, cities, rooms, people and desktop backgrounds.  OUT/things has animals, plants, food, tools
and vehicles, mostly on white.  Images are scaled down to a maximum of 800 pixels per side.  An image is left out if a
side is shorter than 100 pixels, if it is mainly flat (drawings, skies), or if it resembles an earlier image.
"""

import argparse
import pathlib
import subprocess
import tempfile

import numpy
from PIL import Image

ORDINARY = {  # package: patterns of its files
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
FOLDERS_OF_DRAWINGS = {
    *("cartoon", "symbols", "flags", "roadsigns", "toys", "arttools", "clothes", "hats", "newyears", "easter"),
    *("hanukkah", "Altai", "Flow", "Kay", "Kite", "MilkyWay", "Opal", "PastelHills", "Patak", "SafeLanding", "Shell"),
    *("Volna", ".readme", "SegmentationClassVisualization", "SegmentationObjectVisualization", "Visualization"),
    *("AnnotationsVisualization", "tutorial"),
}
EXTENSIONS = {".jpg", ".jpeg", ".png", ".webp"}
MAX_SIDE, MIN_SIDE = 800, 100


def unpacked(package, folder):
    subprocess.run(["apt-get", "download", "-q", package], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    (archive,) = folder.glob(f"{package}_*.deb")
    subprocess.run(["dpkg-deb", "-x", archive, folder / package], check=True)
    return folder / package


def paths_of(folder, patterns):
    paths = sorted({path for pattern in patterns for path in folder.glob(pattern)})
    return [path for path in paths if path.suffix.lower() in EXTENSIONS and not FOLDERS_OF_DRAWINGS & set(path.parts)]


def read_on_white(path):
    image = Image.open(path).convert("RGBA")
    white = Image.new("RGBA", image.size, "white")
    return Image.alpha_composite(white, image).convert("RGB")


def flat_fraction(image):
    """The fraction of 8 × 8 tiles whose grey values have a standard deviation below 1.5, as painted surfaces have."""
    grey = numpy.asarray(image.convert("L"), dtype=numpy.float32)
    height, width = (edge // 8 * 8 for edge in grey.shape)
    tiles = grey[:height, :width].reshape(height // 8, 8, width // 8, 8)
    return float((tiles.std(axis=(1, 3)) < 1.5).mean())


def is_duplicate(thumbnail, thumbnails):
    return any(numpy.abs(thumbnail - other).mean() < 3 for other in thumbnails)


def fill(out, packages, max_flat_fraction):
    out.mkdir(parents=True)
    thumbnails = []
    with tempfile.TemporaryDirectory() as scratch:
        for package, patterns in packages.items():
            folder = unpacked(package, pathlib.Path(scratch))
            for path in paths_of(folder, patterns):
                image = read_on_white(path)
                if min(image.size) < MIN_SIDE:
                    continue
                image.thumbnail((MAX_SIDE, MAX_SIDE), Image.Resampling.LANCZOS)
                thumbnail = numpy.asarray(image.resize((16, 16), Image.Resampling.BOX), dtype=numpy.float32)
                if flat_fraction(image) > max_flat_fraction or is_duplicate(thumbnail, thumbnails):
                    continue
                thumbnails.append(thumbnail)
                image.save(out / f"{package}-{len(thumbnails):04d}.png")
            print(f"{out.name}: {len(thumbnails)} images, {package} included")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", type=pathlib.Path)
    out = parser.parse_args().out
    fill(out / "ordinary", ORDINARY, max_flat_fraction=0.5)
    fill(out / "things", THINGS, max_flat_fraction=0.97)  # a white background is flat


if __name__ == "__main__":
    main()
