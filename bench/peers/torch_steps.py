#!/usr/bin/env python3
"""Times PyTorch on the very work of `ringlet bench train --model resnet18-cifar` and the like, on processors.

Prints a line of JSON a row; what fails is a row with "error", and the others go on. A step is forward, loss, backward
and SGD with Nesterov's momentum and weight decay, lenet-d2l's without either. The batches are random pixels in memory, so that nothing but the
step is timed. Steps of all rows go round by turns, so that a busy machine slows all of them alike.

  contiguous, channels_last   the memory format of images and weights, eager
  compiled-...                torch.compile of the network and its loss

  python3 bench/peers/torch_steps.py --model resnet18-cifar --batch 64 --threads 2
"""

import argparse
import json
import statistics
import time

import torch
from torch import nn
from torch.nn import functional

import torch_faces
import torch_lenet

MODELS = ("lenet-d2l", "resnet18-cifar", "resnet18", "resnet20", "iresnet18")
SHAPES = {"lenet-d2l": (1, 28, 28), "resnet18": (3, 224, 224), "iresnet18": (3, 112, 112)}
IDENTITIES = 1000  # of iresnet18, whose embedding of 512 numbers ArcFace is given


class Block(nn.Module):
    """Two 3 x 3 convolutions; a shortcut of 1 x 1 where the shape changes, or He's option B."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.downsample = None
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = functional.relu(self.bn1(self.conv1(x)))
        shortcut = x if self.downsample is None else self.downsample(x)
        return functional.relu(self.bn2(self.conv2(y)) + shortcut)


def blocks(inputs, widths, each):
    layers = []
    for stage, width in enumerate(widths):
        for block in range(each):
            layers.append(Block(inputs, width, 2 if stage > 0 and block == 0 else 1))
            inputs = width
    return layers


def resnet(name, classes):
    if name == "resnet20":
        stem = [nn.Conv2d(3, 16, 3, 1, 1, bias=False), nn.BatchNorm2d(16), nn.ReLU()]
        body, features = blocks(16, (16, 32, 64), 3), 64
    else:
        of_cifar = name == "resnet18-cifar"
        stem = [nn.Conv2d(3, 64, 3, 1, 1, bias=False) if of_cifar else nn.Conv2d(3, 64, 7, 2, 3, bias=False),
                nn.BatchNorm2d(64), nn.ReLU()]
        if not of_cifar:
            stem.append(nn.MaxPool2d(3, 2, 1))
        body, features = blocks(64, (64, 128, 256, 512), 2), 512
    return nn.Sequential(*stem, *body, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(features, classes))


class Row:
    def __init__(self, options, name, precision):
        self.name, self.precision, self.seconds, self.error = name, precision, [], None
        layout = torch.channels_last if "channels_last" in name else torch.contiguous_format
        lenet = options.model == "lenet-d2l"
        faces = options.model == "iresnet18"
        shape = SHAPES.get(options.model, (3, 32, 32))
        self.images = torch.rand(options.batch, *shape).to(memory_format=layout)
        self.labels = torch.randint(0, IDENTITIES if faces else 10, (options.batch,))
        model = (torch_lenet.lenet("cpu") if lenet else torch_faces.iresnet18(shape[1], 512) if faces
                 else resnet(options.model, 10)).to(memory_format=layout)
        centres = torch_faces.Centres(IDENTITIES, 512, 64) if faces else None
        learnt = [p for p in (*model.parameters(), *(centres.parameters() if faces else ())) if p.requires_grad]
        recipe = {"lr": 0.2} if lenet else {"lr": 0.1, "momentum": 0.9, "weight_decay": 5e-4, "nesterov": True}
        self.optimizer = torch.optim.SGD(learnt, **recipe)

        def loss(images, labels):
            with torch.autocast("cpu", torch.bfloat16, enabled=precision == "bf16"):
                given = model(images)
                return centres(given.float(), labels, 0.5) if faces else functional.cross_entropy(given, labels)

        self.loss = torch.compile(loss) if name.startswith("compiled") else loss

    def step(self):
        begin = time.perf_counter()
        self.optimizer.zero_grad(set_to_none=True)
        self.loss(self.images, self.labels).backward()
        self.optimizer.step()
        return time.perf_counter() - begin

    def guarded(self, call):
        if self.error is None:
            try:
                call()
            except Exception as error:  # a row that cannot run must not take the others with it
                self.error = str(error).strip().splitlines()[0][:200]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", choices=MODELS, default="resnet18-cifar")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--threads", type=int, default=torch.get_num_threads())
    parser.add_argument("--steps", type=int, default=5, help="timed steps a row, after two to warm up")
    parser.add_argument("--precisions", nargs="+", default=["f32"], choices=("f32", "bf16"))
    parser.add_argument("--rows", nargs="+", default=["contiguous", "channels_last", "compiled-contiguous",
                                                      "compiled-channels_last"])
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    rows = [Row(options, name, precision) for precision in options.precisions for name in options.rows]
    for row in rows:
        row.guarded(lambda row=row: (row.step(), row.step()))
    for _ in range(options.steps):
        for row in rows:
            row.guarded(lambda row=row: row.seconds.append(row.step()))
    for row in rows:
        result = {"peer": "pytorch", "version": torch.__version__, "model": options.model, "batch": options.batch,
                  "threads": options.threads, "row": row.name, "precision": row.precision}
        if row.error is None:
            result["median_ms"] = round(statistics.median(row.seconds) * 1e3, 2)
            result["samples_per_second"] = round(options.batch / statistics.median(row.seconds), 2)
        else:
            result["error"] = row.error
        print(json.dumps(result), flush=True)


if __name__ == "__main__":
    main()
