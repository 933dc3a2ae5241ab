#!/usr/bin/env python3
"""Writes tests/testdata/oracle/resnet.json: ten steps of residual networks in PyTorch, for ours to equal.

Run it again with Debian's PyTorch (python3-torch 1.13, python3-numpy); from the repository's root:

    /usr/bin/python3 tests/oracle/make_resnet_reference.py

It takes some minutes. The networks are written out below with torchvision's names, so it needs no
torchvision. The training is computed in float64 from float32 weights, on one thread; how far
PyTorch's own float32 run is from it is recorded as "float32_deviation", the scale on which the
tests' tolerances are to be read.

A resnet18 has 44 MB of weights, so they come from a formula, and of each tensor that results (the
gradient of step 1; parameters and buffers after the last step) two numbers are kept: its L2 norm,
and its sum with signs that the formula gives. The same formulas in C++: tests/oracle/resnet_formula.h.

    image(i, y, x)   formula_pixel(i, 3 y + 2, 3 x + 2) / 255, 8 x 8 (make_reference.py)
    u(name, j)       (mix(fnv1a(name) + 2654435769 j) >> 8) / 2^23 - 1, in [-1, 1)
    weights          u * sqrt(6 / fan_out) of a convolution, u / sqrt(fan_in) of the linear layer
    norms            (1 + u / 4) / 4 and (3 + u / 4) / 4, every fourth (-3 + u / 4) / 4
    PReLU's slopes   (1 + u / 4) / 4
    sign(j)          1 - 2 (mix(j + 12345) & 1)

A ReLU near zero may take the other side in float32, and ten steps of training make much of it: with
norms' biases around 0, one float32 run in three leaves float64's losses by 1e-3 and more. With
biases of +-3 times their weights there are a hundred times fewer units near zero, and dead and live ones still.

The recipe: batch 16 unshuffled, mean softmax cross-entropy, SGD with Nesterov's momentum 0.9 and a
decay of 5e-4 on everything.
"""

import json
import math
import pathlib
import sys

import numpy as np
import torch
from torch import nn
from torch.nn import functional

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from make_reference import formula_data, mix  # noqa: E402

OUT = pathlib.Path(__file__).resolve().parent.parent / "testdata" / "oracle" / "resnet.json"
STEPS, BATCH, MOMENTUM, DECAY = 10, 16, 0.9, 5e-4
RATES = {"resnet18-cifar": 0.002, "resnet20": 0.005, "iresnet18": 0.002}
STAGES = {"resnet18-cifar": ([2, 2, 2, 2], 64), "resnet20": ([3, 3, 3], 16)}


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.downsample = None
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x):
        y = self.bn2(self.conv2(functional.relu(self.bn1(self.conv1(x)))))
        return functional.relu(y + (x if self.downsample is None else self.downsample(x)))


