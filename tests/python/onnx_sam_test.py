# SPDX-License-Identifier: Apache-2.0
"""ONNX files of Segment Anything and SAM 2 against the fixtures of tools/golden/sam.py and sam2.py.

Run by scripts/onnx_check.
"""

import json
import shutil
import unittest

import numpy as np
from onnx_support import ENGINES, ROOT, OnnxRuntime, OnnxTest, read_safetensors, weights_of
from PIL import Image

FIXTURES = ROOT / "tests" / "fixtures" / "sam"
# tests/support/sam_fixture.h: what fp32 explains
TOLERANCE = 1e-4
MEAN, STD = np.float32([123.675, 116.28, 103.53]), np.float32([58.395, 57.12, 57.375])


def names():
    """All but MedSAM, which is not exported."""
    return sorted(folder.name for folder in FIXTURES.iterdir() if folder.is_dir() and folder.name != "medsam")


class Fixture:
    def __init__(self, name):
        self.second = name.startswith("sam2")
        self.golden, metadata = read_safetensors(FIXTURES / name / "golden.safetensors")
        self.prompts = json.loads(metadata["config"])["prompts"]
        self.image = self.golden["image"]

    def pixels(self, size):
        """The image with its long side resized, as segment_anything's ResizeLongestSide; for SAM 2, with both."""
        height, width = self.image.shape[:2]
        scale = size / max(height, width)
        sides = (size, size) if self.second else (int(width * scale + 0.5), int(height * scale + 0.5))
        return np.asarray(Image.fromarray(self.image).resize(sides, Image.BILINEAR))

    def input(self, size):
        pixels = (self.pixels(size) - MEAN) / STD
        result = np.zeros((1, 3, size, size), np.float32)
        result[0, :, : pixels.shape[0], : pixels.shape[1]] = pixels.transpose(2, 0, 1)
        return result

    def decoder_inputs(self, number, embeddings, size):
        """As segment_anything's notebook onnx_model_example."""
        prompt, (height, width) = self.prompts[number], self.image.shape[:2]
        points = [tuple(point) for point in prompt.get("points", [])]
        if "box" in prompt:
            x0, y0, x1, y1 = prompt["box"]
            points += [(x0, y0, 2), (x1, y1, 3)]
        if points and ("box" not in prompt or self.second):
            points.append((0, 0, -1))
        resized = self.pixels(size).shape[:2]
        points = np.array(points, np.float64).reshape(-1, 3)
        coordinates = points[:, :2] * (resized[1] / width, resized[0] / height)
        mask = self.golden.get(f"mask_{number}")
        side = 4 * embeddings.shape[2]
        return dict(
            image_embeddings=embeddings,
            point_coords=coordinates[None].astype(np.float32),
            point_labels=points[None, :, 2].astype(np.float32),
            mask_input=np.zeros((1, 1, side, side), np.float32) if mask is None else mask[None, None],
            has_mask_input=np.float32([mask is not None]),
            orig_im_size=np.float32([height, width]),
        )


