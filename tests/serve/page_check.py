#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The server's page in Chromium: views, keyboard, narrow windows, errors, and no request to anyone else.

page_check.py PROGRAM REPOSITORY [FOLDER for screenshots]
"""

import io
import pathlib
import re
import shutil
import sys
import unittest

import numpy
from PIL import Image
from playwright.sync_api import expect, sync_playwright
from serve_program import Server, small_model

PROGRAM, REPOSITORY = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
SCREENSHOTS = pathlib.Path(sys.argv[3]) if len(sys.argv) > 3 else None
MODELS = REPOSITORY / "tests/fixtures/models"
CHROMIUM = shutil.which("chromium") or sys.exit("page_check: chromium is not installed: run scripts/setup")


def image(seed):
    """A photograph-like image: smooth noise."""
    small = numpy.random.default_rng(seed).integers(0, 256, (6, 8, 3), numpy.uint8)
    file = io.BytesIO()
    Image.fromarray(small).resize((320, 240), Image.Resampling.BICUBIC).save(file, "PNG")
    return {"name": f"photo {seed}.png", "mimeType": "image/png", "buffer": file.getvalue()}


class Page(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        models = ["-m", small_model(REPOSITORY), "-m", f"clip={MODELS / 'hf_clip'}"]
        models += ["-m", f"sam={REPOSITORY / 'tests/fixtures/sam/padded_windows/model.pth'}"]
        cls.server = Server(PROGRAM, *models)
        cls.url = cls.server.url
        cls.playwright = sync_playwright().start()
        camera = ["--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream"]
        cls.browser = cls.playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", *camera])

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.playwright.stop()
        cls.server.stop()

    def setUp(self):
        self.context = self.browser.new_context(viewport={"width": 1100, "height": 900})
        self.page = self.context.new_page()
        self.page.set_default_timeout(20_000)
        self.problems, self.requests = [], []
        self.page.on("console", lambda message: message.type == "error" and self.problems.append(message.text))
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(self.url + "/")
        self.page.wait_for_selector("[role=tab]")

    def tearDown(self):
        foreign = [url for url in self.requests if not url.startswith((self.url, "data:", "blob:"))]
        self.context.close()
        self.assertEqual(foreign, [])

    def choose(self, *seeds):
        self.page.set_input_files("#file", [image(seed) for seed in seeds])

    def select(self, tab):
        self.page.get_by_role("tab", name=tab).click()

    def settled(self):
        expect(self.page.locator("#status")).to_have_text("")

    def shot(self, name):
        if SCREENSHOTS:
            self.page.screenshot(path=str(SCREENSHOTS / f"{name}.png"), full_page=True)

    def canvas(self):
        return self.page.evaluate("document.getElementById('canvas').toDataURL()")

    def test_every_view_shows_something(self):
        self.choose(1)
        self.settled()
        self.assertEqual(self.page.locator(".bars li").count(), 5)
        self.assertIn("curl --data-binary '@photo 1.png'", self.page.locator("#curl").text_content())
        self.shot("classify")
        plain = self.canvas()
        self.select("Attention")
        expect(self.page.locator("#legend")).to_contain_text("Attention of")
        attention = self.canvas()
        self.assertNotEqual(attention, plain)
        self.page.locator("#canvas").click(position={"x": 200, "y": 100})
        expect(self.page.locator("#legend")).to_contain_text("the patch at")
        self.assertNotEqual(self.canvas(), attention)
        self.shot("attention")
        self.select("Features")
        expect(self.page.locator("#legend")).to_contain_text("principal")
        self.assertNotEqual(self.canvas(), plain)
        self.shot("features")
        self.select("Model")
        self.assertIn("precision", self.page.locator("#panel").text_content())
        self.assertEqual(self.problems, [])

    def test_texts_and_several_images(self):
        self.page.select_option("#model", "clip")
        self.choose(1, 2)
        self.select("Texts")
        self.page.wait_for_selector(".bars li")
        self.assertEqual(self.page.locator(".bars li").count(), 6)
        self.select("Compare")
        self.page.wait_for_selector("td")
        cells = self.page.locator("td").all_text_contents()
        self.assertIn("1.000", cells)
        self.shot("compare")
        self.assertEqual(self.problems, [])

    def test_keyboard_alone(self):
        self.choose(1)
        self.settled()
        self.page.get_by_role("tab", name="Classify").focus()
        self.page.keyboard.press("ArrowRight")
        self.assertEqual(self.page.evaluate("document.activeElement.textContent"), "Attention")
        expect(self.page.locator("#legend")).to_contain_text("Attention of")
        before = self.canvas()
        self.page.keyboard.press("Tab")  # the panel
        self.page.keyboard.press("Tab")  # the block
        self.page.keyboard.press("Home")
        expect(self.page.locator("#legend")).to_contain_text("layer 0")
        self.assertNotEqual(self.canvas(), before)

    def test_click_box_and_everything_segment(self):
        self.page.select_option("#model", "sam")
        self.choose(1)
        self.settled()
        plain = self.canvas()
        canvas = self.page.locator("#canvas")
        canvas.click(position={"x": 100, "y": 80})
        expect(self.page.locator("#legend")).to_contain_text("predicted IoU")
        self.settled()
        self.assertTrue(self.canvas() != plain)
        self.assertEqual(self.page.locator("input[name=mask]").count(), 3)
        chosen = self.page.locator("#legend").text_content()
        self.page.locator("input[name=mask]:not(:checked)").first.check()
        expect(self.page.locator("#legend")).not_to_have_text(chosen)
        canvas.click(position={"x": 20, "y": 20}, modifiers=["Shift"])
        expect(self.page.locator("#curl")).to_contain_text("%2C0")
        self.assertEqual(self.page.locator("#curl").text_content().count("point="), 2)
        self.shot("segment")
        self.page.get_by_role("button", name="Begin again").click()
        self.settled()
        self.assertTrue(self.canvas() == plain)
        box = canvas.bounding_box()
        self.page.mouse.move(box["x"] + 40, box["y"] + 40)
        self.page.mouse.down()
        self.page.mouse.move(box["x"] + 200, box["y"] + 160)
        self.page.mouse.up()
        expect(self.page.locator("#curl")).to_contain_text("box=")
        expect(self.page.locator("#legend")).to_contain_text("predicted IoU")
        self.shot("segment-box")
        self.page.get_by_label("Everything in the image").check()
        expect(self.page.locator("#legend")).to_have_text(re.compile(r"^\d+ masks?$"))
        self.settled()
        self.shot("segment-everything")
        self.assertEqual(self.problems, [])

    def test_segments_with_the_keyboard_alone(self):
        self.page.select_option("#model", "sam")
        self.choose(1)
        self.settled()
        plain = self.canvas()
        self.page.locator("#canvas").focus()
        self.page.keyboard.press("ArrowRight")
        expect(self.page.locator("#legend")).to_contain_text("The cross is at")
        self.page.keyboard.press("Enter")
        expect(self.page.locator("#legend")).to_contain_text("predicted IoU")
        expect(self.page.locator("#curl")).to_contain_text("point=")
        self.assertTrue(self.canvas() != plain)
        self.page.keyboard.press("Escape")
        self.settled()
        self.page.keyboard.press("b")
        for key in ("ArrowRight", "ArrowRight", "ArrowDown", "ArrowDown", "b"):
            self.page.keyboard.press(key)
        expect(self.page.locator("#curl")).to_contain_text("box=")
        expect(self.page.locator("#legend")).to_contain_text("predicted IoU")
        self.page.get_by_label("Everything in the image").focus()
        self.page.keyboard.press("Space")
        expect(self.page.locator("#legend")).to_contain_text("mask")
        self.assertEqual(self.problems, [])

    def test_fits_a_narrow_window_in_both_themes(self):
        self.page.set_viewport_size({"width": 360, "height": 740})
        self.choose(1, 2)
        for theme in ("light", "dark"):
            self.page.emulate_media(color_scheme=theme)
            for tab in ("Classify", "Attention", "Features", "Compare", "Model"):
                self.select(tab)
                self.settled()
                self.assertLessEqual(self.page.evaluate("document.documentElement.scrollWidth"), 360, tab)
            self.select("Attention")
            self.settled()
            self.shot(f"narrow-{theme}")

    def test_takes_a_photograph(self):
        self.context.grant_permissions(["camera"])
        camera = self.page.get_by_role("button", name="Take a photograph")
        camera.click()
        self.page.get_by_role("button", name="Cancel").click()
        expect(self.page.locator("#stage")).to_be_hidden()
        camera.press("Enter")
        expect(self.page.get_by_role("dialog")).to_be_visible()
        self.shot("camera")
        self.page.keyboard.press("Enter")  # "Take" has the focus
        self.page.wait_for_selector(".bars li")
        self.assertIn("photograph.jpg", self.page.locator("#curl").text_content())
        self.assertGreater(self.page.evaluate("document.getElementById('canvas').width"), 100)
        self.context.clear_permissions()
        self.assertEqual(self.problems, [])

    def test_a_camera_that_is_refused_is_told(self):
        refused = "() => Promise.reject(new Error('Permission denied'))"
        self.page.evaluate(f"() => {{ navigator.mediaDevices.getUserMedia = {refused}; }}")
        self.page.get_by_role("button", name="Take a photograph").click()
        expect(self.page.locator("#status")).to_have_text("No photograph: Permission denied")

    def test_errors_are_told(self):
        broken = {"name": "broken.png", "mimeType": "image/png", "buffer": b"not an image"}
        self.page.set_input_files("#file", [broken])
        self.page.wait_for_selector("#status.bad")
        self.assertIn("expected", self.page.locator("#status").text_content())
        text = {"name": "a.txt", "mimeType": "text/plain", "buffer": b"text"}
        self.page.set_input_files("#file", [text])
        expect(self.page.locator("#status")).to_contain_text("no image")

    def test_paste_and_drop(self):
        script = """async ([kind, bytes]) => {
            const files = new DataTransfer();
            files.items.add(new File([new Uint8Array(bytes)], "a.png", {type: "image/png"}));
            const event = kind === "paste" ? new ClipboardEvent("paste", {clipboardData: files, bubbles: true})
                                           : new DragEvent("drop", {dataTransfer: files, bubbles: true});
            document.body.dispatchEvent(event);
        }"""
        for seed, kind in enumerate(("paste", "drop")):
            self.page.reload()
            self.page.wait_for_selector("[role=tab]")
            self.page.evaluate(script, [kind, list(image(seed)["buffer"])])
            self.page.wait_for_selector(".bars li")


if __name__ == "__main__":
    del sys.argv[1:]
    unittest.main(verbosity=2)
