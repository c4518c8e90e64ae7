#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A good client is served beside 16 hostile ones and 1,024 connections that send nothing.

hostile_check.py PROGRAM REPOSITORY [SECONDS beside them, default 10]

Prints the good client's latencies alone and beside them, the largest resident memory of the server, and the statuses
that the hostile clients were given.
"""

import collections
import gzip
import http.client
import io
import itertools
import json
import multiprocessing
import os
import pathlib
import resource
import socket
import sys
import threading
import time
import unittest
import urllib.parse
import zlib

from serve_program import Server

PROGRAM, REPOSITORY = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
SECONDS = float(sys.argv[3]) if len(sys.argv) > 3 else 10
IMAGE = (REPOSITORY / "examples/photographs/chelsea.png").read_bytes()
HOSTILE, IDLE = 16, 1024
MAX_MEMORY = 2 << 30  # bytes: images that are decoded and bodies, by their limits


def png_of(width, height):
    """A grey image of zeros, in bytes less than a hundredth of its pixels."""

    def chunk(name, content):
        checksum = zlib.crc32(name + content).to_bytes(4, "big")
        return len(content).to_bytes(4, "big") + name + content + checksum

    header = width.to_bytes(4, "big") + height.to_bytes(4, "big") + bytes([8, 0, 0, 0, 0])
    compressor, row = zlib.compressobj(1), bytes(width + 1)
    pixels = b"".join([*(compressor.compress(row) for _ in range(height)), compressor.flush()])
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


def gzip_of(megabytes):
    buffer = io.BytesIO()
    with gzip.GzipFile(fileobj=buffer, mode="wb") as file:
        for _ in range(megabytes):
            file.write(bytes(1 << 20))
    return buffer.getvalue()


def hostile_requests():
    """Targets, headers and bodies that cost a server more than their sender."""
    as_json = {"Content-Type": "application/json"}
    return [
        ("/v1/classify", as_json, b"[" * (1 << 20)),
        ("/v2/models/cifar10-vit/infer", as_json, b"[" + b"0," * (1 << 21) + b"0]"),
        ("/v1/embeddings", as_json, b"{" + b",".join(b'"%d":0' % i for i in range(1 << 18)) + b"}"),
        ("/v1/embeddings", as_json, json.dumps({"input": ["x"] * 100_000}).encode()),
        ("/v1/classify", {}, png_of(8_000, 7_900)),
        ("/v1/classify", {}, png_of(30_000, 30_000)),
        ("/v1/classify", {"Content-Encoding": "gzip"}, gzip_of(60)),
        ("/livez", {"Content-Encoding": "gzip"}, gzip_of(60)),
        ("/v1/classify", {}, IMAGE[: len(IMAGE) // 2]),
        ("/" + "a/" * 4_000, {}, b""),
    ]


def connect(url):
    parts = urllib.parse.urlsplit(url)
    return http.client.HTTPConnection(parts.hostname, parts.port, timeout=60)


def attack(url, end, requests, statuses, offset):
    """One hostile client: its next request when the one before is answered; a third of them are not waited for."""
    for number, (target, headers, body) in enumerate(itertools.cycle(requests[offset:] + requests[:offset])):
        if time.monotonic() > end:
            return
        connection = connect(url)
        try:
            connection.request("POST", target, body, headers)
            statuses[connection.getresponse().status if number % 3 else "left"] += 1
        except (OSError, http.client.HTTPException):
            statuses["closed"] += 1
        connection.close()


def stay_idle(url, end):
    """Keeps connections open that send nothing, and opens another for each that the server has closed."""
    parts = urllib.parse.urlsplit(url)
    connections = []
    while time.monotonic() < end:
        closed = {c for c in connections if is_closed(c)}
        for connection in closed:
            connection.close()
        connections = [c for c in connections if c not in closed]
        while len(connections) < IDLE and time.monotonic() < end:
            connections.append(socket.create_connection((parts.hostname, parts.port), timeout=60))
            connections[-1].setblocking(False)
        time.sleep(0.2)
    for connection in connections:
        connection.close()


def is_closed(connection):
    try:
        return connection.recv(1 << 16) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


def bad_company(url, seconds, requests, results):
    """Runs in a process of its own, at the lowest priority, as if it were on other machines."""
    os.nice(19)
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))
    end, statuses = time.monotonic() + seconds, collections.Counter()
    threads = [threading.Thread(target=stay_idle, args=(url, end))]
    for i in range(HOSTILE):
        threads.append(threading.Thread(target=attack, args=(url, end, requests, statuses, i % len(requests))))
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    results.put(statuses)


class GoodClient(unittest.TestCase):
    def setUp(self):
        self.server = Server(PROGRAM)

    def tearDown(self):
        self.assertEqual(self.server.stop(), 0)

    def classify_for(self, seconds):
        """The statuses, and the sorted latencies in seconds.  A connection that the server closes is opened again."""
        statuses, latencies, end = collections.Counter(), [], time.monotonic() + seconds
        connection = connect(self.server.url)
        while time.monotonic() < end:
            began = time.monotonic()
            connection.request("POST", "/v1/classify", IMAGE, {"Content-Type": "image/png"})
            response = connection.getresponse()
            response.read()
            latencies.append(time.monotonic() - began)
            statuses[response.status] += 1
            time.sleep(0.02)
        connection.close()
        return statuses, sorted(latencies)

    def peak_memory(self):
        status = pathlib.Path(f"/proc/{self.server.process.pid}/status").read_text()
        return int(status.split("VmHWM:")[1].split()[0]) << 10

    def test_is_served_beside_hostile_ones(self):
        self.classify_for(1)
        alone = self.classify_for(min(SECONDS, 20))
        requests, results = hostile_requests(), multiprocessing.Queue()
        company = multiprocessing.Process(target=bad_company, args=(self.server.url, SECONDS + 2, requests, results))
        company.start()
        time.sleep(2)
        beside = self.classify_for(SECONDS - 1)
        hostile = results.get(timeout=120)
        company.join()

        for name, (statuses, latencies) in {"alone": alone, "beside them": beside}.items():
            median, p99 = (1e3 * latencies[int(len(latencies) * share)] for share in (0.5, 0.99))
            print(f"{name}: {dict(statuses)}, median {median:.1f} ms, p99 {p99:.1f} ms")
        print(f"memory {self.peak_memory() >> 20} MiB; hostile clients: {dict(hostile)}")
        self.assertEqual(set(beside[0]), {200})
        self.assertTrue(hostile)  # how many requests they send is a matter of the machine's load
        self.assertLess(self.peak_memory(), MAX_MEMORY)


if __name__ == "__main__":
    del sys.argv[1:]
    unittest.main(verbosity=2)
