# SPDX-License-Identifier: Apache-2.0
"""ONNX files of text towers against the reference values of the model fixtures.

Run by scripts/onnx_check.
"""

import json
import unittest

import numpy as np
from onnx_support import ENGINES, FIXTURES, OnnxRuntime, OnnxTest, read_safetensors, repeated, weights_of


def dual_models():
    for folder in sorted(FIXTURES.iterdir()):
        golden, _ = read_safetensors(folder / "golden.safetensors")
        if "text_embeds" in golden:
            yield folder, golden


def padded(ids, length):
    """Ids behind the end-of-text token change nothing; a tower that reads the last token has texts of full length."""
    return np.pad(ids.astype(np.int64), ((0, 0), (0, length - ids.shape[1])))


class TextTowers(OnnxTest):
    def test_every_dual_model_gives_the_reference_values(self):
        count = 0
        for folder, golden in dual_models():
            with self.subTest(folder.name):
                count += 1
                file = self.convert(weights_of(folder), "--dynamic-batch").with_suffix(".text.onnx")
                batch, length = OnnxRuntime(file).inputs["input_ids"]
                self.assertEqual(batch, "batch")
                for engine in (runtime(file) for runtime in ENGINES):
                    for batch in (1, 2, 7):
                        ids = repeated(padded(golden["ids"], length), batch)
                        got = engine.run(input_ids=ids)["text_embeds"]
                        self.assert_close(got, repeated(golden["text_embeds"], batch))
        self.assertGreater(count, 8)

    def test_one_text_without_dynamic_batch(self):
        for name in ("hf_clip", "hf_clip_old_eos", "hf_siglip", "open_clip_coca"):
            folder = FIXTURES / name
            golden, _ = read_safetensors(folder / "golden.safetensors")
            text = OnnxRuntime(self.convert(weights_of(folder)).with_suffix(".text.onnx"))
            batch, length = text.inputs["input_ids"]
            self.assertEqual(batch, 1)
            for ids, want in zip(padded(golden["ids"], length), golden["text_embeds"], strict=True):
                self.assert_close(text.run(input_ids=ids[None])["text_embeds"], want[None])

    def test_both_towers_and_the_scale_give_the_references_logits(self):
        for name in ("hf_clip", "hf_siglip"):
            folder = FIXTURES / name
            golden, _ = read_safetensors(folder / "golden.safetensors")
            file = self.convert(weights_of(folder), "--dynamic-batch")
            images, texts = OnnxRuntime(file), OnnxRuntime(file.with_suffix(".text.onnx"))
            a = images.run(images=golden["input"].astype(np.float32))["features"]
            b = texts.run(input_ids=padded(golden["ids"], texts.inputs["input_ids"][1]))["text_embeds"]
            a, b = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (a, b))
            scale, bias = (json.loads(texts.metadata[key]) for key in ("logit_scale", "logit_bias"))
            self.assert_close(np.exp(scale) * a @ b.T + bias, golden["logits_per_image"])

    def test_an_image_model_has_no_text_file(self):
        file = self.convert(weights_of(FIXTURES / "hf_clip_vision"))
        self.assertFalse(file.with_suffix(".text.onnx").exists())


if __name__ == "__main__":
    unittest.main()
