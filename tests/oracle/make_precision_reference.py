#!/usr/bin/env python3
"""Writes tests/testdata/oracle/precision.json: steps in bf16 and f16 in PyTorch, for ours to equal.

Run it again with any PyTorch and NumPy; from the repository's root:

    python3 tests/oracle/make_precision_reference.py

Everything is computed in float64, and rounded to bf16 or f16 at the points where Ringlet rounds
(docs/precision.md): the input, the weights as products read them, what each operation stores, and
the gradient of each of these. lenet is that of the layout lanes, where convolution, ReLU and pooling
are one operation. Biases, norms' parameters and the loss are not rounded. Under f16 the loss is
multiplied by SCALE, and the gradients are divided by it.

Rounding is a staircase: two programs that add in another order differ by 1e-7 before it, and where
that straddles a step by 2^-9 or 2^-12 behind it. How far such a difference goes is recorded as
"float32_deviation", of the same program with all sums in float32: the largest that any processor and
PyTorch came to, for the file's own is kept where it is larger. "effect" is how far float64 without any
rounding is from the reference: what the test could not tell from ours if it were small.

On CUDA, cuDNN rounds a gradient of data before it adds it to what is there. "cuda" is the same with that
one rounding more: of a residual block's input, whose other use has brought a gradient already. Its
"straddled" is the largest of RUNS runs in which each number is off by NOISE before it is rounded. Processors
add the products of narrow numbers almost exactly in float32; tensor cores cut off what they add.

The start, data and summaries of the residual networks are those of make_resnet_reference.py, lenet's
those of make_reference.py.
"""

import json
import pathlib
import sys

import torch
from torch.nn import functional

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from lenet_torch import load_safetensors, make_lenet  # noqa: E402
from make_reference import formula_data  # noqa: E402
from make_resnet_reference import DECAY, RATES, STAGES, ResNet, images, start_of, summary  # noqa: E402

FOLDER = pathlib.Path(__file__).resolve().parent.parent / "testdata" / "oracle"
RUNS, NOISE = 8, 1e-7
STEPS, BATCH, MOMENTUM, LENET_RATE, SCALE = 3, 16, 0.9, 0.05, 1024
TYPES = {"bf16": torch.bfloat16, "f16": torch.float16, "none": None}


def rounded(x, kind):
    return x if kind is None else x.to(torch.float32).to(kind).to(x.dtype)


class Stored(torch.autograd.Function):
    """Rounds a value, and its gradient on the way back."""

    @staticmethod
    def forward(context, x, narrow):
        context.narrow = narrow
        return narrow.rounded(x)

    @staticmethod
    def backward(context, gradient):
        return context.narrow.rounded(gradient), None


class GradientStored(torch.autograd.Function):
    """Rounds the gradient alone: of a use that another one is added to."""

    @staticmethod
    def forward(context, x, narrow):
        context.narrow = narrow
        return x.clone()

    @staticmethod
    def backward(context, gradient):
        return context.narrow.rounded(gradient), None


class Narrow:
    def __init__(self, kind, on_cuda=False, noise=None):
        """noise: a generator of random numbers, by which what is rounded is off."""
        self.kind, self.on_cuda, self.noise = kind, on_cuda, noise

    def rounded(self, x):
        if self.noise is not None:
            x = x * (1 + NOISE * torch.randn(x.shape, generator=self.noise, dtype=x.dtype))
        return rounded(x, self.kind)

    def stored(self, x):
        return Stored.apply(x, self)

    def weight(self, layer):
        """Rounded, and its gradient is not."""
        return layer.weight + (rounded(layer.weight, self.kind) - layer.weight).detach()

    def conv(self, layer, x):
        return functional.conv2d(x, self.weight(layer), layer.bias, layer.stride, layer.padding)

    def linear(self, layer, x):
        return functional.linear(x, self.weight(layer), layer.bias)

    def lenet(self, model, x):
        x = self.stored(x)
        x = self.stored(functional.avg_pool2d(functional.relu(self.conv(model.conv1, x)), 2))
        x = self.stored(functional.avg_pool2d(functional.relu(self.conv(model.conv2, x)), 2))
        x = self.stored(functional.relu(self.linear(model.fc1, x.flatten(1))))
        return self.stored(self.linear(model.fc2, x))

    def block(self, block, x):
        first = GradientStored.apply(x, self) if self.on_cuda else x
        y = self.stored(self.conv(block.conv1, first))
        y = self.stored(functional.relu(block.bn1(y)))
        y = self.stored(self.conv(block.conv2, y))
        if block.downsample is not None:
            x = self.stored(self.conv(block.downsample[0], GradientStored.apply(x, self)))
            x = self.stored(block.downsample[1](x))
        return self.stored(functional.relu(block.bn2(y) + x))

    def resnet(self, model, x):
        x = self.stored(self.conv(model.conv1, self.stored(x)))
        x = self.stored(functional.relu(model.bn1(x)))
        for stage in range(model.stages):
            for block in getattr(model, f"layer{stage + 1}"):
                x = self.block(block, x)
        return self.stored(self.linear(model.fc, self.stored(x.mean((2, 3)))))


