# SPDX-License-Identifier: Apache-2.0
"""Cut-outs over photographs and textures, for the scripts that make sets of images with exact labels."""

import numpy as np
from PIL import Image, ImageEnhance, ImageFilter

VAL_PHOTOS = 5  # every fifth photograph is one of the validation images
PHOTO_SHARE = 0.8  # the share of photographs among the backgrounds; the others are textures


def cut_outs(folders):
    """The files that have a transparent part, but are not empty."""
    found = []
    for path in sorted(path for folder in folders for path in folder.rglob("*.png")):
        try:
            with Image.open(path) as image:
                if image.mode not in ("RGBA", "LA", "P") or max(image.size) > 4096 or min(image.size) < 24:
                    continue
                alpha = np.asarray(image.convert("RGBA").resize((64, 64)).getchannel("A")) >= 128
        except (OSError, SyntaxError, ValueError, Image.DecompressionBombError):
            continue
        if 0.08 < alpha.mean() < 0.97:
            found.append(path)
    return found


def texture(random, width, height):
    """Smooth noise of a few scales between two or three colours."""
    values = np.zeros((height, width, 3))
    for scale in (4, 16, 64):
        small = (random.random((max(2, height // scale), max(2, width // scale), 3)) * 255).astype(np.uint8)
        values += np.asarray(Image.fromarray(small).resize((width, height), Image.BICUBIC)) * random.uniform(0.1, 0.6)
    values = values / values.max() * random.uniform(120, 255)
    grey = values.mean(axis=2, keepdims=True)
    return Image.fromarray((grey + (values - grey) * random.uniform(0, 1)).clip(0, 255).astype(np.uint8))


def background(random, photos, width, height):
    if random.random() > PHOTO_SHARE:
        return texture(random, width, height)
    photo = photos[random.integers(len(photos))]
    scale = max(width / photo.width, height / photo.height) * random.uniform(1, 2.5)
    photo = photo.resize((max(width, round(photo.width * scale)), max(height, round(photo.height * scale))))
    x, y = random.integers(photo.width - width + 1), random.integers(photo.height - height + 1)
    photo = photo.crop((x, y, x + width, y + height))
    if random.random() < 0.5:
        photo = photo.transpose(Image.FLIP_LEFT_RIGHT)
    if random.random() < 0.3:
        photo = photo.filter(ImageFilter.GaussianBlur(random.uniform(0.5, 3)))
    return varied(random, photo)


def varied(random, image):
    for kind in (ImageEnhance.Brightness, ImageEnhance.Contrast, ImageEnhance.Color):
        image = kind(image).enhance(random.uniform(0.7, 1.3))
    return image


def cut_out(path):
    """An object in RGBA without its empty border."""
    with Image.open(path) as file:
        image = file.convert("RGBA")
    return image.crop(image.getchannel("A").point(lambda a: 255 * (a >= 128)).getbbox())


def turned(random, image, side):
    """An object in RGBA, scaled to a long side of about `side`, rotated, in another light."""
    scale = side / max(image.size)
    image = image.resize((max(1, round(image.width * scale)), max(1, round(image.height * scale))), Image.LANCZOS)
    image = image.rotate(random.normal(0, 25), expand=True, resample=Image.BICUBIC)
    color = varied(random, image.convert("RGB"))
    color.putalpha(image.getchannel("A"))
    return color


def paste(canvas, item, x, y):
    """Draws the object on the image; the places where it covers the image."""
    layer = Image.new("RGBA", canvas.size)
    layer.paste(item, (x, y))
    canvas.paste(layer, (0, 0), layer)
    return np.asarray(layer.getchannel("A")) >= 128


def open_photos(folder):
    """The photographs of a folder and its subfolders, in RGB: those of training, those of validation."""
    files = sorted(path for path in folder.rglob("*") if path.suffix.lower() in (".jpg", ".jpeg", ".png"))
    if len(files) < 2:
        raise SystemExit(f"{folder}: expected at least two photographs (.jpg or .png), got {len(files)}")
    photos = [Image.open(path).convert("RGB") for path in files]
    held_out = [photo for i, photo in enumerate(photos) if i % VAL_PHOTOS == VAL_PHOTOS - 1] or photos[-1:]
    return [photo for photo in photos if photo not in held_out], held_out
