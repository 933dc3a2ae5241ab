#!/usr/bin/env python3
"""Ringlet beside PyTorch on LeNet, ResNets and iresnet18, on processors: samples a second, peak memory, and what replicas and
statistics over the world cost. Prints a table; --json writes the figures.

The batches are noise, so that nothing but the step counts. All rows of a part go round by turns, so that a busy
machine slows all of them alike; ratios are those of medians, where the table does not say otherwise. torch_steps.py beside
it says what PyTorch runs. LeNet's steps are short, so 25 times as many are timed.

  PYTHON bench/peers/beside_pytorch.py                        all parts, about 40 minutes on two cores
  PYTHON bench/peers/beside_pytorch.py --parts resnet20       one part

PYTHON is one that has PyTorch (python3 -m venv V && V/bin/pip install torch). Needs a release build.
"""

import argparse
import datetime
import json
import os
import pathlib
import random
import resource
import statistics
import subprocess
import sys
import tempfile
import types

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TORCH_ROWS = ("contiguous", "channels_last", "compiled-contiguous", "compiled-channels_last")
# model, side of the images, batch
SPEEDS = {
    "lenet-d2l": ("lenet-d2l", 28, 256),
    "resnet18-cifar": ("resnet18-cifar", 32, 64),
    "resnet18": ("resnet18", 224, 16),
    "resnet20": ("resnet20", 32, 128),
    "iresnet18": ("iresnet18", 112, 32),  # with ArcFace of 1,000 identities
}
FACES = 1000  # torch_steps.IDENTITIES
BF16 = ("resnet18-cifar-bf16", "resnet18-bf16")  # where the processor multiplies bf16
PARTS = (*SPEEDS, *BF16, "replicas", "memory")


def write_noise(folder, side, count):
    """A folder of `count` noise images for training and 10 for testing, of ten classes."""
    draw = random.Random(1)
    for split, images in (("train", count), ("test", 10)):
        for i in range(images):
            path = folder / split / f"class{i % 10}" / f"{i:04}.ppm"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"P6\n%d %d\n255\n" % (side, side) + draw.randbytes(side * side * 3))


class Ringlet:
    def __init__(self, program, scratch):
        self.program, self.scratch = program, scratch

    def command(self, model, side, batch, *flags):
        data = ["--data", "synthetic"]
        if model == "iresnet18":
            data = ["--data", f"synthetic-faces:{FACES}", "--synthetic-train", 2 * batch, "--synthetic-test", 10,
                    "--loss", "arcface"]
        elif model != "lenet-d2l":
            folder = self.scratch / f"noise-{side}-{batch}"
            if not folder.exists():
                write_noise(folder, side, 2 * batch)
            data = ["--data", folder, "--image-size", side]
        words = [self.program, "bench", "train", "--model", model, *data, "--batch-size", batch, "--json",
                 self.scratch / "speed.json", "--force", *flags]
        return [str(word) for word in words]

    def speed(self, *arguments):
        done = subprocess.run(self.command(*arguments), capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"beside_pytorch: {done.args} failed:\n{done.stderr}{done.stdout}")
        result = json.loads((self.scratch / "speed.json").read_text())
        return result["batch_size"] / result["median_seconds"]  # as torch_steps.py has it


def in_turns(turns, rows):
    """What the functions `rows` return, a list for each."""
    results = {name: [] for name in rows}
    for turn in range(turns):
        for name, measure in rows.items():
            results[name].append(measure())
            print(f"  turn {turn + 1}/{turns}  {name:<32} {results[name][-1]:8.2f} samples/s", file=sys.stderr)
    return results


def medians_of(results):
    return {name: statistics.median(values) for name, values in results.items()}


