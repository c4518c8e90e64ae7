# SPDX-License-Identifier: Apache-2.0
"""Training, as `vitrail train` does it."""

from __future__ import annotations

import ctypes
import json
import os
from collections.abc import Callable
from typing import Any

from ._interrupts import DeferredInterrupt
from ._library import TrainCallback, TrainOptions, c_path, functions

MESSAGE, PROGRESS, EPOCH, RESULT = range(4)
KINDS = {MESSAGE: "message", PROGRESS: "progress", EPOCH: "epoch", RESULT: "result"}


class _Events:
    """Passes events to a function of the caller.  An exception in it, or Ctrl-C, stops the run and is raised after."""

    def __init__(self, on_progress: Callable[[dict[str, Any]], Any] | None, interrupt: DeferredInterrupt):
        self.on_progress, self.interrupt, self.result, self.failure = on_progress, interrupt, {}, None

    def __call__(self, kind, text, _) -> int:
        try:
            text = text.decode(errors="replace")
            event = {"message": text} if kind == MESSAGE else json.loads(text)
            if kind == RESULT:
                self.result = event
            if self.on_progress and self.failure is None:
                self.on_progress({"event": KINDS[kind], **event})
        except BaseException as failure:  # nothing may leave a callback of C
            self.failure = self.failure or failure
        return self.failure is not None or self.interrupt.came


def train(
    recipe: dict[str, Any] | str | os.PathLike,
    out: str | os.PathLike,
    *,
    model: str | os.PathLike | None = None,
    settings: dict[str, Any] | None = None,
    threads: int | None = None,
    resume: bool = False,
    allow_changes: bool = False,
    on_progress: Callable[[dict[str, Any]], Any] | None = None,
) -> dict[str, Any]:
    """Trains a model and writes the run to the folder `out`; returns the accuracies and "run", the folder.

    recipe: a recipe as a dict, its .json file, or a dataset, for which the settings are chosen.  model: the model to
    start from.  settings: replaced fields, as {"optimizer.lr": 0.01, "epochs": 5}.  resume: continue the run in `out`,
    or start it.

    on_progress is called with dicts: "event" is "message", "progress" (after each batch), "epoch" or "result".  If it
    raises, and on Ctrl-C, the run is saved after the current step and the exception raised; resume=True continues it.
    """
    source = json.dumps(recipe).encode() if isinstance(recipe, dict) else c_path(recipe)
    lines = [f"{key}={json.dumps(value)}".encode() for key, value in (settings or {}).items()]
    interrupt = DeferredInterrupt()
    events = _Events(on_progress, interrupt)
    options = TrainOptions(
        ctypes.sizeof(TrainOptions),
        threads or 0,
        resume,
        allow_changes,
        None if model is None else c_path(model),
        (ctypes.c_char_p * len(lines))(*lines),
        len(lines),
        TrainCallback(events),
        None,
    )
    stopped = ctypes.c_int()
    with interrupt:
        functions.train(source, c_path(out), ctypes.byref(options), ctypes.byref(stopped))
    if events.failure is not None:
        raise events.failure
    return {"run": os.fspath(out), **events.result}
