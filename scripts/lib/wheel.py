#!/usr/bin/env python3
"""Writes a wheel with a program in it, with the same bytes each time.

    wheel.py WHEEL VERSION PROGRAM LICENCES README

The file's name says for which systems it is. SOURCE_DATE_EPOCH is the time of all that is in it.
"""

import base64
import hashlib
import os
import pathlib
import sys
import time
import zipfile

ENTRY = '''"""The program `ringlet`. There is nothing to import here."""

import os
import sys


def main():
    """Becomes the program, which lies beside this file."""
    program = os.path.join(os.path.dirname(os.path.abspath(__file__)), "bin", "ringlet")
    os.execv(program, ["ringlet", *sys.argv[1:]])
'''

METADATA = """Metadata-Version: 2.1
Name: ringlet
Version: {version}
Summary: Data-parallel trainer of neural networks, written from scratch in C++20
License: MIT
Requires-Python: >=3.8
Description-Content-Type: text/markdown
{licences}
{readme}"""


def contents(version, platform, program, licences, readme):
    """(name, bytes, whether it may be run) of each file but RECORD."""
    info = f"ringlet-{version}.dist-info"
    lines = "".join(f"License-File: {file.name}\n" for file in licences)
    yield "ringlet/__init__.py", ENTRY.encode(), False
    yield "ringlet/bin/ringlet", program.read_bytes(), True
    yield f"{info}/METADATA", METADATA.format(version=version, licences=lines, readme=readme.read_text()).encode(), False
    yield (f"{info}/WHEEL",
           f"Wheel-Version: 1.0\nGenerator: ringlet\nRoot-Is-Purelib: false\nTag: {platform}\n".encode(), False)
    yield f"{info}/entry_points.txt", b"[console_scripts]\nringlet = ringlet:main\n", False
    for file in licences:
        yield f"{info}/licenses/{file.name}", file.read_bytes(), False


def write(wheel, version, program, licences, readme):
    moment = time.gmtime(int(os.environ["SOURCE_DATE_EPOCH"]))[:6]
    platform = wheel.stem.split("-", 2)[2]
    record = []
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:

        def add(name, data, runs):
            entry = zipfile.ZipInfo(name, moment)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100755 if runs else 0o100644) << 16
            archive.writestr(entry, data)

        for name, data, runs in contents(version, platform, program, licences, readme):
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record.append(f"{name},sha256={digest},{len(data)}\n")
            add(name, data, runs)
        name = f"ringlet-{version}.dist-info/RECORD"
        add(name, "".join(record + [f"{name},,\n"]).encode(), False)


if __name__ == "__main__":
    if len(sys.argv) != 6:
        sys.exit(__doc__)
    write(pathlib.Path(sys.argv[1]), sys.argv[2], pathlib.Path(sys.argv[3]),
          sorted(pathlib.Path(sys.argv[4]).iterdir()), pathlib.Path(sys.argv[5]))
