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
import sys
import unittest

from axe_playwright_python.sync_playwright import Axe
from browser_page import FIXTURES, REPOSITORY, BrowserPage, run

SCREENSHOTS = pathlib.Path(sys.argv[3]) if len(sys.argv) > 3 else None
MODELS = {
    "bundled": REPOSITORY / "models/cifar10-vit",
    "distilled": FIXTURES / "timm_distilled",
    "registers": FIXTURES / "dinov2_hub_registers",
    "rotary": FIXTURES / "hf_dinov3",
    "clip": FIXTURES / "open_clip",
    "relative": FIXTURES / "hf_beit",
    "segmentation": REPOSITORY / "tests/fixtures/sam/windows",
}
OPTIONS = {
    "clip": ["--labels", "a cat,a dog"],
    "bundled": ["--compare", FIXTURES / "timm_distilled"],
}
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


class LearningPage(BrowserPage):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.traces = {name: cls.explain(name, model, *OPTIONS.get(name, [])) for name, model in MODELS.items()}
        run(
            "train",
            REPOSITORY / "recipes/digits.json",
            "-o",
            cls.folder / "run",
            "--set",
            "epochs=4",
            "--set",
            "explain.every=2",
        )
        cls.pages["training"] = cls.folder / "training.html"
        run("explain", cls.folder / "run", "-o", cls.pages["training"])

    def shot(self, page, name):
        if SCREENSHOTS:
            SCREENSHOTS.mkdir(exist_ok=True)
            page.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=True)

    def test_numbers_are_those_of_the_forward_pass(self):
        for name in MODELS:
            wanted = COMPARED_OF_SEGMENTATION if name == "segmentation" else COMPARED
            self.assertLessEqual(wanted, self.compared_numbers(name, self.traces[name]), name)

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
                self.assertLessEqual(page.evaluate("document.documentElement.scrollWidth"), width, name)

    def test_shows_hostile_names_as_text(self):
        hostile = self.folder / "labels.json"
        hostile.write_text(json.dumps(["</script><img src=x onerror=alert(1)>", "\u202eevil", "{title}", *"abcdefg"]))
        file = self.folder / "hostile.html"
        run("explain", self.photo, "-m", MODELS["bundled"], "-o", file, "--labels", hostile, "--class", "0")
        page = self.open(file)
        self.assertIn("<img src=x", page.inner_text("#why"))
        self.assertEqual(page.locator("main img").count(), 1)  # the photograph
        self.assertEqual(self.problems, [])


if __name__ == "__main__":
    os.environ.setdefault("VITRAIL_QUIET", "1")
    unittest.main(argv=sys.argv[:1])