class SegmentAnything(OnnxTest):
    def files(self, name, *options):
        file = self.convert(weights_of(FIXTURES / name), *options)
        return file.with_suffix(".encoder.onnx"), file.with_suffix(".decoder.onnx")

    def check_prompt(self, fixture, number, results):
        masks = slice(1, 4) if fixture.prompts[number]["multimask"] else slice(0, 1)
        count = 1 if fixture.second and not fixture.prompts[number]["multimask"] else 4
        self.assert_close(results["low_res_masks"][0, masks], fixture.golden[f"logits_{number}"], TOLERANCE)
        self.assert_close(results["iou_predictions"][0, masks], fixture.golden[f"iou_{number}"], TOLERANCE)
        self.assertEqual(results["masks"].shape, (1, count, *fixture.image.shape[:2]))
        signs = fixture.golden.get(f"signs_{number}")
        if signs is not None:
            wrong = (signs != 0) & ((results["masks"][0, masks] > 0) != (signs > 0))
            self.assertEqual(np.count_nonzero(wrong), 0)

    def test_every_fixture_gives_the_reference_values(self):
        for name in names():
            fixture = Fixture(name)
            single = self.folder / "single.onnx"
            shutil.copy(self.files(name, *(["--single-mask"] if fixture.second else []))[1], single)
            files = self.files(name)
            size = OnnxRuntime(files[0]).inputs["image"][2]
            for runtime in ENGINES:
                with self.subTest(name, engine=runtime.__name__):
                    encoder, decoder, chosen = map(runtime, (*files, single))
                    grid = fixture.golden["embedding"].shape[1]
                    encoded = encoder.run(image=fixture.input(size))
                    embeddings = encoded["image_embeddings"]
                    self.assertEqual(embeddings.shape[2:], (grid, grid))
                    self.assert_close(embeddings[0], fixture.golden["embedding"], TOLERANCE)
                    for number in range(len(fixture.prompts)):
                        inputs = {**fixture.decoder_inputs(number, embeddings, size), **encoded}
                        several = fixture.prompts[number]["multimask"]
                        self.check_prompt(fixture, number, (decoder if several else chosen).run(**inputs))

    def test_names_and_shapes_are_those_of_segment_anything(self):
        encoder, decoder = map(OnnxRuntime, self.files("padded_windows"))
        channels, grid = Fixture("padded_windows").golden["embedding"].shape[:2]
        self.assertEqual(encoder.outputs, {"image_embeddings": [1, channels, grid, grid]})
        side = 4 * grid
        self.assertEqual(
            decoder.inputs,
            {
                "image_embeddings": [1, channels, grid, grid],
                "point_coords": [1, "num_points", 2],
                "point_labels": [1, "num_points"],
                "mask_input": [1, 1, side, side],
                "has_mask_input": [1],
                "orig_im_size": [2],
            },
        )
        self.assertEqual(
            decoder.outputs,
            {
                "masks": [1, 4, "height", "width"],
                "iou_predictions": [1, 4],
                "low_res_masks": [1, 4, side, side],
            },
        )

    def test_pixels_of_any_size_are_padded_in_the_graph(self):
        for name in ("padded_windows", "mobile"):
            fixture = Fixture(name)
            size = OnnxRuntime(self.files(name)[0]).inputs["image"][2]
            file, _ = self.files(name, "--input", "uint8", "--dynamic-batch")
            for encoder in (runtime(file) for runtime in ENGINES):
                for batch in (1, 2, 7):
                    images = np.repeat(fixture.pixels(size)[None], batch, 0)
                    want = np.repeat(fixture.golden["embedding"][None], batch, 0)
                    self.assert_close(encoder.run(image=images)["image_embeddings"], want, TOLERANCE)

    def test_an_image_larger_than_the_models_is_refused(self):
        encoder = OnnxRuntime(self.files("mobile", "--input", "uint8")[0])
        with self.assertRaisesRegex(Exception, "requested shape:{1,3,96,96}"):
            encoder.run(image=np.zeros((1, 97, 96, 3), np.uint8))

    def test_single_mask_is_the_best_or_that_of_many_points(self):
        fixture = Fixture("padded_windows")
        all_masks = OnnxRuntime(self.files("padded_windows")[1])
        file = self.files("padded_windows", "--single-mask")[1]
        embeddings = fixture.golden["embedding"][None]
        for decoder in (runtime(file) for runtime in ENGINES):
            for number in (0, 1, 2, 3):
                inputs = fixture.decoder_inputs(number, embeddings, 96)
                want, got = all_masks.run(**inputs), decoder.run(**inputs)
                few = inputs["point_coords"].shape[1] < 3
                chosen = 1 + want["iou_predictions"][0, 1:].argmax() if few else 0
                for output in ("masks", "iou_predictions", "low_res_masks"):
                    self.assert_close(got[output][0], want[output][0, chosen : chosen + 1], TOLERANCE)

    def test_every_opset(self):
        fixture = Fixture("padded_windows")
        for opset in range(17, 22):
            encoder, decoder = map(OnnxRuntime, self.files("padded_windows", "--opset", str(opset)))
            size = encoder.inputs["image"][2]
            embeddings = encoder.run(image=fixture.input(size))["image_embeddings"]
            self.check_prompt(fixture, 3, decoder.run(**fixture.decoder_inputs(3, embeddings, size)))

    def test_metadata_has_the_preprocessing(self):
        for file in self.files("padded_windows"):
            processor = json.loads(OnnxRuntime(file).metadata["preprocessor_config.json"])
            np.testing.assert_allclose(processor["image_mean"], MEAN / 255, rtol=1e-5)
            self.assertEqual(processor["size"]["longest_edge"], processor["pad_size"]["height"])


if __name__ == "__main__":
    unittest.main()
