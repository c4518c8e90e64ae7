#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The server's page in Chromium, wide and narrow, light and dark: accessibility by axe-core, sizes, contrast, theme.

page_design_check.py PROGRAM REPOSITORY [FOLDER for screenshots]
"""

import page_testing
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import expect

WINDOWS = [(1440, 900, False), (390, 844, True)]
TABS = {
    "small": ("Classify", "Attention", "Features", "Patches", "Compare", "Model"),
    "clip": ("Texts",),
    "sam": ("Segment",),
    "depth": ("Depth",),
    "matte": ("Matte",),
    "semantic": ("Segments",),
    "bank": ("Anomalies",),
}

# The smaller side of each control that is shown.  A control in a label is as large as the label.
SIZES = """() => [...document.querySelectorAll("button, select, input, summary")].map((control) => {
  const {width, height} = (control.closest("label, .sheet td") ?? control).getBoundingClientRect();
  const hidden = getComputedStyle(control).opacity === "0" || control.closest(".chips") && control.matches("input");
  return [control.id || control.textContent || control.ariaLabel, width && !hidden ? Math.min(width, height) : 100];
})"""

# The lowest contrast of a border of a control with what is around it.
CONTRAST = """() => {
  const luminance = (color) => {
    const [r, g, b] = color.match(/[\\d.]+/g).map((value) => {
      const part = value / 255;
      return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const around = (node) => {
    const color = getComputedStyle(node).backgroundColor;
    return /, 0\\)$/.test(color) ? around(node.parentElement) : color;
  };
  const found = [];
  for (const control of document.querySelectorAll("select, button, input[type=text], #drop")) {
    const style = getComputedStyle(control);
    if (!control.offsetWidth || style.borderTopStyle === "none" || style.borderTopWidth === "0px") continue;
    if (control.closest("[role=tablist]") || control.querySelector("canvas, img")) continue;
    const [a, b] = [luminance(style.borderTopColor), luminance(around(control.parentElement))];
    found.push((Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05));
  }
  return Math.min(...found);
}"""


class Design(page_testing.PageTest):
    def findings(self):
        options = {"runOnly": {"type": "tag", "values": ["wcag2a", "wcag2aa", "wcag21aa", "wcag22aa", "best-practice"]}}
        violations = Axe().run(self.page, options=options).response["violations"]
        return [(found["id"], found["nodes"][0]["html"][:200]) for found in violations]

    def check(self, name, width, fingers):
        self.settled()
        self.page.wait_for_timeout(300)  # until colours have changed
        self.assertEqual(self.findings(), [], name)
        self.assertLessEqual(self.page.evaluate("document.documentElement.scrollWidth"), width, name)
        self.assertGreaterEqual(self.page.evaluate(CONTRAST), 3, name)
        if fingers:
            small = [size for size in self.page.evaluate(SIZES) if size[1] < 43.9]
            self.assertEqual(small, [], name)
        self.shot(name)

    def test_every_view_at_every_size_in_both_themes(self):
        for width, height, fingers in WINDOWS:
            for theme in ("light", "dark"):
                self.open(width=width, height=height, theme=theme, fingers=fingers)
                self.check(f"{width}-{theme}-empty", width, fingers)
                self.choose(1, 2, 3)
                for model, tabs in TABS.items():
                    self.page.select_option("#model", model)
                    for tab in tabs:
                        self.select(tab)
                        self.settled()
                        if tab == "Matte":
                            self.page.set_input_files(".place input", [page_testing.trimap(unknown=False)])
                            self.page.get_by_role("button", name="Save alpha").wait_for()
                        if tab == "Segment":
                            self.page.mouse.click(*self.at(0.4, 0.4))
                            self.page.wait_for_selector("input[name=mask]")
                        if tab == "Attention":
                            self.page.get_by_label("All heads and blocks").check()
                            self.page.wait_for_selector(".sheet")
                        self.check(f"{width}-{theme}-{tab.lower()}", width, fingers)
        self.assertEqual(self.problems, [])

    def test_image_and_result_are_side_by_side_or_stacked(self):
        for width, height, fingers in WINDOWS:
            self.open(width=width, height=height, fingers=fingers)
            self.choose(1)
            self.settled()
            stage, side = (self.page.locator(name).bounding_box() for name in ("#stage", "#side"))
            if fingers:
                self.assertGreater(side["y"], stage["y"] + stage["height"])
            else:
                self.assertEqual(side["y"], stage["y"])
                self.assertGreater(side["x"] + side["width"] - stage["x"], 0.95 * width)

    def test_the_theme_is_a_switch_that_is_remembered(self):
        def switch():
            return self.page.get_by_role("switch", name="Dark")

        expect(switch()).to_have_attribute("aria-checked", "false")
        light = self.page.evaluate("getComputedStyle(document.body).backgroundColor")
        switch().press("Space")
        expect(switch()).to_have_attribute("aria-checked", "true")
        self.assertNotEqual(self.page.evaluate("getComputedStyle(document.body).backgroundColor"), light)
        self.page.reload()
        expect(switch()).to_have_attribute("aria-checked", "true")
        self.open(theme="dark")
        expect(switch()).to_have_attribute("aria-checked", "true")  # the system's


if __name__ == "__main__":
    page_testing.main()
