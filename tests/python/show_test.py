# SPDX-License-Identifier: Apache-2.0
"""What notebooks show of models and results.

Run by scripts/python_check, which sets VITRAIL_LIBRARY and VITRAIL_PROGRAM.
"""

import base64
import html.parser
import inspect
import io
import json
import os
import pathlib
import pickle
import re
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import numpy as np

import vitrail

ROOT = pathlib.Path(__file__).resolve().parents[2]
PHOTO = ROOT / "examples" / "photographs" / "chelsea.png"
MODEL = ROOT / "models" / "cifar10-vit"
SEGMENTER = ROOT / "tests" / "fixtures" / "sam" / "exact_windows" / "model.pth"
EXIF = ROOT / "tests" / "fixtures" / "image" / "decode" / "exif_6.png"
VOID = {"img", "br"}


def pixels_of(file):
    from PIL import Image

    return np.array(Image.open(file).convert("RGB"))


class Elements(html.parser.HTMLParser):
    """The texts and images of HTML whose elements are closed."""

    def __init__(self, text):
        super().__init__()
        self.open, self.texts, self.images, self.widths = [], [], [], []
        self.feed(text)
        assert not self.open, self.open

    def handle_starttag(self, tag, attributes):
        if tag not in VOID:
            self.open.append(tag)
        values = dict(attributes)
        self.widths += [float(w) for w in re.findall(r"width:([\d.]+)%", values.get("style", ""))]
        if tag == "img":
            data = values["src"].removeprefix("data:image/png;base64,")
            self.images.append(pixels_of(io.BytesIO(base64.b64decode(data, validate=True))))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


