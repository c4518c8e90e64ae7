# SPDX-License-Identifier: Apache-2.0
"""The server's page in Chromium, for the checks of the page."""

import io
import json
import pathlib
import shutil
import sys
import tempfile
import time
import unittest

import numpy
from PIL import Image
from playwright.sync_api import expect, sync_playwright
from serve_program import Server, run, small_model

PROGRAM, REPOSITORY = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
SCREENSHOTS = pathlib.Path(sys.argv[3]) if len(sys.argv) > 3 else None
MODELS = REPOSITORY / "tests/fixtures/models"


def image(seed, orientation=None, kind="PNG"):
    """A photograph-like image: smooth noise.  orientation: as EXIF counts."""
    small = numpy.random.default_rng(seed).integers(0, 256, (6, 8, 3), numpy.uint8)
    file, exif = io.BytesIO(), Image.Exif()
    if orientation:
        exif[0x0112] = orientation
    Image.fromarray(small).resize((320, 240), Image.Resampling.BICUBIC).save(file, kind, exif=exif)
    kind = kind.lower()
    return {"name": f"photo {seed}.{kind}", "mimeType": f"image/{kind}", "buffer": file.getvalue()}


def trimap(unknown=True):
    """A trimap for image(), or a mask."""
    values = numpy.zeros((240, 320), numpy.uint8)
    values[40:200, 60:260] = 128 if unknown else 255
    values[80:160, 100:220] = 255
    file = io.BytesIO()
    Image.fromarray(values).save(file, "PNG")
    return {"name": "trimap.png", "mimeType": "image/png", "buffer": file.getvalue()}


expect.set_options(timeout=30_000)


class PageTest(unittest.TestCase):
    """A page for each test, at the size and with the theme that the test wants."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        chromium = shutil.which("chromium") or sys.exit("page_check: chromium is not installed: run scripts/setup")
        models = ["-m", small_model(REPOSITORY), "-m", f"clip={MODELS / 'hf_clip'}"]
        models += ["-m", f"sam={REPOSITORY / 'tests/fixtures/sam/padded_windows/model.pth'}"]
        models += ["-m", f"demonstration={REPOSITORY / 'models/segment-tiny'}"]
        models += ["-m", f"depth={REPOSITORY / 'tests/fixtures/depth/relative'}", "-m", f"bank={cls.bank()}"]
        models += ["-m", f"matte={REPOSITORY / 'tests/fixtures/vitmatte/windows'}"]
        models += ["-m", f"yolos={REPOSITORY / 'tests/fixtures/yolos/mid'}"]
        models += ["-m", f"owl={REPOSITORY / 'tests/fixtures/owl/v2'}"]
        models += ["-m", f"instances={REPOSITORY / 'tests/fixtures/rf_detr/masks'}", "-m", f"pose={cls.pose()}"]
        models += ["-m", f"semantic={REPOSITORY / 'tests/fixtures/semantic/linear'}"]
        cls.server = Server(PROGRAM, *models)
        cls.url = cls.server.url
        cls.playwright = sync_playwright().start()
        camera = ["--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream"]
        cls.browser = cls.playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", *camera])

    @classmethod
    def bank(cls):
        """A bank of anomaly detection, from five images."""
        folder = pathlib.Path(cls.folder.name)
        for seed in range(5):
            (folder / f"{seed}.png").write_bytes(image(seed)["buffer"])
        run(PROGRAM, "anomaly", "fit", folder, "-m", MODELS / "timm_token", "-o", folder / "bank", "--quiet")
        return folder / "bank"

    @classmethod
    def pose(cls):
        """A pose estimator whose scores are below 1."""
        folder = pathlib.Path(cls.folder.name) / "pose"
        shutil.copytree(REPOSITORY / "tests/fixtures/vitpose/simple", folder)
        data = bytearray((folder / "model.safetensors").read_bytes())
        length = int.from_bytes(data[:8], "little")
        header = json.loads(data[8 : 8 + length])
        for name in ("head.conv.weight", "head.conv.bias"):
            begin, end = header[name]["data_offsets"]
            values = numpy.frombuffer(data, numpy.float16, (end - begin) // 2, 8 + length + begin)
            values *= numpy.float16(0.2)
        (folder / "model.safetensors").write_bytes(data)
        return folder

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.playwright.stop()
        cls.server.stop()
        cls.folder.cleanup()

    def setUp(self):
        self.context = None
        self.problems, self.requests = [], []
        self.open()

    def open(self, width=1440, height=900, theme="light", fingers=False):
        """Opens the page in a new window, with the storage of a new user."""
        if self.context:
            self.context.close()
        self.context = self.browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=theme, has_touch=fingers, is_mobile=fingers
        )
        self.page = self.context.new_page()
        self.page.set_default_timeout(60_000)
        self.page.on("console", lambda message: message.type == "error" and self.problems.append(message.text))
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.goto(self.url + "/")
        self.page.wait_for_selector("[role=tab]", state="attached")

    def tearDown(self):
        self.context.close()
        foreign = [url for url in self.requests if not url.startswith((self.url, "data:", "blob:"))]
        self.assertEqual(foreign, [])

    def choose(self, *images):
        """Adds images, given by their seeds or as files."""
        files = [image(each) if isinstance(each, int) else each for each in images]
        count = self.page.locator(".thumbnail").count()
        self.page.set_input_files("#file", files)
        expect(self.page.locator(".thumbnail")).to_have_count(count + len(files))

    def select(self, tab):
        self.page.get_by_role("tab", name=tab).click()

    def settled(self):
        expect(self.page.locator("#status")).to_have_text("")

    def legend(self):
        return expect(self.page.locator("#legend"))

    def curl(self):
        return expect(self.page.locator("#curl"))

    def at(self, x, y):
        """The position on the screen of a point of the image, given as shares of its size."""
        self.page.locator("#canvas").scroll_into_view_if_needed()
        box = self.page.locator("#canvas").bounding_box()
        return box["x"] + x * box["width"], box["y"] + y * box["height"]

    def shot(self, name):
        if SCREENSHOTS:
            self.page.screenshot(path=str(SCREENSHOTS / f"{name}.png"), full_page=True)

    def canvas(self):
        return self.page.evaluate("document.getElementById('canvas').toDataURL()")

    def wait_until(self, condition):
        """Waits for what the page shows.  Its policy forbids the eval() of Playwright's wait_for_function()."""
        end = time.monotonic() + 30
        while not condition():
            self.assertLess(time.monotonic(), end, "the page does not show what is expected")
            self.page.wait_for_timeout(50)


def main():
    del sys.argv[1:]
    unittest.main(verbosity=2)
