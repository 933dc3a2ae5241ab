#!/usr/bin/env python3
"""Packs what a machine with a GPU needs to check Ringlet, and nothing that it has: see scripts/gpu_collect."""

import argparse
import gzip
import json
import lzma
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "scripts"))

from gpu.machine import first_line  # noqa: E402  # pylint: disable=wrong-import-position
from gpu.paths import MANIFEST, PROGRAMS  # noqa: E402  # pylint: disable=wrong-import-position
from gpu.process import Failed  # noqa: E402  # pylint: disable=wrong-import-position

# Of the C library: they fit the loader of the machine that runs them, and no other.
SYSTEM = re.compile(r"(linux-vdso|ld-linux[\w-]*|libc|libm|libpthread|libdl|librt|libresolv|libutil)\.so(\.\d+)?")
# Used only where the machine's own is older than what we were built with.
FALLBACK = ("libstdc++.so.6", "libgcc_s.so.1")
# Far enough to reach from one program into the next: all of them have the same kernels in them.
WINDOW = 64 << 20
RUN = """#!/bin/sh
# Starts a program with what lies beside it: ./run ringlet devices
exec python3 "$(dirname "$0")/scripts/gpu/launch.py" "$@"
"""


def libraries(programs):
    """{name: path} of the shared libraries that these need; one that is missing here is an error."""
    found = {}
    for program in programs:
        out = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
        for line in out.splitlines():
            name, _, path = line.strip().partition(" => ")
            path = path.split(" (")[0].strip()
            if path == "not found":
                raise Failed(f"{program.name} needs {name}, which is not here; scripts/setup brings it")
            if path and not SYSTEM.fullmatch(name):
                found[name] = pathlib.Path(os.path.realpath(path))
    return found


def needed_glibc(files):
    """The newest version of the C library that any of these asks for."""
    out = subprocess.run(["readelf", "-V", "-W", *files], capture_output=True, text=True, check=True).stdout
    return max(re.findall(r"Name: GLIBC_([\d.]+)", out), key=lambda text: [int(part) for part in text.split(".")])


def strip(source, target):
    target.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(["strip", "-o", target, source], check=True)
    target.chmod(0o755)


def sources():
    """Files of the checkout that are carried, as they are."""
    yield from ("scripts/gpu_check", "bench/peers/torch_faces.py", "bench/peers/torch_lenet.py", "bench/peers/torch_steps.py",
               "docs/all-reduce.md", "LICENSE")
    for folder, pattern in (("scripts/gpu", "**/*.py"), ("tests/testdata", "**/*")):
        yield from (str(path.relative_to(ROOT)) for path in sorted((ROOT / folder).glob(pattern)) if path.is_file())


def gather(build, data, folder):
    """Everything as it lies in the archive."""
    programs = {}
    for name, path in PROGRAMS.items():
        programs[name] = build / path
        if not programs[name].exists():
            raise Failed(f"{programs[name]} is not built; ninja -C {build} {name}")
        strip(programs[name], folder / "build" / path)
    needed = libraries(programs.values())
    for name, path in needed.items():
        strip(path, folder / "lib" / ("fallback" if name in FALLBACK else "") / name)
    for path in sources():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / path, folder / path)
    (folder / "fashion-mnist").mkdir()
    for path in sorted(data.glob("*-ubyte.gz")):  # xz makes less of what gzip has packed than of what it has not
        with gzip.open(path) as packed, open(folder / "fashion-mnist" / path.stem, "wb") as plain:
            shutil.copyfileobj(packed, plain)
    (folder / "run").write_text(RUN, encoding="utf-8")
    (folder / "run").chmod(0o755)
    cache = (build / "CMakeCache.txt").read_text(encoding="utf-8")
    architectures = re.search(r"^CMAKE_CUDA_ARCHITECTURES:\w+=(.*)$", cache, re.MULTILINE)
    manifest = {
        "commit": first_line(["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=12"]),
        "architectures": architectures[1] if architectures else "none",
        "glibc": needed_glibc([*programs.values(), *(path for name, path in needed.items() if name not in FALLBACK)]),
        "libraries": sorted(needed),
    }
    (folder / MANIFEST).write_text(json.dumps(manifest, indent=1) + "\n", encoding="utf-8")
    return manifest


def write_archive(folder, out, preset):
    """The same bytes from the same files: sorted, without owners and times."""
    def plain(info):
        info.uid = info.gid = info.mtime = 0
        info.uname = info.gname = ""
        return info
    aside = out.with_name(out.name + ".part")
    # Jumps as addresses: the programs get 3 % smaller.
    filters = [{"id": lzma.FILTER_X86}, {"id": lzma.FILTER_LZMA2, "preset": preset, "dict_size": WINDOW}]
    with lzma.open(aside, "w", filters=filters) as packed, tarfile.open(fileobj=packed, mode="w") as tar:
        for path in sorted(folder.rglob("*")):
            tar.add(path, arcname=str(pathlib.Path("ringlet-gpu") / path.relative_to(folder)), recursive=False, filter=plain)
    aside.replace(out)


def main():
    parser = argparse.ArgumentParser(prog="pack.py", description=__doc__)
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("--data", type=pathlib.Path, required=True, help="the folder with Fashion-MNIST's four files")
    parser.add_argument("--out", type=pathlib.Path, required=True)
    parser.add_argument("--preset", type=int, default=3, help="of xz")
    options = parser.parse_args()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="ringlet-gpu.") as name:
        manifest = gather(options.build, options.data, pathlib.Path(name))
        write_archive(pathlib.Path(name), options.out, options.preset)
    mib = options.out.stat().st_size / (1 << 20)
    print(f"gpu_collect: {options.out}, {mib:.1f} MiB, for compute capability {manifest['architectures']}, "
          f"glibc {manifest['glibc']} or newer, with {len(manifest['libraries'])} libraries", file=sys.stderr)


if __name__ == "__main__":
    try:
        main()
    except Failed as failure:
        sys.exit(f"gpu_collect: {failure}")
    except (EOFError, gzip.BadGzipFile) as error:
        sys.exit(f"gpu_collect: Fashion-MNIST is damaged ({error}); scripts/setup brings it")
    except subprocess.CalledProcessError as error:
        sys.exit(f"gpu_collect: {error.cmd[0]} ended with {error.returncode}: {str(error.stderr).strip()}")
