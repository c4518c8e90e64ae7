#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Segment Anything on the server's page in Chromium, with mouse, finger and keyboard.

page_segment_check.py PROGRAM REPOSITORY [FOLDER for screenshots]
"""

import io
import json
import re

import numpy
import page_testing
from PIL import Image
from playwright.sync_api import expect


class Segment(page_testing.PageTest):
    def open(self, **window):
        super().open(**window)
        self.page.select_option("#model", "sam")
        self.choose(1)
        self.settled()

    def download(self, name):
        with self.page.expect_download() as download:
            self.page.get_by_role("button", name=name, exact=True).click()
        with open(download.value.path(), "rb") as file:
            return download.value.suggested_filename, file.read()

    def test_clicks_and_undo(self):
        plain = self.canvas()
        self.page.mouse.click(*self.at(0.3, 0.3))
        self.legend().to_contain_text("predicted IoU")
        self.settled()
        self.wait_until(lambda: self.canvas() != plain)
        expect(self.page.locator("input[name=mask]")).to_have_count(3)
        chosen = self.page.locator("#legend").text_content()
        self.page.locator("input[name=mask]:not(:checked)").first.check()
        self.legend().not_to_have_text(chosen)
        for x, button, shift in ((0.1, "left", ["Shift"]), (0.9, "right", [])):
            for key in shift:
                self.page.keyboard.down(key)
            self.page.mouse.click(*self.at(x, 0.1), button=button)
            for key in shift:
                self.page.keyboard.up(key)
            self.settled()
        chips = self.page.locator(".chips li")
        expect(chips).to_have_count(3)
        self.assertEqual([text[0] for text in chips.all_text_contents()], ["+", "−", "−"])
        expect(self.page.locator("#curl")).to_have_text(re.compile("(point=.*){3}"))
        self.assertEqual(self.page.locator("#curl").text_content().count("%2C0"), 2)
        self.shot("segment")
        self.page.get_by_role("button", name="Undo").click()
        expect(chips).to_have_count(2)
        chips.nth(1).get_by_role("button").click()
        expect(chips).to_have_count(1)
        self.page.get_by_role("button", name="Begin again").click()
        expect(chips).to_have_count(0)
        self.settled()
        self.wait_until(lambda: self.canvas() == plain)
        self.page.get_by_role("button", name="Undo").click()
        expect(chips).to_have_count(1)
        self.assertEqual(self.problems, [])

    def test_a_box_is_visible_while_it_is_drawn(self):
        band = self.page.locator("#band")
        expect(band).to_be_hidden()
        (x0, y0), (x1, y1) = self.at(0.1, 0.1), self.at(0.6, 0.7)
        self.page.mouse.move(x0, y0)
        self.page.mouse.down()
        self.page.mouse.move(x1, y1)
        expect(band).to_be_visible()
        shown = band.bounding_box()
        self.assertAlmostEqual(shown["width"], x1 - x0, delta=6)
        self.assertAlmostEqual(shown["height"], y1 - y0, delta=6)
        self.shot("segment-band")
        self.page.mouse.up()
        expect(band).to_be_hidden()
        self.curl().to_contain_text(re.compile("box=3[12]%2C2[34]%2C19[12]%2C16[78]"))
        self.legend().to_contain_text("predicted IoU")
        self.page.get_by_label("Everything in the image").check()
        self.legend().to_have_text(re.compile(r"^\d+ masks?$"))
        self.settled()
        self.shot("segment-everything")
        self.assertEqual(self.problems, [])

    def test_masks_are_files(self):
        self.page.mouse.click(*self.at(0.5, 0.5))
        self.legend().to_contain_text("predicted IoU")
        self.settled()
        name, content = self.download("JSON")
        self.assertEqual(name, "photo 1-masks.json")
        mask = json.loads(content)["masks"][0]
        name, content = self.download("Mask")
        self.assertEqual(name, "photo 1-mask.png")
        white = numpy.asarray(Image.open(io.BytesIO(content)).convert("L")) == 255
        self.assertEqual(white.shape, (240, 320))
        self.assertEqual(white.sum(), mask["area"])
        cut = numpy.asarray(Image.open(io.BytesIO(self.download("Cut-out")[1])))
        self.assertTrue(((cut[..., 3] == 255) == white).all())
        photograph = numpy.asarray(Image.open(io.BytesIO(page_testing.image(1)["buffer"])))
        self.assertTrue((cut[..., :3][white] == photograph[white]).all())
        overlay = numpy.asarray(Image.open(io.BytesIO(self.download("Overlay")[1])))[..., :3]
        self.assertTrue(((overlay == photograph).all(axis=-1) == ~white).all())

    def test_fingers(self):
        self.open(width=390, height=844, fingers=True)
        self.page.touchscreen.tap(*self.at(0.3, 0.3))
        chips = self.page.locator(".chips li")
        expect(chips).to_have_text([re.compile(r"^\+ 9\d, 7\d")])
        self.legend().to_contain_text("predicted IoU")
        client = self.context.new_cdp_session(self.page)

        def touch(kind, *point):
            points = [{"x": point[0], "y": point[1]}] if point else []
            client.send("Input.dispatchTouchEvent", {"type": f"touch{kind}", "touchPoints": points})

        touch("Start", *self.at(0.9, 0.9))
        expect(chips).to_have_count(2)  # while the finger is held
        touch("End")
        expect(chips.nth(1)).to_have_text(re.compile(r"^− 2\d\d, 21\d"))
        touch("Start", *self.at(0.2, 0.2))
        touch("Move", *self.at(0.5, 0.5))
        touch("Move", *self.at(0.7, 0.8))
        expect(self.page.locator("#band")).to_be_visible()
        self.shot("segment-finger")
        touch("End")
        expect(chips).to_have_count(3)
        expect(chips.nth(2)).to_have_text(re.compile(r"^Box 6\d, 4\d, 22\d, 19\d"))
        self.assertEqual(self.problems, [])

    def test_the_keyboard_alone(self):
        plain = self.canvas()
        self.page.locator("#canvas").focus()
        self.page.keyboard.press("ArrowRight")
        self.legend().to_contain_text("The cross is at")
        self.page.keyboard.press("Enter")
        self.legend().to_contain_text("predicted IoU")
        self.curl().to_contain_text("point=")
        self.wait_until(lambda: self.canvas() != plain)
        self.page.keyboard.press("Control+z")
        expect(self.page.locator(".chips li")).to_have_count(0)
        self.page.keyboard.press("b")
        for key in ("ArrowRight", "ArrowRight", "ArrowDown", "ArrowDown"):
            self.page.keyboard.press(key)
        expect(self.page.locator("#band")).to_be_visible()
        self.page.keyboard.press("b")
        self.curl().to_contain_text("box=")
        self.legend().to_contain_text("predicted IoU")
        self.page.keyboard.press("Escape")
        expect(self.page.locator(".chips li")).to_have_count(0)
        self.page.get_by_label("Everything in the image").focus()
        self.page.keyboard.press("Space")
        self.legend().to_contain_text("mask")
        self.assertEqual(self.problems, [])

    def test_each_image_keeps_its_prompt(self):
        self.page.mouse.click(*self.at(0.3, 0.3))
        self.legend().to_contain_text("predicted IoU")
        self.choose(2)
        expect(self.page.locator(".chips li")).to_have_count(0)
        expect(self.page.locator("#result .maps canvas")).to_have_count(2)
        self.page.get_by_role("button", name="photo 1.png", exact=True).click()
        expect(self.page.locator(".chips li")).to_have_count(1)
        self.legend().to_contain_text("predicted IoU")

    def test_a_model_may_have_a_note(self):
        expect(self.page.locator(".note")).to_have_count(0)
        self.page.select_option("#model", "demonstration")
        expect(self.page.locator(".note")).to_contain_text("A demonstration")


if __name__ == "__main__":
    page_testing.main()
