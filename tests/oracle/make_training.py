#!/usr/bin/env python3
"""Writes tests/testdata/oracle/training.json and schedules.json: what PyTorch computes with the
optimisers, schedules and losses that people train with, for ours to equal.

Run it again with Debian's PyTorch (python3-torch 1.13, python3-numpy); from the repository's root:

    /usr/bin/python3 tests/oracle/make_training.py

Data are make_reference.py's formula, 20 steps of batch 64 in order, pixels / 255. The start is a
formula too, so no file has it: number k of the parameter that is j-th in the order of registration
is bound * (mix(65536 * 64 * j + k + 12345) / 2^31 - 1) in float32, bound = 1 / sqrt(fan in of the
layer).

Training is computed in float64, on one thread. training.json has of each run

    losses, rates      of every step
    norms              of the gradients before clipping, where the run clips
    moved              per parameter the L2 norm of final - start
    projections        per parameter four sums of +-(final - start); sign r of element k is that of
                       bit 7 + r of mix(k + 99)
    float32            how far PyTorch's own float32 run is from this, and the worst of eight whose
                       start is changed by up to 1e-7 of itself: the scale for the tests' tolerances

On a GPU its float32 is farther from that: make_training.py --on-gpu prints how far.

A projection of a difference is as large as the difference itself, but for a factor of about 1. So
four numbers stand for a tensor.

schedules.json has the rates of PyTorch's schedulers, stepped one by one.
"""

import json
import pathlib
import sys

import numpy as np
import torch
from torch.optim import lr_scheduler

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from lenet_torch import make_lenet  # noqa: E402
from make_reference import BATCH, OUT, STEPS, formula_data, mix  # noqa: E402

PERTURBED_RUNS, PERTURBATION = 8, 1e-7


def make_mlp(outputs=10):
    layers = torch.nn.Sequential()
    layers.add_module("flatten", torch.nn.Flatten())
    for i, (wide, narrow) in enumerate(((784, 256), (256, 128), (128, outputs)), start=1):
        layers.add_module(f"fc{i}", torch.nn.Linear(wide, narrow))
        if i < 3:
            layers.add_module(f"relu{i}", torch.nn.ReLU())
    return layers


MODELS = {"lenet": make_lenet, "mlp": make_mlp}


class WithCentres(torch.nn.Module):
    """A model of embeddings, and the centres that a loss with a margin compares them with."""

    def __init__(self, layers, classes, size):
        super().__init__()
        self.names = [name for name, _ in layers.named_children()]
        for name, layer in layers.named_children():
            self.add_module(name, layer)
        self.centres = torch.nn.Linear(size, classes, bias=False)

    def forward(self, x):
        for name in self.names:
            x = self.get_submodule(name)(x)
        return x

    def of_backbone(self):
        loss = ("centres", "rows")
        return [p for name, p in self.named_parameters() if not name.startswith(loss)]


class SampledCentres(WithCentres):
    """The same where a step works on some of the classes alone. Each class's row is a parameter of
    its own, so that PyTorch's optimisers pass over those without a gradient."""

    def __init__(self, layers, classes, size):
        super().__init__(layers, classes, size)
        self.rows = None

    def cut(self):
        rows = self.centres.weight.detach().split(1)
        self.rows = torch.nn.ParameterList(torch.nn.Parameter(row.clone()) for row in rows)
        self.centres = torch.nn.Module()


def mix64(x):
    mask = 2**64 - 1
    x = (x + 0x9E3779B97F4A7C15) & mask
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & mask
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & mask
    return x ^ (x >> 31)


def permuted(size, key, position):
    """Permutation of base/sampling.h."""
    bits = (size - 1).bit_length()
    low_bits = bits // 2
    low_mask, high_mask = 2**low_bits - 1, 2 ** (bits - low_bits) - 1
    value = position
    while True:
        high, low = value >> low_bits, value & low_mask
        for turn in range(0, 8, 2):
            high ^= mix64(((key ^ low) + (turn << 56)) % 2**64) & high_mask
            low ^= mix64(((key ^ high) + ((turn + 1) << 56)) % 2**64) & low_mask
        value = (high << low_bits) | low
        if value < size:
            return value


