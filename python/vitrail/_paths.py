# SPDX-License-Identifier: Apache-2.0
"""Folders and patterns of images, as the command line and its shell take them."""

from __future__ import annotations

import ctypes
import glob
import itertools
import os
from typing import Any

from ._errors import Error
from ._library import PathsHandle, StrPath, c_path, functions


def names_several(images: Any) -> bool:
    """Whether the argument is the path of a folder, or a pattern."""
    if not isinstance(images, (str, os.PathLike)):
        return False
    return os.path.isdir(images) or (glob.has_magic(os.fspath(images)) and not os.path.lexists(images))


def _of_folder(folder: str) -> list[str]:
    paths = PathsHandle()
    functions.list_images(c_path(folder), ctypes.byref(paths))
    found = (functions.paths_at(paths, i) for i in itertools.count())
    return [os.fsdecode(path) for path in itertools.takewhile(lambda path: path is not None, found)]


def list_images(path: StrPath) -> list[str]:
    """The images that methods take for a folder, or for a pattern such as "photos/**/*.jpg", in their order.

    Of a folder, they are the files with an image's extension, in subfolders too.  Others are left out with a warning.
    """
    if os.path.isdir(path):
        return _of_folder(os.fsdecode(path))
    matches = sorted(glob.glob(os.fsdecode(path), recursive=True), key=os.fsencode)
    if not matches:
        expected = "a folder, or a pattern that matches a file"
        raise Error(f"{path}: expected {expected}, got none", str(path), expected, "none")
    images = [image for match in matches for image in (_of_folder(match) if os.path.isdir(match) else [match])]
    return list(dict.fromkeys(images))  # "**" matches a folder and its files
