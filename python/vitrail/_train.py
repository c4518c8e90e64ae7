# SPDX-License-Identifier: Apache-2.0
"""Training, as `vitrail train` does it."""

from __future__ import annotations

import ctypes
import json
import os
import queue
import threading
from collections.abc import Callable
from typing import Any

from ._library import StrPath, TrainCallback, TrainOptions, c_path, functions

MESSAGE, PROGRESS, EPOCH, RESULT = range(4)
KINDS = {MESSAGE: "message", PROGRESS: "progress", EPOCH: "epoch", RESULT: "result"}
PATIENCE = 0.5  # seconds that an exception waits for the end of its run

_stopped: list[threading.Thread] = []  # runs that may still be saved


class _Run:
    """A run in a thread of its own, whose events are passed on in the thread of the caller.

    An exception there, or Ctrl-C, stops it after the current step.
    """

    def __init__(self, on_progress: Callable[[dict[str, Any]], Any] | None):
        self.on_progress, self.stopped = on_progress, False
        self.result: dict[str, Any] = {}
        self._events: queue.SimpleQueue[tuple[Any, Any]] = queue.SimpleQueue()
        self._replies: queue.SimpleQueue[int] = queue.SimpleQueue()

    def callback(self, kind: int, text: bytes, _: Any) -> int:
        if self.stopped:
            return 1
        self._events.put((kind, text.decode(errors="replace")))
        return self._replies.get()

    def follow(self, function: Callable[..., Any], *arguments: Any) -> None:
        def run() -> None:
            try:
                function(*arguments)
                self._events.put((None, None))
            except Exception as error:
                self._events.put((None, error))

        thread = threading.Thread(target=run)
        thread.start()
        try:
            kind, value = self._events.get()
            while kind is not None:
                self._pass_on(kind, value)
                self._replies.put(0)
                kind, value = self._events.get()
        except BaseException:
            self.stopped = True
            _stopped.append(thread)
            self._replies.put(1)
            thread.join(PATIENCE)
            raise
        if value is not None:
            raise value

    def _pass_on(self, kind: int, text: str) -> None:
        event = {"message": text} if kind == MESSAGE else json.loads(text)
        if kind == RESULT:
            self.result = event
        if self.on_progress:
            self.on_progress({"event": KINDS[kind], **event})


def train(
    recipe: dict[str, Any] | StrPath,
    out: StrPath,
    *,
    model: StrPath | None = None,
    settings: dict[str, Any] | None = None,
    threads: int | None = None,
    resume: bool = False,
    allow_changes: bool = False,
    preset: str | None = None,
    force: bool = False,
    on_progress: Callable[[dict[str, Any]], Any] | None = None,
) -> dict[str, Any]:
    """Trains a model and writes the run to the folder `out`; returns the accuracies and "run", the folder.

    recipe: a recipe as a dict, its .json file, or a dataset, for which the settings are chosen.  model: the model to
    start from.  settings: replaced fields, as {"optimizer.lr": 0.01, "epochs": 5}.  resume: continue the run in `out`,
    or start it.  preset: for a dataset, "finetune", "probe", or "scratch" for a new small model.  force: take settings
    that are known to destroy a pretrained model.

    on_progress is called with dicts: "event" is "message", "progress" (after each batch), "epoch" or "result".  If it
    raises, and on Ctrl-C, the run is saved after the current step; resume=True continues it.  The exception waits for
    that at most half a second; the next train() and the end of the program wait until it is saved.
    """
    source = json.dumps(recipe).encode() if isinstance(recipe, dict) else c_path(recipe)
    lines = [f"{key}={json.dumps(value)}".encode() for key, value in (settings or {}).items()]
    while _stopped:
        _stopped[-1].join()
        _stopped.pop()
    run = _Run(on_progress)
    options = TrainOptions(
        ctypes.sizeof(TrainOptions),
        threads or 0,
        resume,
        allow_changes,
        None if model is None else c_path(model),
        (ctypes.c_char_p * len(lines))(*lines),
        len(lines),
        TrainCallback(run.callback),
        None,
        None if preset is None else preset.encode(),
        force,
    )
    stopped = ctypes.c_int()
    run.follow(functions.train, source, c_path(out), ctypes.byref(options), ctypes.byref(stopped))
    return {"run": os.fspath(out), **run.result}


def pretrain(
    images: StrPath,
    out: StrPath,
    *,
    model: StrPath | None = None,
    probe: StrPath | None = None,
    settings: dict[str, Any] | None = None,
    threads: int | None = None,
    resume: bool = False,
    allow_changes: bool = False,
    preset: str | None = None,
    force: bool = False,
    on_progress: Callable[[dict[str, Any]], Any] | None = None,
) -> dict[str, Any]:
    """Trains a model on images without labels, as `vitrail pretrain` does, and writes the run to the folder `out`.

    images: a folder at any depth, an archive, or a .txt of paths.  probe: a labelled dataset that measures the
    features.  Returns the scores before training ("start_…"), of the saved model ("held_out_…") and of the last epoch
    ("last_…").  The other parameters are those of train().
    """
    given: dict[str, Any] = {"objective": "pretrain"}
    if probe is not None:
        given["pretrain.probe"] = os.fspath(probe)
    return train(
        images,
        out,
        model=model,
        settings={**given, **(settings or {})},
        threads=threads,
        resume=resume,
        allow_changes=allow_changes,
        preset=preset,
        force=force,
        on_progress=on_progress,
    )