class ResNet(nn.Module):
    def __init__(self, blocks, width):
        super().__init__()
        self.conv1 = nn.Conv2d(1, width, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        inputs, self.stages = width, len(blocks)
        for stage, count in enumerate(blocks):
            outputs = width << stage
            layers = []
            for block in range(count):
                layers.append(Block(inputs, outputs, 2 if stage > 0 and block == 0 else 1))
                inputs = outputs
            setattr(self, f"layer{stage + 1}", nn.Sequential(*layers))
        self.fc = nn.Linear(inputs, 10)

    def forward(self, x):
        x = functional.relu(self.bn1(self.conv1(x)))
        for stage in range(self.stages):
            x = getattr(self, f"layer{stage + 1}")(x)
        return self.fc(x.mean((2, 3)))


class FaceBlock(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.bn1 = nn.BatchNorm2d(inputs)
        self.conv1 = nn.Conv2d(inputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.prelu = nn.PReLU(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, stride, 1, bias=False)
        self.bn3 = nn.BatchNorm2d(outputs)
        self.downsample = None
        if stride != 1:
            self.downsample = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x):
        y = self.bn3(self.conv2(self.prelu(self.bn2(self.conv1(self.bn1(x))))))
        return y + (x if self.downsample is None else self.downsample(x))


class FaceNet(nn.Module):
    """InsightFace's iresnet18 for images of 8 x 8, of one channel, with ten outputs."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 64, 3, 1, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(64)
        self.prelu = nn.PReLU(64)
        inputs = 64
        for stage in range(4):
            outputs = 64 << stage
            blocks = [FaceBlock(inputs, outputs, 2), FaceBlock(outputs, outputs, 1)]
            setattr(self, f"layer{stage + 1}", nn.Sequential(*blocks))
            inputs = outputs
        self.bn2 = nn.BatchNorm2d(512)
        self.fc = nn.Linear(512, 10)
        self.features = nn.BatchNorm1d(10)
        self.features.weight.requires_grad = False

    def forward(self, x):
        x = self.prelu(self.bn1(self.conv1(x)))
        for stage in range(4):
            x = getattr(self, f"layer{stage + 1}")(x)
        return self.features(self.fc(self.bn2(x).flatten(1)))


def fnv1a(text):
    value = 0x811C9DC5
    for byte in text.encode():
        value = (value ^ byte) * 0x01000193 & 0xFFFFFFFF
    return value


def uniform(name, count):
    """u(name, 0 .. count) in float64; every number is exact."""
    j = np.arange(count, dtype=np.uint32)
    return (mix(np.uint32(fnv1a(name)) + np.uint32(2654435769) * j) >> np.uint32(8)) / 2.0**23 - 1


def start_of(name, shape):
    u = uniform(name, math.prod(shape))
    if len(shape) == 4:
        u = u * math.sqrt(6 / (shape[0] * shape[2] * shape[3]))
    elif name.startswith("fc."):
        u = u / math.sqrt(shape[-1] if len(shape) == 2 else start_of.inputs)
    elif name.endswith("weight"):
        u = (1 + u / 4) / 4
    else:
        u = (np.where(np.arange(u.size) % 4 == 3, -3, 3) + u / 4) / 4
    return torch.from_numpy(u.astype(np.float32).reshape(shape))


def images():
    pixels, labels = formula_data()
    return pixels[:, 2:26:3, 2:26:3].copy(), labels


def summary(tensors):
    """{name: [norm, sum with signs]}"""
    result = {}
    for name, value in tensors.items():
        flat = value.detach().double().reshape(-1)
        signs = 1.0 - 2.0 * (mix(np.arange(flat.numel(), dtype=np.uint32) + np.uint32(12345)) & 1)
        result[name] = [float(flat.norm()), float((flat * torch.from_numpy(signs)).sum())]
    return result


def train(name, dtype):
    model = ResNet(*STAGES[name]) if name in STAGES else FaceNet()
    start_of.inputs = model.fc.in_features
    with torch.no_grad():
        for key, value in model.named_parameters():
            if value.requires_grad:  # features.weight is 1
                value.copy_(start_of(key, tuple(value.shape)))
    model = model.to(dtype)
    optimizer = torch.optim.SGD(
        model.parameters(), lr=RATES[name], momentum=MOMENTUM, weight_decay=DECAY, nesterov=True
    )
    pixels, labels = images()
    losses, gradient = [], None
    for step in range(STEPS):
        rows = slice(step * BATCH, (step + 1) * BATCH)
        inputs = torch.from_numpy(pixels[rows]).to(dtype).div(255).unsqueeze(1)
        targets = torch.from_numpy(labels[rows].astype(np.int64))
        optimizer.zero_grad()
        loss = functional.cross_entropy(model(inputs), targets)
        loss.backward()
        if gradient is None:
            learnt = {key: value for key, value in model.named_parameters() if value.requires_grad}
            gradient = summary({key: value.grad for key, value in learnt.items()})
        optimizer.step()
        losses.append(loss.item())
    kept = {k: v for k, v in model.state_dict().items() if not k.endswith("num_batches_tracked")}
    model.eval()
    with torch.no_grad():
        logits = model(torch.from_numpy(pixels[:BATCH]).to(dtype).div(255).unsqueeze(1))
    return {
        "lr": RATES[name],
        "losses": losses,
        "gradient_1": gradient,
        "final": summary(kept),
        "logits": logits.double().reshape(-1).tolist(),
    }


def deviation(run, truth):
    """Of losses, and of sums with signs over norms. A gradient may be 0 but for rounding: of a bias whose sum the
    next normalisation takes away."""

    def apart(part):
        return max(abs(run[part][k][1] - v[1]) / max(v[0], 0.05) for k, v in truth[part].items())

    losses = max(abs(a - b) for a, b in zip(run["losses"], truth["losses"]))
    return {"loss": losses, "gradient_1": apart("gradient_1"), "final": apart("final")}


def main():
    torch.set_num_threads(1)
    document = {"torch": torch.__version__, "steps": STEPS, "batch": BATCH}
    for name in RATES:
        truth = train(name, torch.float64)
        truth["float32_deviation"] = deviation(train(name, torch.float32), truth)
        document[name] = truth
        print(name, [round(loss, 4) for loss in truth["losses"]], truth["float32_deviation"])
    OUT.write_text(json.dumps(document) + "\n")


if __name__ == "__main__":
    main()
