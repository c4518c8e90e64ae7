# SPDX-License-Identifier: Apache-2.0
"""Downloads of the program from a stand-in for the hub.   download_test.py PROGRAM

With huggingface_hub installed, the cache is also shared with it, both ways.
"""

import hashlib
import json
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import hub_server

try:
    import huggingface_hub
except ImportError:
    huggingface_hub = None

PROGRAM = os.path.abspath(sys.argv.pop(1)) if len(sys.argv) > 1 else "vitrail"
ROOT = pathlib.Path(__file__).resolve().parents[2]
MODEL = ROOT / "models" / "cifar10-vit"
PHOTO = ROOT / "examples" / "photographs" / "chelsea.png"
NAME = "org/tiny"
COMMIT, NEWER = "a" * 40, "b" * 40


def files_of_model():
    files = {name: (MODEL / name).read_bytes() for name in ("config.json", "model.safetensors")}
    return {**files, "README.md": b"# A card", "pytorch_model.bin": b"x" * 20_000, ".gitattributes": b""}


class HubTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.cache = self.folder / "hub"
        self.model = self.cache / "models--org--tiny"
        self.files = files_of_model()
        self.weights = self.files["model.safetensors"]
        self.repository = hub_server.Repository(self.files)
        self.hub = hub_server.Hub({NAME: self.repository})
        self.addCleanup(self.hub.close)

    def environment(self, **variables):
        kept = {k: v for k, v in os.environ.items() if not k.startswith("HF_") and not k.lower().endswith("_proxy")}
        return {**kept, "HF_HUB_CACHE": str(self.cache), "HF_ENDPOINT": self.hub.url, "HF_HOME": str(self.folder),
                "HF_HUB_DOWNLOAD_TIMEOUT": "1", **variables}  # fmt: skip

    def run_program(self, *arguments, **variables):
        return subprocess.run(
            [PROGRAM, *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=120,
            cwd=self.folder,
            env=self.environment(**variables),
        )

    def pull(self, name=NAME, **variables):
        result = self.run_program("pull", name, **variables)
        self.assertEqual(result.returncode, 0, result.stderr)
        return pathlib.Path(result.stdout.strip())

    def error(self, *arguments, **variables):
        result = self.run_program(*arguments, **variables)
        self.assertEqual(result.returncode, 1, result.stdout + result.stderr)
        return result.stderr

    def blob(self):
        return self.model / "blobs" / hashlib.sha256(self.weights).hexdigest()

    def assert_complete(self):
        snapshot = self.model / "snapshots" / COMMIT
        for name in ("config.json", "model.safetensors"):
            self.assertEqual((snapshot / name).read_bytes(), self.files[name])
        self.assertFalse(list(self.model.glob("blobs/*.vitrail-*")))


class Pull(HubTest):
    def test_only_the_needed_files_are_downloaded_into_the_layout(self):
        self.hub.page = 2  # the list comes in pages
        self.assertEqual(self.pull(), self.model / "snapshots" / COMMIT)
        self.assert_complete()
        self.assertEqual((self.model / "refs" / "main").read_text(), COMMIT)
        self.assertEqual(sorted(os.listdir(self.model / "snapshots" / COMMIT)), ["config.json", "model.safetensors"])
        for file in (self.model / "snapshots" / COMMIT).iterdir():
            self.assertTrue(os.readlink(file).startswith("../../blobs/"))
        tree = json.loads((self.model / "trees" / f"{COMMIT}.json").read_text())
        self.assertEqual(tree["files"]["model.safetensors"]["size"], len(self.weights))
        self.assertTrue((self.cache / "CACHEDIR.TAG").exists())

    def test_a_model_of_the_hub_works_by_name_without_another_request(self):
        want = json.loads(self.run_program("classify", "-m", MODEL, PHOTO, "--format", "json").stdout)
        got = json.loads(self.run_program("classify", "-m", NAME, PHOTO, "--format", "json").stdout)
        self.assertEqual(got, want)
        self.hub.requests.clear()
        for name in (NAME, f"hf-hub:{NAME}", f"{NAME}@{COMMIT}"):
            self.assertIn("192", self.run_program("inspect", "-m", name, HF_HUB_OFFLINE="1").stdout)
        self.assertEqual(self.run_program("inspect", "-m", NAME).returncode, 0)
        self.assertEqual(self.hub.requests, [])

    def test_pull_follows_a_branch_and_shares_equal_files(self):
        self.pull()
        self.repository.commits[NEWER] = {**self.files, "config.json": self.files["config.json"] + b"\n"}
        self.repository.revisions = {"main": NEWER, "v1/old": COMMIT}
        self.hub.requests.clear()
        self.assertEqual(self.pull().name, NEWER)
        self.assertEqual(self.hub.contents_requested(), [])
        self.assertEqual(self.pull(f"{NAME}@v1/old").name, COMMIT)
        self.assertEqual((self.model / "refs" / "v1" / "old").read_text(), COMMIT)

    def test_shards_are_those_of_the_index(self):
        index = {"weight_map": {"a": "model-1.safetensors", "b": "model-2.safetensors"}}
        files = {
            "config.json": b"{}",
            "model.safetensors.index.json": json.dumps(index).encode(),
            "model-1.safetensors": b"1" * 20_000,
            "model-2.safetensors": b"2" * 20_000,
            "other-3.safetensors": b"3" * 20_000,
        }
        self.hub.repositories["org/shards"] = hub_server.Repository(files)
        self.assertEqual(sorted(os.listdir(self.pull("org/shards"))), sorted(set(files) - {"other-3.safetensors"}))

    def test_without_symlinks_the_files_are_in_the_snapshot(self):
        snapshot = self.pull(HF_HUB_DISABLE_SYMLINKS="1")
        self.assertFalse((snapshot / "config.json").is_symlink())
        self.hub.requests.clear()
        self.pull(HF_HUB_DISABLE_SYMLINKS="1")
        self.assertEqual(self.hub.contents_requested(), [])

    def test_the_token_goes_to_the_hub_alone(self):
        self.pull(HF_TOKEN="hf_good")
        for _, path, headers in self.hub.requests:
            self.assertEqual("Authorization" in headers, not path.startswith("/cdn/"), path)

    def test_two_processes_download_once(self):
        self.hub.bytes_per_s = 20_000_000
        command = [PROGRAM, "pull", NAME]
        processes = [subprocess.Popen(command, env=self.environment(), stdout=subprocess.DEVNULL) for _ in range(3)]
        self.assertEqual([process.wait(60) for process in processes], [0, 0, 0])
        self.assertEqual(len(self.hub.contents_requested()), 1)
        self.assert_complete()


class Faults(HubTest):
    def test_a_cut_or_stalled_transfer_continues(self):
        self.hub.faults = ["cut 300000", "stall", "cut 500000"]
        self.pull()
        self.assert_complete()
        ranges = [headers.get("Range") for headers in self.hub.contents_requested()]
        self.assertEqual(ranges, [None, "bytes=300000-", "bytes=301000-", "bytes=801000-"])
        self.assertEqual(self.hub.contents_requested()[1]["If-Range"], '"storage-1"')

    def test_a_range_that_is_not_honoured_starts_again(self):
        for fault in ("ignore range", "416", "other range"):
            with self.subTest(fault):
                shutil.rmtree(self.model, ignore_errors=True)
                self.hub.faults = ["cut 300000", fault]
                self.pull()
                self.assert_complete()

    def test_a_file_that_changed_on_the_server_is_not_mixed(self):
        self.blob().parent.mkdir(parents=True)
        partial = self.blob().with_name(self.blob().name + ".vitrail-partial")
        partial.write_bytes(b"z" * 400_000)
        partial.with_name(self.blob().name + ".vitrail-etag").write_text('"storage-0"')
        self.pull()
        self.assert_complete()

    def test_wrong_content_is_fetched_again_and_never_kept(self):
        self.hub.faults = ["corrupt"]
        self.pull()
        self.assert_complete()
        shutil.rmtree(self.model)
        self.hub.faults = ["corrupt", "corrupt"]
        self.assertIn("content with the digest", self.error("pull", NAME))
        self.assertFalse(self.blob().exists())
        self.hub.faults = ["longer", "longer"]
        self.assertIn("as the hub lists, got more", self.error("pull", NAME))
        self.hub.faults = []
        self.pull()

    def test_too_many_requests_and_errors_of_the_server_are_tried_again(self):
        self.hub.faults = ["429", "500"]
        began = time.monotonic()
        self.pull()
        self.assertGreater(time.monotonic() - began, 1)  # Retry-After

    def test_killed_downloads_continue(self):
        self.hub.bytes_per_s = 8_000_000
        for kill in range(6):
            command = [PROGRAM, "pull", NAME]
            with subprocess.Popen(command, env=self.environment(), stdout=subprocess.DEVNULL) as process:
                self.wait_for_part(150_000 * (kill + 1))
                process.send_signal(signal.SIGKILL)
        self.hub.bytes_per_s = 0
        self.pull()
        self.assert_complete()
        starts = [int(headers.get("Range", "bytes=0-")[6:-1]) for headers in self.hub.contents_requested()]
        self.assertEqual(starts, sorted(starts))
        self.assertGreaterEqual(starts[-1], 900_000)

    def partial_size(self):
        partial = self.blob().with_name(self.blob().name + ".vitrail-partial")
        return partial.stat().st_size if partial.exists() else 0

    def wait_for_part(self, size):
        """Waits until `size` bytes of the weights are on the disk: a slow machine only makes the test longer."""
        deadline = time.monotonic() + 60
        while self.partial_size() < size:
            self.assertLess(time.monotonic(), deadline, "the download does not advance")
            time.sleep(0.001)

    def test_a_pull_killed_at_50_points_fetches_at_most_a_megabyte_again(self):
        """At each point the server waits with all but 256 kB beyond it: a program that keeps more than that in memory
        never has the bytes before the point on the disk, and the test fails."""
        ahead, allowed, draws = 262_144, 1_000_000, random.Random(8)
        self.weights = self.files["model.safetensors"] = random.Random(9).randbytes(25_000_000)
        point, sent, killed = 0, 0, threading.Event()

        def wait_at_the_point(position):
            nonlocal sent
            while position > point + ahead and not killed.is_set():
                time.sleep(0.001)
            sent = position

        self.hub.before_chunk = wait_at_the_point
        sent_at_kills = []
        for _ in range(50):
            point = self.partial_size() + draws.randint(20_000, 200_000)
            killed.clear()
            environment = self.environment(HF_HUB_DOWNLOAD_TIMEOUT="60")  # a waiting server is no stall
            with subprocess.Popen([PROGRAM, "pull", NAME], env=environment, stdout=subprocess.DEVNULL) as process:
                self.wait_for_part(point)
                sent_at_kills.append(sent)
                process.send_signal(signal.SIGKILL)
            killed.set()
        self.hub.before_chunk = None
        self.pull()
        self.assert_complete()
        starts = [int(headers.get("Range", "bytes=0-")[6:-1]) for headers in self.hub.contents_requested()]
        self.assertEqual(len(starts), 51)
        again = [at_kill - start for at_kill, start in zip(sent_at_kills, starts[1:], strict=True)]
        self.assertLessEqual(max(again), allowed)
        self.assertEqual(starts, sorted(starts))

    @unittest.skipUnless(shutil.which("strace"), "strace is not installed")
    def test_offline_opens_no_connection(self):
        def sockets(*arguments, **variables):
            trace = self.folder / "trace"
            command = ["strace", "-f", "-qq", "-e", "trace=socket,connect", "-o", trace, PROGRAM, *arguments]
            subprocess.run(command, env=self.environment(**variables), capture_output=True, timeout=120)
            return [line for line in trace.read_text().splitlines() if "AF_INET" in line]

        self.assertTrue(sockets("pull", NAME), "strace shows no connection, so nothing was tested")
        self.hub.requests.clear()
        offline = {"HF_HUB_OFFLINE": "1"}
        for arguments in (["inspect", "-m", NAME], ["pull", NAME], ["pull", "org/none"], ["inspect", "-m", "org/none"]):
            self.assertEqual(sockets(*arguments, **offline), [], arguments)
        self.assertEqual(self.hub.requests, [])

    def test_errors_say_what_to_do(self):
        self.repository.gated = True
        self.assertIn(f"accept its licence at {self.hub.url}/{NAME}, then set HF_TOKEN", self.error("pull", NAME))
        self.assertIn("the token in HF_TOKEN gives no access", self.error("pull", NAME, HF_TOKEN="hf_bad"))
        self.assertEqual(self.run_program("pull", NAME, HF_TOKEN="hf_good").returncode, 0)
        self.assertIn("or a folder of this machine, got neither", self.error("classify", "-m", "org/none", PHOTO))
        self.assertIn("branch, tag or commit", self.error("pull", f"{NAME}@none", HF_TOKEN="hf_good"))
        self.assertIn("HF_HUB_OFFLINE is set", self.error("pull", "org/none", HF_HUB_OFFLINE="1"))
        unreachable = self.error("pull", "org/none", HF_ENDPOINT="http://127.0.0.1:1", HF_HUB_ETAG_TIMEOUT="1")
        self.assertIn("HF_ENDPOINT names a mirror", unreachable)
        self.assertIn("HF_ENDPOINT", self.error("pull", NAME, HF_ENDPOINT="ftp://x"))
        self.assertIn("printable", self.error("pull", NAME, HF_TOKEN="a\r\nb"))
        self.assertIn("ORGANISATION/NAME", self.error("pull", "../x"))

    def test_lists_that_lead_out_of_the_cache_are_refused(self):
        for path in ("../../evil", "/etc/passwd", "a/../../b", "a\\b", "c:x"):
            self.hub.listing = [{"type": "file", "path": path, "size": 1, "oid": "0" * 40}]
            self.assertIn("below the model's folder", self.error("pull", NAME))
        self.hub.listing = [{"type": "file", "path": "config.json", "size": 1, "oid": "../../x"}]
        self.assertIn("SHA-1 or SHA-256", self.error("pull", NAME))

    def test_a_link_that_leads_out_of_the_cache_is_followed(self):
        snapshot = self.pull()
        outside = self.folder / "outside.json"
        outside.write_bytes(self.files["config.json"])
        (snapshot / "config.json").unlink()
        (snapshot / "config.json").symlink_to(outside)
        self.assertEqual(self.run_program("inspect", "-m", NAME).returncode, 0)

    def test_a_full_disk_is_told_before_anything_is_downloaded(self):
        entries = self.repository.listed(COMMIT)
        weights = next(entry for entry in entries if entry["path"] == "model.safetensors")
        weights["lfs"]["size"] = weights["size"] = 1 << 49
        self.hub.listing = entries
        self.assertIn("of free space", self.error("pull", NAME))
        self.assertEqual(self.hub.contents_requested(), [])

    def test_the_cache_on_a_full_disk_keeps_what_it_has(self):
        limit = f'ulimit -f {len(self.weights) // 2048}; exec "$0" pull {NAME}'
        result = subprocess.run(["sh", "-c", limit, PROGRAM], env=self.environment(), capture_output=True, text=True)
        self.assertEqual(result.returncode, 1)
        self.assertIn("cannot be written", result.stderr)
        self.hub.requests.clear()
        self.pull()
        self.assert_complete()
        self.assertIn("Range", self.hub.contents_requested()[0])


class Cache(HubTest):
    def test_verify_finds_damage_and_pull_repairs_it(self):
        self.pull()
        self.assertIn(" 0 damaged files", self.run_program("cache", "verify").stdout)
        content = bytearray(self.weights)
        content[1000] ^= 1
        self.blob().write_bytes(content)
        self.assertIn("its content has the digest", self.error("cache", "verify", NAME))
        self.assertEqual(self.run_program("cache", "verify", NAME, "--remove").returncode, 1)
        self.pull()
        self.assert_complete()

    def test_a_file_that_was_cut_short_is_not_used(self):
        self.pull()
        os.truncate(self.blob(), 1000)
        self.assertIn("as the hub lists, got 1000", self.error("inspect", "-m", NAME))
        self.pull()
        self.assert_complete()

    def test_ls_rm_and_prune(self):
        self.pull()
        self.repository.commits[NEWER] = {**self.files, "config.json": self.files["config.json"] + b"\n"}
        self.repository.revisions = {"main": NEWER}
        self.pull()
        lines = self.run_program("cache", "ls").stdout.splitlines()
        self.assertEqual([line.split()[0] for line in lines], ["model", NAME, NAME])
        self.assertEqual(len(list(self.model.glob("blobs/*"))), 3)
        self.run_program("cache", "prune", "--dry-run")
        self.assertTrue((self.model / "snapshots" / COMMIT).exists())
        self.run_program("cache", "prune")
        self.assertEqual(os.listdir(self.model / "snapshots"), [NEWER])
        self.assertEqual(len(list(self.model.glob("blobs/*"))), 2)
        self.assertIn("a revision in the cache (main)", self.error("cache", "rm", f"{NAME}@v2"))
        self.run_program("cache", "rm", f"{NAME}@main")
        self.assertEqual(os.listdir(self.model / "blobs"), [])
        self.run_program("cache", "rm", NAME)
        self.assertFalse(self.model.exists())
        self.assertIn("vitrail cache ls", self.error("cache", "rm", NAME))


@unittest.skipUnless(huggingface_hub, "huggingface_hub is not installed")
class Shared(HubTest):
    def python(self, code, **variables):
        command = [sys.executable, "-c", "import huggingface_hub as hf\n" + code]
        result = subprocess.run(command, env=self.environment(**variables), capture_output=True, text=True)
        self.assertEqual(result.returncode, 0, result.stderr)
        return result.stdout.strip()

    def test_huggingface_hub_reads_what_was_pulled(self):
        snapshot = self.pull()
        path = self.python(f"print(hf.hf_hub_download({NAME!r}, 'model.safetensors'))", HF_HUB_OFFLINE="1")
        self.assertEqual(path, str(snapshot / "model.safetensors"))
        call = f"hf.snapshot_download({NAME!r}, allow_patterns=['config.json', 'model.safetensors'])"
        self.assertEqual(self.python(f"print({call})", HF_HUB_OFFLINE="1"), str(snapshot))
        printed = "print(r.repo_id, r.nb_files, *[v.refs for v in r.revisions])"
        scan = self.python("r, = hf.scan_cache_dir().repos; " + printed)
        self.assertEqual(scan, NAME + " 2 frozenset({'main'})")
        self.hub.requests.clear()
        self.python(f"hf.hf_hub_download({NAME!r}, 'model.safetensors')")
        self.assertFalse(self.hub.contents_requested())

    def test_what_huggingface_hub_downloaded_is_read_offline(self):
        for shared in ("0", "1"):
            shutil.rmtree(self.cache, ignore_errors=True)
            variables = {"HF_HUB_DISABLE_SHARED_BLOBS": shared, "HF_HUB_DISABLE_XET": "1"}
            self.python(f"hf.hf_hub_download({NAME!r}, 'config.json')", **variables)
            self.assertIn("HF_HUB_OFFLINE", self.error("inspect", "-m", NAME, HF_HUB_OFFLINE="1"))
            self.python(f"hf.snapshot_download({NAME!r})", **variables)
            self.assertEqual(self.run_program("inspect", "-m", NAME, HF_HUB_OFFLINE="1").returncode, 0)
            self.assertEqual(self.run_program("cache", "verify").returncode, 0)

    def test_a_blob_in_the_shared_store_is_read(self):
        self.pull()
        store = self.cache / "blobs" / "ab"
        store.mkdir(parents=True)
        (self.cache / "blobs" / ".huggingface-shared-blobs").write_text("1\n")
        self.blob().rename(store / ("ab" * 32))
        self.blob().symlink_to("../../blobs/ab/" + "ab" * 32)
        self.assertEqual(self.run_program("inspect", "-m", NAME, HF_HUB_OFFLINE="1").returncode, 0)
        self.assertEqual(self.run_program("cache", "verify").returncode, 0)


if __name__ == "__main__":
    if shutil.which("strace") is None:
        print("download_test: strace is not installed: an offline program is not traced", file=sys.stderr)
    if huggingface_hub is None:
        print("download_test: huggingface_hub is not installed: the cache is not shared with it", file=sys.stderr)
    unittest.main()
