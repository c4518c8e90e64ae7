#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Pages of others in Chromium neither read from the server nor post to it: those of another port or name, and those
whose name leads to the server itself (DNS rebinding).  Its own page does, and one of --cors.

browsers_check.py PROGRAM REPOSITORY
"""

import base64
import http.server
import pathlib
import re
import shutil
import sys
import threading
import unittest
import urllib.request

from playwright.sync_api import sync_playwright
from serve_program import Server, small_model

PROGRAM, REPOSITORY = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
IMAGE = base64.b64encode((REPOSITORY / "tests/fixtures/image/decode/rgb_8.png").read_bytes()).decode()
CHROMIUM = shutil.which("chromium") or sys.exit("browsers_check: chromium is not installed: run scripts/setup")
NAME = "evil.example"  # leads to 127.0.0.1
UNLOAD = "/v2/repository/models/small/unload"

# The status and text of a response, or what keeps the page from it.
ASK = """async ([url, options]) => {
    if (options.image) options.body = Uint8Array.from(atob(options.image), (c) => c.charCodeAt(0));
    try {
        const response = await fetch(url, options);
        return [response.status, await response.text()];
    } catch (error) {
        return [0, String(error)];
    }
}"""
# A form is sent without asking; the page of the response comes in a frame that the page cannot read.
SEND_FORM = """async (url) => {
    const frame = document.createElement("iframe");
    frame.name = "reply";
    document.body.append(frame);
    const form = document.createElement("form");
    Object.assign(form, {action: url, method: "POST", enctype: "multipart/form-data", target: "reply"});
    form.innerHTML = '<input name="top" value="1">';
    document.body.append(form);
    const loaded = new Promise((resolve) => { frame.onload = resolve; });
    form.submit();
    await loaded;
    try { return frame.contentDocument.body.textContent; } catch (error) { return ""; }
}"""


class BlankPage(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>page</title>")

    def log_message(self, *arguments):
        pass


def serve_pages():
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), BlankPage)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


class Browsers(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.pages = serve_pages()
        cls.playwright = sync_playwright().start()
        names = f"--host-resolver-rules=MAP {NAME} 127.0.0.1"
        cls.browser = cls.playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", names])

    @classmethod
    def tearDownClass(cls):
        cls.browser.close()
        cls.playwright.stop()
        cls.pages.shutdown()

    def start(self, *options):
        self.server = Server(PROGRAM, "--model-control", "-m", small_model(REPOSITORY), *options)
        self.addCleanup(self.server.stop)
        self.port = self.server.url.rsplit(":", 1)[1]

    def origin(self, host):
        """That of a page beside the server."""
        return f"http://{host}:{self.pages.server_port}"

    def open(self, origin):
        context = self.browser.new_context()
        self.addCleanup(context.close)
        page = context.new_page()
        page.goto(origin + "/")
        return page

    def start_below_a_page(self, *options):
        """A page and its origin, which led to another server when the page was loaded, and leads to this one now."""
        pages = serve_pages()
        origin = f"http://{NAME}:{pages.server_port}"
        page = self.open(origin)
        pages.shutdown()
        pages.server_close()
        self.start("--port", pages.server_port, *options)
        return page, origin

    def metrics(self):
        with urllib.request.urlopen(self.server.url + "/metrics") as response:
            return response.read().decode()

    def refusals(self):
        return sum(int(n) for n in re.findall(r'^vitrail_requests_total.*status="403".* (\d+)$', self.metrics(), re.M))

    def ask(self, page, url, **options):
        return page.evaluate(ASK, [url, options])

    def attack(self, page, server):
        """All requests that a page may send without asking, and some that it must ask for: what it could read."""
        json_type = {"Content-Type": "application/json"}
        replies = [self.ask(page, server + target) for target in ("/v1/models", "/metrics", "/openapi.json", "/")]
        replies.append(self.ask(page, server + "/v1/models", mode="no-cors"))
        for mode in ("cors", "no-cors"):
            replies.append(self.ask(page, server + "/v1/classify", method="POST", image=IMAGE, mode=mode))
            replies.append(self.ask(page, server + UNLOAD, method="POST", body="{}", mode=mode))
        replies.append(self.ask(page, server + "/v1/embeddings", method="POST", body="{}", headers=json_type))
        replies.append([0, page.evaluate(SEND_FORM, server + "/v1/classify")])
        return replies

    def check_refused(self, page, server, refusals):
        before = self.refusals()
        for status, text in self.attack(page, server):
            self.assertIn(status, (0, 403), text)
            self.assertNotIn("small", text)
        self.assertEqual(self.refusals() - before, refusals)
        with urllib.request.urlopen(self.server.url + "/healthz") as response:
            self.assertEqual(response.status, 200, "nothing was unloaded")
        self.assertNotIn("vitrail_images_total{", self.metrics(), "nothing was computed")

    def test_pages_of_another_port_or_name(self):
        self.start()
        for host in ("127.0.0.1", "localhost", NAME):
            with self.subTest(host):
                # Two POST requests in each mode and the form.  The browser keeps the response to a GET from the page,
                # and asks before it sends JSON.
                self.check_refused(self.open(self.origin(host)), self.server.url, 5)

    def test_a_name_that_leads_to_the_server(self):
        page, origin = self.start_below_a_page()
        self.check_refused(page, origin, 11)

    def test_the_servers_own_page(self):
        self.start()
        for host in ("127.0.0.1", "localhost"):
            own = f"http://{host}:{self.port}"
            page = self.open(own)
            self.assertEqual(self.ask(page, own + "/v1/models")[0], 200)
            status, text = self.ask(page, own + "/v1/classify", method="POST", image=IMAGE)
            self.assertEqual((status, "predictions" in text), (200, True))
            token = page.locator("meta[name=vitrail-token]").get_attribute("content")
            self.assertEqual(self.ask(page, own + UNLOAD, method="POST", body="{}")[0], 403)
            for change in (UNLOAD, UNLOAD.replace("unload", "load")):
                headers = {"Vitrail-Token": token}
                self.assertEqual(self.ask(page, own + change, method="POST", body="{}", headers=headers)[0], 200)

    def test_cors_opens_the_server_to_one_origin(self):
        self.start("--cors", self.origin("127.0.0.1"))
        page = self.open(self.origin("127.0.0.1"))
        self.assertIn("small", self.ask(page, self.server.url + "/v1/models")[1])
        for headers in ({}, {"Content-Type": "image/png"}):  # the second one is asked for
            status, text = self.ask(page, self.server.url + "/v1/classify", method="POST", image=IMAGE, headers=headers)
            self.assertEqual((status, "predictions" in text), (200, True), text)
        for host in ("localhost", NAME):
            status, text = self.ask(self.open(self.origin(host)), self.server.url + "/v1/models")
            self.assertEqual(status, 0, text)

    def test_cors_may_name_the_name_that_leads_to_the_server(self):
        page, origin = self.start_below_a_page("--cors", self.origin(NAME))
        self.assertIn("small", self.ask(page, origin + "/v1/models")[1])


if __name__ == "__main__":
    del sys.argv[1:]
    unittest.main(verbosity=2)
