# SPDX-License-Identifier: Apache-2.0
"""Commands of the program `vitrail`, whose options are keyword arguments."""

from __future__ import annotations

import json
import os
import pathlib
import signal
import subprocess
import warnings
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ._errors import Error
from ._library import StrPath

if TYPE_CHECKING:
    from ._model import Model

PATIENCE = 5.0  # seconds that a stopped program has to remove its temporary files


def program_path() -> str:
    """VITRAIL_PROGRAM, else the program of the wheel."""
    path = os.environ.get("VITRAIL_PROGRAM") or str(pathlib.Path(__file__).parent / "bin" / "vitrail")
    if os.path.exists(path):
        return path
    expected = "the program vitrail"
    raise Error(f"{path}: expected {expected}, got nothing there (set VITRAIL_PROGRAM)", path, expected, "nothing")


def _text(value: Any) -> str:
    return os.fspath(value) if isinstance(value, os.PathLike) else str(value)


def _arguments(options: dict[str, Any]) -> Iterator[str]:
    """top=3 is --top=3, zeroshot=True is --zeroshot, template=["a", "b"] is repeated.  None and False are left out."""
    for name, value in options.items():
        option = "--" + name.replace("_", "-")
        if isinstance(value, (list, tuple)):
            yield from (f"{option}={_text(each)}" for each in value)
        elif value is True:
            yield option
        elif value is not None and value is not False:
            yield f"{option}={_text(value)}"


def _messages(stderr: str, kind: str) -> list[str]:
    prefix = f"vitrail: {kind}: "
    return [line[len(prefix) :] for line in stderr.splitlines() if line.startswith(prefix)]


def _finish(child: subprocess.Popen[str]) -> tuple[str, str]:
    """What the child prints.  An exception, such as that of Ctrl-C, stops it."""
    try:
        return child.communicate()
    except BaseException:
        child.send_signal(signal.SIGTERM)
        try:
            child.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            child.kill()
        raise


def run_program(command: str, *positionals: StrPath, partly: bool = False, **options: Any) -> str:
    """The standard output of a command.  Its warnings are Python's.

    Raises Error with the program's messages if it fails.  partly: of inputs that fail beside others, they are warnings.
    """
    model: Any = options.get("model")
    if hasattr(model, "_program_options"):  # a Model
        own = model._program_options()
        options = {**own, **options, "model": own["model"]}
    line = [program_path(), command, *_arguments(options), "--", *map(_text, positionals)]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        line, stdin=subprocess.DEVNULL, stdout=pipe, stderr=pipe, encoding="utf-8", errors="surrogateescape"
    ) as child:
        output, notes = _finish(child)
    failures = _messages(notes, "error")
    if child.returncode and not (partly and child.returncode == 1 and output):
        message = "\n".join(failures) or notes.strip() or f"it ended with status {child.returncode}"
        raise Error(f"vitrail {command}: {message}")
    for text in failures + ([] if options.get("quiet") else _messages(notes, "warning")):
        warnings.warn(text, stacklevel=3)
    return output


def eval(dataset: StrPath, *, model: Model | StrPath | None = None, **options: Any) -> dict[str, Any]:
    """The metrics of a classifier on labelled images, as `vitrail eval` gives them: "top1", "top1_interval", "classes"…

    model: a path or name as for load(), or a Model; without it the bundled one.  options: those of the command, with _
    for - and True for those without a value, as in eval("photos", split="val", zeroshot=True, report="page.html").
    Images that cannot be read are warnings.
    """
    return json.loads(run_program("eval", dataset, partly=True, model=model, format="json", **options))


def knn(train: StrPath, test: StrPath, *, model: Model | StrPath | None = None, **options: Any) -> dict[str, Any]:
    """The accuracy of the nearest neighbours in `train` on the images of `test`, as `vitrail knn` gives it: "top1"…

    model, options: as for eval(), with the options of `vitrail knn`.
    """
    return json.loads(run_program("knn", train, test, partly=True, model=model, **options))


def convert(model: StrPath, output: StrPath, **options: Any) -> str:
    """Writes a model as a folder, or as an ONNX file if `output` ends in .onnx, and returns its path.

    options: those of `vitrail convert`, as in convert("model", "small", dtype="int8", calibrate=["photos"]).
    """
    run_program("convert", model, output=output, **options)
    return os.fspath(output)


def pull(name: str) -> str:
    """Downloads a model of the Hugging Face hub, organisation/name[@revision], and returns its folder."""
    return run_program("pull", name).rstrip("\n")
