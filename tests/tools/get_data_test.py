# SPDX-License-Identifier: Apache-2.0
"""scripts/get-data downloads complete datasets with the expected checksums, or leaves nothing behind."""

import functools
import hashlib
import http.server
import io
import os
import pathlib
import re
import shutil
import subprocess
import tarfile
import tempfile
import threading
import unittest

SCRIPT = pathlib.Path(__file__).resolve().parents[2] / "scripts" / "get-data"


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *_):
        pass


@unittest.skipUnless(shutil.which("curl"), "needs curl")
class GetDataTest(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.root = pathlib.Path(temporary.name)
        self.served = self.root / "served"
        self.served.mkdir()
        handler = functools.partial(QuietHandler, directory=self.served)
        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        self.url = f"http://127.0.0.1:{server.server_port}"
        self.script = SCRIPT.read_text()

    def serve(self, name, data):
        """Serves `data`, whose checksum the script then expects."""
        (self.served / name).write_bytes(data)
        pattern = rf"[0-9a-f]{{64}} {re.escape(name)}"
        self.assertRegex(self.script, pattern)
        self.script = re.sub(pattern, f"{hashlib.sha256(data).hexdigest()} {name}", self.script)

    def serve_mnist(self):
        for name in ("train-images-idx3", "train-labels-idx1", "t10k-images-idx3", "t10k-labels-idx1"):
            self.serve(f"{name}-ubyte.gz", name.encode())

    def run_script(self, *arguments):
        script = self.root / "get-data"
        script.write_text(self.script)
        environment = os.environ | {"VITRAIL_DATA_URL": self.url, "no_proxy": "127.0.0.1"}
        return subprocess.run(
            ["bash", script, *arguments], cwd=self.root, env=environment, capture_output=True, text=True, check=False
        )

    def assert_nothing_left(self):
        self.assertEqual(list((self.root / "data").rglob("*")), [])

    def test_files_are_downloaded(self):
        self.serve_mnist()
        result = self.run_script("mnist")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual((self.root / "data/mnist/t10k-labels-idx1-ubyte.gz").read_text(), "t10k-labels-idx1")
        self.assertEqual(len(list((self.root / "data/mnist").iterdir())), 4)

    def test_archives_are_unpacked_without_their_folder(self):
        data = io.BytesIO()
        with tarfile.open(fileobj=data, mode="w:gz") as archive:
            member = tarfile.TarInfo("cifar-10-batches-bin/data_batch_1.bin")
            member.size = 3
            archive.addfile(member, io.BytesIO(b"abc"))
        self.serve("cifar-10-binary.tar.gz", data.getvalue())
        result = self.run_script("cifar10", "here/")
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual([path.name for path in (self.root / "here").iterdir()], ["data_batch_1.bin"])

    def test_textiles_are_divided(self):
        data = io.BytesIO()
        with tarfile.open(fileobj=data, mode="w:gz") as archive:
            for name in (
                "LICENSE",
                "setup.py",
                *(
                    f"conformal_clip_data/data/textile_images/simulated/{kind}/t_{i}.jpg"
                    for kind in ("global", "local", "nominal")
                    for i in range(1, 5)
                ),
            ):
                archive.addfile(tarfile.TarInfo(f"conformal_clip_data-0.1.4/{name}"))
        self.serve("conformal_clip_data-0.1.4.tar.gz", data.getvalue())
        result = self.run_script("textiles")
        self.assertEqual(result.returncode, 0, result.stderr)
        root = self.root / "data/textiles"
        self.assertEqual({path.name for path in root.iterdir()}, {"LICENSE", "labelled", "unlabelled"})
        self.assertEqual(
            {str(path.relative_to(root)) for path in root.glob("*/*/*")},
            {f"labelled/{kind}/t_{i}.jpg" for kind in ("global", "local", "nominal") for i in (2, 4)},
        )
        self.assertEqual(
            {path.name for path in (root / "unlabelled").iterdir()},
            {f"{kind}-{i}.jpg" for kind in ("global", "local", "nominal") for i in (1, 3)},
        )

    def test_another_file_is_refused(self):
        self.serve_mnist()
        (self.served / "t10k-labels-idx1-ubyte.gz").write_text("damaged")
        result = self.run_script("mnist")
        self.assertEqual(result.returncode, 1)
        self.assertIn("another file than expected", result.stderr)
        self.assert_nothing_left()

    def test_a_missing_file_is_an_error(self):
        result = self.run_script("cifar10")
        self.assertEqual(result.returncode, 1)
        self.assertIn("cifar-10-binary.tar.gz cannot be downloaded", result.stderr)
        self.assert_nothing_left()

    def test_an_existing_folder_is_not_touched(self):
        (self.root / "data/mnist").mkdir(parents=True)
        result = self.run_script("mnist")
        self.assertEqual(result.returncode, 1)
        self.assertIn("data/mnist exists", result.stderr)
        self.assert_no_file(self.root / "data/mnist")

    def assert_no_file(self, folder):
        self.assertEqual(list(folder.iterdir()), [])

    def test_other_names_are_usage_errors(self):
        for arguments in ((), ("imagenet",), ("mnist", "a", "b")):
            self.assertEqual(self.run_script(*arguments).returncode, 2)


if __name__ == "__main__":
    unittest.main()
