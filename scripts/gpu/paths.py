"""Where the programs, their libraries and the data lie: in a checkout, or in what scripts/gpu_collect packed.

What was packed says so in manifest.json. Its libraries are found through LD_LIBRARY_PATH, which is set for
our programs alone: Python and PyTorch keep those that they came with.
"""

import glob
import hashlib
import json
import os
import pathlib
import shutil
import subprocess
import tarfile

from gpu.process import Failed

ARCHIVE = pathlib.Path(".carry") / "ringlet-gpu.tar.xz"
MANIFEST = "manifest.json"
PROGRAMS = {"ringlet": "bin/ringlet", "kernel_floors": "bench/kernels/kernel_floors",
            **{f"{room}_tests": f"tests/{room}/{room}_tests" for room in ("kernels", "nn", "comm", "train")}}
# Opened at run time, and too large to carry: a machine with a GPU has them, if only as Python's wheels.
# cuDNN opens the last by itself.
OPENED_LATE = ("libcublasLt.so.*", "libcudnn.so.*", "libnccl.so.*", "libnvrtc.so.*")


class Paths:
    """Root of the checkout or of the packed files, folder of the build, manifest or None."""

    def __init__(self, root, build, manifest=None):
        self.root, self.build, self.manifest = root, build, manifest
        self._environment = self._rehearsal_device = None

    def program(self, name):
        path = self.build / PROGRAMS[name]
        if not path.exists():
            raise Failed(f"{path} is not there; build it, or leave out --no-build")
        return path

    def environment(self):
        """For Ringlet's own programs."""
        if self._environment is None:
            env = self._environment = dict(os.environ)
            env["RINGLET_CHECKOUT"] = str(self.root)  # what tests read
            for data in (self.root / "fashion-mnist", self.root / ".carry" / "fashion-mnist"):
                if data.is_dir():
                    env.setdefault("RINGLET_DATA", str(data))
            if self.manifest:
                self._add_libraries(env)
            elif (self.root / ".deps" / "environment").exists():
                env.update(unpacked_environment(self.root, env))
        return self._environment

    @staticmethod
    def plain_environment():
        """For what is not Ringlet's: PyTorch keeps the libraries that it came with."""
        return dict(os.environ)

    def forget_environment(self):
        """After a build, which may have brought packages."""
        self._environment = None

    def rehearsal_device(self):
        """A GPU, or the stand-in for one (tests/cuda_stand_in), where this build sees it; else the CPU."""
        if self._rehearsal_device is None:
            listed = subprocess.run([self.program("ringlet"), "devices", "--json"], env=self.environment(),
                                    capture_output=True, text=True, timeout=60, check=False).stdout
            try:
                found = json.loads(listed)["cuda"]["devices"]
            except (ValueError, KeyError):
                found = []
            self._rehearsal_device = "cuda:0" if found else "cpu:0"
        return self._rehearsal_device

    def _add_libraries(self, env):
        own = [str(self.root / "lib"), *late_folders()]
        before = [folder for folder in env.get("LD_LIBRARY_PATH", "").split(":") if folder]
        said = ""
        # The C++ library of this machine is taken where it is new enough: cuDNN may want a newer one than ours.
        for fallback in ([], [str(self.root / "lib" / "fallback")]):
            env["LD_LIBRARY_PATH"] = ":".join([*fallback, *own, *before])
            tried = subprocess.run([self.build / PROGRAMS["ringlet"], "--version"], env=env, capture_output=True,
                                   text=True, timeout=60, check=False)
            if tried.returncode == 0:
                return
            said = tried.stderr.strip()
        raise Failed(f"what was packed does not start here: {said.splitlines()[0] if said else tried.returncode}; it needs "
                     f"glibc {self.manifest['glibc']}, this machine has {os.confstr('CS_GNU_LIBC_VERSION')}; "
                     "build from source instead (scripts/gpu_collect --source)")


def late_folders():
    """Folders with the GPU's libraries that the system's own search would not find."""
    python = "import os, sys; print('\\n'.join(os.path.join(p, 'nvidia') for p in sys.path if p))"
    wheels = []
    if shutil.which("python3"):
        wheels = subprocess.run(["python3", "-c", python], capture_output=True, text=True, timeout=60,
                                check=False).stdout.split("\n")
    roots = [os.environ.get(name) for name in ("CUDNN_ROOT", "NCCL_ROOT", "CUDA_HOME", "CUDA_PATH")]
    candidates = [os.path.join(root, lib) for root in [*roots, "/usr/local/cuda", "/opt/cuda"] if root
                  for lib in ("lib64", "lib")]
    candidates += [folder for wheel in wheels if wheel for folder in sorted(glob.glob(os.path.join(wheel, "*", "lib")))]
    found = [folder for folder in candidates if any(glob.glob(os.path.join(folder, name)) for name in OPENED_LATE)]
    return list(dict.fromkeys(os.path.realpath(folder) for folder in found))


def unpacked_environment(root, env):
    """That of a checkout whose packages lie in .deps (scripts/setup)."""
    script = f"source '{root}/scripts/lib/common.sh'; use_unpacked_packages; env -0"
    out = subprocess.run(["bash", "-c", script], env=env, check=True, capture_output=True, timeout=60).stdout
    return dict(entry.split("=", 1) for entry in out.decode().split("\0") if "=" in entry)


def unpack(archive, folder):
    """Unpacks an archive into folder/SUM, unless that was done; returns where its files lie."""
    target = folder / hashlib.sha256(archive.read_bytes()).hexdigest()[:12]
    if not target.is_dir():
        aside = target.with_suffix(f".{os.getpid()}")
        with tarfile.open(archive) as tar:
            tar.extractall(aside)
        aside.rename(target)
    return target / "ringlet-gpu"


def find(root, build, no_build):
    """The packed files where this script lies among them or an archive was brought along; else the checkout."""
    if build:
        return Paths(root, pathlib.Path(build).resolve())
    if not (root / MANIFEST).exists() and no_build and (root / ARCHIVE).exists():
        root = unpack(root / ARCHIVE, root / "build" / "carried")
    if (root / MANIFEST).exists():
        manifest = json.loads((root / MANIFEST).read_text(encoding="utf-8"))
        return Paths(root, root / "build", manifest)
    return Paths(root, root / "build" / "gpu")
