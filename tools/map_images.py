#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws the images of docs/maps.md: docs/images/map_*.jpg.

    tools/map_images.py PROGRAM [NAME…]     all, or depth, classes, matte, anomalies; needs the Python package, Pillow

Classes and anomalies are results of the program on drawn images: of a model that is trained here, and of the bundled
one.  There are no weights of depth estimators and matting models in the repository: their images show the rendering of
the depth and the alpha of drawn scenes, which are known.
"""

import pathlib
import subprocess
import sys
import tempfile

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

import vitrail

PROGRAM = sys.argv[1]
FOLDER = pathlib.Path(__file__).resolve().parents[1] / "docs" / "images"
HEIGHT, WIDTH, GAP = 240, 352, 8
SCENES, TEXTURES = 40, 20
CLASSES = ("sky", "hills", "sea", "sand")


def run(*arguments):
    subprocess.run([PROGRAM, *map(str, arguments)], check=True)


def save(name, images):
    """Images of one height side by side."""
    width = sum(image.width for image in images) + GAP * (len(images) - 1)
    strip, left = Image.new("RGB", (width, images[0].height), "white"), 0
    for image in images:
        strip.paste(image, (left, 0))
        left += image.width + GAP
    strip.save(FOLDER / f"map_{name}.jpg", quality=82, optimize=True)


def noise(random, size, cell, low, high):
    """Smooth noise [height, width] from low to high."""
    height, width = size
    cells = random.integers(0, 256, (height // cell + 2, width // cell + 2), np.uint8)
    image = Image.fromarray(cells).resize((width + 2 * cell, height + 2 * cell), Image.Resampling.BICUBIC)
    return low + np.asarray(image)[:height, :width] / 255 * (high - low)


def depth(_):
    """Balls on a floor, and their inverse depth."""
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    rays = np.stack([(x - WIDTH / 2) / HEIGHT, (HEIGHT * 0.42 - y) / HEIGHT, np.ones((HEIGHT, WIDTH))], -1)
    light = np.array([-0.5, 0.8, -0.4])
    floor = np.where(rays[..., 1] < -0.02, -1 / np.minimum(rays[..., 1], -0.02), np.inf)
    depths = np.minimum(floor, 30)
    at = rays * depths[..., None]
    tiles = (np.floor(at[..., 0]) + np.floor(at[..., 2])) % 2
    brightness = np.clip(1.25 - depths / 24, 0.5, 1)[..., None]
    pixels = np.where(tiles[..., None] > 0, (206, 196, 180), (120, 104, 92)) * brightness
    pixels[depths >= 30] = (176, 200, 224)
    for center, radius, color in (
        ((-2.6, 0.4, 9), 1.4, (60, 120, 190)),
        ((1.9, 0, 6), 1, (200, 80, 60)),
        ((-0.7, -0.45, 3.6), 0.55, (230, 180, 60)),
        ((6, 1.2, 15), 2.2, (90, 160, 90)),
    ):
        center = np.array(center)
        square, along = (rays**2).sum(-1), rays @ center
        root = along**2 - square * (center @ center - radius**2)
        distance = (along - np.sqrt(np.maximum(root, 0))) / square
        hit = (root > 0) & (distance < depths)
        normal = (rays * distance[..., None] - center) / radius
        shade = np.clip(normal @ (light / np.linalg.norm(light)), 0, 1) * 0.75 + 0.25
        pixels[hit] = (np.array(color) * shade[..., None])[hit]
        depths = np.where(hit, distance, depths)
    pixels = pixels.astype(np.uint8)
    return [Image.fromarray(pixels), (1 / depths.astype(np.float32)).view(vitrail.DepthMap).render(pixels)]


def landscape(random):
    """A coast, as pixels and as classes."""
    x = np.arange(WIDTH)
    horizon = random.integers(80, 120)
    tops = horizon - 12 - noise(random, (1, WIDTH), 60, 0, 50)[0] * random.uniform(0.4, 1)
    shore = random.integers(150, 190) + 14 * np.sin(x / random.integers(40, 90) + random.uniform(0, 6))
    y = np.arange(HEIGHT)[:, None]
    labels = np.select([y < tops, y < horizon, y < shore], [0, 1, 2], 3).astype(np.uint8)
    size = (HEIGHT, WIDTH)
    clouds = noise(random, size, 40, -60, 60).clip(0)[..., None]
    waves = np.repeat(noise(random, (HEIGHT, WIDTH // 8), 3, -22, 22), 8, 1)[..., None]
    trees, grains = noise(random, size, 5, -30, 30)[..., None], random.normal(0, 9, (*size, 1))
    colors = [
        np.array((110, 160, 215)) + clouds + (y / 3)[..., None],
        np.array((70, 105, 60)) + trees,
        np.array((45, 95, 130)) + waves,
        np.array((215, 190, 140)) + grains,
    ]
    pixels = np.choose(labels[..., None], colors) * random.uniform(0.85, 1.1)
    return Image.fromarray(pixels.clip(0, 255).astype(np.uint8)), Image.fromarray(labels)


def classes(folder):
    """A landscape, and its classes by a model that was trained on others."""
    random = np.random.default_rng(0)
    for kind in ("images", "labels"):
        (folder / "maps" / kind).mkdir(parents=True)
    (folder / "maps" / "classes.txt").write_text("\n".join(CLASSES))
    for i in range(SCENES):
        for kind, image in zip(("images", "labels"), landscape(random), strict=True):
            image.save(folder / "maps" / kind / f"{i:02}.png")
    settings = ["--set", "model.img_size=448", "--set", "data.retrain=false"]
    run("train", folder / "maps", "-o", folder / "run", "--epochs", 8, *settings)
    image, _ = landscape(random)
    image.save(folder / "coast.png")
    run("segment", "-m", folder / "run", folder / "coast.png", "--render", folder / "classes", "--legend")
    rendered = Image.open(folder / "classes" / "coast.png")
    below = Image.new("RGB", (WIDTH, rendered.height), "white")
    below.paste(image, (0, 0))
    return [below, rendered]


def matte(_):
    """A flower before a meadow, its trimap, and the flower by its alpha."""
    random, scale, width = np.random.default_rng(3), 4, 232
    size = (HEIGHT * scale, width * scale)
    large = Image.new("L", size[::-1])
    draw, center = ImageDraw.Draw(large), np.array((width / 2, 105)) * scale
    draw.line([tuple(center), (center[0] + 30, size[0])], fill=255, width=5 * scale)
    for angle in np.linspace(0, 2 * np.pi, 70, endpoint=False):
        direction = np.array((np.cos(angle), np.sin(angle)))
        tip = center + direction * random.uniform(55, 75) * scale
        draw.line([tuple(center), tuple(tip)], fill=230, width=scale)
        for turn in np.linspace(-1.2, 1.2, 9):
            hair = angle + turn
            end = tip + np.array((np.cos(hair), np.sin(hair))) * random.uniform(14, 22) * scale
            draw.line([tuple(tip), tuple(end)], fill=200, width=2)
    draw.ellipse([*(center - 14 * scale), *(center + 14 * scale)], fill=255)
    alpha = np.asarray(large.resize((width, HEIGHT), Image.Resampling.BOX), np.float32) / 255
    meadow = np.stack([noise(random, (HEIGHT, width), 50, low, low + 70) for low in (50, 100, 30)], -1)
    pixels = alpha[..., None] * np.array((112, 36, 128)) + (1 - alpha[..., None]) * meadow
    around = Image.fromarray((alpha > 0).astype(np.uint8) * 255).filter(ImageFilter.MaxFilter(15))
    trimap = np.where(np.asarray(around) > 0, 128, 0)
    inside = Image.fromarray((alpha == 1).astype(np.uint8) * 255).filter(ImageFilter.MinFilter(5))
    trimap[np.asarray(inside) > 0] = 255
    pixels = pixels.astype(np.uint8)
    shown = alpha.view(vitrail.Matte).overlay(pixels)
    return [Image.fromarray(image) for image in (pixels, trimap.astype(np.uint8), shown)]


def weave(random):
    """A piece of cloth."""
    y, x = np.mgrid[:HEIGHT, :WIDTH]
    over = (x // 8 + y // 8) % 2
    threads = np.where(over, np.sin(x % 8 / 8 * np.pi), np.sin(y % 8 / 8 * np.pi))
    values = 70 + 110 * threads + noise(random, (HEIGHT, WIDTH), 30, -14, 14) + random.normal(0, 6, (HEIGHT, WIDTH))
    return (values[..., None] * np.array((1, 0.86, 0.66))).clip(0, 255).astype(np.uint8)


def anomalies(folder):
    """A piece of cloth with defects, and their heat map by the bundled model."""
    random = np.random.default_rng(1)
    (folder / "good").mkdir()
    for i in range(TEXTURES):
        Image.fromarray(weave(random)).save(folder / "good" / f"{i}.png")
    image = Image.fromarray(weave(random))
    draw = ImageDraw.Draw(image)
    draw.line([(60, 60), (92, 74), (120, 70), (150, 96)], fill=(60, 40, 30), width=5)  # a cut
    draw.ellipse((230, 140, 276, 178), fill=(120, 70, 60))  # a stain
    image.save(folder / "cloth.png")
    run("anomaly", "fit", folder / "good", "-o", folder / "cloth.bank", "--quiet")
    run("anomaly", "-m", folder / "cloth.bank", folder / "cloth.png", "--render", folder / "anomalies")
    return [image, Image.open(folder / "anomalies" / "cloth.png")]


IMAGES = {"depth": depth, "classes": classes, "matte": matte, "anomalies": anomalies}
for name in sys.argv[2:] or IMAGES:
    with tempfile.TemporaryDirectory() as temporary:
        save(name, IMAGES[name](pathlib.Path(temporary)))