def started(name, dtype):
    """The model, its forward pass as a function of Narrow, data, rate and decay."""
    if name == "lenet":
        model = make_lenet()
        model.load_state_dict(load_safetensors(FOLDER / "init.safetensors"))
        return model.to(dtype), Narrow.lenet, formula_data(), LENET_RATE, 0.0
    blocks, width = STAGES[name]
    model = ResNet(blocks, width)
    start_of.inputs = model.fc.in_features
    with torch.no_grad():
        for key, value in model.named_parameters():
            value.copy_(start_of(key, tuple(value.shape)))
    return model.to(dtype), Narrow.resnet, images(), RATES[name], DECAY


def train(name, kind, dtype, on_cuda=False, noise=None):
    model, forward, (pixels, labels), rate, decay = started(name, dtype)
    scale = SCALE if kind == "f16" else 1
    optimizer = torch.optim.SGD(
        model.parameters(), lr=rate, momentum=MOMENTUM, weight_decay=decay, nesterov=decay > 0
    )
    losses, gradient = [], None
    for step in range(STEPS):
        rows = slice(step * BATCH, (step + 1) * BATCH)
        inputs = torch.from_numpy(pixels[rows].copy()).to(dtype).div(255).unsqueeze(1)
        targets = torch.from_numpy(labels[rows].astype("int64"))
        optimizer.zero_grad()
        narrow = Narrow(TYPES[kind], on_cuda, noise)
        loss = functional.cross_entropy(forward(narrow, model, inputs), targets)
        (loss * scale).backward()
        for value in model.parameters():
            value.grad /= scale
        if gradient is None:
            gradient = summary({key: value.grad for key, value in model.named_parameters()})
        optimizer.step()
        losses.append(loss.item())
    kept = {k: v for k, v in model.state_dict().items() if not k.endswith("num_batches_tracked")}
    return {"lr": rate, "losses": losses, "gradient_1": gradient, "final": summary(kept)}


def apart(run, truth):
    """Of losses the most; of tensors, in the root of the mean square, that of sums with signs over norms."""

    def of(part):
        squares = [((run[part][k][1] - v[1]) / max(v[0], 0.05)) ** 2 for k, v in truth[part].items()]
        return (sum(squares) / len(squares)) ** 0.5

    losses = max(abs(a - b) for a, b in zip(run["losses"], truth["losses"]))
    return {"loss": losses, "gradient_1": of("gradient_1"), "final": of("final")}


def largest(of_runs):
    return {part: max(run[part] for run in of_runs) for part in of_runs[0]}


def straddled(name, kind, truth):
    runs = (train(name, kind, torch.float64, True, torch.Generator().manual_seed(seed)) for seed in range(RUNS))
    return largest([apart(run, truth) for run in runs])


def main():
    torch.set_num_threads(1)
    kept = json.loads((FOLDER / "precision.json").read_text())
    document = {"torch": torch.__version__, "steps": STEPS, "batch": BATCH, "scale": SCALE}
    for name in ("lenet", "resnet20", "resnet18-cifar"):
        document[name] = {}
        exact = train(name, "none", torch.float64)
        for kind in ("bf16", "f16"):
            truth = train(name, kind, torch.float64)
            deviation = apart(train(name, kind, torch.float32), truth)
            truth["float32_deviation"] = largest([deviation, kept[name][kind]["float32_deviation"]])
            truth["effect"] = apart(exact, truth)
            if name != "lenet":
                truth["cuda"] = train(name, kind, torch.float64, on_cuda=True)
                del truth["cuda"]["lr"]
                truth["cuda"]["straddled"] = straddled(name, kind, truth["cuda"])
                print("  cuda:", apart(truth["cuda"], truth), "straddled:", truth["cuda"]["straddled"])
            document[name][kind] = truth
            print(name, kind, [round(loss, 4) for loss in truth["losses"]])
            print("  float32:", truth["float32_deviation"], "effect:", truth["effect"])
    (FOLDER / "precision.json").write_text(json.dumps(document) + "\n")


if __name__ == "__main__":
    main()
