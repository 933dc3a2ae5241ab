#!/usr/bin/env python3
"""Loads a model.safetensors that ringlet wrote into PyTorch, strictly, and compares the logits.

    /usr/bin/python3 tests/oracle/check_loadable.py MODEL INPUTS LOGITS [--tolerance 1e-5]

MODEL is the LeNet of lenet_torch.py. INPUTS holds raw little-endian f32 [N, 1, 28, 28], LOGITS raw
little-endian f32 [N, 10]: what ringlet computed for them. Exit status: 0 equal within the tolerance
(relative L2 over all logits), 1 not, 77 if PyTorch or NumPy is not installed (a test then skips).
"""

import argparse
import pathlib
import sys

try:
    import numpy as np
    import torch
except ImportError as error:
    print(f"check_loadable: skipped, {error.name} is not installed (python3-torch, python3-numpy)")
    sys.exit(77)

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from lenet_torch import load_safetensors, make_lenet  # noqa: E402


def read_f32(path, *shape):
    return torch.from_numpy(np.fromfile(path, dtype="<f4").reshape(-1, *shape))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for name in ("model", "inputs", "logits"):
        parser.add_argument(name, type=pathlib.Path)
    parser.add_argument("--tolerance", type=float, default=1e-5)
    arguments = parser.parse_args()

    model = make_lenet()
    model.load_state_dict(load_safetensors(arguments.model), strict=True)
    model = model.double().eval()
    inputs = read_f32(arguments.inputs, 1, 28, 28).double()
    ours = read_f32(arguments.logits, 10).double()
    with torch.no_grad():
        theirs = model(inputs)
    if theirs.shape != ours.shape or len(ours) == 0:
        print(f"check_loadable: {tuple(ours.shape)} logits for {len(inputs)} inputs")
        return 1
    distance = float((ours - theirs).norm() / theirs.norm())
    agree = distance <= arguments.tolerance
    print(f"check_loadable: {len(ours)} samples, relative distance {distance:.2e}"
          f" {'within' if agree else 'ABOVE'} {arguments.tolerance:.0e}")
    return 0 if agree else 1


if __name__ == "__main__":
    sys.exit(main())
