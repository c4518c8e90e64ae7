#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures a server of image classification under load.

usage: benchmarks/serve_load.py IMAGE [--program build/release/vitrail --model MODEL [--threads N] [--precision P]
                                       [--limit NAME=N]… [--pixels | --embeddings]]
                                      [--peer litserve|litserve-openvino --python PYTHON --architecture NAME]
                                      [--peer infinity --python PYTHON --model MODEL]
                                      [--connections 1 8 32] [--rates 0.7 1.5] [--seconds 10] [--open-seconds 600]
                                      [--slow N] [--memory N] [--record FILE]

Starts `vitrail serve`, or a peer (LitServe around PyTorch or OpenVINO, infinity-emb) in the environment of PYTHON, and
sends the image's bytes in POST requests over persistent connections.

Closed loop (--connections): each connection sends its next request when the response of the last one has come.  Open
loop (--rates): requests arrive at these shares of the largest rate of the closed loop, at random times (a Poisson
process) or at constant intervals, as wrk2 and vegeta send them.  A latency counts from the time of arrival, also where
no connection was free.  For vitrail, `vitrail bench` and `vitrail classify` measure the same model without a server.

--pixels: each request is a binary tensor of preprocessed pixels of the Open Inference Protocol instead of the image's
bytes, which the server does not decode, as `vitrail bench` does not.
--embeddings: requests in OpenAI's form for the embedding of the image, of a CLIP model; infinity takes no others.
--slow N: a closed loop of 8 connections without and with N clients beside it that send a header byte by byte.
--memory N: the server's resident size after 1000 mixed requests, after N more, and after SIGHUPs.

Prints a table: images per second, latency in ms, responses that are not 200, and the processor time of the client as a
share of one core, which the server does not have.  One connection: the median time beside decoding and the model,
within vitrail serve, and with HTTP and the client.
"""

import argparse
import asyncio
import base64
import gzip
import json
import math
import os
import pathlib
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request

from serve_client import Connection, closed_loop, closed_loop_beside_slow_clients, open_loop, send_mixed

HERE = pathlib.Path(__file__).resolve().parent
RELOADS = 100
FIRST_RELOADS = 10  # after which the allocator has what it needs


def vitrail_command(options):
    command = [options.program, "serve", "-m", options.model, "--port", "0"]
    command += ["--threads", str(options.threads)] if options.threads else []
    command += [part for limit in options.limit for part in ("--limit", limit)]
    return [*command, "--precision", options.precision]


def peer_command(options):
    if options.peer == "infinity":
        program = pathlib.Path(options.python).with_name("infinity_emb")
        command = [program, "v2", "--model-id", options.model, "--engine", "torch", "--device", "cpu"]
        return [*command, "--dtype", "float32", "--batch-size", "8", "--no-model-warmup", "--port", str(options.port)]
    backend = "openvino" if options.peer == "litserve-openvino" else "torch"
    script = HERE / "litserve_server.py"
    return [options.python, script, options.architecture, str(options.port), backend]


def start_peer(options):
    environment = os.environ | {"HF_HUB_OFFLINE": "1", "DO_NOT_TRACK": "1"}
    silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    server = subprocess.Popen(peer_command(options), start_new_session=True, env=environment, **silent)
    for _ in range(240):
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{options.port}/health", timeout=1)
            return server, options.port, "/embeddings" if options.peer == "infinity" else "/predict"
        except OSError:
            time.sleep(0.5)
    stop(options, server)
    raise SystemExit(f"serve_load: {options.peer} does not respond")


def start(options):
    """The process of the server, its port and the path of the requests."""
    if options.peer:
        return start_peer(options)
    server = subprocess.Popen(vitrail_command(options), stderr=subprocess.PIPE, text=True)
    line = next((line for line in server.stderr if "serving on" in line), None)
    if line is None:
        raise SystemExit("serve_load: the server did not start")
    return server, int(line.rsplit(":", 1)[1]), "/v1/embeddings" if options.embeddings else "/v1/classify?top=5"


def without_a_server(options):
    """Images per second of `vitrail bench` at batch 8, and of `vitrail classify` or `embed` with 64 copies."""
    common = ["--precision", options.precision]
    common += ["--threads", str(options.threads)] if options.threads else []
    bench = [options.program, "bench", options.model, *common, "--batch", "8", "--seconds", "3"]
    result = json.loads(subprocess.run(bench, check=True, capture_output=True, text=True).stdout)
    rows = [{"mode": "bench, batch 8", "images_per_second": result["images_per_second"]}]
    with tempfile.TemporaryDirectory() as folder:
        name, outputs = ("embed", ["-o", f"{folder}/x.npy"]) if options.embeddings else ("classify", [])
        copies = [shutil.copy(options.image, f"{folder}/{i:02}{options.image.suffix}") for i in range(64)]
        seconds = []
        for count in (8, 64):
            command = [options.program, name, "-m", options.model, *common, *outputs, *copies[:count]]
            times = []
            for _ in range(3):
                began = time.perf_counter()
                subprocess.run(command, check=True, capture_output=True)
                times.append(time.perf_counter() - began)
            seconds.append(min(times))
    rows.append({"mode": name, "images_per_second": 56 / (seconds[1] - seconds[0])})
    return rows


def http_request(path, body, headers=""):
    return f"POST {path} HTTP/1.1\r\nHost: localhost\r\n{headers}Content-Length: {len(body)}\r\n\r\n".encode() + body


def get_json(port, path):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}") as response:
        return json.load(response)


def pixels_request(port):
    """An image of zeros of the first model's input size, as a binary tensor."""
    with urllib.request.urlopen(urllib.request.Request(f"http://127.0.0.1:{port}/v2/repository/index", b"")) as models:
        path = "/v2/models/" + json.load(models)[0]["name"]
    pixels = next(tensor for tensor in get_json(port, path)["inputs"] if tensor["datatype"] == "FP32")
    shape = [1, *pixels["shape"][1:]]
    data = bytes(4 * math.prod(shape))
    tensor = {"name": pixels["name"], "shape": shape, "datatype": "FP32"}
    inputs = [tensor | {"parameters": {"binary_data_size": len(data)}}]
    outputs = [{"name": "logits", "parameters": {"binary_data": True}}]
    header = json.dumps({"inputs": inputs, "outputs": outputs}).encode()
    length = f"Inference-Header-Content-Length: {len(header)}\r\n"
    return http_request(path + "/infer", header + data, length)


