"""The textbook's LeNet as a PyTorch user writes it, and the safetensors format in a few lines.

Shared by make_reference.py and check_loadable.py. Needs PyTorch and NumPy only.
"""

import collections
import json
import struct

import numpy as np
import torch
from torch import nn


def make_lenet() -> nn.Module:
    """conv 1->20 3x3, ReLU, average pool 2; conv 20->50 5x5, ReLU, average pool 2; 800-128-10."""
    return nn.Sequential(
        collections.OrderedDict(
            conv1=nn.Conv2d(1, 20, 3),
            relu1=nn.ReLU(),
            pool1=nn.AvgPool2d(2),
            conv2=nn.Conv2d(20, 50, 5),
            relu2=nn.ReLU(),
            pool2=nn.AvgPool2d(2),
            flatten=nn.Flatten(),
            fc1=nn.Linear(800, 128),
            relu3=nn.ReLU(),
            fc2=nn.Linear(128, 10),
        )
    )


def save_safetensors(path, tensors):
    """Writes {name: tensor} as float32: u64 header size, JSON header padded to 8, raw bytes."""
    header, offset, parts = {}, 0, []
    for name in sorted(tensors):
        array = tensors[name].detach().to(torch.float32).contiguous().numpy().astype("<f4")
        end = offset + array.nbytes
        header[name] = {"dtype": "F32", "shape": list(array.shape), "data_offsets": [offset, end]}
        parts.append(array.tobytes())
        offset = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)))
        file.write(text)
        file.write(b"".join(parts))


def load_safetensors(path):
    """Reads the F32 and I64 tensors of a file as {name: tensor}; anything unexpected raises."""
    types = {"F32": "<f4", "I64": "<i8"}
    with open(path, "rb") as file:
        (size,) = struct.unpack("<Q", file.read(8))
        header = json.loads(file.read(size))
        data = file.read()
    header.pop("__metadata__", None)
    tensors, used = {}, 0
    for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        begin, end = entry["data_offsets"]
        if begin != used:
            raise ValueError(f"{path}: {name} starts at {begin}, not at {used}")
        used = end
        array = np.frombuffer(data[begin:end], dtype=types[entry["dtype"]])
        tensors[name] = torch.from_numpy(array.reshape(entry["shape"]).copy())
    if used != len(data):
        raise ValueError(f"{path}: {len(data) - used} bytes after the last tensor")
    return tensors
