#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Real clients against `vitrail serve`: openai, tritonclient, kserve, curl, promtool, and the page in a browser.

clients_check.py PROGRAM REPOSITORY
"""

import asyncio
import base64
import io
import json
import pathlib
import re
import sys
import tempfile
import unittest

import kserve
import numpy
import openai
import tritonclient.http
from PIL import Image
from serve_program import Server, run, small_model

PROGRAM, REPOSITORY = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
MODELS = REPOSITORY / "tests/fixtures/models"
PAGE = (REPOSITORY / "docs/serving.md").read_text()
FOLDER = pathlib.Path(tempfile.mkdtemp(prefix="vitrail-serve-"))


def png(seed, size=(40, 36)):
    values = numpy.random.default_rng(seed).integers(0, 256, (size[1], size[0], 3), numpy.uint8)
    file = io.BytesIO()
    Image.fromarray(values).save(file, "PNG")
    return file.getvalue()


class Clients(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = Server(PROGRAM, "-m", small_model(REPOSITORY), "-m", f"clip={MODELS / 'hf_clip'}")
        cls.url = cls.server.url

    @classmethod
    def tearDownClass(cls):
        assert cls.server.stop() == 0

    def embedding_of(self, model, image):
        (FOLDER / "a.png").write_bytes(image)
        run(PROGRAM, "embed", "-m", MODELS / model, FOLDER / "a.png", "-o", FOLDER / "a.npy", "--normalize")
        return numpy.load(FOLDER / "a.npy")[0]

    def test_openai_embeds_images_and_texts(self):
        client = openai.OpenAI(base_url=self.url + "/v1", api_key="none", max_retries=0)
        image = png(1)
        uri = "data:image/png;base64," + base64.b64encode(image).decode()
        want = self.embedding_of("hf_clip", image)
        for encoding in ({}, {"encoding_format": "float"}):  # the client asks for base64 by itself
            data = client.embeddings.create(model="clip", input=[uri, "a cat"], **encoding).data
            numpy.testing.assert_array_equal(numpy.float32(data[0].embedding), want)
            self.assertGreater(client.embeddings.create(model="clip", input="a cat").usage.prompt_tokens, 2)
            self.assertAlmostEqual(float(numpy.linalg.norm(data[1].embedding)), 1, places=5)
        self.assertEqual([model.id for model in client.models.list()], ["small", "clip"])
        with self.assertRaises(openai.BadRequestError):
            client.embeddings.create(model="small", input="a text")
        with self.assertRaises(openai.NotFoundError):
            client.embeddings.create(model="none", input=uri)

    def test_tritonclient_infers(self):
        client = tritonclient.http.InferenceServerClient(self.url.removeprefix("http://"))
        self.assertTrue(client.is_server_live() and client.is_server_ready() and client.is_model_ready("small"))
        self.assertEqual(client.get_model_metadata("small")["name"], "small")
        self.assertEqual(len(client.get_model_repository_index()), 2)
        images = [png(1), png(2)]
        for binary in (True, False):
            tensor = tritonclient.http.InferInput("images", [2], "BYTES")
            if binary:
                tensor.set_data_from_numpy(numpy.array(images, dtype=object))
            else:
                tensor.set_data_from_numpy(
                    numpy.array([base64.b64encode(image) for image in images], dtype=object), binary_data=False
                )
            output = tritonclient.http.InferRequestedOutput("logits", binary_data=binary)
            logits = client.infer("small", [tensor], outputs=[output], request_id="7").as_numpy("logits")
            self.assertEqual(logits.shape, (2, 10))
            (FOLDER / "a.png").write_bytes(images[1])
            run(PROGRAM, "classify", "-m", MODELS / "timm_token", FOLDER / "a.png", "--logits", FOLDER / "l.npy")
            numpy.testing.assert_array_equal(logits[1], numpy.load(FOLDER / "l.npy")[0])
        tensor = tritonclient.http.InferInput("images", [1], "BYTES")
        tensor.set_data_from_numpy(numpy.array([images[0]], dtype=object))
        top = tritonclient.http.InferRequestedOutput("probabilities", class_count=3)
        classes = client.infer("small", [tensor], outputs=[top]).as_numpy("probabilities")
        self.assertEqual(classes.shape, (1, 3))
        pixels = tritonclient.http.InferInput("pixels", [1, 3, 32, 32], "FP32")
        pixels.set_data_from_numpy(numpy.zeros((1, 3, 32, 32), numpy.float32))
        for algorithm in ("gzip", "deflate"):
            compressed = client.infer("small", [pixels], request_compression_algorithm=algorithm)
            self.assertEqual(compressed.as_numpy("logits").shape, (1, 10))
        with self.assertRaises(tritonclient.utils.InferenceServerException):
            client.unload_model("small")

    def test_kserve_infers(self):
        async def infer():
            rest = kserve.InferenceRESTClient(kserve.RESTConfig(protocol="v2", retries=0, timeout=60))
            self.assertTrue(await rest.is_server_live(self.url) and await rest.is_server_ready(self.url))
            self.assertTrue(await rest.is_model_ready(self.url, "small"))
            results = []
            for binary in (False, True):
                tensor = kserve.InferInput("pixels", [1, 3, 32, 32], "FP32")
                tensor.set_data_from_numpy(numpy.full((1, 3, 32, 32), 0.5, numpy.float32), binary_data=binary)
                request = kserve.InferRequest("small", [tensor], request_id="8")
                response = await rest.infer(self.url, request, model_name="small")
                self.assertEqual(response.id, "8")
                outputs = {output.name: output.as_numpy() for output in response.outputs}
                self.assertEqual(outputs["logits"].shape, (1, 10))
                results.append(outputs["logits"])
            numpy.testing.assert_array_equal(*results)

        asyncio.run(infer())

    def test_tritonclient_reads_statistics(self):
        client = tritonclient.http.InferenceServerClient(self.url.removeprefix("http://"))
        pixels = tritonclient.http.InferInput("pixels", [2, 3, 32, 32], "FP32")
        pixels.set_data_from_numpy(numpy.zeros((2, 3, 32, 32), numpy.float32))

        def count():
            statistics = client.get_inference_statistics("small")["model_stats"][0]
            return statistics["inference_count"], statistics["inference_stats"]["success"]["count"]

        images, requests = count()
        client.infer("small", [pixels])
        self.assertEqual(count(), (images + 2, requests + 1))

    def test_curl_classifies(self):
        image = png(3)
        (FOLDER / "a.png").write_bytes(image)
        body = run("curl", "-sS", "--data-binary", f"@{FOLDER / 'a.png'}", f"{self.url}/v1/classify?top=2")
        want = run(PROGRAM, "classify", "-m", MODELS / "timm_token", "-", "--top", 2, "--format", "json", data=image)
        self.assertEqual(body, want)
        form = ["curl", "-sS", "-F", f"image=@{FOLDER / 'a.png'}", "-F", f"image=@{FOLDER / 'a.png'}", "-F", "top=2"]
        listed = json.loads(run(*form, f"{self.url}/v1/classify"))
        self.assertEqual([item["predictions"] for item in listed], [json.loads(want)["predictions"]] * 2)

    def test_metrics_pass_promtool(self):
        run("promtool", "check", "metrics", data=run("curl", "-sS", f"{self.url}/metrics"))

    def test_metrics_are_those_of_the_page(self):
        types = run("curl", "-sS", f"{self.url}/metrics").decode()
        documented = set()
        for before, names, after in re.findall(r"`((?:vitrail|process)_\w*)(?:\{([\w,]+)\})?(\w*)`", PAGE):
            documented |= {before + name + after for name in names.split(",")}
        self.assertEqual(set(re.findall(r"^# TYPE (\w+) ", types, re.M)), documented)

    def test_curl_lines_of_the_page(self):
        lines = re.findall(r"`(curl [^`]*\$V[^`]*)`", PAGE)
        self.assertGreater(len(lines), 10)
        for name in ("x.jpg", "y.jpg"):
            (FOLDER / name).write_bytes(png(1))
        arguments = ["-m", f"photos={MODELS / 'timm_token'}", "-m", f"clip={MODELS / 'hf_clip'}"]
        arguments += ["-m", f"sam={REPOSITORY / 'tests/fixtures/sam/padded_windows/model.pth'}"]
        arguments += ["-m", f"depth={REPOSITORY / 'tests/fixtures/depth/relative'}", "-m", f"bank={FOLDER / 'bank'}"]
        arguments += ["-m", f"ade={REPOSITORY / 'tests/fixtures/semantic/linear'}"]
        arguments += ["-m", f"matte={REPOSITORY / 'tests/fixtures/vitmatte/windows'}"]
        arguments += ["-m", f"yolos={REPOSITORY / 'tests/fixtures/yolos/mid'}"]
        arguments += ["-m", f"rf_detr={REPOSITORY / 'tests/fixtures/rf_detr/windows'}"]
        arguments += ["-m", f"pose={REPOSITORY / 'tests/fixtures/vitpose/simple'}"]
        arguments += ["-m", f"owl={REPOSITORY / 'tests/fixtures/owl/v2'}"]
        arguments += ["-m", f"clipseg={REPOSITORY / 'tests/fixtures/clipseg/plain'}"]
        Image.fromarray(numpy.full((36, 40), 128, numpy.uint8)).save(FOLDER / "t.png")
        run(PROGRAM, "anomaly", "fit", FOLDER / "x.jpg", "-m", MODELS / "timm_token", "-o", FOLDER / "bank", "--quiet")
        server = Server(PROGRAM, *arguments)
        for line in lines:
            command = f"cd {FOLDER} && V={server.url} && " + line.replace("curl", "curl -fsS", 1)
            with self.subTest(line):
                self.assertNotEqual(run("sh", "-c", command), b"")
        self.assertEqual(server.stop(), 0)


if __name__ == "__main__":
    sys.argv[1:] = sys.argv[3:]
    unittest.main(verbosity=2)
