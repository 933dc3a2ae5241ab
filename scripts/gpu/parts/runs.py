"""Whole runs: how soon Fashion-MNIST is learnt, and whether exact mode writes the same bytes."""

import hashlib
import json
import os
import time

from gpu.process import Failed, Skipped

TRAIN = ["train", "--model", "lenet", "--data", "synthetic", "--synthetic-train", "2000", "--synthetic-test", "500",
         "--batch-size", "96", "--epochs", "1", "--max-steps", "15", "--seed", "3"]
ACCURACY = 0.91


def demo(context):
    """Seconds from the program's start to its end: the driver, reading the data, six epochs, evaluation."""
    rows = context.figures["runs"] = []
    metrics = context.folder / "demo.jsonl"
    data = context.env.get("RINGLET_DATA", "/usr/share/datasets/fashion-mnist")
    if not context.rehearsal and not os.path.isdir(data):
        raise Skipped("Fashion-MNIST is not here (RINGLET_DATA may name its folder)")
    few = ["--data", "synthetic", "--synthetic-train", "500", "--synthetic-test", "100", "--max-steps", "5"]
    for flags in ([], [], ["--tf32"]):  # the first finds cold caches
        start = time.monotonic()
        context.run([context.program("ringlet"), "train", "--model", "lenet", "--device", context.device, "--no-out",
                     "--metrics", metrics, "--force", *flags, *(few if context.rehearsal else [])], 50)
        wall = time.monotonic() - start
        with open(metrics, encoding="utf-8") as file:
            epochs = [row for row in map(json.loads, file) if row["kind"] == "epoch"]
        rows.append({"flags": " ".join(flags), "wall_seconds": round(wall, 3), "epochs": len(epochs),
                     "training_seconds": sum(row["seconds"] for row in epochs),
                     "test_accuracy": epochs[-1]["test_accuracy"]})
        context.save()
    if not context.rehearsal and not any(row["test_accuracy"] >= ACCURACY for row in rows):
        context.red(f"no run reaches {ACCURACY:.0%} of the test images: " + json.dumps(rows))


def exact(context):
    """model.safetensors of 1, 2 and 4 replicas on one device, byte by byte."""
    sums = context.figures["sha256"] = {}
    for replicas in (1, 2, 4):
        out = context.folder / f"exact{replicas}"
        context.run([context.program("ringlet"), *TRAIN, "--exact", "--devices", ",".join([context.device] * replicas),
                     "--out", out], context.seconds(50))
        sums[str(replicas)] = hashlib.sha256((out / "model.safetensors").read_bytes()).hexdigest()
        context.save()
    if len(set(sums.values())) != 1:
        raise Failed("exact mode gives other bytes for other numbers of replicas: " + json.dumps(sums))
