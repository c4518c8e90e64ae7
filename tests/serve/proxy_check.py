#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The configuration of nginx in docs/serving.md, with a certificate of its own, in front of a Unix socket.

proxy_check.py PROGRAM REPOSITORY
"""

import pathlib
import re
import socket
import ssl
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.error
import urllib.request

from serve_program import Server, run, small_model

PROGRAM, REPOSITORY = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
IMAGE = REPOSITORY / "tests/fixtures/image/decode/rgb_8.png"
MAX_BYTES = 64 << 20


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def documented_server(folder, port):
    """The server block of the page, with this port and the files of this folder."""
    page = (REPOSITORY / "docs/serving.md").read_text()
    block = re.search(r"```nginx\n(.*?)```", page, re.S).group(1)
    for documented, here in (
        ("listen 443", f"listen 127.0.0.1:{port}"),
        ("/etc/ssl/", f"{folder}/"),
        ("/run/vitrail/", f"{folder}/"),
    ):
        if documented not in block:
            raise RuntimeError(f"docs/serving.md: expected {documented!r} in the block for nginx")
        block = block.replace(documented, here)
    return block


def configuration(folder, port):
    paths = "".join(
        f"{name}_temp_path {folder}/{name};\n" for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    return (
        f"daemon off;\nmaster_process off;\npid {folder}/pid;\nerror_log stderr;\nevents {{}}\n"
        f"http {{\naccess_log off;\n{paths}{documented_server(folder, port)}}}\n"
    )


class Proxy(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="vitrail-proxy-")
        folder = pathlib.Path(cls.folder.name)
        subject = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
        files = ["-keyout", folder / "vitrail.key", "-out", folder / "vitrail.crt"]
        run("openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "1", *subject, *files)
        cls.server = Server(PROGRAM, "-m", small_model(REPOSITORY), "--unix", folder / "http.sock")
        port = free_port()
        (folder / "nginx.conf").write_text(configuration(folder, port))
        cls.nginx = subprocess.Popen(["nginx", "-p", folder, "-e", "stderr", "-c", folder / "nginx.conf"])
        cls.url = f"https://127.0.0.1:{port}"
        cls.context = ssl.create_default_context(cafile=folder / "vitrail.crt")
        cls.wait_for_nginx(port)

    @classmethod
    def wait_for_nginx(cls, port):
        for _ in range(600):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    return
            if cls.nginx.poll() is not None:
                break
            time.sleep(0.1)
        raise RuntimeError("nginx did not start")

    @classmethod
    def tearDownClass(cls):
        cls.nginx.terminate()
        cls.nginx.wait(60)
        assert cls.server.stop() == 0
        cls.folder.cleanup()

    def request(self, target, body=None):
        """The status and the body of the response."""
        request = urllib.request.Request(self.url + target, body, {"Content-Type": "image/png"})
        try:
            with urllib.request.urlopen(request, timeout=60, context=self.context) as response:
                return response.status, response.read()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read()

    def test_the_page_and_its_files_are_served(self):
        status, page = self.request("/")
        self.assertEqual(status, 200)
        for file in re.findall(rb'(?:src|href)="/?([^"]+\.(?:js|css))"', page):
            self.assertEqual(self.request("/" + file.decode())[0], 200, file)

    def test_results_are_the_command_lines(self):
        model = small_model(REPOSITORY).split("=")[1]
        want = run(PROGRAM, "classify", "-m", model, "-", "--format", "json", data=IMAGE.read_bytes())
        self.assertEqual(self.request("/v1/classify", IMAGE.read_bytes()), (200, want))

    def test_bodies_have_the_servers_limit(self):
        padded = IMAGE.read_bytes().ljust(MAX_BYTES, b"\0")
        self.assertEqual(self.request("/v1/classify", padded)[0], 200)
        self.assertEqual(self.request("/v1/classify", padded + b"\0")[0], 413)


if __name__ == "__main__":
    del sys.argv[1:]
    unittest.main(verbosity=2)
