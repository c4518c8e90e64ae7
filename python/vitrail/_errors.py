# SPDX-License-Identifier: Apache-2.0
"""The exceptions of the package."""

from __future__ import annotations

from typing import Any


class Error(ValueError):
    """A file, option or shape that the library does not accept.

    where, expected and got are the parts of the message; they are empty if it is one sentence.
    """

    def __init__(self, message: str, where: str = "", expected: str = "", got: str = ""):
        super().__init__(message)
        self.where: str = where
        self.expected: str = expected
        self.got: str = got

    def __reduce__(self) -> tuple[Any, ...]:  # with its parts, so that a worker process can send it
        return type(self), (str(self), self.where, self.expected, self.got)


class InternalError(RuntimeError):
    """A fault of the library."""
