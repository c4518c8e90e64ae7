# SPDX-License-Identifier: Apache-2.0
"""ONNX files of models for maps against the fixtures of tools/golden, and against the program.

Run by scripts/onnx_check.
"""

import json
import unittest

import numpy as np
from onnx_support import ENGINES, ROOT, OnnxRuntime, OnnxTest, program, read_safetensors, repeated
from PIL import Image

FIXTURES = ROOT / "tests" / "fixtures"
STEP = 3  # golden maps of depth, classes and mattes have every third row and column
TOLERANCE = 1e-4


def folders(kind):
    return sorted(path for path in (FIXTURES / kind).iterdir() if path.is_dir())


def pixels_of(image):
    return read_safetensors(FIXTURES / "depth" / "images.safetensors")[0][f"image_{image}"]


class MapsTest(OnnxTest):
    def traced(self, model, image):
        """The values of the program for an image of the fixtures, by name."""
        photo, arrays = self.folder / f"{image}.png", self.folder / "traced.npz"
        Image.fromarray(pixels_of(image)).save(photo)
        program("inspect", "-m", model, "--trace", photo, "-o", arrays, "--force")
        with np.load(arrays) as values:
            return dict(values)

    def outputs(self, model, inputs, *options):
        """The outputs of each engine, which are those of a batch too."""
        file = self.convert(model, "--dynamic-batch", *options, "--force")
        for runtime in ENGINES:
            with self.subTest(model.name, engine=runtime.__name__):
                engine = runtime(file)
                got = engine.run(images=inputs)
                for name, values in engine.run(images=repeated(inputs, 3)).items():
                    self.assert_close(values[2], got[name][0], TOLERANCE)
                yield got

    def outputs_at_size(self, model, inputs):
        return self.outputs(model, inputs, "--image-size", f"{inputs.shape[2]},{inputs.shape[3]}")

    def check_uint8(self, model, more_mean=(), more_std=()):
        """A graph normalises pixels by the mean and the std of the processor, and more channels by these."""
        floats = OnnxRuntime(self.convert(model))
        processor = json.loads(floats.metadata["preprocessor_config.json"])
        _, channels, height, width = floats.inputs["images"]
        pixels = np.random.default_rng(1).integers(0, 256, (1, height, width, channels), dtype=np.uint8)
        mean, std = processor["image_mean"] + list(more_mean), processor["image_std"] + list(more_std)
        normalised = ((pixels / 255 - mean) / std).transpose(0, 3, 1, 2)
        want = floats.run(images=normalised.astype(np.float32))
        file = self.convert(model, "--input", "uint8", "--force")
        for engine in (runtime(file) for runtime in ENGINES):
            for name, values in engine.run(images=pixels).items():
                self.assert_close(values, want[name], TOLERANCE)


class Depth(MapsTest):
    def test_every_fixture_gives_the_reference_and_the_programs_values(self):
        for folder in folders("depth"):
            golden, _ = read_safetensors(folder / "golden.safetensors")
            for image in (0, 1):
                values = self.traced(folder, image)
                for got in self.outputs_at_size(folder, values["images"]):
                    self.assert_close(got["depth"], values["depth"], TOLERANCE)
                    self.assert_close(got["depth"][0, ::STEP, ::STEP], golden[f"predicted_{image}"], TOLERANCE)

    def test_pixels_are_normalised_in_the_graph(self):
        self.check_uint8(FIXTURES / "depth" / "relative")

    def test_every_opset(self):
        model = FIXTURES / "depth" / "dpt_vit"
        values = self.traced(model, 0)
        for opset in range(17, 22):
            engine = OnnxRuntime(self.convert(model, "--opset", str(opset), "--force"))
            self.assert_close(engine.run(images=values["images"])["depth"], values["depth"], TOLERANCE)


class Classes(MapsTest):
    def test_every_fixture_gives_the_reference_and_the_programs_values(self):
        for folder in folders("semantic"):
            golden, _ = read_safetensors(folder / "golden.safetensors")
            for image in (0, 1):
                values = self.traced(folder, image)
                for got in self.outputs_at_size(folder, values["images"]):
                    self.assert_close(got["logits"], values["logits"], TOLERANCE)
                    thinned = got["logits"][0, :, ::STEP, ::STEP].transpose(1, 2, 0)
                    self.assert_close(thinned, golden[f"logits_{image}"], TOLERANCE)


class Queries(MapsTest):
    def test_every_fixture_gives_the_reference_and_the_programs_values(self):
        for folder in folders("eomt"):
            golden, _ = read_safetensors(folder / "golden.safetensors")
            for image in (0, 1):
                values = self.traced(folder, image)
                for got in self.outputs(folder, values["images"]):
                    for name, key in (("class_queries_logits", "classes"), ("masks_queries_logits", "masks")):
                        self.assert_close(got[name], values[name], TOLERANCE)
                        self.assert_close(got[name], golden[f"{key}_{image}"][:1], TOLERANCE)  # the first crop

    def test_every_opset(self):
        model = FIXTURES / "eomt" / "panoptic"
        values = self.traced(model, 0)
        for opset in range(17, 22):
            got = OnnxRuntime(self.convert(model, "--opset", str(opset), "--force")).run(images=values["images"])
            self.assert_close(got["masks_queries_logits"], values["masks_queries_logits"], TOLERANCE)


