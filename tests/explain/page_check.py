#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The learning page in Chromium, from a file and without a network: its numbers against `vitrail inspect`, its claims,
its keyboard and its accessibility.

page_check.py PROGRAM REPOSITORY [FOLDER for screenshots]
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import numpy
from axe_playwright_python.sync_playwright import Axe
from PIL import Image
from playwright.sync_api import sync_playwright

PROGRAM, REPOSITORY = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
SCREENSHOTS = pathlib.Path(sys.argv[3]) if len(sys.argv) > 3 else None
FIXTURES = REPOSITORY / "tests/fixtures/models"
MODELS = {
    "bundled": REPOSITORY / "models/cifar10-vit",
    "distilled": FIXTURES / "timm_distilled",
    "registers": FIXTURES / "dinov2_hub_registers",
    "rotary": FIXTURES / "hf_dinov3",
    "clip": FIXTURES / "open_clip",
    "relative": FIXTURES / "hf_beit",
    "segmentation": REPOSITORY / "tests/fixtures/sam/windows",
}
OPTIONS = {"clip": ["--labels", "a cat,a dog"]}
BLOCK_VALUES = ["attn.q", "attn.scores", "attn.weights", "attn.context", "attn.merged", "drop_pathI"]
TWO_WAY = "mask_decoder.transformer."
COMPARED = {"blocks.I"} | {f"blocks.I.{value}" for value in BLOCK_VALUES}
COMPARED_OF_SEGMENTATION = {
    "image_encoder",
    "prompt_encoder.sparse_embeddings",
    f"{TWO_WAY}layers.I.cross_attn_image_to_token.weights",
    f"{TWO_WAY}layers.I.cross_attn_token_to_image.weights",
    f"{TWO_WAY}final_attn_token_to_image.weights",
    "low_res_masks",
    "iou_predictions",
}


def run(*arguments):
    return subprocess.run([PROGRAM, *map(str, arguments)], check=True, capture_output=True, text=True).stdout


