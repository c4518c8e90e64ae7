# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C during a call of the library."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from typing import Any, TypeVar

Result = TypeVar("Result")


def interruptible(function: Callable[..., Result], *arguments: Any) -> Result:
    """The result of a function that runs in a thread of its own, so that Ctrl-C is answered at once.

    The function then runs on to its end: what it uses must not be freed before.  Only the main thread gets signals.
    """
    if threading.current_thread() is not threading.main_thread():
        return function(*arguments)
    # Its wait is one step for Ctrl-C, which could leave a Future's lock in disorder.
    done: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def run() -> None:
        try:
            done.put((function(*arguments), None))
        except BaseException as error:
            done.put((None, error))

    threading.Thread(target=run, daemon=True).start()  # the end of the program does not wait for it
    result, error = done.get()
    if error is not None:
        raise error
    return result