def quiet(values):
    """The mean of the fastest quarter. Beside the median it tells how much of a ratio is a noisy machine's."""
    return statistics.mean(sorted(values)[-max(1, len(values) // 4):])


def speed_part(options, ringlet, work):
    import torch
    import torch_steps
    torch.set_num_threads(options.threads)
    precision = "bf16" if work in BF16 else "f32"
    model, side, batch = SPEEDS[work.removesuffix("-bf16")]
    steps = options.steps * (25 if model == "lenet-d2l" else 1)

    def torch_row(name):
        row = torch_steps.Row(types.SimpleNamespace(model=model, batch=batch), name, precision)
        row.guarded(lambda: (row.step(), row.step()))
        if row.error is not None:
            print(f"  PyTorch {name}: {row.error}", file=sys.stderr)
            return None
        return lambda: batch / statistics.median(row.step() for _ in range(steps))

    rows = {f"PyTorch {name}": torch_row(name) for name in TORCH_ROWS}
    rows = {name: row for name, row in rows.items() if row is not None}
    for flag in ("--threads", "--replicas"):
        if flag == "--replicas" and options.threads == 1:
            continue  # the same again
        if flag == "--replicas" and precision == "bf16" and batch < 16 * options.threads:
            continue  # bf16 wants sixteen samples a replica
        rows[f"Ringlet {flag} {options.threads}"] = lambda flag=flag: ringlet.speed(
            model, side, batch, flag, options.threads, "--precision", precision, "--warm-up", 2, "--steps", steps)
    results = in_turns(options.turns, rows)
    medians = medians_of(results)
    best = max((name for name in medians if name.startswith("PyTorch")), key=medians.get)
    ours = f"Ringlet --threads {options.threads}"
    return [(f"{model}, {side} px, batch {batch}, {precision}: {ours}", medians[ours], "samples/s"),
            (f"the same: {best}", medians[best], "samples/s"),
            (f"{work}: {ours} / best of PyTorch", medians[ours] / medians[best], "")], results


def replicas_part(options, ringlet):
    """The batch of a replica stays what it is, and the batch of the whole; then the whole batch is shared."""
    model, side, batch = work = SPEEDS["resnet18-cifar"]
    steps = ["--warm-up", 2, "--steps", options.steps]
    results = in_turns(options.turns, {
        "1 replica": lambda: ringlet.speed(*work, *steps),
        "2 replicas, twice the batch": lambda: ringlet.speed(model, side, 2 * batch, *steps, "--replicas", 2),
        "2 replicas": lambda: ringlet.speed(*work, *steps, "--replicas", 2),
        "2 replicas, world statistics": lambda: ringlet.speed(*work, *steps, "--replicas", 2, "--batch-norm", "world"),
    })
    medians = medians_of(results)
    return [("resnet18-cifar, batch 64 a replica: 2 replicas x 1 thread / 1 x 1",
             medians["2 replicas, twice the batch"] / medians["1 replica"], ""),
            ("the same, 64 shared by both", medians["2 replicas"] / medians["1 replica"], ""),
            ("the same, 2 replicas: world statistics / shard statistics",
             medians["2 replicas, world statistics"] / medians["2 replicas"], ""),
            ("the same, of the fastest quarter of the turns",
             quiet(results["2 replicas, world statistics"]) / quiet(results["2 replicas"]), "")], results


def peak_mebibytes(command):
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status != 0:
        sys.exit(f"beside_pytorch: {command} failed")
    # It lives on over exec(), and so is never less than what this script took when it started the other.
    if usage.ru_maxrss <= resource.getrusage(resource.RUSAGE_SELF).ru_maxrss:
        sys.exit(f"beside_pytorch: {command} took less memory than this script, so its peak is not known")
    return usage.ru_maxrss / 1024


def memory_part(options, ringlet):
    model, side, batch = SPEEDS["resnet18"]
    peer = [sys.executable, str(ROOT / "bench/peers/torch_steps.py"), "--model", model, "--batch", str(batch),
            "--threads", str(options.threads), "--steps", "1", "--rows"]
    peaks = {f"PyTorch {name}": peak_mebibytes([*peer, name]) for name in TORCH_ROWS[:2]}
    peaks["Ringlet"] = peak_mebibytes(ringlet.command(model, side, batch, "--threads", options.threads, "--warm-up", 2,
                                                      "--steps", 1))
    rows = [(f"resnet18, 224 px, batch 16, peak memory: {name}", value, "MiB") for name, value in peaks.items()]
    return rows, {name: [value] for name, value in peaks.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ringlet", default=str(ROOT / "build/release/bin/ringlet"))
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--steps", type=int, default=4, help="timed steps a turn and row")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    found, table = {}, []
    with tempfile.TemporaryDirectory() as scratch:
        ringlet = Ringlet(options.ringlet, pathlib.Path(scratch))
        for part in options.parts:
            print(part, file=sys.stderr)
            call = {"replicas": replicas_part, "memory": memory_part}.get(part)
            rows, found[part] = call(options, ringlet) if call else speed_part(options, ringlet, part)
            table += rows
    print("| figure | |\n|---|---|")
    for name, value, unit in table:
        print(f"| {name} | {value:.2f} {unit} |")
    if options.json:
        import torch
        commit = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty"], capture_output=True, text=True)
        processor = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if "model name" in line), "")
        options.json.write_text(json.dumps({
            "date": datetime.date.today().isoformat(), "commit": commit.stdout.strip(), "processor": processor,
            "threads": options.threads, "pytorch": torch.__version__, "turns": options.turns, "steps": options.steps,
            "medians": {part: medians_of(results) for part, results in found.items()}, "turn_by_turn": found,
            "table": [{"figure": name, "value": round(value, 3), "unit": unit} for name, value, unit in table],
        }, indent=1) + "\n")


if __name__ == "__main__":
    main()
