#!/usr/bin/env python3
"""What travels to a machine with a GPU: the checkout and what is carried along. Fails where it is more than may.

  python3 scripts/gpu/travels.py PATH...    PATH: what is carried besides, files or folders
"""

import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
LIMIT_MIB = 62  # clusters that copy a working tree over often stop at 64


def checkout():
    """The checkout's files that git does not ignore."""
    out = subprocess.run(["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                         capture_output=True, check=True).stdout
    return [ROOT / name for name in dict.fromkeys(out.decode().split("\0")) if name]


def size(paths):
    """Bytes of these files, and of all that lies in these folders; a link counts nothing."""
    files = (file for path in paths for file in (path.rglob("*") if path.is_dir() and not path.is_symlink() else (path,)))
    return sum(file.stat().st_size for file in files if file.is_file() and not file.is_symlink())


def main(carried):
    own, brought = (size(paths) / (1 << 20) for paths in (checkout(), carried))
    print(f"gpu_collect: {own + brought:.1f} MiB travel ({own:.1f} the checkout, {brought:.1f} what is carried along); "
          f"{LIMIT_MIB} may", file=sys.stderr)
    if own + brought > LIMIT_MIB:
        sys.exit(f"gpu_collect: that is more than {LIMIT_MIB} MiB: remove files that git does not know from {ROOT}, or "
                 "give --architectures fewer numbers")


if __name__ == "__main__":
    main([pathlib.Path(word) for word in sys.argv[1:]])