class Show(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = vitrail.load(MODEL)
        cls.segmenter = vitrail.load(SEGMENTER)

    def test_a_model_has_a_card(self):
        text = repr(self.model)
        self.assertIn("deit_tiny_patch16_224, 32×32 pixels, 10 classes>", text)
        self.assertIn(str(MODEL), text)
        texts = Elements(self.model._repr_html_()).texts
        for expected in (str(MODEL), "32×32 pixels", "of width 192", "10: airplane, automobile, bird, cat, deer, …"):
            self.assertIn(expected, texts)
        self.assertIn("48×48 pixels", repr(vitrail.load(MODEL, image_size=48)))
        self.assertIn("128×128 pixels>", repr(self.segmenter))
        clip = vitrail.load(ROOT / "tests" / "fixtures" / "models" / "hf_clip")
        self.assertIn("in one space with images", Elements(clip._repr_html_()).texts)

    def test_every_public_name_is_documented(self):
        for name in vitrail.__all__:
            of_package = getattr(vitrail, name)
            self.assertTrue(inspect.getdoc(of_package), name)
            members = vars(of_package).items() if isinstance(of_package, type) else []
            for member, value in members:
                if not member.startswith("_") and (callable(value) or isinstance(value, (classmethod, property))):
                    self.assertTrue(inspect.getdoc(value), f"{name}.{member}")

    def test_a_name_is_not_html(self):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder, "<b>&")
            path.symlink_to(MODEL)
            self.assertIn(str(path), "".join(Elements(vitrail.load(path)._repr_html_()).texts))
        predictions = vitrail.Predictions([vitrail.Prediction("<b>&amp;", 0.5, 0)])
        self.assertEqual("".join(Elements(predictions._repr_html_()).texts), "<b>&amp;50.0%")

    def test_predictions_have_bars(self):
        predictions = self.model.classify(PHOTO, top=3)
        shown = Elements(predictions._repr_html_())
        self.assertEqual(shown.texts[::2], [prediction.label for prediction in predictions])
        self.assertEqual(shown.texts[1::2], [f"{prediction.probability:.1%}" for prediction in predictions])
        np.testing.assert_allclose(shown.widths, [100 * p.probability for p in predictions], atol=0.051)
        self.assertEqual(pickle.loads(pickle.dumps(predictions)), predictions)
        self.assertEqual(json.dumps(predictions), json.dumps(list(map(list, predictions))))
        unreadable = self.model.classify([b""], top=2, errors="nan")[0]
        self.assertEqual(Elements(unreadable._repr_html_()).widths, [0, 0])

    def test_an_attention_map_is_shown_over_what_the_model_sees(self):
        tiny = vitrail.load("imagenet-tiny")  # its crop is a part of the image
        for model in (self.model, tiny):
            side = model.config["pretrained_cfg"]["input_size"][1]
            from PIL import Image

            seen = model.attention(PHOTO).overlay(opacity=0)
            self.assertEqual((seen.shape, seen.dtype), ((side, side, 3), np.uint8))
            np.testing.assert_array_equal(model.attention(pixels_of(PHOTO)).overlay(opacity=0), seen)
            with Image.open(PHOTO) as photo:
                size = int(side / model.config["pretrained_cfg"]["crop_pct"])
                scale = size / min(photo.size)
                small = photo.convert("RGB").resize([int(edge * scale) for edge in photo.size], Image.BICUBIC)
                left, top = ((edge - side) // 2 for edge in small.size)
                want = np.asarray(small.crop((left, top, left + side, top + side)), np.int64)
            self.assertLess(np.abs(seen - want).mean(), 3)
        with open(EXIF, "rb") as file:
            turned = self.model.attention(file, exif=True).overlay(opacity=0)
        np.testing.assert_array_equal(turned, self.model.attention(EXIF, exif=True).overlay(opacity=0))
        self.assertFalse(np.array_equal(turned, self.model.attention(EXIF).overlay(opacity=0)))
        grey = vitrail.load(ROOT / "tests" / "fixtures" / "models" / "timm_gray").attention(PHOTO)
        self.assertEqual(grey.overlay().shape, (16, 16, 3))

    def test_an_overlay_is_that_of_the_program(self):
        """The program's figure has the image, and beside it the map over it."""
        from PIL import Image

        with tempfile.TemporaryDirectory() as folder:
            image, figure = pathlib.Path(folder, "image.png"), pathlib.Path(folder, "figure.png")
            Image.fromarray(pixels_of(PHOTO)[:32, 100:132]).save(image)  # the model's size
            command = [os.environ["VITRAIL_PROGRAM"], "attention", "-m", MODEL, image, "-o", figure]
            subprocess.run(command, check=True, capture_output=True)
            attention, drawn = self.model.attention(image), pixels_of(figure).astype(np.int64)
            pixels, overlay = pixels_of(image), attention.overlay()
        self.assertIsNone(attention._repr_html_())  # the file is not there any more
        self.assertLessEqual(distance_inside(drawn, overlay), 7)  # colours between those of the table
        np.testing.assert_array_equal(attention.overlay(pixels), overlay)
        self.assertLessEqual(distance_inside(drawn, pixels), 0)
        self.assertGreater(distance_inside(drawn, attention[::-1].overlay(pixels)), 30)

    def test_an_attention_map_is_an_array(self):
        attention = self.model.attention(PHOTO)
        row, column = np.unravel_index(np.argmax(attention), attention.shape)
        self.assertRegex(repr(attention), r"^<vitrail.AttentionMap 8×8: 0\.\S+ to 0\.\S+, highest at ")
        self.assertIn(f"highest at [{row}, {column}]>", repr(attention))
        shown = Elements(attention._repr_html_())
        np.testing.assert_array_equal(shown.images[0], attention.overlay())
        self.assertIn(repr(attention)[1:-1], shown.texts)
        plain = np.asarray(attention)
        for derived in (attention[:4], attention * 2, attention.copy(), pickle.loads(pickle.dumps(attention))):
            self.assertIsNone(derived._repr_html_())
            with self.assertRaisesRegex(vitrail.Error, "image: expected the image"):
                derived.overlay()
            self.assertEqual(derived.overlay(PHOTO).shape, (300, 451, 3))
            self.assertEqual(repr(derived), repr(np.array(derived)))
        self.assertEqual(repr(plain), repr(np.array(plain)))

    def test_a_depth_map_is_an_array_in_colours(self):
        folder = ROOT / "tests" / "fixtures" / "depth"
        with tempfile.TemporaryDirectory() as arrays:
            for name, unit in (("relative", "relative"), ("metric", "m")):
                depth = vitrail.load(folder / name).depth(PHOTO)
                command = [os.environ["VITRAIL_PROGRAM"], "depth", "-m", folder / name, PHOTO, "--arrays", arrays]
                subprocess.run([*command, "--force"], check=True, capture_output=True)
                np.testing.assert_array_equal(depth, np.load(pathlib.Path(arrays, f"{pathlib.Path(PHOTO).stem}.npy")))
                self.assertEqual((depth.dtype, depth.shape, depth.unit), (np.float32, (300, 451), unit))
                self.assertRegex(repr(depth), rf"^<vitrail.DepthMap 300×451: \S+ to \S+, {unit}>$")
                shown = Elements(depth._repr_html_())
                np.testing.assert_array_equal(shown.images[0], depth.overlay())
                self.assertIn(repr(depth)[1:-1], shown.texts)
                np.testing.assert_array_equal(depth.overlay(opacity=0), pixels_of(PHOTO))
                self.assertEqual((depth * 2).unit, unit)
                self.assertIsNone((depth * 2)._repr_html_())
        with self.assertRaisesRegex(vitrail.Error, "one that the model is for"):
            self.model.depth(PHOTO)

    def test_masks_are_shown_over_their_image(self):
        masks = self.segmenter.segment(PHOTO, points=[[200, 150]])
        pixels, best = pixels_of(PHOTO), int(masks.iou.argmax())
        self.assertRegex(repr(masks), r"^<vitrail.Masks: 3 of 451×300 pixels, predicted IoU \S+, \S+, \S+>$")
        inside = masks.masks[best] > 0
        overlay = masks.overlay()
        np.testing.assert_array_equal(overlay[~inside], pixels[~inside])
        color = masks.overlay(opacity=1)[inside]
        self.assertEqual(len(np.unique(color, axis=0)), 1)
        np.testing.assert_allclose(overlay[inside], (pixels[inside] + color.astype(float)) / 2, atol=0.51)
        np.testing.assert_array_equal(masks.overlay(pixels), overlay)
        np.testing.assert_array_equal(masks.overlay(mask=best), overlay)
        other = (best + 1) % 3
        np.testing.assert_array_equal((masks.overlay(mask=other, opacity=1) == color[0]).all(2), masks.masks[other] > 0)
        shown = Elements(masks._repr_html_())
        np.testing.assert_array_equal(shown.images[0], overlay)
        for i in range(3):
            self.assertIn(f"{masks.masks[i].sum():.0f} pixels", shown.texts)
        with self.assertRaisesRegex(vitrail.Error, "the result's size 451×300, got 451×299"):
            masks.overlay(pixels[1:])

    def test_masks_know_their_image_in_all_its_forms(self):
        pixels = pixels_of(PHOTO)
        want = self.segmenter.segment(pixels, box=[9, 8, 300, 290])
        embedding = self.segmenter.image_embedding(PHOTO)
        with open(PHOTO, "rb") as file:
            for image in (PHOTO, PHOTO.read_bytes(), file, embedding, np.dstack([pixels, pixels[..., 0]])):
                masks = self.segmenter.segment(image, box=[9, 8, 300, 290])
                np.testing.assert_array_equal(masks.overlay(), want.overlay())
        grey = self.segmenter.segment(pixels[..., 0], box=[9, 8, 300, 290])
        np.testing.assert_array_equal(grey.overlay(opacity=0), np.dstack([pixels[..., 0]] * 3))
        turned = self.segmenter.segment(EXIF, points=[[2, 2]], exif=True)
        self.assertEqual(turned.overlay().shape[:2], turned.masks.shape[1:])
        masks, iou, logits = want
        self.assertTrue(masks is want.masks and iou is want.iou and logits is want.logits)
        again = pickle.loads(pickle.dumps(want))
        np.testing.assert_array_equal(again.overlay(), want.overlay())

    def test_without_pillow_arrays_are_shown(self):
        by_path, by_pixels = (self.segmenter.segment(i, points=[[200, 150]]) for i in (PHOTO, pixels_of(PHOTO)))
        attention = self.model.attention(PHOTO)
        with mock.patch.dict(sys.modules, {"PIL": None}):
            self.assertEqual(by_pixels.overlay().shape, (300, 451, 3))
            self.assertEqual(attention.overlay().shape, (32, 32, 3))
            self.assertIn("<img", by_pixels._repr_html_())
            self.assertNotIn("<img", by_path._repr_html_())
            with self.assertRaisesRegex(vitrail.Error, "Pillow to read a file"):
                by_path.overlay()

    def test_a_large_image_is_made_smaller(self):
        noise = np.random.default_rng(0).integers(0, 256, (1900, 1000, 3), np.uint8)
        (shown,) = Elements(vitrail._show.figure(noise, "")).images
        np.testing.assert_array_equal(shown, noise[::3, ::3])


def distance_inside(image, part):
    """The largest difference of the part to the most similar place in the image."""
    height, width = part.shape[:2]
    windows = np.lib.stride_tricks.sliding_window_view(image, part.shape)[:, :, 0]
    return min(np.abs(row - part.astype(np.int64)).max((1, 2, 3)).min() for row in windows)


if __name__ == "__main__":
    unittest.main()