class LearningPage(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        folder = pathlib.Path(cls.folder.name)
        cls.photo = folder / "photo.png"
        small = numpy.random.default_rng(3).integers(0, 256, (6, 8, 3), numpy.uint8)
        Image.fromarray(small).resize((160, 120), Image.Resampling.BICUBIC).save(cls.photo)
        chromium = shutil.which("chromium") or sys.exit("page_check: chromium is not installed: run scripts/setup")
        cls.playwright = sync_playwright().start()
        cls.browser = cls.playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        cls.pages, cls.traces = {}, {}
        for name, model in MODELS.items():
            cls.pages[name] = folder / f"{name}.html"
            run("explain", cls.photo, "-m", model, "-o", cls.pages[name], *OPTIONS.get(name, []))
            run("inspect", "-m", model, "--trace", cls.photo, "-o", folder / f"{name}.npz")
            cls.traces[name] = numpy.load(folder / f"{name}.npz")
        run(
            "train",
            REPOSITORY / "recipes/digits.json",
            "-o",
            folder / "run",
            "--set",
            "epochs=4",
            "--set",
            "explain.every=2",
        )
        cls.pages["training"] = folder / "training.html"
        run("explain", folder / "run", "-o", cls.pages["training"])

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.playwright.stop()
        cls.folder.cleanup()

    def open(self, file, fragment="", width=1440, height=900, dark=False):
        context = self.browser.new_context(
            viewport={"width": width, "height": height}, color_scheme="dark" if dark else "light", offline=True
        )
        self.addCleanup(context.close)
        page, self.problems = context.new_page(), []
        page.on("console", lambda message: self.problems.append(message.text))
        page.on("pageerror", lambda error: self.problems.append(str(error)))
        page.goto(f"file://{file}{fragment}")
        page.wait_for_selector("html[data-ready]")
        return page

    def shot(self, page, name):
        if SCREENSHOTS:
            SCREENSHOTS.mkdir(exist_ok=True)
            page.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=True)

    def manifest(self, name):
        return json.loads(re.search(r'id="manifest">(.*?)</script>', self.pages[name].read_text())[1])

    def test_numbers_are_those_of_the_forward_pass(self):
        for name in MODELS:
            model, trace = self.manifest(name)["model"], self.traces[name]
            compared = set()
            last = {"block": model["depth"] - 1, "head": model["heads"] - 1, "token": model["tokens"] - 1, "channel": 1}
            second = {"block": 2, "token": model["prefix"] - 1, "key": model["prefix"]}
            for state in ({}, last, {"block": 1, "token": model["prefix"] + 2, "key": model["prefix"]}, second):
                page = self.open(self.pages[name], "#" + "&".join(f"{key}={value}" for key, value in state.items()))
                read = "nodes => nodes.map((node) => [node.dataset.id, node.dataset.digits, node.textContent])"
                found = page.eval_on_selector_all("data[data-id]", read)
                self.assertGreater(len(found), 20)
                for identifier, digits, shown in found:
                    value, index = re.fullmatch(r"(.*)\[(.*)\]", identifier).groups()
                    if value not in trace.files:
                        continue
                    wanted = float(trace[value][tuple(map(int, index.split(", ")))])
                    unit = 10.0 ** -int(digits)
                    self.assertLessEqual(abs(float(shown) - wanted), 1.01 * unit, f"{name} {identifier}")
                    compared.add(re.sub(r"\d+", "I", value))
                self.assertEqual(self.problems, [], name)
            wanted = COMPARED_OF_SEGMENTATION if model.get("kind") == "segmentation" else COMPARED
            self.assertLessEqual(wanted, compared, name)

    def test_states_every_claim(self):
        for name in MODELS:
            page = self.open(self.pages[name])
            shown = page.eval_on_selector_all("[data-claim]", "nodes => nodes.map((node) => node.dataset.claim)")
            self.assertEqual(sorted(shown), sorted(each["id"] for each in self.manifest(name)["claims"]), name)
            self.assertNotIn("{", page.inner_text("main"), name)

    def test_the_keyboard_moves_the_selection(self):
        page = self.open(self.pages["bundled"], "#token=20&block=1")
        canvas = page.locator("#patches canvas[data-moves=token]")
        canvas.focus()
        canvas.press("ArrowDown")
        self.assertIn("token=28", page.url)
        canvas.press("ArrowRight")  # the redrawn canvas has the focus still
        self.assertIn("token=29", page.url)
        page.locator("#selection input").first.focus()
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowRight")
        self.assertIn("block=3", page.url)
        page.locator("#heads .sheet button").nth(4).press("Enter")
        self.assertIn("block=1&head=1", page.url)
        self.assertEqual(self.problems, [])

    def test_a_redraw_is_quick(self):
        page = self.open(self.pages["bundled"])
        took = page.evaluate("""() => new Promise((done) => {
            const slider = document.querySelector("#selection input"), begin = performance.now();
            slider.value = "5";
            slider.dispatchEvent(new Event("input"));
            requestAnimationFrame(() => done(performance.now() - begin));
        })""")
        self.assertLess(took, 1000)  # 100 ms on a calm machine

    def test_follows_a_training_run(self):
        page = self.open(self.pages["training"])
        manifest = self.manifest("training")
        self.assertEqual(manifest["training"]["epochs"], [0, 2, 4])
        self.assertEqual(page.locator("#followed figure").count(), 4)
        page.locator("#selection input").nth(2).focus()
        page.keyboard.press("ArrowLeft")
        self.assertIn("kept=1", page.url)
        self.assertIn("epoch 2", page.inner_text("#course_lens h3"))
        self.assertEqual(page.locator("#flips tbody tr").count(), 3)
        self.assertEqual(self.problems, [])

    def test_speaks_two_languages(self):
        page = self.open(self.pages["bundled"])
        self.assertEqual(page.inner_text("#patches h2"), "Patches")
        page.select_option("#language", "zh")
        self.assertEqual(page.inner_text("#patches h2"), "图像块")
        self.assertEqual(page.get_attribute("html", "lang"), "zh-Hans")
        english = set(re.findall(r"[a-z]{4,}", page.inner_text("#why"))) & {"patches", "removed", "class", "method"}
        self.assertEqual(english, set())

    def test_is_accessible_and_narrow(self):
        options = {"runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa", "best-practice"]}}
        for name in ("bundled", "clip", "registers", "segmentation", "training"):
            for width, height, dark in ((1440, 900, False), (390, 844, True)):
                page = self.open(self.pages[name], width=width, height=height, dark=dark)
                self.shot(page, f"{name}-{width}")
                found = Axe().run(page, options=options).response["violations"]
                violations = [(each["id"], each["nodes"][0]["html"][:200]) for each in found]
                self.assertEqual(violations, [], f"{name} {width}")
                self.assertLessEqual(page.evaluate("document.documentElement.scrollWidth"), width)

    def test_shows_hostile_names_as_text(self):
        hostile = pathlib.Path(self.folder.name) / "labels.json"
        hostile.write_text(json.dumps(["</script><img src=x onerror=alert(1)>", "\u202eevil", "{title}", *"abcdefg"]))
        file = pathlib.Path(self.folder.name) / "hostile.html"
        run("explain", self.photo, "-m", MODELS["bundled"], "-o", file, "--labels", hostile, "--class", "0")
        page = self.open(file)
        self.assertIn("<img src=x", page.inner_text("#why"))
        self.assertEqual(page.locator("main img").count(), 1)  # the photograph
        self.assertEqual(self.problems, [])


if __name__ == "__main__":
    os.environ.setdefault("VITRAIL_QUIET", "1")
    unittest.main(argv=sys.argv[:1])
