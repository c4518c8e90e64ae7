#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Other clients are served while slowhttptest sends headers and bodies slowly and reads responses slowly.

slow_check.py PROGRAM REPOSITORY
"""

import pathlib
import subprocess
import sys
import time
import unittest
import urllib.error
import urllib.request

from serve_program import Server, small_model

PROGRAM, REPOSITORY = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
IMAGE = REPOSITORY / "tests/fixtures/image/decode/rgb_8.png"
CONNECTIONS, SECONDS = 500, 10
SLOW_HEADERS = ["-H", "-i", "2"]
SLOW_BODIES = ["-B", "-i", "2", "-s", "1000000"]
SLOW_READING = ["-X", "-w", "512", "-y", "1024", "-n", "2", "-z", "32", "-k", "3"]


class SlowClients(unittest.TestCase):
    def setUp(self):
        self.server = Server(PROGRAM, "-m", small_model(REPOSITORY))

    def tearDown(self):
        self.assertEqual(self.server.stop(), 0)

    def classify(self):
        """The status of a response."""
        request = urllib.request.Request(self.server.url + "/v1/classify", IMAGE.read_bytes())
        try:
            with urllib.request.urlopen(request, timeout=60) as response:
                return response.status
        except urllib.error.HTTPError as error:
            with error:
                return error.code

    def connections(self):
        with urllib.request.urlopen(self.server.url + "/metrics", timeout=60) as response:
            lines = response.read().decode().splitlines()
        return int(float(next(line for line in lines if line.startswith("vitrail_connections ")).split()[1]))

    def attack(self, mode, target):
        """The largest number of connections, and the statuses of the requests beside the attack."""
        command = ["slowhttptest", *mode, "-c", CONNECTIONS, "-r", CONNECTIONS, "-l", SECONDS, "-p", "60"]
        command += ["-u", self.server.url + target]
        attack = subprocess.Popen([str(part) for part in command], stdout=subprocess.DEVNULL)
        largest, statuses = 0, []
        while attack.poll() is None:
            statuses.append(self.classify())
            largest = max(largest, self.connections())
            time.sleep(0.02)
        return largest, statuses

    def check(self, mode, target):
        largest, statuses = self.attack(mode, target)
        self.assertGreater(largest, CONNECTIONS // 2)
        self.assertEqual(set(statuses), {200})

    def test_slow_headers(self):
        self.check(SLOW_HEADERS, "/v1/classify")

    def test_slow_bodies(self):
        self.check(SLOW_BODIES, "/v1/classify")

    def test_slow_reading(self):
        self.check(SLOW_READING, "/openapi.json")


if __name__ == "__main__":
    del sys.argv[1:]
    unittest.main(verbosity=2)
