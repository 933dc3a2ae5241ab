#!/usr/bin/env python3
"""Ringlet's wheel and PyTorch in one environment of Python, neither of which may change what the other does.

    beside_torch.py     where both are installed, in an empty folder (scripts/package_check --torch)

Ringlet runs in exact mode: alone, started by a Python that has PyTorch in it, and while PyTorch trains. The three have to
write the same bytes. PyTorch's losses have to be the same alone, after Ringlet, and beside it. Neither process may
have mapped a library of the other.
"""

import hashlib
import pathlib
import subprocess
import sys
import time

LIBRARIES = ("gomp", "openblas", "blas", "mkl", "omp.so", "iomp", "torch")
LOSSES = """
import pathlib, sys
import torch
torch.manual_seed(1)
model = torch.nn.Sequential(torch.nn.Conv2d(1, 8, 5), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(8 * 24 * 24, 10))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
images, labels = torch.randn(64, 1, 28, 28), torch.randint(0, 10, (64,))
for _ in range(int(sys.argv[1])):
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(images), labels)
    loss.backward()
    optimizer.step()
    print(f"{loss.item():.9f}")
"""


def ringlet(out, *more):
    """The words of a short run."""
    return ["ringlet", "train", "--data", "synthetic", "--synthetic-train", "2000", "--synthetic-test", "500", "--layout", "nchw",
            "--replicas", "2", "--max-steps", "30", "--exact", "--force", "--out", out, *more]


def bytes_of(out):
    return hashlib.sha256(pathlib.Path(out, "model.safetensors").read_bytes()).hexdigest()


def mapped(pid):
    """Names of the libraries for arithmetic that a process has."""
    paths = {line.split()[-1] for line in pathlib.Path(f"/proc/{pid}/maps").read_text().splitlines() if ".so" in line}
    return sorted(path for path in paths if any(part in pathlib.Path(path).name for part in LIBRARIES))


def losses(steps, while_running=None):
    process = subprocess.Popen([sys.executable, "-c", LOSSES, str(steps)], stdout=subprocess.PIPE, text=True)
    try:
        if while_running:
            while_running()
        said = process.communicate(timeout=300)[0]
    finally:
        process.kill()
    if process.returncode:
        sys.exit(f"PyTorch ended with status {process.returncode}")
    return said


def main():
    subprocess.run(ringlet("alone"), check=True)
    first = losses(5)
    import torch
    torch.nn.functional.conv2d(torch.randn(64, 8, 64, 64), torch.randn(8, 8, 3, 3)).sum().item()  # starts OpenMP's threads
    child = subprocess.Popen(ringlet("from_python"))
    ours, theirs = set(mapped("self")), set()
    while child.poll() is None:
        try:
            if pathlib.Path(f"/proc/{child.pid}/exe").resolve().name == "ringlet":  # no longer Python, which starts it
                theirs |= set(mapped(child.pid))
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            pass
        time.sleep(0.05)
    if child.returncode:
        sys.exit(f"ringlet ended with status {child.returncode}")
    beside = losses(5, lambda: subprocess.run(ringlet("beside"), check=True))
    print("PyTorch", torch.__version__, "has", *sorted(pathlib.Path(path).name for path in ours))
    print("Ringlet has", *sorted(pathlib.Path(path).name for path in theirs))
    if not any("ringlet.libs" in path for path in theirs):
        sys.exit("ringlet was not seen with the OpenBLAS of its wheel")
    if any("ringlet" in path for path in ours) or theirs & ours:
        sys.exit("one has a library of the other")
    if len({bytes_of(out) for out in ("alone", "from_python", "beside")}) != 1:
        sys.exit("ringlet wrote other bytes beside PyTorch")
    if not first or first != beside:
        sys.exit(f"PyTorch came to other losses beside ringlet: {first.split()} and {beside.split()}")
    print("neither changes the other")


if __name__ == "__main__":
    main()
