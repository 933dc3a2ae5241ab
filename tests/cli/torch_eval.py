#!/usr/bin/env python3
"""Loads a lenet that ringlet wrote into PyTorch, strictly, and evaluates it on IDX files.

    /usr/bin/python3 tests/cli/torch_eval.py MODEL.safetensors FOLDER

FOLDER holds t10k-images-idx3-ubyte and t10k-labels-idx1-ubyte; pixels are divided by 255. Prints
"right N loss X". Exit status 77 if PyTorch or NumPy is not installed.
"""

import pathlib
import sys

try:
    import numpy as np
    import torch
except ImportError as error:
    print(f"torch_eval: skipped, {error.name} is not installed (python3-torch, python3-numpy)")
    sys.exit(77)

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "oracle"))
from lenet_torch import load_safetensors, make_lenet  # noqa: E402


def main():
    model, folder = make_lenet(), pathlib.Path(sys.argv[2])
    model.load_state_dict(load_safetensors(sys.argv[1]), strict=True)
    images = np.fromfile(folder / "t10k-images-idx3-ubyte", dtype=np.uint8, offset=16)
    labels = np.fromfile(folder / "t10k-labels-idx1-ubyte", dtype=np.uint8, offset=8)
    inputs = torch.from_numpy(images.reshape(-1, 1, 28, 28).astype("f4") / 255)
    targets = torch.from_numpy(labels.astype("i8"))
    with torch.no_grad():
        logits = model.eval()(inputs)
    loss = torch.nn.functional.cross_entropy(logits, targets)
    print(f"right {int((logits.argmax(1) == targets).sum())} loss {float(loss):.6f}")


if __name__ == "__main__":
    main()