def sampled_classes(recipe, classes, step, labels):
    """The classes of a step: of each shard its labels, then others as a permutation has them."""
    shards, chosen, begin = recipe["class_shards"], [], 0
    for shard in range(shards):
        size = classes // shards + (1 if shard < classes % shards else 0)
        wanted = int(recipe["sample_rate"] * size * (1 + 1e-12))
        of_shard = sorted({int(y) - begin for y in labels if begin <= y < begin + size})
        key = mix64(recipe["seed"] ^ mix64(step) ^ shard)
        position = 0
        while len(of_shard) < wanted:
            row = permuted(size, key, position)
            if row not in of_shard:
                of_shard.append(row)
            position += 1
        chosen += sorted(begin + row for row in of_shard)
        begin += size
    return chosen


def margin_loss(model, recipe, share, listed=None):
    """The mean over the samples, written for autograd. `share`: of the margin, while it grows;
    `listed`: the classes of the step, where it has not all."""
    scale, limit = recipe["scale"], recipe.get("filter", 0)
    numbers = [float(m) for m in recipe["margin"].split(",")]
    if recipe["loss"] == "combined":
        m1, m2, m3 = numbers
    else:
        m1, m2, m3 = (1, numbers[0], 0) if recipe["loss"] == "arcface" else (1, 0, numbers[0])
    m1, m2, m3 = 1 + (m1 - 1) * share, m2 * share, m3 * share
    guard = recipe.get("margin_guard", "auto")
    straight = recipe.get("margin_gradient", "exact") == "straight"
    if guard == "auto":
        guard = "none" if straight else "hard" if m1 == 1 else "smooth"

    def loss(embedding, labels):
        unit = torch.nn.functional.normalize(embedding, eps=1e-12)
        if listed is None:
            weight = model.centres.weight
        else:
            weight = torch.cat([model.rows[row] for row in listed])
            labels = torch.tensor([listed.index(int(y)) for y in labels])
        centres = torch.nn.functional.normalize(weight, eps=1e-12)
        cosines = (unit @ centres.T).clamp(-1, 1)
        own = cosines.gather(1, labels[:, None])
        psi = torch.cos(m1 * torch.acos(own) + m2) - m3
        end = np.cos((np.pi - m2) / m1)
        if guard == "hard":
            psi = torch.where(own <= end, own - m2 * np.sin(m2) - m3, psi)
        elif guard == "smooth":
            psi = torch.where(own <= end, own - 1 - end - m3, psi)
        if straight:
            psi = own + (psi - own).detach()
        if limit > 0:
            cosines = torch.where(cosines > limit, torch.zeros_like(cosines), cosines)
        logits = scale * cosines.scatter(1, labels[:, None], psi)
        return torch.nn.functional.cross_entropy(logits, labels)

    return loss

