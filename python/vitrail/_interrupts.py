# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C during a call of the library."""

import queue
import threading


def interruptible(function, *arguments):
    """The result of a function that runs in a thread of its own, so that Ctrl-C is answered at once.

    The function then runs on to its end: what it uses must not be freed before.  Only the main thread gets signals.
    """
    if threading.current_thread() is not threading.main_thread():
        return function(*arguments)
    done = queue.SimpleQueue()  # its wait is one step for Ctrl-C, which could leave a Future's lock in disorder

    def run():
        try:
            done.put((function(*arguments), None))
        except BaseException as error:
            done.put((None, error))

    threading.Thread(target=run, daemon=True).start()  # the end of the program does not wait for it
    result, error = done.get()
    if error is not None:
        raise error
    return result
