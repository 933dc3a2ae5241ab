#!/usr/bin/env python3
"""Compares what Ringlet computes on this processor with what it computes on another one, which qemu plays.

    compare_processors.py Nehalem|Haswell|arm --here BUILD --there BUILD --run "qemu-... -cpu ..."

For Nehalem and Haswell, three steps of each model must have the same bytes as here with the same instructions; for arm with
portable code, too, where neither OpenBLAS nor the C library computes: in the layout `lanes`. Of NEON and AVX2 it prints what
is equal and how far apart the rest is, and fails where that is more than rounding. scripts/arm and scripts/processors call it.
"""

import argparse
import json
import math
import os
import pathlib
import shlex
import struct
import subprocess
import sys
import tempfile

STEPS = 3
MODELS = {
    "lenet": ["--data", "synthetic", "--synthetic-train", "192", "--synthetic-test", "16", "--batch-size", "64"],
    "resnet20": ["--data", "random:3x32x32", "--synthetic-train", "48", "--synthetic-test", "16", "--batch-size", "16"],
}
# Instructions of our kernels and of OpenBLAS's, as each processor takes them.
SAME_AS = {"Nehalem": ("portable", "Nehalem"), "Haswell": ("avx2", "Haswell"), "arm": ("avx2", "Haswell")}
# What is OpenBLAS's or the C library's, of the names that operation_bits prints.
FOREIGN = ("nchw/conv2d", "nchw/linear", "lanes/sigmoid and tanh", "nchw/sigmoid and tanh")
# How far ARM's numbers may be from x86's, relative to their norm: sums in another order, not another sum. Of a model all
# weights count together: biases that begin as zeros are a few small gradients. OpenBLAS's own kernels for Haswell and
# Nehalem give resnet20 6e-5 on one machine, and 1e-6 of losses.
OPERATION_LIMIT, WEIGHTS_LIMIT, LOSS_LIMIT = 1e-5, 1e-3, 1e-5


def call(words, build, name, isa=None, openblas=None):
    """Runs a program of a build; returns what it prints."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("RINGLET_")}
    environment["OPENBLAS_NUM_THREADS"] = "1"
    if isa:
        environment["RINGLET_ISA"] = isa
    if openblas:
        environment["OPENBLAS_CORETYPE"] = openblas
    said = subprocess.run([*shlex.split(build["run"]), build["folder"] / name, *words], env=environment,
                          stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if said.returncode:
        sys.exit(f"{name} {' '.join(words)}: failed\n{said.stdout[-2000:]}{said.stderr[-2000:]}")
    return said.stdout


def tensors_of(path):
    """Of a file in the format safetensors: {name: its floats}, and its bytes."""
    data = path.read_bytes()
    head = 8 + struct.unpack("<Q", data[:8])[0]
    tensors = {}
    for name, about in json.loads(data[8:head]).items():
        if name != "__metadata__" and about["dtype"] == "F32":
            begin, end = about["data_offsets"]
            tensors[name] = struct.unpack(f"<{(end - begin) // 4}f", data[head + begin:head + end])
    return tensors


def train(model, build, *flags, **instructions):
    """(losses, gradient norms, weights) of the first steps in exact mode."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder) / "run"
        call(["train", "--model", model, *MODELS[model], *flags, "--exact", "--shards", "2", "--max-steps", str(STEPS), "--out", str(out)],
             build, "bin/ringlet", **instructions)
        lines = [json.loads(line) for line in (out / "metrics.jsonl").read_text().splitlines()]
        steps = [line for line in lines if line["kind"] == "step"]
        if len(steps) != STEPS:
            sys.exit(f"{model}: {len(steps)} steps instead of {STEPS}")
        return [step["loss"] for step in steps], [step["grad_norm"] for step in steps], tensors_of(out / "model.safetensors")


def apart(a, b):
    """|a - b| / |b|, of two lists of numbers."""
    if len(a) != len(b):
        return math.inf
    norm = math.sqrt(sum(y * y for y in b)) or 1.0
    return math.sqrt(sum((x - y) ** 2 for x, y in zip(a, b))) / norm