def request_of(options, port, path):
    """The image's bytes; in JSON where the server takes no other body."""
    if options.pixels:
        return pixels_request(port)
    body = options.image.read_bytes()
    if not options.peer and not options.embeddings:
        return http_request(path, body, "Content-Type: image/jpeg\r\n")
    image = base64.b64encode(body).decode()
    if options.embeddings:
        model = pathlib.Path(options.model).name
        fields = {"model": model, "modality": "image", "input": [f"data:image/jpeg;base64,{image}"]}
    else:
        fields = {"image": image}
    return http_request(path, json.dumps(fields).encode(), "Content-Type: application/json\r\n")


def stop(options, server):
    if options.peer:  # its workers do not end with it
        os.killpg(server.pid, signal.SIGKILL)
    server.send_signal(signal.SIGTERM)
    server.wait(60)


def resident_megabytes(server):
    status = pathlib.Path(f"/proc/{server.pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0]) / 1024


def mixed_requests(options):
    """Requests of every kind of body and of some errors."""
    image = options.image.read_bytes()
    uri = "data:image/jpeg;base64," + base64.b64encode(image).decode()
    part = b'--b\r\nContent-Disposition: form-data; name="image"; filename="a"\r\n\r\n' + image + b"\r\n"
    form = "Content-Type: multipart/form-data; boundary=b\r\n"
    text = "Content-Type: application/json\r\n"
    return [
        http_request("/v1/classify?top=5", image),
        http_request("/v1/embed?tokens=patch", image),
        http_request("/v1/attention", image),
        http_request("/v1/pca", image),
        http_request("/v1/classify", part * 3 + b"--b--\r\n", form),
        http_request("/v1/classify", json.dumps({"images": [uri] * 2}).encode(), text),
        http_request("/v1/classify", gzip.compress(image, 1), "Content-Encoding: gzip\r\n"),
        http_request("/v1/classify", image[: len(image) // 2], "Content-Type: image/jpeg\r\n"),
        http_request("/v1/embed?layer=99", image),
        http_request("/none", b"x"),
    ]


def reload_models(server, count):
    for _ in range(count):
        server.send_signal(signal.SIGHUP)
        if not any("loaded again" in line for line in server.stderr):
            raise SystemExit("serve_load: the server ended")


async def measure_memory(options, server, port):
    """The resident size after 1,000 and more requests, and after reloads."""
    rows, requests = [], mixed_requests(options)
    for count, name in ((1000, "1000 mixed requests"), (options.memory, f"{options.memory} more")):
        print(f"serve_load: {name}: {await send_mixed(port, requests, count)}", file=sys.stderr)
        rows.append({"mode": name, "resident_mb": resident_megabytes(server)})
    for count, name in ((FIRST_RELOADS, "reloads"), (RELOADS - FIRST_RELOADS, "more reloads")):
        reload_models(server, count)
        rows.append({"mode": f"{count} {name}", "resident_mb": resident_megabytes(server)})
    return rows


async def measure(options, port, path):
    request = request_of(options, port, path)
    if (status := (await Connection(port, request).send())[0]) != 200:
        raise SystemExit(f"serve_load: expected status 200, got {status}")
    await closed_loop(port, request, 8, 1)  # warm-up
    rows = [await closed_loop(port, request, count, options.seconds) for count in options.connections]
    largest = max((row["images_per_second"] for row in rows), default=0)
    duration = options.open_seconds or options.seconds
    for share in options.rates if rows else []:
        for arrivals in options.arrivals:
            rows.append(await open_loop(port, request, share, share * largest, duration, arrivals == "random"))
    if options.slow:
        rows.append(await closed_loop(port, request, 8, options.seconds))
        rows.append(await closed_loop_beside_slow_clients(port, request, 8, options.seconds, options.slow))
    return rows


def print_table(rows):
    columns = {
        "images_per_second": "images/s",
        "p50": "p50",
        "p99": "p99",
        "refused": "refused",
        "refused_p99": "their p99",
        "client_cores": "client",
        "overhead": "overhead",
        "client_overhead": "with HTTP",
        "resident_mb": "MB",
    }
    print(" " * 36, *(name.rjust(9) for name in columns.values()))
    for row in rows:
        values = [row.get(key) for key in columns]
        print(row["mode"].ljust(36), *("-".rjust(9) if value is None else f"{value:9.4g}" for value in values))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("image", type=pathlib.Path)
    parser.add_argument("--program", default="build/release/vitrail")
    parser.add_argument("--model", default="cifar10-vit")
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--precision", default="fp32")
    parser.add_argument("--limit", action="append", default=[], help="of vitrail serve, such as requests=16")
    parser.add_argument("--peer", choices=["litserve", "litserve-openvino", "infinity"])
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--architecture", default="deit_tiny_patch16_224")
    parser.add_argument("--port", type=int, default=18080, help="of a peer")
    parser.add_argument("--connections", type=int, nargs="*", default=[1, 8, 32])
    parser.add_argument("--rates", type=float, nargs="*", default=[0.7, 1.5])
    parser.add_argument("--arrivals", nargs="+", choices=["random", "constant"], default=["random"])
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--open-seconds", type=float, help="of an open loop (default: --seconds)")
    parser.add_argument("--slow", type=int, default=0, help="number of clients that send slowly beside a closed loop")
    parser.add_argument("--memory", type=int, default=0, help="number of mixed requests after the first 1000")
    parser.add_argument("--pixels", action="store_true", help="send pixels instead of the image's bytes")
    parser.add_argument("--embeddings", action="store_true", help="embeddings in OpenAI's form")
    parser.add_argument("--record", type=pathlib.Path)
    options = parser.parse_args()
    options.embeddings |= options.peer == "infinity"
    if options.peer and options.memory:
        raise SystemExit("serve_load: --memory is for vitrail serve")
    if options.peer and options.pixels:
        raise SystemExit("serve_load: --pixels is for vitrail serve")
    files, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, max(files, options.slow + 1024)), hard))
    rows = without_a_server(options) if options.connections and not options.peer else []
    server, port, path = start(options)
    try:
        rows += asyncio.run(measure(options, port, path))
        rows += asyncio.run(measure_memory(options, server, port)) if options.memory else []
    finally:
        stop(options, server)
    print_table(rows)
    if options.record:
        options.record.write_text(json.dumps({"server": options.peer or "vitrail", "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
