# SPDX-License-Identifier: Apache-2.0
"""The Python package against the program, whose numbers it has to give.

Run by scripts/python_check, which sets VITRAIL_LIBRARY and VITRAIL_PROGRAM.
"""

import concurrent.futures
import json
import math
import multiprocessing
import os
import pathlib
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import warnings

import numpy as np

import vitrail

ROOT = pathlib.Path(__file__).resolve().parents[2]
PHOTO = ROOT / "examples" / "photographs" / "chelsea.png"
CLASSIFIER = ROOT / "models" / "cifar10-vit"
CLIP = ROOT / "tests" / "fixtures" / "models" / "hf_clip"


def program(*arguments):
    command = [os.environ["VITRAIL_PROGRAM"], *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def features_of_program(*arguments):
    with tempfile.TemporaryDirectory() as folder:
        file = pathlib.Path(folder) / "features.npy"
        program("embed", *arguments, "-o", file)
        return np.load(file)


def probability_in_worker(path):
    return vitrail.load(CLASSIFIER).classify(path, top=1)[0]


class Segmenter(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.path = ROOT / "tests" / "fixtures" / "sam" / "exact_windows" / "model.pth"
        cls.model = vitrail.load(cls.path)

    def test_masks_are_the_programs(self):
        prompt = ["--point", "200,150", "--box", "9,8,300,290"]
        want = json.loads(program("segment", "-m", self.path, PHOTO, *prompt, "--format", "json"))["masks"]
        got = self.model.segment(PHOTO, points=[[200, 150]], box=[9, 8, 300, 290])
        self.assertEqual([int(area) for area in got.masks.sum((1, 2))], [mask["area"] for mask in want])
        np.testing.assert_array_equal(got.iou, np.float32([mask["iou"] for mask in want]))
        size = want[0]["rle"]["size"]
        self.assertEqual(got.masks.shape, (3, *size))

    def test_boxes_are_prompts(self):
        boxes = np.float64([[9, 8, 300, 290], [100, 20, 200, 99]])
        for i, got in enumerate(self.model.segment(PHOTO, box=boxes)):
            np.testing.assert_array_equal(got.logits, self.model.segment(PHOTO, box=boxes[i]).logits)

    def test_a_mask_of_booleans_is_that_of_an_image(self):
        from PIL import Image

        mask = np.zeros((300, 451), bool)
        mask[60:160, 120:300] = True
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "mask.png"
            Image.fromarray(mask.astype(np.uint8) * 255).save(file)
            line = json.loads(program("segment", "-m", self.path, PHOTO, "--mask", file, "--format", "json"))
        got = self.model.segment(PHOTO, mask=mask)
        self.assertEqual([int(area) for area in got.masks.sum((1, 2))], [each["area"] for each in line["masks"]])
        np.testing.assert_array_equal(got.iou, np.float32([each["iou"] for each in line["masks"]]))
        np.testing.assert_array_equal(self.model.segment(PHOTO, mask_logits=mask).logits, got.logits)
        np.testing.assert_array_equal(self.model.segment(PHOTO, mask=np.asfortranarray(mask)).logits, got.logits)
        wrong = [
            (dict(mask=mask[1:]), "mask: expected the image's size 451×300, got 451×299"),
            (dict(mask=np.zeros_like(mask)), "a mask with pixels in the object"),
            (dict(mask=mask.astype(np.float32)), "booleans"),
            (dict(mask=mask, mask_logits=got.logits[0]), "a mask or logits of one, got both"),
        ]
        for arguments, message in wrong:
            with self.subTest(message), self.assertRaisesRegex(vitrail.Error, message):
                self.model.segment(PHOTO, **arguments)

    def test_an_embedding_stands_for_its_image(self):
        embedding = self.model.image_embedding(PHOTO)
        for points, labels in (([[200, 150]], None), ([[200, 150], [20, 30]], [1, 0])):
            by_image = self.model.segment(PHOTO, points, labels)
            by_embedding = self.model.segment(embedding, points, labels)
            np.testing.assert_array_equal(by_image.logits, by_embedding.logits)
        refined = self.model.segment(embedding, mask_logits=by_image.logits[0], multimask=False)
        self.assertEqual(refined.masks.shape[0], 1)

    def test_what_makes_no_sense_is_an_error(self):
        wrong = [
            (dict(), "points, a box or a mask"),
            (dict(points=[[1, 2, 3]]), r"points: expected shape \['n', 2\]"),
            (dict(points=[[1, 2]], labels=[1, 0]), "labels: expected shape"),
            (dict(points=[[1, 2]], labels=[2]), "label"),
            (dict(points=[[9999, 2]]), "the image of"),
            (dict(box=[1, 2, 3]), "box: expected shape"),
            (dict(mask_logits=np.zeros((3, 4))), "mask_logits: expected shape"),
        ]
        for arguments, message in wrong:
            with self.subTest(message), self.assertRaisesRegex(vitrail.Error, message):
                self.model.segment(PHOTO, **arguments)
        with self.assertRaisesRegex(vitrail.Error, "a Vision Transformer"):
            self.model.embed(PHOTO)
        with self.assertRaisesRegex(vitrail.Error, "Segment Anything"):
            vitrail.load(CLASSIFIER).segment(PHOTO, points=[[1, 2]])


class Classifier(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = vitrail.load(CLASSIFIER)

    def test_classify_gives_the_programs_numbers(self):
        line = json.loads(program("classify", "-m", CLASSIFIER, PHOTO, "--format", "json", "--top", 3))
        want = [(p["label"], np.float32(p["probability"])) for p in line["predictions"]]
        got = self.model.classify(PHOTO, top=3)
        self.assertEqual([label for label, _ in got], [label for label, _ in want])
        np.testing.assert_allclose([p for _, p in got], [p for _, p in want], rtol=1e-6)
        self.assertEqual([prediction.index for prediction in got], [p["index"] for p in line["predictions"]])
        self.assertEqual([self.model.labels[prediction.index] for prediction in got], [label for label, _ in got])
        again = pickle.loads(pickle.dumps(got))
        self.assertEqual((again, again[0].index), (got, got[0].index))

    def test_run_gives_a_task_by_its_name(self):
        one = self.model.run("classify", PHOTO, top=3)
        got = [(p["label"], np.float32(p["probability"])) for p in one["predictions"]]
        self.assertEqual([label for label, _ in got], [label for label, _ in self.model.classify(PHOTO, top=3)])
        self.assertEqual(len(self.model.run("pca", [PHOTO, PHOTO], no_norm=True)), 2)
        with self.assertRaisesRegex(vitrail.Error, "no_such_task"):
            self.model.run("no_such_task", PHOTO)

    def test_run_takes_files_and_images_as_options(self):
        from PIL import Image

        model = vitrail.load(ROOT / "tests/fixtures/vitmatte/windows")
        photo = np.full((40, 50, 3), 90, np.uint8)
        trimap = np.zeros((40, 50), np.uint8)
        trimap[10:, 10:], trimap[20:, 20:] = 128, 255
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "trimap.png"
            Image.fromarray(trimap).save(file)
            want = model.run("matte", photo, trimap=file, raw=True)
            self.assertEqual((want["shape"], want["unknown"]), ([40, 50], 0.3))
            for form in (trimap, trimap[..., None], Image.fromarray(trimap), file.read_bytes()):
                self.assertEqual(model.run("matte", photo, trimap=form, raw=True), want)
            both = model.run("matte", [photo, photo], trimap=[file, np.full_like(trimap, 128)])
        self.assertEqual([result["unknown"] for result in both], [0.3, 1])
        with self.assertRaisesRegex(vitrail.Error, "the image's size 50×40, got 50×39"):
            model.run("matte", photo, trimap=trimap[1:])

    def test_embed_is_bit_for_bit_the_programs(self):
        np.testing.assert_array_equal(self.model.embed([PHOTO]), features_of_program("-m", CLASSIFIER, PHOTO))
        patch = self.model.embed(PHOTO, tokens="patch", layer=2)
        want = features_of_program("-m", CLASSIFIER, PHOTO, "--tokens", "patch", "--layer", 2)
        np.testing.assert_array_equal(patch.reshape(-1), want.reshape(-1))

    def test_all_kinds_of_images_give_the_same_result(self):
        want = self.model.logits(PHOTO)
        pixels = decoded(PHOTO)
        alpha = np.dstack([pixels, np.full(pixels.shape[:2], 9, np.uint8)])
        padded = np.zeros((pixels.shape[0], pixels.shape[1] + 5, 3), np.uint8)
        padded[:, :-5] = pixels
        for image in (
            str(PHOTO),
            PHOTO.read_bytes(),
            pixels,
            alpha,
            padded[:, :-5],
            np.asfortranarray(pixels),
            Foreign(pixels),
            OnlyDLPack(pixels),
        ):
            np.testing.assert_array_equal(self.model.logits(image), want)
        for batch in (Foreign(np.stack([pixels] * 2)), OnlyDLPack(np.stack([pixels] * 2)), [OnlyDLPack(pixels)] * 2):
            np.testing.assert_array_equal(self.model.logits(batch), np.stack([want] * 2))
        np.testing.assert_array_equal(self.model.logits([pixels, PHOTO])[1], want)
        flipped = np.ascontiguousarray(pixels[::-1])
        np.testing.assert_array_equal(self.model.logits(pixels[::-1]), self.model.logits(flipped))

    def test_forward_of_the_preprocessed_image_gives_the_logits(self):
        pixels = self.model.preprocess([PHOTO, PHOTO])
        self.assertEqual(pixels.shape[:2], (2, 3))
        np.testing.assert_array_equal(self.model.forward(pixels), self.model.logits([PHOTO, PHOTO]))

    def test_attention_and_pca_have_the_grids_shape(self):
        grid = self.model.embed(PHOTO, tokens="grid").shape[:2]
        self.assertEqual(self.model.attention(PHOTO).shape, grid)
        self.assertEqual(self.model.pca(PHOTO).shape, (*grid, 3))
        self.assertEqual([m.shape for m in self.model.pca([PHOTO, PHOTO])], [(*grid, 3)] * 2)

    def test_explain_gives_the_page_of_an_image(self):
        page = self.model.explain(PHOTO, target=2, detail="small", lang="zh")
        manifest = json.loads(page.split('id="manifest">')[1].split("</script>")[0])
        self.assertTrue(page.startswith("<!doctype html>"))
        self.assertEqual((manifest["prediction"]["class"], manifest["language"]), (2, "zh"))
        best = self.model.classify(PHOTO, top=1)[0]
        self.assertEqual(manifest["prediction"]["top"][0]["class"], best.index)
        with self.assertRaisesRegex(vitrail.Error, "detail: expected"):
            self.model.explain(PHOTO, detail="large")

    def test_gradients_are_the_slope_of_the_logit(self):
        pixels, target = self.model.preprocess([PHOTO])[0], self.model.classify(PHOTO, top=1)[0]
        gradient = self.model.gradients(PHOTO)
        self.assertEqual((gradient.shape, gradient.dtype), (pixels.shape, np.float32))
        direction = gradient / np.linalg.norm(gradient)
        around = self.model.forward(np.stack([pixels + 0.01 * direction, pixels - 0.01 * direction]))[:, target.index]
        self.assertAlmostEqual((around[0] - around[1]) / 0.02 / np.linalg.norm(gradient), 1, delta=0.01)
        for same in (target.index, np.int64(target.index), target.label):
            np.testing.assert_array_equal(self.model.gradients(decoded(PHOTO), same), gradient)
        self.assertFalse(np.allclose(self.model.gradients(PHOTO, (target.index + 1) % 10), gradient))

    def test_gradients_are_of_any_traced_value(self):
        several = self.model.gradients(PHOTO, "cat", of=["images", "embedded", "blocks.3.attn.weights"])
        self.assertEqual(list(several), ["images", "embedded", "blocks.3.attn.weights"])
        values = self.model.trace(PHOTO)
        for name, gradient in several.items():
            self.assertEqual(gradient.shape, values[name].shape[1:])
        np.testing.assert_array_equal(self.model.gradients(PHOTO, "cat", of="embedded"), several["embedded"])
        # The patch embedding is linear, so its weights lead from the gradients of tokens to those of pixels.
        weights, side = self.model.parameters()["patch_embed.proj.weight"], 4
        tokens = several["embedded"][1:].reshape(8, 8, -1)
        pixels = np.einsum("hwd,dcyx->chywx", tokens, weights).reshape(3, 8 * side, 8 * side)
        np.testing.assert_allclose(several["images"], pixels, atol=1e-4 * np.abs(pixels).max())

    def test_gradients_take_the_exif_orientation(self):
        stored = ROOT / "tests" / "fixtures" / "image" / "decode" / "exif_6.png"
        turned = np.rot90(decoded(stored), -1)
        np.testing.assert_array_equal(self.model.gradients(stored, exif=True), self.model.gradients(turned))
        with open(stored, "rb") as file:
            np.testing.assert_array_equal(self.model.gradients(file), self.model.gradients(stored))

    def test_gradients_that_there_are_not_are_errors(self):
        for target in (-1, 10, "tiger"):
            with self.assertRaisesRegex(vitrail.Error, "a class from 0 to 9, or one of the model's labels"):
                self.model.gradients(PHOTO, target)
        with self.assertRaisesRegex(vitrail.Error, 'values: expected "images", or a name'):
            self.model.gradients(PHOTO, of="blocks.12")
        with self.assertRaisesRegex(vitrail.Error, "a model with a classifier"):
            vitrail.load(CLIP).gradients(PHOTO, 1)

    def test_attention_takes_the_exif_orientation(self):
        stored = ROOT / "tests" / "fixtures" / "image" / "decode" / "exif_6.png"
        turned = np.rot90(decoded(stored), -1)
        np.testing.assert_array_equal(self.model.attention(stored, exif=True), self.model.attention(turned))
        np.testing.assert_array_equal(self.model.attention(stored), self.model.attention(decoded(stored)))

    def test_exif_turns_images_of_pillow_too(self):
        from PIL import Image

        stored = ROOT / "tests" / "fixtures" / "image" / "decode" / "exif_6.png"
        with Image.open(stored) as photo:
            np.testing.assert_array_equal(self.model.logits(photo, exif=True), self.model.logits(stored, exif=True))
        with open(stored, "rb") as file:
            np.testing.assert_array_equal(self.model.logits(file), self.model.logits(stored))

    def test_lists_give_what_each_image_gives(self):
        pixels = decoded(PHOTO)
        images = [str(PHOTO), PHOTO, pixels[:200], PHOTO.read_bytes(), pixels[:, :99]] * 15  # several batches
        want = np.stack([self.model.embed(image) for image in images])
        told = []
        np.testing.assert_array_equal(self.model.embed(iter(images), on_progress=told.append), want)
        self.assertEqual((sum(told), max(told)), (75, 32))
        self.assertEqual(self.model.classify(images), [self.model.classify(image) for image in images])
        told = []
        maps = self.model.pca(iter(images[:40]), on_progress=told.append)
        self.assertEqual((len(maps), sum(told), max(told)), (40, 40, 32))
        np.testing.assert_array_equal(maps[0], maps[5])
        with self.assertRaisesRegex(vitrail.Error, "/no/such"):
            self.model.embed([*images, "/no/such"])

    def test_unreadable_images_are_rows_of_nan(self):
        bad = [None, b"", b"text", "/no/such", "a\0b", np.zeros((4, 4)), np.zeros((0, 4, 3), np.uint8)]
        rows = self.model.logits([PHOTO, *bad, PHOTO], errors="nan")
        np.testing.assert_array_equal(np.isnan(rows).all(1), [False, *[True] * len(bad), False])
        np.testing.assert_array_equal(rows[-1], self.model.logits(PHOTO))
        self.assertTrue(np.isnan(self.model.logits(b"", errors="nan")).all())
        for call in (self.model.logits, self.model.classify, self.model.pca):
            with self.assertRaises(vitrail.Error):
                call([PHOTO], errors="ignore")
        classes = self.model.classify([PHOTO, b"text"], top=2, errors="nan")
        self.assertEqual(classes[0], self.model.classify(PHOTO, top=2))
        self.assertTrue(all(math.isnan(prediction.probability) for prediction in classes[1]))
        self.assertEqual([(prediction.label, prediction.index) for prediction in classes[1]], [("", -1)] * 2)
        maps = self.model.pca([b"text", PHOTO], errors="nan")
        np.testing.assert_array_equal(maps[1], self.model.pca(PHOTO))
        self.assertTrue(maps[0].shape == maps[1].shape and np.isnan(maps[0]).all())

    def test_folders_and_patterns_are_those_of_the_program(self):
        names = ["[1].png", "a.png", "b/c.png", "z.png"]
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "b").mkdir()
            for i, file in enumerate(names):
                write_png(folder / file, decoded(PHOTO)[: 300 - 20 * i])
            (folder / "notes.txt").write_text("no image")
            paths = [str(folder / file) for file in names]
            want = features_of_program("-m", CLASSIFIER, folder)
            with self.assertWarnsRegex(UserWarning, "left out: 1 .txt"):
                np.testing.assert_array_equal(self.model.embed(folder), want)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self.assertEqual(vitrail.list_images(str(folder)), paths)
                self.assertEqual(self.model.classify(folder), self.model.classify(paths))
                np.testing.assert_array_equal(self.model.pca(folder), self.model.pca(paths))
                self.assertEqual(len(self.model.run("classify", folder)), 4)
            np.testing.assert_array_equal(self.model.embed(f"{folder}/*.png"), want[[0, 1, 3]])
            np.testing.assert_array_equal(self.model.embed(folder / "**/*.png"), want)
            self.assertEqual(vitrail.list_images(folder / "[a-b]*"), paths[1:3])  # a folder that matches is listed
            np.testing.assert_array_equal(self.model.embed(paths[0]), want[0])  # a file that exists is no pattern
            (folder / "b/c.png").unlink()
            for nothing in (folder / "b", folder / "*.jpg"):
                with self.assertRaisesRegex(vitrail.Error, "got none"):
                    self.model.embed(nothing)

    def test_nul_ends_no_text(self):
        for call in (lambda: vitrail.load("a\0b"), lambda: self.model.run("classify\0", PHOTO)):
            with self.assertRaisesRegex(vitrail.Error, "NUL"):
                call()

    def test_memory_does_not_grow_with_the_list(self):
        script = """
import pathlib, resource, sys, numpy as np, vitrail
from PIL import Image
file = pathlib.Path(sys.argv[2]) / "large.png"
Image.fromarray(np.zeros((4000, 6000, 3), np.uint8)).save(file)
model = vitrail.load(sys.argv[1])
peaks = []
for count in (8, 40):
    for method in (model.embed, model.classify, model.logits, model.pca):
        method([file] * count)
    peaks.append(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
print(peaks[1] - peaks[0])
"""
        with tempfile.TemporaryDirectory() as folder:
            grown = subprocess.run(
                [sys.executable, "-c", script, CLASSIFIER, folder], check=True, capture_output=True, text=True
            ).stdout
        self.assertLess(int(grown), 200_000, "KiB; 32 images have 2,250,000 KiB of pixels")

    def test_properties(self):
        self.assertEqual(self.model.labels, json.loads((CLASSIFIER / "config.json").read_text())["label_names"])
        self.assertFalse(self.model.has_text)
        self.assertIn("model_args", self.model.config)

    def test_a_model_from_bytes_is_that_of_its_files(self):
        weights, config = ((CLASSIFIER / name).read_bytes() for name in ("model.safetensors", "config.json"))
        want = self.model.logits(PHOTO)
        for contents in (config, json.loads(config)):
            for kind in (bytes, bytearray, memoryview):
                model = vitrail.load(kind(bytearray(weights)), config=contents)  # the model keeps the bytes
                np.testing.assert_array_equal(model.logits(PHOTO), want)
        self.assertEqual(model.labels, self.model.labels)
        np.testing.assert_array_equal(model.gradients(PHOTO, "cat"), self.model.gradients(PHOTO, "cat"))
        self.assertIn("<vitrail.Model from bytes: deit_tiny_patch16_224, 32×32 pixels", repr(model))
        self.assertIn("Model from bytes", model._repr_html_())
        for call in (model.parameters, lambda: model.trace(PHOTO), lambda: vitrail.knn("a", "b", model=model)):
            with self.assertRaisesRegex(vitrail.Error, "loaded from files, which the program opens, got one from"):
                call()

    def test_a_model_of_transformers_from_bytes_has_its_preprocessing(self):
        folder = ROOT / "tests" / "fixtures" / "models" / "hf_vit"
        files = (folder / f"{name}.json" for name in ("config", "preprocessor_config"))
        config, preprocessor = (json.loads(file.read_text()) for file in files)
        model = vitrail.load((folder / "model.safetensors").read_bytes(), config=config, preprocessor=preprocessor)
        np.testing.assert_array_equal(model.preprocess([PHOTO]), vitrail.load(folder).preprocess([PHOTO]))

    def test_bytes_that_are_no_model_are_errors(self):
        weights = (CLASSIFIER / "model.safetensors").read_bytes()
        wrong = [
            ((weights,), dict(), "the text of a config.json, or the name of an architecture"),
            ((weights,), dict(config=b"{"), "config.json"),
            ((weights[:-1],), dict(config={}), "expected data inside the file"),
            ((b"",), dict(config={}), "got"),
            ((CLASSIFIER,), dict(config={}), "path: expected the bytes of a safetensors file"),
            ((CLASSIFIER,), dict(preprocessor={}), "path: expected the bytes of a safetensors file"),
        ]
        for arguments, options, message in wrong:
            with self.subTest(message), self.assertRaisesRegex(vitrail.Error, message):
                vitrail.load(*arguments, **options)

    def test_errors_have_three_parts(self):
        with self.assertRaises(vitrail.Error) as raised:
            vitrail.load("/no/such/model")
        error = raised.exception
        self.assertEqual(str(error), f"{error.where}: expected {error.expected}, got {error.got}")
        copy = pickle.loads(pickle.dumps(error))
        self.assertEqual((str(copy), copy.where, copy.got), (str(error), error.where, error.got))
        for bad in (np.zeros((4, 4, 3)), np.zeros((4, 4, 2), np.uint8), np.zeros((0, 4, 3), np.uint8), 7, b"text"):
            with self.assertRaises(vitrail.Error):
                self.model.classify(bad)
        with self.assertRaises(vitrail.Error):
            self.model.embed(PHOTO, tokens="patches")
        with self.assertRaises(vitrail.Error):
            self.model.classify([])
        with self.assertRaises(vitrail.Error):
            self.model.embed_text("a cat")

    def test_threads_share_a_model(self):
        want = self.model.logits(PHOTO)
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            for got in pool.map(self.model.logits, [PHOTO] * 32):
                np.testing.assert_array_equal(got, want)

    def test_processes_load_models_of_their_own(self):
        want = self.model.classify(PHOTO, top=1)[0]  # before the fork, so that a thread pool exists
        for method in ("fork", "spawn"):
            with multiprocessing.get_context(method).Pool(2) as pool:
                self.assertEqual(pool.map(probability_in_worker, [str(PHOTO)] * 2), [want] * 2)

    def test_a_model_survives_a_fork(self):
        want = self.model.logits(PHOTO)
        reader, writer = multiprocessing.Pipe(duplex=False)
        process = multiprocessing.get_context("fork").Process(
            target=lambda: writer.send_bytes(self.model.logits(PHOTO).tobytes())
        )
        process.start()
        self.assertTrue(reader.poll(60), "the forked process gives no result")
        np.testing.assert_array_equal(np.frombuffer(reader.recv_bytes(), np.float32), want)
        process.join()

    def test_a_fork_during_a_call_of_another_thread_can_compute(self):
        want = self.model.logits(PHOTO)
        done = threading.Event()

        def compute():
            while not done.is_set():
                self.model.logits([PHOTO] * 8)

        thread = threading.Thread(target=compute)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(done.set)
        for _ in range(20):
            reader, writer = multiprocessing.Pipe(duplex=False)
            process = multiprocessing.get_context("fork").Process(
                target=lambda writer=writer: writer.send_bytes(self.model.logits(PHOTO).tobytes())
            )
            process.start()
            self.assertTrue(reader.poll(60), "the forked process gives no result")
            np.testing.assert_array_equal(np.frombuffer(reader.recv_bytes(), np.float32), want)
            process.join()


class Dual(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = vitrail.load(CLIP)

    def test_zeroshot_gives_the_programs_probabilities(self):
        labels = ["cat", "dog", "bicycle"]
        line = json.loads(
            program("zeroshot", "-m", CLIP, PHOTO, "--labels", ",".join(labels), "--format", "json", "--top", 3)
        )
        want = {p["label"]: p["probability"] for p in line["predictions"]}
        got = self.model.zeroshot(PHOTO, labels)
        np.testing.assert_allclose(got, [want[label] for label in labels], rtol=1e-6)
        self.assertAlmostEqual(float(got.sum()), 1, places=6)
        self.assertEqual(self.model.zeroshot([PHOTO, PHOTO], labels, ["a photo of a {}"]).shape, (2, 3))

    def test_texts_equal_the_programs(self):
        want = features_of_program("-m", CLIP, "--text", "a cat", "--normalize")
        np.testing.assert_array_equal(self.model.embed_text(["a cat"]), want)
        self.assertEqual(self.model.embed_text("a cat").ndim, 1)

    def test_a_long_text_is_cut_with_a_warning(self):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            self.model.embed_text("cat " * 200)
        self.assertEqual(len(caught), 1)


def write_dataset(folder, count=12):
    """Class folders with `count` images of each of two colours: pixels of noise around each."""
    from PIL import Image

    random = np.random.default_rng(0)
    for name, color in (("dark", 60), ("light", 190)):
        (folder / name).mkdir(parents=True)
        for i in range(count):
            pixels = np.clip(random.normal(color, 20, (32, 32, 3)), 0, 255).astype(np.uint8)
            Image.fromarray(pixels).save(folder / name / f"{i}.png")


class Training(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        write_dataset(self.folder / "colors")
        self.events = []

    def test_a_dataset_is_trained_as_the_program_does(self):
        settings = {"epochs": 2, "schedule.warmup_epochs": 0}
        result = vitrail.train(
            self.folder / "colors",
            self.folder / "run",
            model=CLASSIFIER,
            settings=settings,
            threads=1,
            on_progress=self.events.append,
        )
        arguments = ["--set", "epochs=2", "--set", "schedule.warmup_epochs=0", "--threads", 1]
        of_program = json.loads(
            program("train", self.folder / "colors", "-o", self.folder / "same", "-m", CLASSIFIER, *arguments)
        )
        for key in ("epochs", "steps", "held_out_top1", "best_epoch"):
            self.assertEqual(result[key], of_program[key])
        kinds = [event["event"] for event in self.events]
        self.assertEqual((kinds.count("epoch"), kinds[-1]), (2 + result["retrained"]["epochs"], "result"))
        self.assertEqual(vitrail.load(result["run"]).labels, ["dark", "light"])

    def test_a_model_learns_without_labels(self):
        images = self.folder / "unlabelled"
        write_dataset(images, 50)
        result = vitrail.pretrain(
            images,
            self.folder / "run",
            model=CLASSIFIER,
            probe=self.folder / "colors",
            settings={"epochs": 1},
            threads=1,
        )
        self.assertEqual(result["steps"], 11)  # 90 images in batches of 8, the last one left out
        self.assertTrue({"start_knn", "held_out_knn", "last_knn"} <= result.keys())
        self.assertEqual(vitrail.load(result["run"]).embed([images / "dark/1.png"]).shape[0], 1)

    def test_a_run_that_is_interrupted_continues(self):
        recipe = json.loads((ROOT / "recipes" / "digits.json").read_text())
        recipe["epochs"] = 1
        recipe["schedule"]["warmup_epochs"] = 0
        with self.assertRaises(KeyboardInterrupt):
            vitrail.train(recipe, self.folder / "run", threads=1, on_progress=self.interrupt)
        with self.assertRaisesRegex(vitrail.Error, "resume"):
            vitrail.train(recipe, self.folder / "run")
        result = vitrail.train(recipe, self.folder / "run", threads=1, resume=True)
        self.assertEqual(result["epochs"], 1)

    def interrupt(self, event):
        if event["event"] == "progress" and event["step"] == 3:
            raise KeyboardInterrupt

    def test_ctrl_c_at_any_moment_is_raised(self):
        settings = {"epochs": 1000, "schedule.warmup_epochs": 0}
        for i in range(8):
            sent = []
            timer = threading.Timer(0.2 + 0.15 * i, interrupt, (sent,))
            with self.assertRaises(KeyboardInterrupt):
                timer.start()
                vitrail.train(self.folder / "colors", self.folder / f"run{i}", model=CLASSIFIER, settings=settings)
            self.assertLess(time.monotonic() - sent[0], 3, "seconds; half a one if the processor is free")
        resumed = {**settings, "epochs": 1}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            vitrail.train(
                self.folder / "colors",
                self.folder / "run7",
                model=CLASSIFIER,
                settings=resumed,
                resume=True,
                allow_changes=True,
            )
        self.assertIs(signal.getsignal(signal.SIGINT), signal.default_int_handler)

    def test_a_preset_chooses_the_recipe(self):
        vitrail.train(self.folder / "colors", self.folder / "run", model=CLASSIFIER, preset="probe")
        self.assertEqual(json.loads((self.folder / "run/recipe.json").read_text())["objective"], "probe")
        with self.assertRaisesRegex(vitrail.Error, "preset"):
            vitrail.train(self.folder / "colors", self.folder / "run2", preset="scratched")

    def test_mistakes_in_a_recipe_are_errors(self):
        with self.assertRaisesRegex(vitrail.Error, "epochss"):
            vitrail.train({"epochss": 1}, self.folder / "run")


def interrupt(sent):
    sent.append(time.monotonic())
    os.kill(os.getpid(), signal.SIGINT)


class Interrupts(unittest.TestCase):
    def test_long_calls_are_interrupted_at_once(self):
        model = vitrail.load(CLASSIFIER)
        segmenter = vitrail.load(ROOT / "models" / "segment-tiny")

        def segment():
            while True:
                segmenter.segment(PHOTO, points=[[200, 150]])

        calls = {
            "embed": lambda: model.embed([PHOTO] * 100_000),
            "pca": lambda: model.pca([PHOTO] * 100_000),
            "forward": lambda: model.forward(np.zeros((2000, 3, 32, 32), np.float32)),  # one call of the library
            "segment": segment,
        }
        for name, call in calls.items():
            sent = []
            with self.subTest(name), self.assertRaises(KeyboardInterrupt):
                threading.Timer(0.2, interrupt, (sent,)).start()
                call()
            self.assertLess(time.monotonic() - sent[0], 1, name)
        self.assertTrue(np.isfinite(model.embed([PHOTO] * 3)).all())


class Batches(unittest.TestCase):
    def test_an_embedder_adds_a_column(self):
        want = vitrail.load(CLASSIFIER).embed([PHOTO, PHOTO], normalize=True)
        embedder = vitrail.Embedder(CLASSIFIER, normalize=True)
        batch = {"image": [str(PHOTO), {"bytes": PHOTO.read_bytes(), "path": None}], "id": [1, 2]}
        got = pickle.loads(pickle.dumps(embedder))(batch)
        np.testing.assert_array_equal(got["embedding"], want)
        self.assertEqual(got["id"], [1, 2])

    def test_a_bad_image_is_an_error_or_a_row_of_nan(self):
        images = {"image": [str(PHOTO), b"no image"]}
        with self.assertRaises(vitrail.Error):
            vitrail.Embedder(CLASSIFIER)(images)
        rows = vitrail.Embedder(CLASSIFIER, errors="nan")(images)["embedding"]
        self.assertTrue(np.isfinite(rows[0]).all() and np.isnan(rows[1]).all())
        self.assertEqual(vitrail.Embedder(CLASSIFIER, errors="nan")({"image": [b""]})["embedding"].shape, (1, 192))
        with self.assertRaises(vitrail.Error):
            vitrail.Embedder(CLASSIFIER, errors="ignore")


class Foreign:
    """An object of another library with an array in it."""

    def __init__(self, array):
        self.array = array

    def __array__(self, *_, **__):
        return self.array


class OnlyDLPack:
    """An object whose memory is exchanged by DLPack alone: no sequence, and no array for NumPy's functions."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


def write_png(path, pixels):
    from PIL import Image

    Image.fromarray(pixels).save(path)


def decoded(path):
    """The pixels of a file, by the program's own reader: the model's input before resizing has no command."""
    from PIL import Image

    return np.array(Image.open(path).convert("RGB"))  # a copy: NumPy before 2.1 exports no read-only memory


if __name__ == "__main__":
    unittest.main()
