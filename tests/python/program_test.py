# SPDX-License-Identifier: Apache-2.0
"""The commands of the program that the Python package runs, against the program.

Run by scripts/python_check, which sets VITRAIL_LIBRARY and VITRAIL_PROGRAM.
"""

import json
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import threading
import time
import unittest

import numpy as np

import vitrail

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODEL = ROOT / "models" / "cifar10-vit"
PHOTO = ROOT / "examples" / "photographs" / "chelsea.png"


def text_of_program(*arguments):
    command = [os.environ["VITRAIL_PROGRAM"], *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def json_of_program(*arguments):
    return json.loads(text_of_program(*arguments))


def children():
    """The processes that this one started and that have not ended."""
    return pathlib.Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()


class Commands(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        from PIL import Image

        cls._folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls._folder.cleanup)
        cls.folder = pathlib.Path(cls._folder.name)
        cls.dataset = cls.folder / "set"
        random = np.random.default_rng(0)
        for split in ("train", "test"):
            for label, name in enumerate(("cat", "dog")):
                (cls.dataset / split / name).mkdir(parents=True)
                for i in range(6):
                    pixels = np.clip(random.normal(90 + 60 * label, 50, (32, 32, 3)), 0, 255).astype(np.uint8)
                    Image.fromarray(pixels).save(cls.dataset / split / name / f"{i}.png")

    def test_eval_gives_the_programs_metrics(self):
        report = self.folder / "page.html"
        got = vitrail.eval(self.dataset, model=MODEL, report=report, batch=3, crop_mode="squash", mean=[0.5, 0.4, 0.3])
        options = ["--crop-mode", "squash", "--mean", "0.5,0.4,0.3", "--format", "json"]
        want = json_of_program("eval", self.dataset, "-m", MODEL, *options)
        for metrics in (got, want):
            del metrics["images_per_second"]
        self.assertEqual(got, want)
        self.assertEqual(got["images"], 12)
        self.assertIn("<html", report.read_text())

    def test_knn_gives_the_programs_accuracy(self):
        got = vitrail.knn(self.dataset, str(self.dataset), model=MODEL, k=3, plain=True, exif=False, tokenizer=None)
        want = json_of_program("knn", self.dataset, self.dataset, "-m", MODEL, "--k", 3, "--plain")
        self.assertEqual(got, want)
        self.assertEqual((got["k"], got["training_images"]), (3, 12))

    def test_a_model_stands_for_its_path_and_options(self):
        model = vitrail.load(MODEL, image_size=48, precision="half", threads=1)
        got = vitrail.eval(self.dataset, model=model)["calibration_error"]
        options = ["--image-size", 48, "--precision", "half", "--threads", 1, "--format", "json"]
        want = json_of_program("eval", self.dataset, "-m", MODEL, *options)["calibration_error"]
        self.assertEqual(got, want)
        default = vitrail.eval(self.dataset, model=MODEL)["calibration_error"]
        self.assertNotEqual(got, default)
        got = vitrail.eval(self.dataset, model=model, image_size=32, precision="fp32")["calibration_error"]
        self.assertEqual(got, default)  # options of the call go first

    def test_convert_gives_the_path_of_the_same_model(self):
        folder = vitrail.convert(MODEL, self.folder / "copy")
        self.assertEqual(folder, str(self.folder / "copy"))
        np.testing.assert_array_equal(vitrail.load(folder).logits(PHOTO), vitrail.load(MODEL).logits(PHOTO))
        small = vitrail.convert(MODEL, str(self.folder / "small"), dtype="fp16")
        self.assertLess(size_of(small), 0.51 * size_of(folder))
        self.assertEqual(pathlib.Path(vitrail.convert(folder, self.folder / "m.onnx", opset=18)).suffix, ".onnx")

    def test_a_trace_has_what_inspect_shows(self):
        from PIL import Image

        model = vitrail.load(MODEL, precision="half", image_size=48)
        traced = model.trace(PHOTO)
        listed = text_of_program("inspect", MODEL, "--image-size", 48, "--trace", PHOTO).splitlines()[1:]
        shapes = {line.split()[0]: json.loads(line[line.index("[") : line.index("]") + 1]) for line in listed}
        self.assertEqual({name: list(values.shape) for name, values in traced.items()}, shapes)
        self.assertEqual(list(traced), list(shapes))
        exact = vitrail.load(MODEL, image_size=48)
        np.testing.assert_array_equal(traced["images"], exact.preprocess([PHOTO]))
        np.testing.assert_allclose(traced["logits"][0], exact.logits(PHOTO), atol=1e-4)
        with Image.open(PHOTO) as photo, open(PHOTO, "rb") as file:
            pixels = np.array(photo.convert("RGB"))
            for image in (str(PHOTO), file, PHOTO.read_bytes(), pixels, photo):
                np.testing.assert_array_equal(model.trace(image)["logits"], traced["logits"])
        grey = model.trace(pixels[..., 0])["images"]
        np.testing.assert_array_equal(grey, exact.preprocess([pixels[..., 0]]))
        with self.assertRaisesRegex(vitrail.Error, "/no/such"):
            model.trace("/no/such")

    def test_parameters_are_those_that_inspect_shows(self):
        parameters = vitrail.load(MODEL, image_size=48, precision="int8").parameters()
        listed = [line.split() for line in text_of_program("inspect", MODEL, "--keys").splitlines()]
        shapes = {name: json.loads("".join(shape)) for name, _, *shape in listed}
        self.assertEqual({name: list(values.shape) for name, values in parameters.items()}, shapes)
        self.assertEqual({values.dtype for values in parameters.values()}, {np.dtype(np.float32)})
        for name in ("blocks.1.attn.qkv.weight", "pos_embed", "head.bias"):
            row = parameters[name].reshape(-1, shapes[name][-1])[-1]
            last = ", ".join(["-1"] * (len(shapes[name]) - 1) + ["3:8"])
            shown = text_of_program("inspect", MODEL, "--slice", f"{name}[{last}]")
            numbers = [float(number) for number in re.findall(r"-?\d+\.\d+(?:e-?\d+)?", shown.split("]", 1)[1])]
            np.testing.assert_allclose(row[3:8], numbers, atol=1e-4)

    def test_the_programs_messages_are_errors(self):
        (self.folder / "mine").mkdir()
        (self.folder / "mine" / "model.safetensors").write_text("text")
        wrong = [
            (lambda: vitrail.eval("/no/such"), "^vitrail eval: /no/such: expected a dataset, got nothing"),
            (lambda: vitrail.eval(self.dataset, no_such_option=1), "unknown option --no-such-option"),
            (lambda: vitrail.knn(self.dataset, self.dataset, k=0), "k"),
            (lambda: vitrail.convert(MODEL, self.folder / "mine"), "force"),
            (lambda: vitrail.pull("no-name"), "ORGANISATION/NAME"),
            (lambda: vitrail.eval("-h"), "-h: expected a dataset"),  # no option
        ]
        for call, message in wrong:
            with self.subTest(message), self.assertRaisesRegex(vitrail.Error, message):
                call()

    def test_an_unreadable_image_is_a_warning(self):
        folder = self.folder / "damaged"
        (folder / "cat").mkdir(parents=True)
        (folder / "cat" / "good.png").write_bytes(PHOTO.read_bytes())
        (folder / "cat" / "bad.png").write_bytes(b"no image")
        with self.assertWarnsRegex(UserWarning, "bad.png"):
            metrics = vitrail.eval(folder, model=MODEL, split=".")
        self.assertEqual(metrics["images"], 1)

    def test_pull_gives_the_folder_of_the_cache(self):
        snapshot = self.folder / "hub" / "models--org--name" / "snapshots" / ("0" * 40)
        environment = {"HF_HUB_CACHE": str(self.folder / "hub"), "HF_HUB_OFFLINE": "1"}
        refs = snapshot.parents[1] / "refs"
        for folder in (snapshot, refs):
            folder.mkdir(parents=True)
        (refs / "main").write_text("0" * 40)
        for file in MODEL.iterdir():
            (snapshot / file.name).write_bytes(file.read_bytes())
        os.environ.update(environment)
        try:
            self.assertEqual(vitrail.pull("org/name"), str(snapshot))
        finally:
            for name in environment:
                del os.environ[name]

    def test_ctrl_c_stops_the_program(self):
        many = self.folder / "many.csv"
        many.write_text("file,label\n" + f"{PHOTO},0\n{self.dataset}/train/cat/0.png,1\n" * 200_000)
        before = children()
        threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
        began = time.monotonic()
        with self.assertRaises(KeyboardInterrupt):
            vitrail.eval(many, model=MODEL)
        self.assertLess(time.monotonic() - began, 5, "seconds")
        self.assertEqual(children(), before)

    def test_a_missing_program_is_named(self):
        known = os.environ["VITRAIL_PROGRAM"]
        os.environ["VITRAIL_PROGRAM"] = "/no/such/vitrail"
        try:
            with self.assertRaisesRegex(vitrail.Error, "/no/such/vitrail: expected the program"):
                vitrail.eval(self.dataset)
        finally:
            os.environ["VITRAIL_PROGRAM"] = known


def size_of(folder):
    return os.path.getsize(pathlib.Path(folder) / "model.safetensors")


if __name__ == "__main__":
    unittest.main()
