#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures a server of image classification under load.

usage: benchmarks/serve_load.py IMAGE [--program build/release/vitrail --model MODEL [--threads N] [--precision P]
                                       [--limit NAME=N]…]
                                      [--peer litserve --python PYTHON --architecture NAME]
                                      [--connections 1 8 32] [--rates 0.7 1.5] [--seconds 10] [--record FILE]

Starts `vitrail serve`, or a peer around LitServe in the environment of PYTHON, and sends the image's bytes in POST
requests over persistent connections.

Closed loop (--connections): each connection sends its next request when the response of the last one has come.  Open
loop (--rates): requests arrive at random times, at these shares of the largest rate of the closed loop.  A latency
counts from the time of arrival, also where no connection was free.  For vitrail, `vitrail bench` and `vitrail classify`
measure the same model without a server.

Prints a table: images per second, latency in ms, responses that are not 200, and the processor time of the client as a
share of one core, which the server does not have.
"""

import argparse
import asyncio
import base64
import json
import os
import pathlib
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
MAX_CONNECTIONS = 256  # the largest number in an open loop


class Connection:
    """A persistent connection that sends one request at a time."""

    def __init__(self, port, request):
        self.port, self.request = port, request
        self.reader = self.writer = None

    async def send(self):
        """The status of the response."""
        if not self.writer:
            self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
        self.writer.write(self.request)
        head = await self.reader.readuntil(b"\r\n\r\n")
        fields = head.lower()
        length = int(fields.split(b"content-length:")[1].split(b"\r\n")[0])
        await self.reader.readexactly(length)
        if b"connection: close" in fields:
            self.close()
        return int(head.split(None, 2)[1])

    def close(self):
        if self.writer:
            self.writer.close()
        self.reader = self.writer = None


def percentile(seconds, share):
    """In milliseconds."""
    return sorted(seconds)[min(len(seconds) - 1, int(share * len(seconds)))] * 1e3 if seconds else None


def summary(mode, results, seconds, processor_seconds):
    latencies = [latency for status, latency in results if status == 200]
    refused = [latency for status, latency in results if status != 200]
    return {
        "mode": mode,
        "images_per_second": len(latencies) / seconds,
        "p50": percentile(latencies, 0.5),
        "p99": percentile(latencies, 0.99),
        "refused": len(refused),
        "refused_p99": percentile(refused, 0.99),
        "client_cores": processor_seconds / seconds,
    }


def processor_time():
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


async def closed_loop(port, request, connections, seconds):
    results, end = [], time.perf_counter() + seconds

    async def run():
        connection = Connection(port, request)
        while (start := time.perf_counter()) < end:
            status = await connection.send()
            results.append((status, time.perf_counter() - start))
        connection.close()

    began, used = time.perf_counter(), processor_time()
    await asyncio.gather(*(run() for _ in range(connections)))
    return summary(f"{connections} connections", results, time.perf_counter() - began, processor_time() - used)


async def open_loop(port, request, share, rate, seconds):
    results, free = [], [Connection(port, request) for _ in range(MAX_CONNECTIONS)]
    available = asyncio.Semaphore(MAX_CONNECTIONS)
    arrivals = random.Random(1)

    async def run(arrival):
        async with available:
            connection = free.pop()
            status = await connection.send()
            results.append((status, time.perf_counter() - arrival))
            free.append(connection)

    began, used = time.perf_counter(), processor_time()
    arrival, tasks = began, []
    while arrival < began + seconds:
        await asyncio.sleep(max(0, arrival - time.perf_counter()))
        tasks.append(asyncio.create_task(run(arrival)))
        arrival += arrivals.expovariate(rate)
    await asyncio.gather(*tasks)
    for connection in free:
        connection.close()
    name = f"{share:.0%} of it, {rate:.0f} a second"
    return summary(name, results, time.perf_counter() - began, processor_time() - used)


def vitrail_command(options):
    command = [options.program, "serve", "-m", options.model, "--port", "0"]
    command += ["--threads", str(options.threads)] if options.threads else []
    command += [part for limit in options.limit for part in ("--limit", limit)]
    return [*command, "--precision", options.precision]


def start(options):
    """The process of the server, its port and the path of classification."""
    if options.peer:
        script = HERE / "litserve_server.py"
        command = [options.python, script, options.architecture, str(options.port)]
        server = subprocess.Popen(command, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(240):
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{options.port}/health", timeout=1)
                return server, options.port, "/predict"
            except OSError:
                time.sleep(0.5)
        raise SystemExit(f"serve_load: {options.peer} does not respond")
    server = subprocess.Popen(vitrail_command(options), stderr=subprocess.PIPE, text=True)
    line = next((line for line in server.stderr if "serving on" in line), None)
    if line is None:
        raise SystemExit("serve_load: the server did not start")
    return server, int(line.rsplit(":", 1)[1]), "/v1/classify?top=5"


def without_a_server(options):
    """Images per second of `vitrail bench` at batch 8 and of `vitrail classify` with 64 copies of the image."""
    common = ["--precision", options.precision]
    common += ["--threads", str(options.threads)] if options.threads else []
    bench = [options.program, "bench", options.model, *common, "--batch", "8", "--seconds", "3"]
    result = json.loads(subprocess.run(bench, check=True, capture_output=True, text=True).stdout)
    rows = [{"mode": "bench, batch 8", "images_per_second": result["images_per_second"]}]
    with tempfile.TemporaryDirectory() as folder:
        copies = [shutil.copy(options.image, f"{folder}/{i:02}{options.image.suffix}") for i in range(64)]
        seconds = []
        for count in (8, 64):
            classify = [options.program, "classify", "-m", options.model, *common, *copies[:count]]
            times = []
            for _ in range(3):
                began = time.perf_counter()
                subprocess.run(classify, check=True, capture_output=True)
                times.append(time.perf_counter() - began)
            seconds.append(min(times))
    rows.append({"mode": "classify", "images_per_second": 56 / (seconds[1] - seconds[0])})
    return rows


def request_of(options, path):
    """The image's bytes; for LitServe, which takes no other body, in JSON."""
    body, kind = options.image.read_bytes(), "image/jpeg"
    if options.peer:
        body, kind = json.dumps({"image": base64.b64encode(body).decode()}).encode(), "application/json"
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def stop(options, server):
    if options.peer:  # its workers do not end with it
        os.killpg(server.pid, signal.SIGKILL)
    server.send_signal(signal.SIGTERM)
    server.wait(60)