# Fields of Recipe (train/recipe/options.h).
SGD = {
    "optimizer": "sgd",
    "lr": 0.04,
    "momentum": 0.9,
    "nesterov": True,
    "weight_decay": 0.05,
    "no_decay": "bias",
    "schedule": "cosine",
    "min_lr": 0.002,
    "warmup_epochs": 0.25,
    "warmup_start": 0.01,
}
ADAMW = {
    "optimizer": "adamw",
    "lr": 0.002,
    "beta1": 0.8,
    "beta2": 0.99,
    "eps": 1e-6,
    "weight_decay": 0.5,
    "clip_norm": 0.7,
    "label_smoothing": 0.1,
    "schedule": "cosine",
    "warmup_epochs": 0.25,
}
CYCLE = {
    "optimizer": "adamw",
    "lr": 0.004,
    "eps": 1e-6,
    "weight_decay": 0.1,
    "no_decay": "norm,bias",
    "schedule": "one-cycle",
    "cycle_momentum": True,
}
WEIGHTED = {
    "optimizer": "sgd",
    "lr": 0.04,
    "momentum": 0.9,
    "nesterov": False,
    "weight_decay": 0.0,
    "label_smoothing": 0.1,
    "class_weights": "0.5,1,3,0,2,0.25,1,4,1,0.125",
    "schedule": "cosine",
}
ARCFACE = {
    "optimizer": "sgd",
    "lr": 0.03,
    "momentum": 0.9,
    "nesterov": True,
    "weight_decay": 0.02,
    "schedule": "cosine",
    "clip_norm": 0.7,
    "loss": "arcface",
    "margin": "0.5",
    "scale": 16.0,
    "filter": 0.4,
    "embedding_size": 16,
}
COSFACE = {
    "optimizer": "adamw",
    "lr": 0.002,
    "eps": 1e-6,
    "weight_decay": 0.1,
    "schedule": "constant",
    "loss": "cosface",
    "margin": "0.35",
    "scale": 20.0,
    "embedding_size": 10,
}
COMBINED = {
    "optimizer": "sgd",
    "lr": 0.05,
    "momentum": 0.9,
    "nesterov": False,
    "weight_decay": 0.0,
    "schedule": "cosine",
    "loss": "combined",
    "margin": "1.3,0.4,0.1",
    "scale": 16.0,
    "margin_warmup": 0.5,
    "embedding_size": 24,
}
STRAIGHT = {
    "optimizer": "sgd",
    "lr": 0.05,
    "momentum": 0.9,
    "nesterov": False,
    "weight_decay": 0.0005,
    "schedule": "polynomial",
    "power": 2.0,
    "loss": "arcface",
    "margin": "0.5",
    "scale": 16.0,
    "margin_gradient": "straight",
    "embedding_size": 16,
}
SAMPLED_SGD = {
    "optimizer": "sgd",
    "lr": 0.03,
    "momentum": 0.9,
    "nesterov": True,
    "weight_decay": 0.02,
    "schedule": "cosine",
    "loss": "arcface",
    "margin": "0.5",
    "scale": 16.0,
    "embedding_size": 16,
    "sample_rate": 0.3,
    "class_shards": 8,
    "seed": 5,
}
SAMPLED_ADAMW = {
    "optimizer": "adamw",
    "lr": 0.002,
    "eps": 1e-6,
    "weight_decay": 0.1,
    "schedule": "constant",
    "clip_norm": 0.7,
    "loss": "cosface",
    "margin": "0.35",
    "scale": 20.0,
    "embedding_size": 16,
    "sample_rate": 0.2,
    "class_shards": 9,
    "seed": 2**40 + 3,
}
SAMPLED_CLASSES = 75  # the labels are the first ten
RUNS = [
    ("lenet", SGD),
    ("mlp", SGD),
    ("lenet", ADAMW),
    ("mlp", ADAMW),
    ("mlp", CYCLE),
    ("mlp", WEIGHTED),
    ("mlp", ARCFACE),
    ("lenet", COSFACE),
    ("mlp", COMBINED),
    ("mlp", STRAIGHT),
    ("mlp", SAMPLED_SGD),
    ("mlp", SAMPLED_ADAMW),
]


def formula_start(model):
    with torch.no_grad():
        for j, parameter in enumerate(model.parameters()):
            if parameter.dim() > 1:
                fan_in = parameter[0].numel()
            k = np.arange(parameter.numel(), dtype=np.uint32)
            hashes = mix(k + np.uint32(65536 * 64 * j + 12345)).astype(np.float64)
            values = (hashes / 2**31 - 1) / np.sqrt(fan_in)
            parameter.copy_(torch.from_numpy(values.astype(np.float32)).view_as(parameter))


def perturb(model, seed):
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            noise = 2 * torch.rand(parameter.shape, generator=generator) - 1
            parameter.mul_(1 + PERTURBATION * noise)


def make_optimizer(model, recipe):
    biases = [p for p in model.parameters() if p.dim() < 2]
    weights = [p for p in model.parameters() if p.dim() >= 2]
    kept = 0.0 if "bias" in recipe.get("no_decay", "none") else recipe["weight_decay"]
    groups = [{"params": weights}, {"params": biases, "weight_decay": kept}]
    if recipe["optimizer"] == "sgd":
        return torch.optim.SGD(
            groups,
            lr=recipe["lr"],
            momentum=recipe["momentum"],
            nesterov=recipe["nesterov"],
            weight_decay=recipe["weight_decay"],
        )
    return torch.optim.AdamW(
        groups,
        lr=recipe["lr"],
        betas=(recipe.get("beta1", 0.9), recipe.get("beta2", 0.999)),
        eps=recipe["eps"],
        weight_decay=recipe["weight_decay"],
    )


