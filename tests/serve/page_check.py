#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The server's page in Chromium: images, views, keyboard and errors, and no request to anyone else.

page_check.py PROGRAM REPOSITORY [FOLDER for screenshots]
"""

import base64
import io
import pathlib
import re

import numpy
import page_testing
from page_testing import image, trimap
from PIL import Image, ImageOps
from playwright.sync_api import expect

BROKEN = {"name": "broken.png", "mimeType": "image/png", "buffer": b"not an image"}

# Drops or pastes a file on an element.
DROP = """([place, kind, bytes]) => {
    const files = new DataTransfer();
    files.items.add(new File([new Uint8Array(bytes)], "a.png", {type: "image/png"}));
    const event = kind === "paste" ? new ClipboardEvent("paste", {clipboardData: files, bubbles: true})
                                   : new DragEvent("drop", {dataTransfer: files, bubbles: true});
    document.querySelector(place).dispatchEvent(event);
}"""


class Views(page_testing.PageTest):
    def test_every_view_shows_something(self):
        self.choose(1)
        self.settled()
        expect(self.page.locator(".bars li")).to_have_count(5)
        self.curl().to_contain_text("curl --data-binary '@photo 1.png'")
        expect(self.page.locator("#time")).to_have_text(re.compile(r"^Answered in \d+ ms; the server: .*model \d+ ms"))
        self.shot("classify")
        shown = [self.canvas()]
        for tab, legend in (("Attention", "Attention of"), ("Features", "principal"), ("Patches", "similarity")):
            self.select(tab)
            self.legend().to_contain_text(legend)
            self.wait_until(lambda: self.canvas() not in shown)
            shown.append(self.canvas())
            self.shot(tab.lower())
        self.select("Model")
        expect(self.page.locator("#result")).to_contain_text("precision")
        self.assertEqual(self.problems, [])

    def test_attention_of_a_patch_and_of_all_heads(self):
        self.choose(1, 2)
        self.select("Attention")
        self.legend().to_contain_text("Attention of the class token, layer 1")
        whole = self.canvas()
        self.page.mouse.click(*self.at(0.6, 0.4))
        self.legend().to_contain_text("the patch at")
        self.wait_until(lambda: self.canvas() != whole)
        self.page.get_by_role("button", name="Clear the patch").click()
        self.legend().to_contain_text("the class token")
        self.page.get_by_label("All heads and blocks").check()
        tiles = self.page.locator(".sheet td button")
        expect(tiles).to_have_count(2 * 2)  # blocks and heads of the model
        self.page.get_by_role("button", name="Block 0, head 1").click()
        self.legend().to_contain_text("layer 0 head 1")
        expect(self.page.get_by_role("button", name="Block 0, head 1")).to_have_attribute("aria-pressed", "true")
        self.assertEqual(self.page.get_by_label("Block", exact=True).input_value(), "0")
        self.shot("attention-sheet")

    def test_saves_the_page_that_explains_an_image(self):
        self.choose(1)
        self.select("Explain")
        self.page.get_by_label("Size of the page").select_option("small")
        with self.page.expect_download() as download:
            self.page.get_by_role("button", name="Save the page").click()
        self.assertEqual(download.value.suggested_filename, "photo 1.png explained.html")
        html = pathlib.Path(download.value.path()).read_text()
        self.assertTrue(html.startswith("<!doctype html>"))
        self.assertIn('"detail":"small"', html)
        expect(self.page.get_by_role("status").filter(has_text="Saved")).to_be_visible()
        self.assertEqual(self.problems, [])

    def test_similar_patches_and_norms(self):
        self.choose(1, 2)
        self.select("Patches")
        self.legend().to_contain_text("the patch at 160, 120")
        middle = self.canvas()
        self.page.mouse.click(*self.at(0.2, 0.3))
        self.legend().to_contain_text(re.compile(r"the patch at 6\d, 7\d.*1$"))
        self.wait_until(lambda: self.canvas() != middle)
        self.page.get_by_label("Shown", exact=True).select_option("norm")
        self.legend().to_contain_text("L2 norms of the patch tokens")
        normed = self.page.locator("#legend").text_content()
        self.page.get_by_label("Final norm").uncheck()
        self.legend().not_to_have_text(normed)
        self.settled()
        self.curl().to_contain_text("no-norm=true")
        expect(self.page.locator(".maps canvas")).to_have_count(2)

    def test_maps_that_the_server_draws(self):
        self.choose(1, 2)
        self.page.select_option("#model", "depth")
        self.legend().to_contain_text("the larger, the nearer")
        expect(self.page.locator(".cards table")).to_have_count(2)
        expect(self.page.locator(".cards table").first).to_contain_text("largest value")
        self.curl().to_contain_text("v1/depth?model=depth&opacity=1&exif=true&format=png'")
        whole = self.canvas()
        self.page.mouse.click(*self.at(0.6, 0.4))
        expect(self.page.get_by_label("Divider")).to_have_value("0.6")
        self.wait_until(lambda: self.canvas() != whole)
        divided = self.canvas()
        self.page.get_by_label("Divider").fill("1")  # the image alone
        self.wait_until(lambda: self.canvas() not in (whole, divided))
        image_alone = self.canvas()
        self.page.select_option("#model", "bank")
        self.legend().to_contain_text("Distances of patches from those of good images")
        expect(self.page.locator(".cards table").first).to_contain_text("score")
        self.page.get_by_label("Opacity").fill("0")
        self.wait_until(lambda: self.canvas() == image_alone)
        self.choose(3)
        self.page.get_by_label("Opacity").fill("1")
        self.wait_until(lambda: self.canvas() != image_alone)
        self.page.select_option("#model", "semantic")
        self.legend().to_contain_text("segment")
        rows = self.page.locator(".swatches").first.inner_text().split("\n")
        shares = [float(text.split()[0]) for text in rows[1::2]]
        self.assertAlmostEqual(sum(shares), 100, delta=0.1 * len(shares))
        self.assertEqual(shares, sorted(shares, reverse=True))
        square = self.page.locator(".swatch").first
        self.assertNotEqual(square.evaluate("each => getComputedStyle(each).backgroundColor"), "rgba(0, 0, 0, 0)")
        self.assertEqual(self.problems, [])

    def test_objects_have_boxes_above_a_score(self):
        self.page.select_option("#model", "yolos")
        self.choose(1, 2)
        self.legend().to_contain_text("object")
        threshold = self.page.get_by_label("Minimum score")
        threshold.fill("1")
        self.legend().to_have_text("0 objects")
        without = self.canvas()
        asked = len(self.requests)
        threshold.fill("0.05")
        self.wait_until(lambda: self.canvas() != without)
        rows = self.page.locator(".cards li").first.locator(".swatches li")
        self.legend().to_have_text(f"{rows.count()} objects")
        scores = [float(text.split()[-2]) for text in rows.all_inner_texts()]
        self.assertEqual(scores, sorted(scores, reverse=True))
        threshold.fill(str(scores[0] / 100 - 0.01))
        self.legend().not_to_have_text(f"{len(scores)} objects")
        self.assertEqual(len(self.requests), asked)  # the slider filters what is known
        self.page.get_by_label("Maximum overlap").fill("0")
        self.curl().to_contain_text("nms=0")
        self.shot("objects")
        self.page.select_option("#model", "owl")
        self.page.get_by_label("Minimum score").fill("0.05")
        self.curl().to_contain_text("labels=cat&labels=cup+of+coffee")
        self.page.get_by_role("button", name="Remove cat").click()
        self.curl().not_to_contain_text("labels=cat&")
        self.shot("objects-of-labels")
        self.assertEqual(self.problems, [])

    def test_objects_have_masks_above_a_score(self):
        self.page.select_option("#model", "instances")
        self.choose(1)
        self.legend().to_contain_text("object")
        threshold, masks = self.page.get_by_label("Minimum score"), self.page.get_by_label("Masks are those of")
        threshold.fill("1")
        self.legend().to_have_text("0 objects")
        image_alone = self.canvas()
        threshold.fill("0.05")
        self.legend().not_to_have_text("0 objects")
        own = self.changed_pixels(image_alone)
        masks.select_option("sam")
        self.curl().to_contain_text("masks=sam")
        self.wait_until(lambda: self.changed_pixels(image_alone) != own)
        self.shot("masks")
        asked = len(self.requests)
        threshold.fill("1")
        self.wait_until(lambda: self.canvas() == image_alone)
        self.assertEqual(len(self.requests), asked)
        self.page.select_option("#model", "yolos")
        threshold.fill("0.05")
        self.legend().not_to_have_text("0 objects")
        boxes = self.changed_pixels(image_alone)
        self.page.get_by_label("Masks are those of").select_option("sam")
        self.wait_until(lambda: self.changed_pixels(image_alone) > boxes)
        self.assertEqual(self.problems, [])

    def changed_pixels(self, before):
        """How many pixels of the image differ from what the canvas showed."""
        now, then = (Image.open(io.BytesIO(base64.b64decode(url.split(",")[1]))) for url in (self.canvas(), before))
        return int((numpy.asarray(now) != numpy.asarray(then)).any(-1).sum())

    def test_persons_have_limbs_above_a_score(self):
        self.page.select_option("#model", "pose")
        self.choose(1, 2)
        self.legend().to_have_text(re.compile(r"^5 key points of 1 person$"))
        threshold = self.page.get_by_label("Minimum score of a key point")
        drawn, asked = self.canvas(), len(self.requests)
        threshold.fill("1")
        self.legend().to_have_text("0 key points of 1 person")
        self.wait_until(lambda: self.canvas() != drawn)
        box_alone = self.canvas()
        threshold.fill("0.55")
        self.legend().to_contain_text(re.compile("^[1-4] key points"))
        self.wait_until(lambda: self.canvas() not in (drawn, box_alone))
        self.assertEqual(len(self.requests), asked)  # the slider filters what is known
        threshold.fill("0")
        self.shot("poses")
        self.page.get_by_label("Persons are those of").select_option("yolos")
        expect(self.page.locator("#status.bad")).to_contain_text("expected a name or an index")
        self.page.get_by_label("Class of the detector").fill("traffic light")
        self.page.get_by_label("Class of the detector").press("Enter")
        self.curl().to_contain_text("detector=yolos&classes=traffic+light")
        self.legend().to_contain_text(re.compile("of [2-9] persons"))
        self.shot("poses-of-a-detector")

    def test_objects_are_cut_out(self):
        self.page.select_option("#model", "matte")
        self.choose(1)
        self.legend().to_contain_text("Add a trimap or a mask")
        expect(self.page.get_by_label("Divider")).to_be_hidden()
        whole = self.canvas()
        self.page.set_input_files(".place input", [trimap()])
        self.legend().to_contain_text("The object is")
        self.wait_until(lambda: self.canvas() != whole)
        self.curl().to_contain_text("-F 'image=@photo 1.png' -F 'trimap=@trimap.png'")
        self.curl().to_contain_text("v1/matte?model=matte&exif=true&format=png'")
        self.shot("matte")
        self.page.mouse.click(*self.at(0.5, 0.4))
        expect(self.page.get_by_label("Divider")).to_have_value("0.5")
        self.page.get_by_label("Divider").fill("1")  # the image alone
        self.wait_until(lambda: self.canvas() == whole)

        cut, alpha = (self.saved(f"Save {name}") for name in ("the cut-out", "alpha"))
        pixels = numpy.asarray(cut)
        self.assertEqual((cut.mode, cut.size), ("RGBA", (320, 240)))
        numpy.testing.assert_allclose(numpy.asarray(alpha)[..., 0], pixels[..., 3].astype(int), atol=1)
        share = pixels[..., 3].mean() / 255
        expect(self.page.locator("#result")).to_contain_text(f"mean alpha{share:.3f}")

        self.page.set_input_files(".place input", [trimap(unknown=False)])
        expect(self.page.get_by_label("The file is a")).to_have_value("mask")
        self.curl().to_contain_text("-F 'mask=@trimap.png'")
        self.settled()
        self.page.get_by_label("Unknown pixels at the edge").fill("3")
        self.curl().to_contain_text("band=3")
        self.page.get_by_label("The file is a").select_option("trimap")
        expect(self.page.locator("#status.bad")).to_contain_text("pixels of unknown alpha")
        self.choose(2)
        self.legend().to_contain_text("Add a trimap or a mask")
        self.page.evaluate(DROP, [".place", "drop", list(trimap()["buffer"])])
        self.legend().to_contain_text("The object is")
        expect(self.page.locator(".thumbnail")).to_have_count(2)

    def saved(self, name):
        with self.page.expect_download() as download:
            self.page.get_by_role("button", name=name).click()
        return Image.open(download.value.path())

    def test_a_slider_shows_its_number_while_it_is_dragged(self):
        self.choose(1)
        self.select("Attention")
        self.settled()
        slider, number = self.page.get_by_label("Opacity"), self.page.locator("output").nth(1)
        expect(number).to_have_text("0.65")
        box, before = slider.bounding_box(), self.canvas()
        self.page.mouse.move(box["x"] + box["width"] * 0.65, box["y"] + box["height"] / 2)
        self.page.mouse.down()
        self.page.mouse.move(box["x"] + 1, box["y"] + box["height"] / 2)
        expect(number).to_have_text("0")
        self.wait_until(lambda: self.canvas() != before)  # the map follows
        self.page.mouse.up()

    def test_labels_are_chips_with_scores(self):
        self.page.select_option("#model", "clip")
        self.choose(1)
        chips = self.page.locator(".chips li")
        expect(chips).to_have_count(4)
        expect(chips.first.locator(".score")).to_contain_text("%")
        add = self.page.get_by_label("Add a label")
        add.fill("red boat")
        add.press("Enter")
        expect(chips.nth(4).locator(".score")).to_contain_text("%")
        expect(self.page.locator(".bars li")).to_have_count(5)
        chips.first.locator("input").fill("lion")
        chips.first.locator("input").press("Enter")
        expect(self.page.locator(".bars")).to_contain_text("lion")
        self.page.get_by_role("button", name="Remove red boat").click()
        expect(self.page.locator(".bars li")).to_have_count(4)
        self.curl().to_contain_text("labels=lion&labels=cup+of+coffee")
        self.shot("texts")
        self.assertEqual(self.problems, [])

    def test_results_of_several_images_are_beside_them(self):
        self.choose(1, 2, 3)
        cards = self.page.locator(".cards > li")
        expect(cards).to_have_count(3)
        for i in range(3):
            expect(cards.nth(i)).to_contain_text(f"photo {i + 1}.png")
            expect(cards.nth(i).locator("canvas")).to_have_count(1)
        first = self.canvas()
        self.page.get_by_role("button", name="Show photo 2.png").click()
        expect(self.page.locator(".thumbnail[aria-pressed=true]")).to_have_attribute("aria-label", "photo 2.png")
        self.wait_until(lambda: self.canvas() != first)
        self.select("Compare")
        cells = self.page.locator(".matrix tbody td")
        expect(cells).to_have_count(9)
        expect(cells.first).to_have_text("1.000")
        expect(self.page.locator(".matrix canvas")).to_have_count(6)
        expect(self.page.locator(".maps li")).to_have_count(2)
        self.shot("compare")
        self.page.get_by_role("button", name="Remove", exact=True).click()
        expect(cells).to_have_count(4)
        self.page.get_by_role("button", name="Remove all").click()
        expect(self.page.locator("#drop strong")).to_be_visible()
        expect(self.page.locator("#stage")).to_be_hidden()

    def test_keyboard_alone(self):
        self.choose(1, 2)
        self.settled()
        self.page.get_by_role("tab", name="Classify").focus()
        self.page.keyboard.press("ArrowRight")
        self.assertEqual(self.page.evaluate("document.activeElement.textContent"), "Attention")
        self.legend().to_contain_text("Attention of")
        self.page.keyboard.press("Tab")
        self.page.keyboard.press("ArrowRight")
        self.legend().to_contain_text("The cross is at")
        self.page.keyboard.press("Enter")
        self.legend().to_contain_text("the patch at")
        before = self.canvas()
        self.page.keyboard.press("Tab")
        self.page.keyboard.press("Home")
        self.legend().to_contain_text("layer 0")
        self.wait_until(lambda: self.canvas() != before)
        self.page.get_by_role("button", name="photo 1.png", exact=True).focus()
        self.page.keyboard.press("ArrowRight")
        expect(self.page.get_by_role("button", name="photo 2.png", exact=True)).to_be_focused()
        self.page.keyboard.press("Delete")
        expect(self.page.locator(".thumbnail")).to_have_count(1)

    def test_errors_name_their_file_and_clear_old_results(self):
        self.choose(1)
        self.settled()
        text = {"name": "a.txt", "mimeType": "text/plain", "buffer": b"text"}
        self.page.set_input_files("#file", [text])
        expect(self.page.locator("#status.bad")).to_have_text("a.txt is no image.")
        expect(self.page.locator(".bars")).to_have_count(0)
        self.choose(BROKEN)
        expect(self.page.locator("#status.bad")).to_contain_text("broken.png: image: expected")
        expect(self.page.locator(".cards > li").nth(1)).to_contain_text("expected")
        expect(self.page.locator(".cards > li").nth(0).locator(".bars")).to_be_visible()
        self.page.get_by_role("button", name="photo 1.png", exact=True).click()
        self.page.get_by_role("button", name="Remove", exact=True).click()
        expect(self.page.locator("#status.bad")).to_contain_text("broken.png: image: expected")
        expect(self.page.locator("#result")).to_be_empty()
        self.legend().to_have_text("This browser cannot show the image.")

    def test_exif_orientation_is_applied_unless_turned_off(self):
        size = "(({width, height}) => width > height)(document.getElementById('canvas'))"
        for kind in ("PNG", "JPEG", "WEBP"):
            self.open()
            self.choose(image(1), image(1, orientation=6, kind=kind))
            turned = self.page.get_by_role("button", name=f"photo 1.{kind.lower()}", exact=True).last
            self.select("Attention")
            turned.click()
            self.settled()
            self.curl().to_contain_text("exif=true")
            self.wait_until(lambda: not self.page.evaluate(size))
            self.page.get_by_label("EXIF").uncheck()
            self.settled()
            self.curl().not_to_contain_text("exif")
            self.wait_until(lambda: self.page.evaluate(size))

    def test_images_are_turned_as_pillow_turns_them(self):
        """Pillow's results are the server's too."""
        points = [(0.1, 0.2), (0.85, 0.15), (0.2, 0.7), (0.9, 0.95)]
        script = """(points) => points.map(([x, y]) => {
            const canvas = document.getElementById("canvas"), {width, height} = canvas;
            return [...canvas.getContext("2d").getImageData(x * width, y * height, 1, 1).data.slice(0, 3)];
        })"""
        for orientation in range(1, 9):
            file = image(1, orientation=orientation)
            expected = ImageOps.exif_transpose(Image.open(io.BytesIO(file["buffer"])))
            wanted = [expected.getpixel((int(x * expected.width), int(y * expected.height))) for x, y in points]
            self.choose(file)

            def is_drawn(wanted=wanted):
                drawn = self.page.evaluate(script, points)
                pairs = [pair for pixels in zip(drawn, wanted, strict=True) for pair in zip(*pixels, strict=True)]
                return max(abs(a - b) for a, b in pairs) < 16

            self.wait_until(is_drawn)
            self.page.get_by_role("button", name="Remove", exact=True).click()

    def test_samples(self):
        self.page.get_by_role("button", name="Sample: cat").click()
        expect(self.page.get_by_role("button", name="cat.jpg", exact=True)).to_be_visible()
        expect(self.page.locator(".bars li")).to_have_count(5)
        expect(self.page.get_by_role("button", name="Sample: cat")).to_be_hidden()
        self.assertEqual(self.problems, [])

    def test_takes_a_photograph(self):
        self.context.grant_permissions(["camera"])
        camera = self.page.get_by_role("button", name="Camera")
        camera.click()
        self.page.get_by_role("button", name="Cancel").click()
        expect(self.page.locator("#stage")).to_be_hidden()
        camera.press("Enter")
        expect(self.page.get_by_role("dialog")).to_be_visible()
        self.shot("camera")
        self.page.keyboard.press("Enter")  # "Take" has the focus
        self.page.wait_for_selector(".bars li")
        self.curl().to_contain_text("photograph.jpg")
        self.context.clear_permissions()
        self.assertEqual(self.problems, [])

    def test_a_camera_that_is_refused_is_told(self):
        refused = "() => Promise.reject(new Error('Permission denied'))"
        self.page.evaluate(f"() => {{ navigator.mediaDevices.getUserMedia = {refused}; }}")
        self.page.get_by_role("button", name="Camera").click()
        expect(self.page.locator("#status")).to_have_text("No photograph: Permission denied")

    def test_paste_and_drop(self):
        for seed, kind in enumerate(("paste", "drop")):
            self.page.reload()
            self.page.wait_for_selector("[role=tab]", state="attached")
            self.page.evaluate(DROP, ["body", kind, list(image(seed)["buffer"])])
            self.page.wait_for_selector(".bars li")


if __name__ == "__main__":
    page_testing.main()
