# SPDX-License-Identifier: Apache-2.0
"""Learning pages in Chromium, from files and without a network."""

import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

import numpy
from PIL import Image
from playwright.sync_api import sync_playwright

PROGRAM, REPOSITORY = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
FIXTURES = REPOSITORY / "tests/fixtures/models"


def run(*arguments):
    return subprocess.run([PROGRAM, *map(str, arguments)], check=True, stdout=subprocess.PIPE, text=True).stdout


class BrowserPage(unittest.TestCase):
    """A photograph with smooth colours, a folder for pages, and a browser."""

    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory()
        cls.addClassCleanup(temporary.cleanup)
        cls.folder, cls.pages = pathlib.Path(temporary.name), {}
        cls.photo = cls.folder / "photo.png"
        small = numpy.random.default_rng(3).integers(0, 256, (6, 8, 3), numpy.uint8)
        Image.fromarray(small).resize((160, 120), Image.Resampling.BICUBIC).save(cls.photo)
        chromium = shutil.which("chromium") or sys.exit("chromium is not installed: run scripts/setup")
        playwright = sync_playwright().start()
        cls.addClassCleanup(playwright.stop)
        cls.browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        cls.addClassCleanup(cls.browser.close)

    @classmethod
    def explain(cls, name, model, *options):
        """Writes the page of a model, and returns the values of `vitrail inspect --trace`."""
        cls.pages[name] = cls.folder / f"{name}.html"
        run("explain", cls.photo, "-m", model, "-o", cls.pages[name], *options)
        run("inspect", "-m", model, "--trace", cls.photo, "-o", cls.folder / f"{name}.npz")
        return numpy.load(cls.folder / f"{name}.npz")

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

    def manifest(self, name):
        return json.loads(re.search(r'id="manifest">(.*?)</script>', self.pages[name].read_text())[1])

    def compared_numbers(self, name, values):
        """Compares the numbers of a page, in four views, with values of a forward pass by their names.  The names of
        those that were compared, with I for indices of blocks."""
        model, compared = self.manifest(name)["model"], set()
        last = {"block": model["depth"] - 1, "head": model["heads"] - 1, "token": model["tokens"] - 1, "channel": 1}
        second = {"block": 2, "token": model["prefix"] - 1, "key": model["prefix"]}
        for state in ({}, last, {"block": 1, "token": model["prefix"] + 2, "key": model["prefix"]}, second):
            page = self.open(self.pages[name], "#" + "&".join(f"{key}={value}" for key, value in state.items()))
            read = "nodes => nodes.map((node) => [node.dataset.id, node.dataset.digits, node.textContent])"
            found = page.eval_on_selector_all("data[data-id]", read)
            self.assertGreater(len(found), 20)
            for identifier, digits, shown in found:
                value, index = re.fullmatch(r"(.*)\[(.*)\]", identifier).groups()
                if value not in values:
                    continue
                wanted = float(values[value][tuple(map(int, index.split(", ")))])
                self.assertLessEqual(abs(float(shown) - wanted), 1.01 * 10.0 ** -int(digits), f"{name} {identifier}")
                compared.add(re.sub(r"\d+", "I", value))
            self.assertEqual(self.problems, [], name)
        return compared
