#!/usr/bin/env python3
"""The head of a loss with a margin, whose classes' centres are cut over two ranks: Ringlet (margin_bench) beside the
operations of InsightFace's PartialFC_V2 in PyTorch over gloo (torch_partial_fc.py), one thread a rank. Prints a table.

What counts is a rank's processor time for forward and backward, so that a busy machine counts little; both go by turns, and
ratios are of medians over all turns. PyTorch's rank sends over gloo as well. margin_bench copies in the exchange's place.

  PYTHON bench/peers/margin_head.py                  100,000 classes: all of them, and a tenth

PYTHON is one that has PyTorch. Needs a release build (target margin_bench).
"""

import argparse
import datetime
import json
import os
import pathlib
import socket
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
RANKS = 2


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def finished(process):
    out, err = process.communicate()
    if process.returncode != 0:
        sys.exit(f"margin_head: {process.args} failed:\n{err}{out}")
    return out


def started(command, **variables):
    return subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                            env={**os.environ, **variables})


def pytorch(options, rate):
    """The slower rank's seconds."""
    command = [sys.executable, ROOT / "bench/peers/torch_partial_fc.py", "--classes", options.classes, "--batch", options.batch,
               "--size", options.size, "--rate", rate, "--steps", options.steps]
    meeting = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": str(RANKS)}
    ranks = [started(command, RANK=str(rank), **meeting) for rank in range(RANKS)]
    return max(json.loads(finished(rank))["pass_cpu_seconds"] for rank in ranks)


def ringlet(options, rate):
    with tempfile.TemporaryDirectory() as scratch:
        file = pathlib.Path(scratch) / "margin.json"
        command = [options.bench, "--classes", options.classes, "--batch", options.batch, "--size", options.size, "--ranks",
                   RANKS, "--repeats", options.steps, "--json", file]
        finished(started([*command, *(["--sample-rate", rate] if rate < 1 else [])]))
        return json.loads(file.read_text())["processor_seconds"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bench", default=str(ROOT / "build/release/bench/kernels/margin_bench"))
    parser.add_argument("--rates", type=float, nargs="+", default=[1.0, 0.1], help="shares of the classes that a step samples")
    parser.add_argument("--classes", type=int, default=100_000)
    parser.add_argument("--batch", type=int, default=128, help="samples of a step over both ranks")
    parser.add_argument("--size", type=int, default=512, help="numbers of an embedding")
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--steps", type=int, default=7, help="timed steps a turn")
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    rows = []
    for rate in options.rates:
        found = {"pytorch": [], "ringlet": []}
        for turn in range(options.turns):
            for who, measure in (("pytorch", pytorch), ("ringlet", ringlet)):
                found[who].append(measure(options, rate))
                print(f"  rate {rate:g}, turn {turn + 1}/{options.turns}  {who:<8} {1e3 * found[who][-1]:8.1f} ms",
                      file=sys.stderr, flush=True)
        medians = {who: statistics.median(values) for who, values in found.items()}
        rows.append({"rate": rate, "medians": medians, "ratio": medians["pytorch"] / medians["ringlet"], "turn_by_turn": found})
    print("| sampled | PyTorch over gloo, ms of a rank's processor | Ringlet | ratio |\n|---|---|---|---|")
    for row in rows:
        print(f"| {row['rate']:g} | {1e3 * row['medians']['pytorch']:.0f} | {1e3 * row['medians']['ringlet']:.0f} |"
              f" {row['ratio']:.2f} |")
    if options.json:
        import torch
        commit = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty"], capture_output=True, text=True)
        processor = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if "model name" in line), "")
        options.json.write_text(json.dumps({
            "date": datetime.date.today().isoformat(), "commit": commit.stdout.strip(), "processor": processor,
            "pytorch": torch.__version__, "classes": options.classes, "batch": options.batch, "size": options.size,
            "ranks": RANKS, "rows": rows}, indent=1) + "\n")


if __name__ == "__main__":
    main()