def make_scheduler(optimizer, recipe, steps, steps_per_epoch):
    """As recipe says, stepped after every step."""
    warm_up = round(recipe.get("warmup_epochs", 0) * steps_per_epoch)
    rest, kind = steps - warm_up, recipe["schedule"]
    if kind == "one-cycle":
        return lr_scheduler.OneCycleLR(
            optimizer,
            max_lr=recipe["lr"],
            total_steps=steps,
            cycle_momentum=recipe.get("cycle_momentum", False),
        )
    if kind == "step":
        period = recipe.get("step_epochs", 30) * steps_per_epoch
        main = lr_scheduler.StepLR(optimizer, period, recipe.get("gamma", 0.1))
    elif kind == "cosine":
        main = lr_scheduler.CosineAnnealingLR(optimizer, rest, recipe.get("min_lr", 0))
    elif kind == "polynomial":
        main = lr_scheduler.PolynomialLR(optimizer, rest, recipe.get("power", 1))
    else:
        main = lr_scheduler.ConstantLR(optimizer, factor=1.0)
    if warm_up == 0:
        return main
    rising = lr_scheduler.LinearLR(optimizer, recipe.get("warmup_start", 0.01), 1, warm_up)
    return lr_scheduler.SequentialLR(optimizer, [rising, main], [warm_up])


def class_weights(recipe, dtype):
    if "class_weights" not in recipe:
        return None
    return torch.tensor([float(w) for w in recipe["class_weights"].split(",")], dtype=dtype)


def numbers_of(model, names):
    """Of the parameters of these names; sampled rows as the matrix that they were cut from."""
    found = dict(model.named_parameters())
    whole = [found[n] if n in found else torch.cat(list(model.rows)) for n in names]
    return [p.detach().clone() for p in whole]


def train(name, recipe, dtype, seed=None):
    images, labels = formula_data()
    has_margin = "loss" in recipe
    model = MODELS[name](*([recipe["embedding_size"]] if has_margin and name == "mlp" else []))
    samples = "sample_rate" in recipe
    if samples:
        model = SampledCentres(model, SAMPLED_CLASSES, recipe["embedding_size"])
    elif has_margin:
        model = WithCentres(model, 10, recipe["embedding_size"])
    formula_start(model)
    if seed is not None:
        perturb(model, seed)
    model = model.to(dtype)
    names = [n for n, _ in model.named_parameters()]
    if samples:
        model.cut()
    start = numbers_of(model, names)
    optimizer = make_optimizer(model, recipe)
    scheduler = make_scheduler(optimizer, recipe, STEPS, STEPS)
    criterion = torch.nn.CrossEntropyLoss(
        weight=class_weights(recipe, dtype), label_smoothing=recipe.get("label_smoothing", 0)
    )
    run = {"losses": [], "rates": [], "norms": []}
    for step in range(STEPS):
        rows = slice(step * BATCH, (step + 1) * BATCH)
        inputs = torch.from_numpy(images[rows].copy()).to(dtype).div(255).unsqueeze(1)
        optimizer.zero_grad(set_to_none=True)  # so that rows without one stay
        if has_margin:
            warm_up = recipe.get("margin_warmup", 0)
            share = min(1, step / STEPS / warm_up) if warm_up > 0 else 1
            listed = None
            if samples:
                listed = sampled_classes(recipe, SAMPLED_CLASSES, step, labels[rows])
            criterion = margin_loss(model, recipe, share, listed)
        loss = criterion(model(inputs), torch.from_numpy(labels[rows].astype(np.int64)))
        loss.backward()
        if "clip_norm" in recipe:
            clipped = model.of_backbone() if has_margin else model.parameters()
            norm = torch.nn.utils.clip_grad_norm_(clipped, recipe["clip_norm"])
            run["norms"].append(norm.item())
        run["losses"].append(loss.item())
        run["rates"].append(float(optimizer.param_groups[0]["lr"]))
        optimizer.step()
        if step + 1 < STEPS:
            scheduler.step()
    end = numbers_of(model, names)
    run["change"] = {n: (p - s).double() for n, p, s in zip(names, end, start)}
    return run


def deviation(run, truth):
    return {
        "loss": max(abs(a - b) for a, b in zip(run["losses"], truth["losses"])),
        "moved": max(
            float((run["change"][n] - c).norm() / c.norm()) for n, c in truth["change"].items()
        ),
    }


