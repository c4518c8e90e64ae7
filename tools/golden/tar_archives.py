# SPDX-License-Identifier: Apache-2.0
"""Fixtures of tar archives, tests/fixtures/base/{ustar,gnu,pax}.tar, by Python's tarfile.

tar.json has what tarfile reads back: the content of every file under its path, where hard links have the content of
their file and a second file of the same path replaces the first.
"""

import io
import json
import pathlib
import tarfile

ROOT = pathlib.Path(__file__).resolve().parents[2] / "tests" / "fixtures" / "base"
FORMATS = {"ustar": tarfile.USTAR_FORMAT, "gnu": tarfile.GNU_FORMAT, "pax": tarfile.PAX_FORMAT}


def add(archive, name, content=None, **fields):
    info = tarfile.TarInfo(name)
    for key, value in fields.items():
        setattr(info, key, value)
    info.size = len(content or b"")
    archive.addfile(info, io.BytesIO(content or b""))


def write(name, kind):
    file = ROOT / f"{name}.tar"
    deep = "folder/" + "d" * 90 + "/" + "e" * 80 + ".txt"  # ustar splits it at a slash
    with tarfile.open(file, "w", format=kind) as archive:
        add(archive, "folder", type=tarfile.DIRTYPE)
        add(archive, "./folder/a.txt", b"a" * 513)
        add(archive, "folder/empty.txt", b"")
        add(archive, "folder/link.txt", type=tarfile.LNKTYPE, linkname="./folder/a.txt")
        add(archive, "folder/symbolic.txt", type=tarfile.SYMTYPE, linkname="a.txt")
        add(archive, deep, b"deep")
        add(archive, "twice.txt", b"first")
        add(archive, "twice.txt", b"second")
        if name != "ustar":
            add(archive, "long/" + "n" * 300 + ".txt", b"long")
            add(archive, "long/ä.txt", b"umlaut", pax_headers={"comment": "n" * 600})
        if name == "pax":
            add(archive, "sized.txt", b"12345", pax_headers={"size": "5"})
        add(archive, "last.txt", b"z" * 512)
    content = file.read_bytes().rstrip(b"\0")
    file.write_bytes(content + b"\0" * (-len(content) % 512 + 1024))
    with tarfile.open(file) as archive:
        return {
            member.name.removeprefix("./"): archive.extractfile(member).read().decode()
            for member in archive.getmembers()
            if member.isfile() or member.islnk()
        }


if __name__ == "__main__":
    contents = {name: write(name, kind) for name, kind in FORMATS.items()}
    (ROOT / "tar.json").write_text(json.dumps(contents, sort_keys=True) + "\n")
