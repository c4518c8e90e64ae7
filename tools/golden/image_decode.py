# SPDX-License-Identifier: Apache-2.0
"""Golden data of tests/image/decode_test.cpp: small image files of every format, and their pixels as Pillow reads them.

Run from the repository root: python tools/golden/image_decode.py
Writes tests/fixtures/image/decode/* (the files), decode.json (per file and mode: size and offset) and
decode.raw (pixels).
For files whose name starts with exif_, the pixels are those after ImageOps.exif_transpose.
"""

import io
import json
import pathlib
import struct
import zlib

import numpy as np
import PIL
from PIL import Image, ImageOps, features

FOLDER = pathlib.Path("tests/fixtures/image")
WIDTH, HEIGHT = 29, 19  # multiples neither of a JPEG block nor of the pixels in a byte


def synthetic_image(channels=3, bits=8, width=WIDTH, height=HEIGHT):
    """A smooth image with noise in one corner."""
    y, x, c = np.mgrid[:height, :width, :channels]
    value = 0.5 + 0.5 * np.sin(x / 4 + 2 * c) * np.cos(y / 5 - c)
    noise = np.random.default_rng(bits).random(value.shape)
    value = np.where((x > width * 2 // 3) & (y > height // 2), noise, value)
    return np.round(value * (2**bits - 1)).astype(np.uint16 if bits > 8 else np.uint8)


# PNG -----------------------------------------------------------------------------------------------------------------
def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def pack_rows(samples, bits):
    """[height, width, channels] → unfiltered PNG rows."""
    rows = b""
    for row in samples.reshape(samples.shape[0], -1):
        if bits == 16:
            data = row.astype(">u2").tobytes()
        elif bits == 8:
            data = row.astype(np.uint8).tobytes()
        else:
            digits = (row[:, None] >> np.arange(bits - 1, -1, -1)) & 1
            data = np.packbits(digits.astype(np.uint8).ravel()).tobytes()
        rows += b"\0" + data
    return rows


ADAM7 = [(0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)]


def png(samples, bits, color_type, interlaced=False, before=b"", after=b""):
    height, width = samples.shape[:2]
    if interlaced:
        passes = [samples[y::step_y, x::step_x] for x, y, step_x, step_y in ADAM7]
        data = b"".join(pack_rows(p, bits) for p in passes if p.size)
    else:
        data = pack_rows(samples, bits)
    header = struct.pack(">IIBBBBB", width, height, bits, color_type, 0, 0, int(interlaced))
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + before
        + chunk(b"IDAT", zlib.compress(data, 9))
        + after
        + chunk(b"IEND", b"")
    )


def png_files():
    files = {}
    kinds = {
        "grey": (0, 1, (1, 2, 4, 8, 16)),
        "rgb": (2, 3, (8, 16)),
        "grey_alpha": (4, 2, (8, 16)),
        "rgba": (6, 4, (8, 16)),
    }
    for name, (color_type, channels, depths) in kinds.items():
        for bits in depths:
            for interlaced in (False, True):
                suffix = "_interlaced" if interlaced else ""
                files[f"{name}_{bits}{suffix}.png"] = png(synthetic_image(channels, bits), bits, color_type, interlaced)
    # dark, because Pillow clips 16-bit grey at 255
    files["grey_16_dark.png"] = png(synthetic_image(1, 16) // 200, 16, 0)
    colors = np.random.default_rng(5).integers(0, 256, (256, 3)).astype(np.uint8).tobytes()
    for bits in (1, 2, 4, 8):
        for interlaced in (False, True):
            palette = chunk(b"PLTE", colors[: 3 * 2**bits])
            suffix = "_interlaced" if interlaced else ""
            files[f"palette_{bits}{suffix}.png"] = png(synthetic_image(1, bits), bits, 3, interlaced, palette)
    indices = synthetic_image(1, 8)
    files["palette_8_alphas.png"] = png(
        indices, 8, 3, before=chunk(b"PLTE", colors) + chunk(b"tRNS", bytes(range(256)))
    )
    files["palette_8_one_transparent.png"] = png(
        indices, 8, 3, before=chunk(b"PLTE", colors) + chunk(b"tRNS", b"\xff" * 20 + b"\0")
    )
    files["palette_8_short.png"] = png(indices, 8, 3, before=chunk(b"PLTE", colors[:300]))  # indices beyond its end
    files["rgb_8_transparent_color.png"] = png(
        synthetic_image(3), 8, 2, before=chunk(b"tRNS", struct.pack(">HHH", 1, 2, 3))
    )
    files["grey_8_transparent_color.png"] = png(synthetic_image(1), 8, 0, before=chunk(b"tRNS", struct.pack(">H", 128)))
    files["rgb_8_gamma.png"] = png(synthetic_image(3), 8, 2, before=chunk(b"gAMA", struct.pack(">I", 100000)))
    files["one_pixel.png"] = png(synthetic_image(3, 8, 1, 1), 8, 2)
    return files


# JPEG ----------------------------------------------------------------------------------------------------------------
def saved(image, format_name, **options):
    out = io.BytesIO()
    image.save(out, format_name, **options)
    return out.getvalue()


def adobe_transform(data, value):
    """Changes the colour transform in the Adobe marker: 0 none, 1 YCbCr, 2 YCCK."""
    at = data.index(b"Adobe\0") + 11
    return data[:at] + bytes([value]) + data[at + 1 :]


def without_adobe(data):
    at = data.index(b"\xff\xee")
    length = struct.unpack(">H", data[at + 2 : at + 4])[0]
    return data[:at] + data[at + 2 + length :]


def as_440(data):
    """Relabels a 4:2:2 file as 4:4:0: horizontally adjacent blocks become vertically adjacent (a valid image)."""
    at = data.index(b"\xff\xc0")
    height, width = struct.unpack(">HH", data[at + 5 : at + 9])
    assert data[at + 11] == 0x21
    # the new size has the same number of blocks: each pair covers 16 rows instead of 16 columns
    frame = struct.pack(">HH", 2 * ((height + 7) // 8) * 8 - 3, ((width + 15) // 16) * 8 - 3)
    return data[: at + 5] + frame + data[at + 9 : at + 11] + b"\x12" + data[at + 12 :]


def jpeg_files():
    rgb, grey = Image.fromarray(synthetic_image(3)), Image.fromarray(synthetic_image(1)[:, :, 0])
    cmyk = Image.fromarray(synthetic_image(4), "CMYK")
    files = {}
    for name, subsampling in {"444": 0, "422": 1, "420": 2}.items():
        files[f"ycbcr_{name}.jpg"] = saved(rgb, "JPEG", quality=85, subsampling=subsampling)
        files[f"ycbcr_{name}_progressive.jpg"] = saved(
            rgb, "JPEG", quality=60, subsampling=subsampling, progressive=True
        )
    files["ycbcr_440.jpg"] = as_440(saved(rgb, "JPEG", quality=85, subsampling=1))
    files["restarts.jpg"] = saved(rgb, "JPEG", quality=85, restart_marker_blocks=1)
    files["low_quality.jpg"] = saved(rgb, "JPEG", quality=5)
    files["keeps_rgb.jpg"] = saved(rgb, "JPEG", quality=85, keep_rgb=True)
    files["grey.jpg"] = saved(grey, "JPEG", quality=85)
    files["grey_progressive.jpg"] = saved(grey, "JPEG", quality=85, progressive=True)
    files["cmyk.jpg"] = saved(cmyk, "JPEG", quality=90)
    files["cmyk_progressive.jpg"] = saved(cmyk, "JPEG", quality=90, progressive=True)
    files["cmyk_no_adobe.jpg"] = without_adobe(files["cmyk.jpg"])
    files["ycck.jpg"] = adobe_transform(files["cmyk.jpg"], 2)
    files["one_pixel.jpg"] = saved(rgb.crop((0, 0, 1, 1)), "JPEG")
    return files


# WebP and GIF --------------------------------------------------------------------------------------------------------
def webp_files():
    rgb, rgba = Image.fromarray(synthetic_image(3)), Image.fromarray(synthetic_image(4))
    frames = [Image.new("RGBA", (WIDTH, HEIGHT)), rgba]
    frames[0].paste(rgba.crop((6, 4, 20, 14)), (6, 4))
    return {
        "lossy.webp": saved(rgb, "WEBP", quality=70),
        "lossy_alpha.webp": saved(rgba, "WEBP", quality=70),
        "lossless.webp": saved(rgb, "WEBP", lossless=True),
        "lossless_alpha.webp": saved(rgba, "WEBP", lossless=True, exact=True),
        "grey.webp": saved(Image.fromarray(synthetic_image(1)[:, :, 0]), "WEBP", quality=70),
        "animated_lossless.webp": saved(
            frames[0],
            "WEBP",
            save_all=True,
            append_images=frames[1:],
            lossless=True,
            minimize_size=True,
            allow_mixed=True,
        ),
        "animated_lossy.webp": saved(frames[1], "WEBP", save_all=True, append_images=frames[:1], quality=70),
    }


def gif(frame, left=0, top=0, canvas=(WIDTH, HEIGHT), colors=None, local=None, transparent=None, interlaced=False):
    """A GIF of one frame [height, width] of indices, with LZW codes of constant nine bits."""
    height, width = frame.shape
    order = range(height)
    if interlaced:
        order = [y for first, step in ((0, 8), (4, 8), (2, 4), (1, 2)) for y in range(first, height, step)]
    bits, used = 0, 0
    for i, index in enumerate(frame[list(order)].ravel()):
        if i % 250 == 0:
            bits |= 256 << used
            used += 9
        bits |= int(index) << used
        used += 9
    bits |= 257 << used
    codes = bits.to_bytes((used + 9 + 7) // 8, "little")
    out = b"GIF89a" + struct.pack("<HHBBB", *canvas, 0xF7 if colors else 0, 0, 0) + (colors or b"")
    if transparent is not None:
        out += b"!\xf9\x04" + struct.pack("<BHB", 1, 0, transparent) + b"\0"
    out += b"," + struct.pack("<HHHHB", left, top, width, height, (0x87 if local else 0) | (0x40 if interlaced else 0))
    out += (local or b"") + b"\x08"
    for at in range(0, len(codes), 255):
        out += bytes([len(codes[at : at + 255])]) + codes[at : at + 255]
    return out + b"\0;"


def gif_files():
    generator = np.random.default_rng(9)
    colors, local = (generator.integers(0, 256, 768).astype(np.uint8).tobytes() for _ in range(2))
    ramp = np.repeat(np.arange(256, dtype=np.uint8), 3).tobytes()
    indices = synthetic_image(1)[:, :, 0]
    part = indices[:10, :14]
    rgb = Image.fromarray(synthetic_image(3))
    return {
        "quantized.gif": saved(rgb.quantize(24), "GIF"),
        "animated.gif": saved(rgb.quantize(16), "GIF", save_all=True, append_images=[rgb.rotate(90)]),
        "plain.gif": gif(indices, colors=colors),
        "interlaced.gif": gif(indices, colors=colors, interlaced=True),
        "local_palette.gif": gif(indices, colors=colors, local=local),
        "grey_palette.gif": gif(indices, colors=ramp),
        "no_palette.gif": gif(indices),
        "transparent.gif": gif(indices, colors=colors, transparent=77),
        "part.gif": gif(part, 6, 5, colors=colors),
        "part_transparent.gif": gif(part, 6, 5, colors=colors, transparent=77),
        "part_leaves_canvas.gif": gif(part, 20, 12, colors=colors),
    }


# BMP, TIFF, Netpbm ---------------------------------------------------------------------------------------------------
def bmp(rows, bits, width, height, colors=b"", masks=b"", compression=0, size=40, top_down=False, entries=0):
    """`rows`: the pixel data in the order of the file."""
    offset = 14 + size + len(masks) * (size == 40) + len(colors)
    if size == 12:
        header = struct.pack("<IHHHH", 12, width, height, 1, bits)
    else:
        signed = -height if top_down else height
        header = struct.pack("<IiiHHIIiiII", size, width, signed, 1, bits, compression, len(rows), 0, 0, entries, 0)
        header += masks
        header += bytes(max(0, size - len(header))) if size > 40 else b""
    return struct.pack("<2sIHHI", b"BM", offset + len(rows), 0, 0, offset) + header + colors + rows


def padded_rows(samples, bits):
    rows = b""
    for row in samples:
        data = pack_rows(row[None, :, None], bits)[1:]
        rows += data + bytes(-len(data) % 4)
    return rows


def direct_rows(values, kind):
    rows = b""
    for row in values:
        data = row.astype("<u4").view(np.uint8).reshape(-1, 4)[:, :kind].tobytes()
        rows += data + bytes(-len(data) % 4)
    return rows


def bmp_files():
    files = {}
    rng = np.random.default_rng(3)
    for bits in (1, 4, 8):
        indices = synthetic_image(1, bits)[::-1, :, 0]
        palette = rng.integers(0, 256, (2**bits, 4), dtype=np.uint8)
        rows = padded_rows(indices, bits)
        files[f"palette_{bits}.bmp"] = bmp(rows, bits, WIDTH, HEIGHT, palette.tobytes())
        files[f"os2_{bits}.bmp"] = bmp(rows, bits, WIDTH, HEIGHT, palette[:, :3].tobytes(), size=12)
    files["top_down.bmp"] = bmp(rows, 8, WIDTH, HEIGHT, palette.tobytes(), top_down=True)
    files["palette_short.bmp"] = bmp(rows, 8, WIDTH, HEIGHT, palette[:100].tobytes(), entries=100)
    ramp = np.repeat(np.arange(256, dtype=np.uint8)[:, None], 4, 1)
    files["grey.bmp"] = bmp(rows, 8, WIDTH, HEIGHT, ramp.tobytes())
    files["grey_short.bmp"] = bmp(rows, 8, WIDTH, HEIGHT, ramp[:99].tobytes(), entries=99)
    values = rng.integers(0, 2**32, (HEIGHT, WIDTH), dtype=np.uint64)
    for bits in (16, 24, 32):
        files[f"rgb_{bits}.bmp"] = bmp(direct_rows(values, bits // 8), bits, WIDTH, HEIGHT)
    fields = {
        "565": (16, (0xF800, 0x7E0, 0x1F)),
        "555": (16, (0x7C00, 0x3E0, 0x1F)),
        "bgr": (32, (0xFF0000, 0xFF00, 0xFF)),
        "rgb": (32, (0xFF, 0xFF00, 0xFF0000)),
        "xbgr": (32, (0xFF000000, 0xFF0000, 0xFF00)),
    }
    for name, (bits, masks) in fields.items():
        packed = struct.pack("<3I", *masks)
        rows = direct_rows(values, bits // 8)
        if name != "rgb":
            files[f"fields_{name}.bmp"] = bmp(rows, bits, WIDTH, HEIGHT, masks=packed, compression=3)
        alpha = struct.pack("<I", 0xFF000000 if name in ("rgb", "bgr") else 0)
        files[f"fields_{name}_v5.bmp"] = bmp(rows, bits, WIDTH, HEIGHT, masks=packed + alpha, compression=3, size=124)
    colors = palette.tobytes()
    runs = b"\x05\x07\x03\x09\x00\x00\x00\x05\x01\x02\x03\x04\x05\x00\x03\x63\x00\x00"
    runs += b"\x02\xc8\x00\x02\x03\x01\x04\x21\x00\x00\x09\x33\x00\x00\x08\x12\x00\x01"
    files["rle8.bmp"] = bmp(runs, 8, 8, 6, colors, compression=1)
    runs = b"\x05\x7a\x03\x90\x00\x00\x00\x05\x12\x34\x50\x00\x03\x63\x00\x00"
    runs += b"\x02\xc8\x00\x02\x03\x01\x04\x21\x00\x00\x09\x33\x00\x00\x08\x12\x00\x00\x00\x01"
    files["rle4.bmp"] = bmp(runs, 4, 8, 6, colors[:64], compression=2)
    return files


def pnm_files():
    grey, rgb, wide = synthetic_image(1)[:, :, 0], synthetic_image(3), synthetic_image(1, 16)[:, :, 0]
    bits = grey > 127
    size = f"{WIDTH} {HEIGHT}\n".encode()
    text = lambda samples: b"\n".join(b" ".join(b"%d" % v for v in row.ravel()) for row in samples) + b"\n"
    dark = (wide // 300).astype(">u2")
    wide_rgb = synthetic_image(3, 16)
    return {
        "text.pbm": b"P1\n# a comment\n" + size + b"\n".join(b"".join(b"%d" % v for v in row) for row in bits),
        "text.pgm": b"P2 # x\n" + size + b"255\n" + text(grey),
        "text.ppm": b"P3\t" + size + b"# y\n255 " + text(rgb),
        "text_15.ppm": b"P3\n" + size + b"15\n" + text(rgb // 16),
        "binary.pbm": b"P4\n" + size + np.packbits(bits, axis=1).tobytes(),
        "binary.pgm": b"P5\n" + size + b"255\n" + grey.tobytes(),
        "binary.ppm": b"P6 " + size + b"255\n" + rgb.tobytes(),
        "binary_100.pgm": b"P5 " + size + b"100\n" + (grey // 3).tobytes(),
        "binary_100.ppm": b"P6 " + size + b"100\n" + (rgb // 3).tobytes(),
        "binary_16.pgm": b"P5 " + size + b"65535\n" + dark.tobytes(),
        "binary_12.pgm": b"P5 " + size + b"4095\n" + (dark // 16).astype(">u2").tobytes(),
        "binary_16.ppm": b"P6 " + size + b"65535\n" + wide_rgb.astype(">u2").tobytes(),
        "binary_12.ppm": b"P6 " + size + b"4095\n" + (wide_rgb // 16).astype(">u2").tobytes(),
        "noise.pnm": b"P6\n#\r\n#\n" + size + b"255\n" + rgb[::-1].tobytes(),
    }


def tiff(planes, bits, photometric, order="<", tags=(), planar=1, strip=None):
    """An uncompressed file of [height, width, samples]."""
    height, width, samples = planes.shape
    kind = {8: "u1", 16: "u2", 32: "u4"}.get(bits, "u1")
    pack = lambda part: (
        b"".join(pack_rows(row[None], bits)[1:] for row in part)
        if bits < 8
        else part.astype(planes.dtype.newbyteorder(order)).tobytes()
    )
    assert planes.dtype.itemsize == np.dtype(kind).itemsize
    data = pack(planes) if planar == 1 else b"".join(pack(planes[:, :, [c]]) for c in range(samples))
    strips = 1 if planar == 1 else samples
    offsets = [8 + i * (len(data) // strips) for i in range(strips)]
    entries = {
        256: (3, [width]),
        257: (3, [height]),
        258: (3, [bits] * samples),
        259: (3, [1]),
        262: (3, [photometric]),
        273: (4, offsets),
        277: (3, [samples]),
        278: (3, [height]),
        279: (4, [len(data) // strips] * strips),
        284: (3, [planar]),
        **dict(tags),
    }
    data += bytes(len(data) % 2)
    extra, directory = b"", b""
    at = 8 + len(data) + 2 + 12 * len(entries) + 4
    for tag, (field, values) in sorted(entries.items()):
        value = b"".join(struct.pack(order + "_BsHI"[field], v) for v in values)
        if len(value) > 4:
            directory += struct.pack(order + "HHII", tag, field, len(values), at + len(extra))
            extra += value + bytes(len(value) % 2)
        else:
            directory += struct.pack(order + "HHI", tag, field, len(values)) + value.ljust(4, b"\0")
    magic = b"II*\0" if order == "<" else b"MM\0*"
    header = magic + struct.pack(order + "I", 8 + len(data))
    return header + data + struct.pack(order + "H", len(entries)) + directory + struct.pack(order + "I", 0) + extra


def tiff_files():
    files = {}
    grey, rgb, rgba = synthetic_image(1), synthetic_image(3), synthetic_image(4)
    for bits in (1, 2, 4, 8):
        samples = synthetic_image(1, bits)
        files[f"grey_{bits}.tif"] = tiff(samples, bits, 1)
        files[f"white_{bits}.tif"] = tiff(samples, bits, 0)
        colors = np.random.default_rng(5).integers(0, 65536, 3 * 2**bits)
        files[f"palette_{bits}.tif"] = tiff(samples, bits, 3, tags={320: (3, colors.tolist())})
    dark = (synthetic_image(1, 16) // 200).astype(np.uint16)
    for order, name in (("<", "little"), (">", "big")):
        files[f"rgb_8_{name}.tif"] = tiff(rgb, 8, 2, order)
        files[f"rgb_16_{name}.tif"] = tiff(synthetic_image(3, 16), 16, 2, order)
        files[f"grey_16_{name}.tif"] = tiff(dark, 16, 1, order)
    files["grey_alpha.tif"] = tiff(synthetic_image(2), 8, 1, tags={338: (3, [2])})
    files["rgbx.tif"] = tiff(rgba, 8, 2, tags={338: (3, [0])})
    files["rgba_associated.tif"] = tiff(rgba, 8, 2, tags={338: (3, [1])})
    files["rgba.tif"] = tiff(rgba, 8, 2, tags={338: (3, [2])})
    files["cmyk.tif"] = tiff(rgba, 8, 5)
    files["planar.tif"] = tiff(rgb, 8, 2, planar=2)
    values = (synthetic_image(1, 16).astype(np.float32) / 100 - 50).astype(np.float32)
    files["float.tif"] = tiff(values, 32, 1, tags={339: (3, [3])})
    files["int32.tif"] = tiff(values.astype(np.int32), 32, 1, tags={339: (3, [2])})
    for orientation in range(1, 9):
        files[f"orientation_{orientation}.tif"] = tiff(rgb[:5, :7], 8, 2, tags={274: (3, [orientation])})
    image = Image.fromarray(rgb)
    for name in ("tiff_lzw", "tiff_adobe_deflate", "packbits", "jpeg", "zstd", "lzma"):
        files[f"{name}.tif"] = saved(image, "TIFF", compression=name)
    files["group4.tif"] = saved(Image.fromarray(grey[:, :, 0] > 127), "TIFF", compression="group4")
    files["pages.tif"] = saved(image, "TIFF", save_all=True, append_images=[image.rotate(180)])
    files["big.tif"] = saved(image, "TIFF", big_tiff=True)
    return files


# Orientation ---------------------------------------------------------------------------------------------------------
def exif_files():
    rgb = Image.fromarray(synthetic_image(3, 8, 11, 7))
    files = {}
    for orientation in range(10):  # 0 and 9 are not valid
        exif = Image.Exif()
        exif[0x0112] = orientation
        files[f"exif_{orientation}.png"] = saved(rgb, "PNG", exif=exif)
    exif[0x0112] = 6
    files["exif_6.jpg"] = saved(rgb, "JPEG", exif=exif)
    files["exif_6.webp"] = saved(rgb, "WEBP", lossless=True, exif=exif)
    big_endian = b"MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x08\0\0\0\0\0\0"
    files["exif_8_big_endian.jpg"] = saved(rgb, "JPEG", exif=b"Exif\0\0" + big_endian)
    files["exif_8_after_data.png"] = png(np.array(rgb), 8, 2, after=chunk(b"eXIf", big_endian))
    files["exif_broken.jpg"] = saved(rgb, "JPEG", exif=b"Exif\0\0" + big_endian[:17])
    packet = b'<x:xmpmeta><rdf:Description tiff:Orientation="3"/></x:xmpmeta>'
    files["exif_3_xmp.jpg"] = saved(rgb, "JPEG", xmp=packet)
    files["exif_3_xmp.png"] = png(np.array(rgb), 8, 2, before=chunk(b"iTXt", b"XML:com.adobe.xmp\0\0\0\0\0" + packet))
    return files


def main():
    files = {**png_files(), **jpeg_files(), **webp_files(), **gif_files(), **exif_files()}
    files |= {**bmp_files(), **pnm_files(), **tiff_files()}
    folder = FOLDER / "decode"
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.iterdir():
        old.unlink()
    raw, cases = bytearray(), []
    for name, data in sorted(files.items()):
        (folder / name).write_bytes(data)
        for mode in ("RGB", "L"):
            image = Image.open(folder / name)
            if name.startswith("exif_"):
                if mode == "L":
                    continue
                image = ImageOps.exif_transpose(image)
            pixels = np.array(image.convert(mode))
            cases.append(
                {"file": name, "mode": mode, "width": pixels.shape[1], "height": pixels.shape[0], "offset": len(raw)}
            )
            raw += pixels.tobytes()
    (FOLDER / "decode.raw").write_bytes(raw)
    versions = {
        "pillow": PIL.__version__,
        "libjpeg_turbo": features.version("libjpeg_turbo"),
        "webp": features.version("webp"),
    }
    (FOLDER / "decode.json").write_text(json.dumps({"made_with": versions, "cases": cases}, indent=0) + "\n")
    print(f"{len(cases)} cases, {len(raw)} bytes of pixels, {sum(map(len, files.values()))} bytes of files")


if __name__ == "__main__":
    main()
