#!/usr/bin/env python3
"""Ringlet beside PyTorch on faces' kind of work without faces (docs/faces.md): both learn embeddings of the same characters
(scripts/glyphs) by the same recipe, and are measured on pairs of characters that neither has seen. Prints a table.

The same: pictures, model (lenet), start's distributions, loss, batches' size, schedule, clipping, warm-up of the margin, what is
measured. Other: the draws. PyTorch's accuracy is its own program's (torch_faces.py), Ringlet's is `ringlet verify`'s.

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

import torch

import torch_faces

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
LOSSES = ("normface", "arcface")
FIGURES = ("accuracy", "tar_at_1e-2", "tar_at_1e-3")


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
    return {**torch_faces.measure_pairs(net, *pairs), "last_loss": round(last, 4)}


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
    training = torch_faces.load_identities(options.glyphs / "train")
    pairs = torch_faces.load_pairs(options.glyphs / "pairs.txt")
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
