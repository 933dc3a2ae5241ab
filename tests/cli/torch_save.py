#!/usr/bin/env python3
"""Saves the weights of a safetensors file as training programs do by torch.save().

    /usr/bin/python3 tests/cli/torch_save.py MODEL.safetensors FOLDER

Writes FOLDER/plain.pth, parameters.pth, checkpoint.pt (nested, behind "module.", with an optimiser,
arguments and numbers of NumPy), turned.pth (no tensor row by row), doubles.pth, whole.pth (a
pickled module), old.pth (as before version 1.6) and script.pt (TorchScript). Exit status 77 if
PyTorch or NumPy is not installed.
"""

import argparse
import collections
import pathlib
import sys

try:
    import numpy as np
    import torch
except ImportError as error:
    print(f"torch_save: skipped, {error.name} is not installed (python3-torch, python3-numpy)")
    sys.exit(77)

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "oracle"))
from lenet_torch import load_safetensors, make_lenet  # noqa: E402


def turned(tensor):
    """The same numbers, the last axis outermost in memory."""
    return tensor.permute(*reversed(range(tensor.dim()))).contiguous().permute(
        *reversed(range(tensor.dim())))


def main():
    weights, folder = load_safetensors(sys.argv[1]), pathlib.Path(sys.argv[2])
    model = make_lenet()
    model.load_state_dict(weights, strict=True)
    torch.save(model.state_dict(), folder / "plain.pth")
    torch.save({k: torch.nn.Parameter(v) for k, v in weights.items()}, folder / "parameters.pth")
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for parameter in model.parameters():
        parameter.grad = torch.ones_like(parameter)
    optimizer.step()
    torch.save(
        {
            "epoch": 7,
            "arch": "lenet",
            "args": argparse.Namespace(lr=0.1, data=pathlib.PurePosixPath("/data"), seed=2**63),
            "state_dict": collections.OrderedDict((f"module.{k}", v) for k, v in weights.items()),
            "best_acc1": torch.tensor(0.5),
            "loss": np.float64(0.25),
            "history": np.arange(3.0),
            "optimizer": optimizer.state_dict(),
            "rng": torch.get_rng_state(),
        },
        folder / "checkpoint.pt",
    )
    torch.save({k: turned(v) for k, v in weights.items()}, folder / "turned.pth")
    torch.save({k: v.double() for k, v in weights.items()}, folder / "doubles.pth")
    torch.save(model, folder / "whole.pth")
    torch.save(weights, folder / "old.pth", _use_new_zipfile_serialization=False)
    torch.jit.save(torch.jit.trace(model, torch.zeros(1, 1, 28, 28)), str(folder / "script.pt"))


if __name__ == "__main__":
    main()
