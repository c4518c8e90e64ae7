# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C during a call of the library that calls back."""

import signal
import threading


class DeferredInterrupt:
    """Within it, Ctrl-C only sets `came`; at its end, the handler of SIGINT before is called, which raises.

    A KeyboardInterrupt that is raised in a callback of C would be lost.  Only the main thread gets signals.
    """

    def __enter__(self):
        self.came = False
        is_main = threading.current_thread() is threading.main_thread()
        self._handler = signal.getsignal(signal.SIGINT) if is_main else None
        if callable(self._handler):
            signal.signal(signal.SIGINT, self._note)
        return self

    def _note(self, *_):
        self.came = True

    def __exit__(self, *_):
        if not callable(self._handler):
            return
        signal.signal(signal.SIGINT, self._handler)
        if self.came:
            self._handler(signal.SIGINT, None)