async def measure(options, port, path):
    request = request_of(options, path)
    if (status := await Connection(port, request).send()) != 200:
        raise SystemExit(f"serve_load: expected status 200, got {status}")
    await closed_loop(port, request, 8, 1)  # warm-up
    rows = [await closed_loop(port, request, count, options.seconds) for count in options.connections]
    largest = max(row["images_per_second"] for row in rows)
    for share in options.rates:
        rows.append(await open_loop(port, request, share, share * largest, options.seconds))
    return rows


def print_table(rows):
    columns = {
        "images_per_second": "images/s",
        "p50": "p50",
        "p99": "p99",
        "refused": "refused",
        "refused_p99": "their p99",
        "client_cores": "client",
    }
    print(" " * 32, *(name.rjust(9) for name in columns.values()))
    for row in rows:
        values = [row.get(key) for key in columns]
        print(row["mode"].ljust(32), *("-".rjust(9) if value is None else f"{value:9.4g}" for value in values))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("image", type=pathlib.Path)
    parser.add_argument("--program", default="build/release/vitrail")
    parser.add_argument("--model", default="cifar10-vit")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--precision", default="fp32")
    parser.add_argument("--limit", action="append", default=[], help="of vitrail serve, such as requests=16")
    parser.add_argument("--peer", choices=["litserve"])
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--architecture", default="deit_tiny_patch16_224")
    parser.add_argument("--port", type=int, default=18080, help="of a peer")
    parser.add_argument("--connections", type=int, nargs="*", default=[1, 8, 32])
    parser.add_argument("--rates", type=float, nargs="*", default=[0.7, 1.5])
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--record", type=pathlib.Path)
    options = parser.parse_args()
    rows = [] if options.peer else without_a_server(options)
    server, port, path = start(options)
    try:
        rows += asyncio.run(measure(options, port, path))
    finally:
        stop(options, server)
    print_table(rows)
    if options.record:
        options.record.write_text(json.dumps({"server": options.peer or "vitrail", "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
