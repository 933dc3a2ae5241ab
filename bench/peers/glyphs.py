#!/usr/bin/env python3
"""Ringlet beside PyTorch on faces' kind of work without faces (docs/faces.md): both learn embeddings of the same characters
(scripts/glyphs) by the same recipe, and are measured on pairs of characters that neither has seen. Prints a table.

The same: pictures, model (lenet), start's distributions, loss, batches' size, schedule, clipping, warm-up of the margin, what is
measured. Other: the draws. PyTorch's accuracy is measured here, Ringlet's by `ringlet verify`.

  scripts/glyphs runs/glyphs
  PYTHON bench/peers/glyphs.py --glyphs runs/glyphs --json FILE

PYTHON is one that has PyTorch, NumPy and Pillow. Needs a release build.
"""

import argparse
import datetime
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile

import numpy
import torch
from PIL import Image
from torch.nn import functional

import torch_faces
from torch_faces import symmetric

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
LOSSES = ("normface", "arcface")
FIGURES = ("accuracy", "tar_at_1e-2", "tar_at_1e-3")


def picture(path):
    """Bytes [3, side, side]."""
    return numpy.asarray(Image.open(path).convert("RGB")).transpose(2, 0, 1)


def load_identities(folder):
    images, labels = [], []
    for label, identity in enumerate(sorted(path for path in pathlib.Path(folder).iterdir() if path.is_dir())):
        for path in sorted(identity.iterdir()):
            images.append(picture(path))
            labels.append(label)
    return torch.from_numpy(numpy.stack(images)), torch.tensor(labels)


def load_pairs(file):
    """Pictures 2k and 2k + 1 are pair k; and whether both are of the same identity."""
    rows = [line.split("\t") for line in pathlib.Path(file).read_text().splitlines()]
    images = [picture(file.parent / path) for row in rows for path in row[:2]]
    return torch.from_numpy(numpy.stack(images)), numpy.array([row[2] == "1" for row in rows])


def accuracy_of_folds(distances, same, folds=10):
    """Mean and standard deviation: each fold by the first of the thresholds 0, 0.01 ... 3.99 at which the others are right
    most often."""
    thresholds = numpy.arange(400) * 0.01
    right = (distances[:, None] < thresholds) == same[:, None]
    found = []
    for fold in numpy.array_split(numpy.arange(len(same)), folds):
        others = numpy.delete(right, fold, axis=0).sum(axis=0)
        found.append(right[fold, others.argmax()].mean())
    return float(numpy.mean(found)), float(numpy.std(found))


def true_accept_rate(distances, same, false_accept_rate):
    others = numpy.sort(distances[~same])
    return float((distances[same] < others[int(false_accept_rate * len(others))]).mean())


def measure_pairs(net, images, same):
    net.eval()
    with torch.no_grad():
        embeddings = torch.cat([functional.normalize(net(part) + net(part.flip(3)))
                                for part in map(symmetric, images.split(250))]).double().numpy()
    distances = ((embeddings[::2] - embeddings[1::2]) ** 2).sum(axis=1)
    mean, std = accuracy_of_folds(distances, same)
    return {"accuracy": mean, "std": std, "tar_at_1e-2": true_accept_rate(distances, same, 1e-2),
            "tar_at_1e-3": true_accept_rate(distances, same, 1e-3)}


def own_margin(options, loss):
    return options.margin if loss == "arcface" else 0.0


def ringlet(options, loss, seed):
    def call(*words):
        done = subprocess.run([str(word) for word in (options.ringlet, *words)], capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"glyphs: {done.args} failed:\n{done.stderr}{done.stdout}")
        return done.stdout

    with tempfile.TemporaryDirectory() as scratch:
        out = pathlib.Path(scratch) / "run"
        margin = ["--margin", options.margin] if loss == "arcface" else []
        call("train", "--model", options.model, "--data", options.glyphs, "--image-size", 32, "--normalize", "symmetric",
             "--loss", loss, *margin, "--margin-warmup", options.warmup, "--scale", options.scale, "--embedding-size",
             options.size, "--batch-size", options.batch, "--epochs", options.epochs, "--lr", options.lr, "--momentum", 0.9,
             "--nesterov", "--weight-decay", 5e-4, "--schedule", "one-cycle", "--clip-norm", options.clip, "--threads",
             options.threads, "--seed", seed, "--out", out)
        found = json.loads(call("verify", "--checkpoint", out, options.glyphs / "pairs.txt", "--json"))["sets"][0]
    rates = found["tar_at_far"]
    return {"accuracy": found["accuracy_flip"]["mean"], "std": found["accuracy_flip"]["std"],
            "tar_at_1e-2": rates["1e-2"], "tar_at_1e-3": rates["1e-3"]}


def pytorch(options, loss, seed, training, pairs):
    recipe = argparse.Namespace(**{**vars(options), "margin": own_margin(options, loss)})
    net, last = torch_faces.train(recipe, seed, *training)
    return {**measure_pairs(net, *pairs), "last_loss": round(last, 4)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--glyphs", type=pathlib.Path, required=True, help="what scripts/glyphs wrote")
    parser.add_argument("--ringlet", default=str(ROOT / "build/release/bin/ringlet"))
    parser.add_argument("--model", choices=("lenet",), default="lenet")
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--epochs", type=int, default=8)
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--size", type=int, default=64, help="numbers of an embedding")
    parser.add_argument("--scale", type=float, default=32)
    parser.add_argument("--margin", type=float, default=0.3)
    parser.add_argument("--warmup", type=float, default=4, help="epochs in which the margin grows")
    parser.add_argument("--lr", type=float, default=0.02)
    parser.add_argument("--clip", type=float, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    training = load_identities(options.glyphs / "train")
    pairs = load_pairs(options.glyphs / "pairs.txt")
    rows = []
    for seed in options.seeds:
        for loss in LOSSES:
            for trainer, found in (("pytorch", lambda: pytorch(options, loss, seed, training, pairs)),
                                   ("ringlet", lambda: ringlet(options, loss, seed))):
                rows.append({"trainer": trainer, "loss": loss, "seed": seed, **found()})
                print(json.dumps(rows[-1]), file=sys.stderr, flush=True)

    print("| loss | trainer | " + " | ".join(f"seed {seed}" for seed in options.seeds) + " | mean | TAR@1e-2 | TAR@1e-3 |")
    print("|---" * (len(options.seeds) + 5) + "|")
    for loss in LOSSES:
        for trainer in ("pytorch", "ringlet"):
            of = [row for row in rows if (row["trainer"], row["loss"]) == (trainer, loss)]
            means = [statistics.mean(row[figure] for row in of) for figure in FIGURES]
            print(f"| {loss} | {trainer} | " + " | ".join(f"{100 * row['accuracy']:.2f}" for row in of) +
                  f" | {100 * means[0]:.2f} | {means[1]:.3f} | {means[2]:.3f} |")
    if options.json:
        commit = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty"], capture_output=True, text=True)
        recipe = {name: value for name, value in vars(options).items() if name not in ("glyphs", "ringlet", "json")}
        options.json.write_text(json.dumps({
            "date": datetime.date.today().isoformat(), "commit": commit.stdout.strip(), "pytorch": torch.__version__,
            "pictures": len(training[1]), "pairs": len(pairs[1]), "recipe": recipe, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
