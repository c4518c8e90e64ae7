# SPDX-License-Identifier: Apache-2.0
"""An HTTP client that loads a server: closed and open loops, mixed requests, and clients that send slowly."""

import asyncio
import random
import resource
import statistics
import time

MAX_CONNECTIONS = 256  # the largest number in an open loop
SLOW_SECONDS = 3  # between the bytes of a slow client


class Connection:
    """A persistent connection that sends one request at a time."""

    def __init__(self, port, request):
        self.port, self.request = port, request
        self.reader = self.writer = None

    async def send(self, request=None):
        """The status of the response, and the times of Server-Timing in ms."""
        if not self.writer or self.reader.at_eof():  # the server closes a connection that idles
            self.close()
            self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
        self.writer.write(request or self.request)
        head = await self.reader.readuntil(b"\r\n\r\n")
        fields = head.lower()
        length = int(fields.split(b"\r\ncontent-length:")[1].split(b"\r\n")[0])
        await self.reader.readexactly(length)
        if b"connection: close" in fields:
            self.close()
        return int(head.split(None, 2)[1]), server_timing(fields)

    def close(self):
        if self.writer:
            self.writer.close()
        self.reader = self.writer = None


def server_timing(fields):
    """{"decode": 1.2, "model": 3.4, …} of a header in lower case; empty without the field."""
    found = fields.partition(b"\r\nserver-timing:")[2].partition(b"\r\n")[0].decode()
    entries = (entry.strip().split(";dur=") for entry in found.split(",") if ";dur=" in entry)
    return {name: float(value) for name, value in entries}


def percentile(seconds, share):
    """In milliseconds."""
    return sorted(seconds)[min(len(seconds) - 1, int(share * len(seconds)))] * 1e3 if seconds else None


def summary(mode, results, seconds, processor_seconds):
    latencies = [latency for status, latency, _ in results if status == 200]
    refused = [latency for status, latency, _ in results if status != 200]
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


def overhead(results):
    """What a request takes beside decoding and the model, at the median in ms: in the server, and for the client."""
    rows = [(latency * 1e3, times) for status, latency, times in results if status == 200 and "total" in times]
    if not rows:
        return {}
    work = [times["decode"] + times["model"] for _, times in rows]
    return {
        "overhead": statistics.median(times["total"] - done for (_, times), done in zip(rows, work, strict=True)),
        "client_overhead": statistics.median(latency - done for (latency, _), done in zip(rows, work, strict=True)),
    }


async def closed_loop(port, request, connections, seconds):
    results, end = [], time.perf_counter() + seconds

    async def run():
        connection = Connection(port, request)
        while (start := time.perf_counter()) < end:
            status, times = await connection.send()
            results.append((status, time.perf_counter() - start, times))
        connection.close()

    began, used = time.perf_counter(), processor_time()
    await asyncio.gather(*(run() for _ in range(connections)))
    row = summary(f"{connections} connections", results, time.perf_counter() - began, processor_time() - used)
    return row | overhead(results) if connections == 1 else row


async def open_loop(port, request, share, rate, seconds, random_arrivals):
    results, free = [], [Connection(port, request) for _ in range(MAX_CONNECTIONS)]
    available = asyncio.Semaphore(MAX_CONNECTIONS)
    intervals = random.Random(1)

    async def run(arrival):
        async with available:
            connection = free.pop()
            status, times = await connection.send()
            results.append((status, time.perf_counter() - arrival, times))
            free.append(connection)

    began, used = time.perf_counter(), processor_time()
    arrival, tasks = began, []
    while arrival < began + seconds:
        await asyncio.sleep(max(0, arrival - time.perf_counter()))
        tasks.append(asyncio.create_task(run(arrival)))
        arrival += intervals.expovariate(rate) if random_arrivals else 1 / rate
    await asyncio.gather(*tasks)
    for connection in free:
        connection.close()
    name = f"{share:.0%} of it, {rate:.0f} a second, {'random' if random_arrivals else 'constant'}"
    return summary(name, results, time.perf_counter() - began, processor_time() - used)


async def send_slowly(port, opened):
    """Sends a header byte by byte, and begins again each time the server closes the connection."""
    while True:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(SLOW_SECONDS)
            continue
        writer.write(b"POST /v1/classify HTTP/1.1\r\nX: ")
        opened.append(writer)
        try:
            while True:
                try:
                    await asyncio.wait_for(reader.read(), SLOW_SECONDS)
                    break  # the server closed it
                except TimeoutError:
                    writer.write(b"a")
        except OSError:
            pass
        finally:
            opened.remove(writer)
            writer.close()


async def closed_loop_beside_slow_clients(port, request, connections, seconds, slow):
    opened = []
    clients = [asyncio.create_task(send_slowly(port, opened)) for _ in range(slow)]
    while len(opened) < slow:
        await asyncio.sleep(0.1)
    row = await closed_loop(port, request, connections, seconds)
    row["mode"] += f", {len(opened)} slow"
    for client in clients:
        client.cancel()
    await asyncio.gather(*clients, return_exceptions=True)
    return row


async def send_mixed(port, requests, count, connections=8):
    """Sends the requests in turn.  The number of responses of each status."""
    statuses, numbers = {}, iter(range(count))

    async def run():
        connection = Connection(port, None)
        for number in numbers:
            status, _ = await connection.send(requests[number % len(requests)])
            statuses[status] = statuses.get(status, 0) + 1
        connection.close()

    await asyncio.gather(*(run() for _ in range(connections)))
    return dict(sorted(statuses.items()))
