"""Reads the GPU's libraries, 1.5 GB, from a cold disk while the first parts run: they would wait for it one by one."""

import glob
import os
import threading

from gpu.paths import OPENED_LATE, late_folders

FOLDERS = ("/usr/lib/x86_64-linux-gnu", "/usr/lib64")
# cuDNN opens these by itself, by what a step needs.
NAMES = (*OPENED_LATE, "libcudnn_*.so.*", "libcublas.so.*")
CHUNK = 8 << 20


def libraries(folders):
    found = (path for folder in folders for name in NAMES for path in sorted(glob.glob(os.path.join(folder, name))))
    return list(dict.fromkeys(os.path.realpath(path) for path in found))


def read(paths):
    for path in paths:
        try:
            with open(path, "rb", buffering=0) as file:
                while file.read(CHUNK):
                    pass
        except OSError:  # it is only sooner
            pass


def start():
    """Returns the thread, which ends with the program, and what it reads."""
    paths = libraries([*late_folders(), *FOLDERS])
    thread = threading.Thread(target=read, args=(paths,), daemon=True)
    thread.start()
    return thread, paths
