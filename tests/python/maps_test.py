# SPDX-License-Identifier: Apache-2.0
"""Maps of the Python package against the files of the program.

Run by scripts/python_check, which sets VITRAIL_LIBRARY and VITRAIL_PROGRAM.
"""

import io
import json
import os
import pathlib
import pickle
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

import numpy as np
from PIL import Image

import vitrail

ROOT = pathlib.Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "tests" / "fixtures"
PHOTO = ROOT / "examples" / "photographs" / "chelsea.png"
EXIF = FIXTURES / "image" / "decode" / "exif_6.png"


def program(*arguments):
    subprocess.run([os.environ["VITRAIL_PROGRAM"], *map(str, arguments)], check=True, capture_output=True)


def pixels_of(file, mode="RGB"):
    return np.array(Image.open(file).convert(mode))


class Maps(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def written(self, task, model, *options):
        """The arrays by their outputs ("": the only one), and the rendered image, as the program writes them."""
        folder = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
        program(task, "-m", model, PHOTO, "--arrays", folder, "--render", folder, *options)
        arrays = {file.name.split(".")[1].removesuffix("npy"): np.load(file) for file in folder.glob("*.npy")}
        return arrays, folder / "chelsea.png"

    def test_depth_in_metres_stays_so(self):
        model = vitrail.load(FIXTURES / "depth" / "metric")
        depth = model.depth(PHOTO)
        arrays, rendered = self.written("depth", FIXTURES / "depth" / "metric")
        np.testing.assert_array_equal(depth, arrays[""])
        for derived in (depth, depth[:9], depth.copy(), pickle.loads(pickle.dumps(depth))):
            self.assertEqual((type(derived), derived.unit), (vitrail.DepthMap, "m"))
        self.assertLess(np.abs(depth.overlay().astype(int) - pixels_of(rendered)).max(), 16)
        self.assertEqual(depth.render().size, (451, 300))
        np.testing.assert_array_equal(np.asarray(depth.render(opacity=0.3)), depth.overlay(opacity=0.3))

    def test_label_maps_are_those_of_the_program(self):
        for name, task in (
            ("semantic/linear", None),
            ("eomt/panoptic", None),
            ("eomt/panoptic", "instance"),
            ("eomt/panoptic", "semantic"),
        ):
            with self.subTest(name=name, task=task):
                model = vitrail.load(FIXTURES / name)
                arrays, rendered = self.written("segment", FIXTURES / name, *(["--task", task] if task else []))
                got = model.label_map(PHOTO, task)
                labels, ids, segments = got
                self.assertEqual((labels.dtype, ids.dtype, labels.shape), (np.int32, np.int32, (300, 451)))
                semantic = "ids" not in arrays
                np.testing.assert_array_equal(labels, arrays["" if semantic else "labels"])
                np.testing.assert_array_equal(ids, labels + 1 if semantic else arrays["ids"])
                self.assertEqual(sorted(segment.id for segment in segments), [i for i in np.unique(ids) if i > 0])
                for segment in segments:
                    inside = ids == segment.id
                    self.assertEqual(segment.area, inside.sum())
                    self.assertEqual(set(labels[inside]), {segment.class_index})
                    rows, columns = np.nonzero(inside)
                    box = (columns.min(), rows.min(), columns.max() + 1, rows.max() + 1)
                    self.assertEqual((segment.box, segment.score is None), (box, semantic))
                overlay = got.overlay()
                self.assertLessEqual(np.abs(overlay.astype(int) - pixels_of(rendered)).max(), 1)  # rounding of halves
                np.testing.assert_array_equal(overlay[ids == 0], pixels_of(PHOTO)[ids == 0])
                np.testing.assert_array_equal(np.asarray(got.render(PHOTO, opacity=0.5)), overlay)

    def test_label_maps_tell_their_segments(self):
        model = vitrail.load(FIXTURES / "semantic" / "linear")
        got = model.label_map(EXIF, exif=True)
        self.assertEqual(got.overlay().shape[:2], got.labels.shape)
        first = got.segments[0].label
        self.assertRegex(repr(got), rf"^<vitrail.LabelMap: \d+×\d+ pixels, {len(got.segments)} segments: {first}")
        self.assertIn(f"{got.segments[0].area} pixels", got._repr_html_())
        self.assertIn("<img", got._repr_html_())
        again = pickle.loads(pickle.dumps(got))
        np.testing.assert_array_equal(again.overlay(), got.overlay())
        with self.assertRaisesRegex(vitrail.Error, "task: expected semantic"):
            model.label_map(PHOTO, "panoptic")
        with self.assertRaisesRegex(vitrail.Error, "image: expected the result's size"):
            got.overlay(np.zeros((4, 4, 3), np.uint8))
        with self.assertRaisesRegex(vitrail.Error, "one that the model is for"):
            vitrail.load(FIXTURES / "depth" / "metric").label_map(PHOTO)

    def test_mattes_take_trimaps_and_masks_in_all_forms(self):
        path = FIXTURES / "vitmatte" / "windows"
        model, photo = vitrail.load(path), pixels_of(PHOTO)
        trimap = np.zeros((300, 451), np.uint8)
        trimap[100:, 100:], trimap[150:, 200:] = 128, 255
        file = self.folder / "trimap.png"
        Image.fromarray(trimap).save(file)
        arrays, rendered = self.written("matte", path, "--trimap", file)
        data = file.read_bytes()
        for form in (trimap, Image.fromarray(trimap), file, str(file), data, io.BytesIO(data)):
            np.testing.assert_array_equal(model.matte(PHOTO, form), arrays[""])
        matte = model.matte(PHOTO, trimap)
        self.assertEqual((type(matte), matte.dtype, matte.shape), (vitrail.Matte, np.float32, (300, 451)))
        np.testing.assert_array_equal(matte.cutout(), pixels_of(rendered, "RGBA"))
        self.assertEqual(matte.render().mode, "RGBA")
        np.testing.assert_array_equal(np.asarray(matte.render()), matte.cutout())
        red = matte.overlay(background=(255, 0, 0)).astype(float)
        alpha = np.asarray(matte)[..., None]
        np.testing.assert_allclose(red, photo * alpha + np.array([255, 0, 0]) * (1 - alpha), atol=0.51)
        np.testing.assert_array_equal(np.asarray(matte.render(background=(255, 0, 0))), red)
        clear = np.zeros_like(matte)  # nothing but the checkerboard
        self.assertEqual(set(clear.overlay(photo)[0, :16, 0]), {204, 255})

        mask = trimap == 255
        program("matte", "-m", path, PHOTO, "--mask", self.saved(mask), "--band", 3, "--arrays", self.folder, "--force")
        np.testing.assert_array_equal(model.matte(PHOTO, mask=mask, band=3), np.load(self.folder / "chelsea.npy"))
        self.assertFalse(np.array_equal(model.matte(PHOTO, mask=mask), model.matte(PHOTO, mask=mask, band=3)))
        with self.assertRaisesRegex(vitrail.Error, "trimap: expected one for the image"):
            model.matte(PHOTO)
        with self.assertRaisesRegex(vitrail.Error, "mask: expected no trimap beside it"):
            model.matte(PHOTO, trimap, mask=mask)

    def saved(self, mask):
        file = self.folder / "mask.png"
        Image.fromarray(mask.astype(np.uint8) * 255).save(file)
        return file

    def test_anomalies_have_score_map_and_mask(self):
        bank, good = self.folder / "bank", self.folder / "good"
        good.mkdir()
        for i in range(5):
            Image.fromarray(pixels_of(PHOTO)[i * 9 :, i * 9 :]).save(good / f"{i}.png")
        program("anomaly", "fit", good, "-m", FIXTURES / "models" / "timm_token", "-o", bank, "--quiet")
        arrays, rendered = self.written("anomaly", bank)
        model = vitrail.load(bank)
        found, facts = model.anomaly(PHOTO), model.run("anomaly", PHOTO)
        np.testing.assert_array_equal(found, arrays["map"])
        np.testing.assert_array_equal(found.mask, arrays["mask"])
        self.assertEqual((found.mask.dtype, type(found)), (bool, vitrail.AnomalyMap))
        self.assertEqual((found.score, found.threshold), (facts["score"], facts["threshold"]))
        self.assertEqual(found.anomalous, facts["anomalous"])
        self.assertEqual(found.pixel_threshold, model.config["pixel_threshold"])
        self.assertLess(np.abs(found.overlay().astype(int) - pixels_of(rendered)).max(), 16)
        self.assertIn(f"score {found.score:.3g}, ", repr(found))
        self.assertEqual(pickle.loads(pickle.dumps(found)).score, found.score)
        above = model.anomaly(PHOTO, threshold=-1, pixel_threshold=float(found.max()) / 2)
        self.assertEqual((above.anomalous, above.threshold), (True, -1))
        self.assertEqual(above.mask.sum(), (found > found.max() / 2).sum())
        self.assertFalse(model.anomaly(PHOTO, threshold=9).anomalous)

        for file in list(good.iterdir())[1:]:  # too few images for thresholds
            file.unlink()
        program("anomaly", "fit", good, "-m", FIXTURES / "models" / "timm_token", "-o", bank, "--quiet", "--force")
        unknown = vitrail.load(bank).anomaly(PHOTO)
        self.assertEqual((unknown.threshold, unknown.anomalous, unknown.mask), (None, None, None))
        self.assertEqual(unknown.overlay().shape, (300, 451, 3))

    def test_objects_are_those_of_the_program(self):
        arrays, rendered = self.written("detect", FIXTURES / "yolos" / "mid", "--threshold", "0")
        model = vitrail.load(FIXTURES / "yolos" / "mid")
        found = model.detect(PHOTO, threshold=0)
        boxes, scores, labels = found
        np.testing.assert_array_equal(np.column_stack([boxes, scores, found.indices]), arrays[""])
        self.assertEqual((boxes.dtype, boxes.shape, len(labels)), (np.float32, (9, 4), 9))
        names = json.loads((FIXTURES / "yolos" / "mid" / "config.json").read_text())["id2label"]
        self.assertEqual(labels, [names[str(index)] for index in found.indices])
        self.assertIn("9 objects", repr(found))
        self.assertIn("<img", found._repr_html_())
        best = vitrail.load(FIXTURES / "yolos" / "mid").detect(PHOTO, threshold=float(scores[1]))
        left, top, right, bottom = np.clip(np.rint(best.boxes[0]).astype(int), 0, [450, 299, 450, 299])
        drawn, program = best.overlay(), pixels_of(rendered)
        middle = (left + right) // 2
        np.testing.assert_array_equal(drawn[bottom - 1, middle], program[bottom - 1, middle])
        self.assertFalse((drawn == pixels_of(PHOTO)).all())
        empty = model.detect(PHOTO, threshold=1)
        self.assertEqual((empty.boxes.shape, empty.labels), ((0, 4), []))
        np.testing.assert_array_equal(empty.overlay(), pixels_of(PHOTO))
        both = model.detect([PHOTO, np.zeros((40, 60, 3), np.uint8)], threshold=0)
        np.testing.assert_array_equal(both[0].boxes, boxes)
        self.assertEqual(both[1].overlay().shape, (40, 60, 3))
        chosen = model.detect(PHOTO, threshold=0, classes=[labels[0]], nms=0.0)
        self.assertEqual(set(chosen.labels), {labels[0]})
        self.assertEqual(chosen.rles, [None] * len(chosen.labels))

    def test_further_models_are_opened_by_their_paths(self):
        detector, masks = FIXTURES / "yolos" / "mid", FIXTURES / "sam" / "global" / "model.pth"
        found = vitrail.load(detector).detect(PHOTO, masks=masks)
        rows = vitrail.load(detector).run("detect", PHOTO, masks=str(masks))
        self.assertEqual(found.rles, [each["rle"] for each in rows["detections"]])
        self.assertEqual(found.rles[0]["size"], [300, 451])
        persons = vitrail.load(FIXTURES / "vitpose" / "simple").run(
            "pose", PHOTO, detector=str(detector), classes=found.labels[0]
        )["persons"]
        self.assertEqual({person["label"] for person in persons}, {found.labels[0]})

    def test_objects_have_labels_or_are_like_an_example(self):
        model = vitrail.load(FIXTURES / "owl" / "v2")
        found = model.detect(PHOTO, ["a cat", "grass"], threshold=0, per_label=True)
        self.assertEqual((len(found.labels), set(found.labels)), (72, {"a cat", "grass"}))
        self.assertEqual(model.detect(PHOTO, "a cat", templates=["{}"], threshold=0).boxes.shape, (36, 4))
        like = model.detect(PHOTO, like=PHOTO, like_box=(10, 10, 200, 200), nms=1.0, threshold=0)
        self.assertEqual(set(like.labels), {"example"})
        self.assertGreater(len(model.detect(PHOTO, "grass", threshold=0, tile=128).labels), 36)
        with self.assertRaisesRegex(vitrail.Error, "labels: expected what to find"):
            model.detect(PHOTO)

    def test_open_files_and_arrays_are_images(self):
        model = vitrail.load(FIXTURES / "depth" / "relative")
        want = model.depth(PHOTO)
        with open(PHOTO, "rb") as file:
            got = model.depth(file)
        np.testing.assert_array_equal(got, want)
        np.testing.assert_array_equal(got.overlay(opacity=0), pixels_of(PHOTO))
        np.testing.assert_array_equal(model.depth(pixels_of(PHOTO)), want)

    def test_without_pillow_render_says_so(self):
        depth = vitrail.load(FIXTURES / "depth" / "relative").depth(pixels_of(PHOTO))
        with mock.patch.dict(sys.modules, {"PIL": None}):
            self.assertEqual(depth.overlay().shape, (300, 451, 3))
            with self.assertRaisesRegex(vitrail.Error, r"Pillow \(pip install pillow\)"):
                depth.render()


if __name__ == "__main__":
    unittest.main()
