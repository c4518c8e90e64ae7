# SPDX-License-Identifier: Apache-2.0
"""Many images with bounded memory: they are decoded in threads while the model runs on those before."""

from __future__ import annotations

import collections
import concurrent.futures
import ctypes
import functools
import os
import queue
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from ._images import each_of, is_one_image, open_image
from ._interrupts import Result, interruptible
from ._library import ImageHandle, functions

BATCH = 32  # images
BATCH_PIXELS = 1 << 25  # 100 MB
UNREADABLE = (OSError, ValueError, TypeError, MemoryError)  # vitrail.Error is a ValueError


class _Decoder:
    """Images in their order, decoded ahead in threads."""

    def __init__(self, pool: concurrent.futures.Executor, model: Any, images: Iterable, exif: bool, threads: int):
        self._pool, self._source, self._threads = pool, iter(images), threads
        self._open = functools.partial(open_image, model, exif=exif)
        self._ahead: collections.deque = collections.deque()
        self._largest = 0  # pixels of the largest image so far

    def __iter__(self) -> Iterator[concurrent.futures.Future]:
        exhausted = object()
        while True:
            while len(self._ahead) < self._limit():
                image = next(self._source, exhausted)
                if image is exhausted:
                    break
                self._ahead.append(self._begin(image))
            if not self._ahead:
                return
            done: queue.SimpleQueue[Any] = queue.SimpleQueue()  # as in interruptible()
            self._ahead[0].add_done_callback(done.put)
            done.get()
            yield self._ahead.popleft()

    def _begin(self, image: Any) -> concurrent.futures.Future:
        if isinstance(image, (str, os.PathLike, bytes)):
            return self._pool.submit(self._open, image)
        future: concurrent.futures.Future = concurrent.futures.Future()  # other libraries' images stay on this thread
        try:
            future.set_result(self._open(image))
        except Exception as error:
            future.set_exception(error)
        return future

    def _limit(self) -> int:
        fitting = min(BATCH, BATCH_PIXELS // self._largest) if self._largest else 0
        return max(self._threads, fitting)

    def saw(self, pixels: int) -> None:
        self._largest = max(self._largest, pixels)

    def close(self) -> None:
        for future in self._ahead:
            future.cancel()


class _Batch:
    """Images with their positions."""

    def __init__(self) -> None:
        self.images: list[tuple[int, ImageHandle]] = []
        self.pixels = 0

    def add(self, position: int, image: ImageHandle) -> int:
        pixels = functions.image_width(image) * functions.image_height(image)
        self.images.append((position, image))
        self.pixels += pixels
        return pixels

    def is_full(self) -> bool:
        return len(self.images) >= BATCH or self.pixels >= BATCH_PIXELS

    def run(self, function: Callable, skip: bool) -> tuple[list, list[int]]:
        """The results, and the positions of images without one.  After an error each image runs by itself."""
        try:
            return [_call(function, [image for _, image in self.images])], []
        except UNREADABLE:
            if not skip:
                raise
        results, failed = [], []
        for position, image in self.images:
            try:
                results.append(_call(function, [image]))
            except UNREADABLE:
                failed.append(position)
        return results, failed


def _call(function: Callable[..., Result], images: list[ImageHandle]) -> Result:
    return function((ctypes.c_void_p * len(images))(*images), len(images))


def _listed(images: Any) -> Iterable:
    return [images] if is_one_image(images) else each_of(images)


def run_together(model: Any, images: Any, exif: bool, function: Callable[..., Result]) -> Result:
    """The result of function(handles, count) for one image or several, which are all in memory."""
    return interruptible(_call, function, [open_image(model, image, exif) for image in _listed(images)])


def run_batches(
    model: Any,
    images: Any,
    exif: bool,
    function: Callable,
    *,
    skip: bool = False,
    on_progress: Callable[[int], object] | None = None,
) -> tuple[list, list[bool]]:
    """The results of function(handles, count) for batches of one image or several, and whether each image has one.

    Ctrl-C is answered at once.  Without images the function gets none.  skip: images that cannot be read have no
    result.
    """
    threads = min(len(os.sched_getaffinity(0)), 8)
    pool = concurrent.futures.ThreadPoolExecutor(threads)
    decoder = _Decoder(pool, model, _listed(images), exif, threads)
    results: list = []
    read: list[bool] = []
    batch, told = _Batch(), 0

    def run() -> None:
        nonlocal batch
        full, batch = batch, _Batch()
        rows, failed = interruptible(full.run, function, skip)
        results.extend(rows)
        for position in failed:
            read[position] = False
        tell()

    def tell() -> None:
        nonlocal told
        if on_progress and told < len(read):
            on_progress(len(read) - told)
        told = len(read)

    try:
        for future in decoder:
            try:
                image = future.result()
            except UNREADABLE:
                if not skip:
                    raise
                read.append(False)
                continue
            decoder.saw(batch.add(len(read), image))
            read.append(True)
            if batch.is_full():
                run()
        if batch.images or not read:
            run()
        tell()
        return results, read
    finally:
        decoder.close()
        pool.shutdown(wait=False)