def projections(change):
    flat = change.flatten().numpy()
    hashes = mix(np.arange(flat.size, dtype=np.uint32) + np.uint32(99))
    signs = [((hashes >> np.uint32(7 + r)) & np.uint32(1)).astype(np.float64) for r in range(4)]
    return [float(((2 * s - 1) * flat).sum()) for s in signs]


def reference(name, recipe):
    truth = train(name, recipe, torch.float64)
    plain = deviation(train(name, recipe, torch.float32), truth)
    nudged = [
        deviation(train(name, recipe, torch.float32, seed), truth) for seed in range(PERTURBED_RUNS)
    ]
    worst = {key: max(run[key] for run in nudged) for key in plain}
    print(name, recipe["optimizer"], recipe["schedule"], "float32", plain, "perturbed", worst)
    print("  loss", truth["losses"][0], "->", truth["losses"][-1], "norms", truth["norms"])
    return {
        "model": name,
        "classes": SAMPLED_CLASSES if "sample_rate" in recipe else 10,
        "recipe": recipe,
        "losses": truth["losses"],
        "rates": truth["rates"],
        "norms": truth["norms"],
        "moved": {n: float(c.norm()) for n, c in truth["change"].items()},
        "projections": {n: projections(c) for n, c in truth["change"].items()},
        "float32": {"plain": plain, "perturbed": worst},
    }


SCHEDULES = [  # recipe, epochs, steps of an epoch
    ({"lr": 0.1, "schedule": "step", "step_epochs": 2, "gamma": 0.3}, 7, 5),
    ({"lr": 0.1, "schedule": "step", "step_epochs": 2, "warmup_epochs": 1}, 8, 4),
    ({"lr": 0.2, "schedule": "cosine"}, 4, 10),
    ({"lr": 0.2, "schedule": "cosine", "min_lr": 0.01, "warmup_epochs": 1.5}, 5, 8),
    ({"lr": 0.2, "schedule": "polynomial"}, 4, 9),
    ({"lr": 0.3, "schedule": "polynomial", "power": 2, "warmup_epochs": 0.5}, 4, 10),
    ({"lr": 0.1, "schedule": "constant", "warmup_epochs": 2, "warmup_start": 0.1}, 4, 6),
    ({"lr": 0.1, "schedule": "one-cycle"}, 4, 10),
]


def table(recipe, epochs, steps_per_epoch):
    optimizer = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=recipe["lr"], momentum=0.9)
    steps = epochs * steps_per_epoch
    scheduler = make_scheduler(optimizer, recipe, steps, steps_per_epoch)
    rates = []
    for step in range(steps):
        rates.append(float(optimizer.param_groups[0]["lr"]))
        optimizer.step()
        if step + 1 < steps:
            scheduler.step()
    return {"recipe": recipe, "epochs": epochs, "steps_per_epoch": steps_per_epoch, "rates": rates}


def compare_on_gpu():
    """Prints how far PyTorch's float32 is from its float64 on a GPU, and writes nothing."""
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.set_default_device("cuda")
    from_numpy, torch.from_numpy = torch.from_numpy, lambda array: from_numpy(array).cuda()
    for name, recipe in RUNS:
        if "sample_rate" in recipe:  # which counts on the host
            continue
        truth = train(name, recipe, torch.float64)
        for deterministic in (False, True):
            torch.backends.cudnn.deterministic = deterministic
            run = train(name, recipe, torch.float32)
            pairs = zip(run["norms"], truth["norms"])
            norm = max((abs(a - b) / b for a, b in pairs), default=0)
            print(name, recipe["optimizer"], recipe.get("loss", ""),
                  "deterministic" if deterministic else "", deviation(run, truth), "norm", norm)


def main():
    if sys.argv[1:] == ["--on-gpu"]:
        return compare_on_gpu()
    torch.set_num_threads(1)
    tables = [table(*schedule) for schedule in SCHEDULES]
    (OUT / "schedules.json").write_text(json.dumps(tables) + "\n")
    runs = [reference(name, recipe) for name, recipe in RUNS]
    document = {"torch": torch.__version__, "runs": runs}
    (OUT / "training.json").write_text(json.dumps(document) + "\n")


if __name__ == "__main__":
    main()