class Objects(MapsTest):
    def test_every_fixture_gives_the_reference_and_the_programs_values(self):
        for folder in folders("yolos"):
            golden, _ = read_safetensors(folder / "golden.safetensors")
            for image in (0, 1):
                values = self.traced(folder, image)
                for got in self.outputs_at_size(folder, values["images"]):
                    for name, key in (("logits", "logits"), ("pred_boxes", "boxes")):
                        self.assert_close(got[name], values[name], TOLERANCE)
                        self.assert_close(got[name][0], golden[f"{key}_{image}"], TOLERANCE)

    def test_queries_of_every_opset(self):
        for folder in folders("rf_detr"):
            golden, _ = read_safetensors(folder / "golden.safetensors")
            for image in (0, 1):
                values = self.traced(folder, image)
                for got in self.outputs(folder, values["images"]):
                    self.assertEqual("pred_masks" in got, folder.name == "masks")
                    for name in got:
                        self.assert_close(got[name], values[name], TOLERANCE)
                        key = name.removeprefix("pred_")
                        self.assert_close(got[name][0], golden[f"{key}_{image}"], TOLERANCE)
            for opset in range(17, 22):
                got = OnnxRuntime(self.convert(folder, "--opset", str(opset), "--force")).run(images=values["images"])
                self.assert_close(got["logits"], values["logits"], TOLERANCE)

    def test_pixels_are_normalised_in_the_graph(self):
        for model in ("yolos/mid", "rf_detr/windows"):
            self.check_uint8(FIXTURES / model)

    def test_heat_maps_are_those_of_the_program(self):
        for name in ("simple", "experts"):
            folder = FIXTURES / "vitpose" / name
            values = self.traced(folder, 0)
            for got in self.outputs(folder, values["images"]):
                self.assert_close(got["heatmaps"], values["heatmaps"], TOLERANCE)


class Mattes(MapsTest):
    def test_every_fixture_gives_the_reference_and_the_programs_values(self):
        trimaps, _ = read_safetensors(FIXTURES / "vitmatte" / "trimaps.safetensors")
        for folder in folders("vitmatte"):
            golden, _ = read_safetensors(folder / "golden.safetensors")
            for image in (0, 1):
                values = self.traced(folder, image)
                for got in self.outputs_at_size(folder, values["images"]):
                    self.assert_close(got["alphas"], values["alphas"], TOLERANCE)
                trimap = trimaps[f"trimap_{image}"]
                height, width = trimap.shape
                inputs = values["images"].copy()
                inputs[0, 3, :height, :width] = trimap / 255
                for got in self.outputs_at_size(folder, inputs):
                    alpha = got["alphas"][0, 0, :height:STEP, :width:STEP]
                    self.assert_close(alpha, golden[f"alpha_{image}"], TOLERANCE)

    def test_pixels_are_normalised_in_the_graph_and_trimaps_are_not(self):
        self.check_uint8(FIXTURES / "vitmatte" / "windows", [0], [1])


class Texts(MapsTest):
    def test_every_fixture_gives_the_programs_values(self):
        for folder in folders("clipseg"):
            for image in (0, 1):
                values = self.traced(folder, image)
                inputs = {name: values[name] for name in ("images", "text")}
                file = self.convert(folder, "--dynamic-batch", "--force")
                for engine in (runtime(file) for runtime in ENGINES):
                    self.assert_close(engine.run(**inputs)["logits"], values["logits"], TOLERANCE)
                    batch = {name: repeated(each, 3) for name, each in inputs.items()}
                    self.assert_close(engine.run(**batch)["logits"][2], values["logits"][0], TOLERANCE)


class Labels(MapsTest):
    def test_every_fixture_gives_the_reference_and_the_programs_values(self):
        for folder in folders("owl"):
            golden, _ = read_safetensors(folder / "golden.safetensors")
            for image in (0, 1):
                values = self.traced(folder, image)
                inputs = {name: values[name] for name in ("images", "queries")}
                file = self.convert(folder, "--dynamic-batch", "--force")
                for engine in (runtime(file) for runtime in ENGINES):
                    got = engine.run(**inputs)
                    for name in got:
                        self.assert_close(got[name], values[name], TOLERANCE)
                    self.assert_close(got["pred_boxes"][0], golden[f"boxes_{image}"], TOLERANCE)
                    batch = {name: repeated(each, 3) for name, each in inputs.items()}
                    self.assert_close(engine.run(**batch)["logits"][2], values["logits"][0], TOLERANCE)


if __name__ == "__main__":
    unittest.main()