def same_bits(a, b):
    return struct.pack(f"{len(a)}f", *a) == struct.pack(f"{len(b)}f", *b)


def compare_training(what, ours, theirs):
    """Prints a row for each model; returns whether all is equal, and whether all is within the limits."""
    equal_all, near_all = True, True
    for model in MODELS:
        (loss_a, norm_a, weights_a), (loss_b, norm_b, weights_b) = ours(model), theirs(model)
        equal = sum(same_bits(weights_a[name], weights_b[name]) for name in weights_a)
        losses, weights = apart(loss_a, loss_b), apart(*([x for name in weights_a for x in w[name]] for w in (weights_a, weights_b)))
        steps = sum(x == y for x, y in zip(loss_a, loss_b))
        print(f"{what:28} {model:9} losses equal {steps} of {STEPS}, apart by {losses:.1e}; gradient norms "
              f"{apart(norm_a, norm_b):.1e}; weights: {equal} of {len(weights_a)} tensors equal, together apart by {weights:.1e}",
              flush=True)
        equal_all = equal_all and steps == STEPS and equal == len(weights_a) and norm_a == norm_b
        near_all = near_all and losses <= LOSS_LIMIT and weights <= WEIGHTS_LIMIT
    return equal_all, near_all


def bits_of(build, **instructions):
    results = {}
    for line in call([], build, "tests/kernels/operation_bits", **instructions).splitlines():
        name, _, numbers = line.partition("\t")
        results[name] = [struct.unpack("<f", bytes.fromhex(word)[::-1])[0] for word in numbers.split()]
    return results


def compare_operations(what, ours, theirs):
    """Prints which operations are equal; returns how far apart the others are, by name."""
    if ours.keys() != theirs.keys() or not ours:
        sys.exit("operation_bits printed other operations there")
    unlike = {name: apart(ours[name], theirs[name]) for name in ours if not same_bits(ours[name], theirs[name])}
    print(f"{what}: {len(ours) - len(unlike)} of {len(ours)} results equal; the others, and how far apart:")
    for name, distance in unlike.items():
        print(f"    {name:52} {distance:.1e}")
    return unlike


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("processor", choices=SAME_AS)
    parser.add_argument("--here", type=pathlib.Path, required=True, metavar="BUILD")
    parser.add_argument("--there", type=pathlib.Path, required=True, metavar="BUILD")
    parser.add_argument("--run", required=True, metavar="COMMAND")
    flags = parser.parse_args()
    here = {"folder": flags.here, "run": ""}
    there = {"folder": flags.there, "run": flags.run}
    isa, openblas = SAME_AS[flags.processor]
    if flags.processor != "arm":
        equal, _ = compare_training(f"{flags.processor} and {isa} here", lambda model: train(model, there),
                                    lambda model: train(model, here, isa=isa, openblas=openblas))
        sys.exit(0 if equal else f"{flags.processor}: not the bytes of {isa}")
    portable = compare_operations("portable, here and there", bits_of(there, isa="portable"),
                                  bits_of(here, isa="portable", openblas=openblas))
    wide = compare_operations(f"NEON and {isa}", bits_of(there), bits_of(here, isa=isa, openblas=openblas))
    if own := [name for name in portable if not name.startswith(FOREIGN)]:
        sys.exit(f"arm: portable code gives other bits than here: {', '.join(own)}")
    lanes = ("--layout", "lanes")  # LeNet's own, but not resnet20's
    equal, _ = compare_training("portable, here and there", lambda model: train(model, there, *lanes, isa="portable"),
                                lambda model: train(model, here, *lanes, isa="portable", openblas=openblas))
    if not equal:
        sys.exit("arm: portable code trains to other bytes than here")
    _, near = compare_training(f"NEON and {isa}", lambda model: train(model, there),
                               lambda model: train(model, here, isa=isa, openblas=openblas))
    if max([*portable.values(), *wide.values()]) > OPERATION_LIMIT or not near:
        sys.exit(f"arm: that is more than rounding (limits: {OPERATION_LIMIT:.0e} of an operation, {LOSS_LIMIT:.0e} of losses, "
                 f"{WEIGHTS_LIMIT:.0e} of weights)")


if __name__ == "__main__":
    main()
