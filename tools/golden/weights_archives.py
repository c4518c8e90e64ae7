# SPDX-License-Identifier: Apache-2.0
"""Small archives for the tests of vitrail/base/zip and gzip: python tools/golden/weights_archives.py"""

import gzip
import pathlib
import zipfile

OUT = pathlib.Path("tests/fixtures/base")
DATE = (2020, 1, 1, 0, 0, 0)


def write_zip(name, zip64=False, comment=b""):
    if zip64:  # forces all zip64 fields, without writing 4 GiB
        zipfile.ZIP_FILECOUNT_LIMIT, zipfile.ZIP64_LIMIT = 1, 10
    with zipfile.ZipFile(OUT / name, "w") as archive:

        def add(entry, content, method):
            info = zipfile.ZipInfo(entry, DATE)
            info.compress_type = method
            with archive.open(info, "w", force_zip64=zip64) as file:
                file.write(content)

        add("stored.txt", b"kept as it is", zipfile.ZIP_STORED)
        add("deflated.txt", b"again and " * 300, zipfile.ZIP_DEFLATED)
        archive.writestr(zipfile.ZipInfo("folder/", DATE), b"")
        add("folder/empty", b"", zipfile.ZIP_STORED)
        archive.comment = comment
    zipfile.ZIP_FILECOUNT_LIMIT, zipfile.ZIP64_LIMIT = (1 << 16) - 1, (1 << 31) - 1


OUT.mkdir(parents=True, exist_ok=True)
write_zip("plain.zip")
write_zip("zip64.zip", zip64=True)
write_zip("commented.zip", comment=b"a comment with PK\x05\x06 inside it, and twenty-two bytes more")
(OUT / "two_members.gz").write_bytes(gzip.compress(b"first ", mtime=0) + gzip.compress(b"and second", mtime=0))
(OUT / "bomb.gz").write_bytes(gzip.compress(bytes(1 << 20), mtime=0))
