#!/usr/bin/env python3
"""Times a ResNet in two stages: PyTorch's torch.distributed.pipelining over Gloo, a process a stage, and Ringlet beside it.

A step is m micro-batches by 1F1B or GPipe, forward and backward, then SGD with Nesterov's momentum and weight decay. The batches are
random pixels in memory. Batch norm sees a micro-batch at a time, here and there. Each stage has one thread. Before a time is
taken, the gradients of both stages are compared with those of the whole model in one process, which adds up those of the
micro-batches. The programs go round by turns, so that a busy machine slows all of them alike: ratios are those of medians.

  PYTHON bench/peers/torch_pipeline.py                           resnet18-cifar, batch 128 in 8, by 1F1B
  PYTHON bench/peers/torch_pipeline.py --cut 5 --stages conv1..layer1,layer2..fc

Gloo sends contiguous tensors alone, so PyTorch's images and weights are not in channels_last here.

PYTHON is one that has PyTorch (python3 -m venv V && V/bin/pip install torch). --json FILE writes the figures.
"""

import argparse
import datetime
import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

import torch
import torch.distributed as dist
import torch.multiprocessing as multiprocessing
from torch.distributed import pipelining
from torch.nn import functional

import torch_steps

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
SHAPES = {"resnet18-cifar": (3, 32, 32), "resnet20": (3, 32, 32), "resnet18": (3, 224, 224)}
SCHEDULES = {"1f1b": pipelining.Schedule1F1B, "gpipe": pipelining.ScheduleGPipe}
CLOSE = 1e-5  # of a gradient's norm


def whole_model(options):
    torch.manual_seed(1)
    return torch_steps.resnet(options.model, 10)


def batch_of(options):
    torch.manual_seed(2)
    return torch.rand(options.batch, *SHAPES[options.model]), torch.randint(0, 10, (options.batch,))


def gradients_of_one_process(options):
    """By name, the mean over the samples."""
    model = whole_model(options)
    images, labels = batch_of(options)
    for x, y in zip(images.chunk(options.micro_batches), labels.chunk(options.micro_batches)):
        (functional.cross_entropy(model(x), y) / options.micro_batches).backward()
    return {name: parameter.grad for name, parameter in model.named_parameters()}


def farthest(options, part):
    """Of a stage's gradients, how far the farthest is, in terms of its norm. A part of a Sequential keeps the names."""
    expected = gradients_of_one_process(options)
    return max(((parameter.grad - expected[name]).norm() / expected[name].norm()).item()
               for name, parameter in part.named_parameters())


def run_stage(rank, options, meeting, results):
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=2)
    model = whole_model(options)
    part = model[:options.cut] if rank == 0 else model[options.cut:]
    stage = pipelining.PipelineStage(part, rank, 2, torch.device("cpu"))
    schedule = SCHEDULES[options.schedule](stage, options.micro_batches, loss_fn=functional.cross_entropy)
    optimizer = torch.optim.SGD(part.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4, nesterov=True)
    images, labels = batch_of(options)

    def gradients():
        optimizer.zero_grad(set_to_none=True)
        if rank == 0:
            schedule.step(images)
        else:
            schedule.step(target=labels)

    gradients()
    results.put(("gradients", rank, farthest(options, part)))
    seconds = []
    for step in range(options.warm_up + options.steps):
        dist.barrier()
        begin = time.perf_counter()
        gradients()
        optimizer.step()
        dist.barrier()  # the step is over where the slower stage is through
        if step >= options.warm_up:
            seconds.append(time.perf_counter() - begin)
    if rank == 0:
        results.put(("seconds", rank, statistics.median(seconds)))
    dist.destroy_process_group()


def torch_pipeline(options):
    """Median seconds of a step, and how far the gradients are."""
    context = multiprocessing.get_context("spawn")
    results = context.Queue()
    with tempfile.TemporaryDirectory() as folder:
        multiprocessing.spawn(run_stage, (options, f"{folder}/meeting", results), nprocs=2)
        told = [results.get() for _ in range(3)]
    far = max(value for what, _, value in told if what == "gradients")
    if not far < CLOSE:
        sys.exit(f"torch_pipeline: a gradient is {far:.1e} of its norm from that of one process")
    return next(value for what, _, value in told if what == "seconds"), far


def torch_alone(options):
    """The same micro-batches in one process with one thread."""
    torch.set_num_threads(1)
    model = whole_model(options)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4, nesterov=True)
    images, labels = batch_of(options)
    seconds = []
    for step in range(options.warm_up + options.steps):
        begin = time.perf_counter()
        optimizer.zero_grad(set_to_none=True)
        for x, y in zip(images.chunk(options.micro_batches), labels.chunk(options.micro_batches)):
            (functional.cross_entropy(model(x), y) / options.micro_batches).backward()
        optimizer.step()
        if step >= options.warm_up:
            seconds.append(time.perf_counter() - begin)
    return statistics.median(seconds)


def ringlet(options, *flags):
    with tempfile.TemporaryDirectory() as folder:
        file = f"{folder}/speed.json"
        shape = "x".join(str(size) for size in SHAPES[options.model])
        words = [options.ringlet, "bench", "train", "--model", options.model, "--data", f"random:{shape}", "--synthetic-train",
                 2 * options.batch, "--synthetic-test", 8, "--batch-size", options.batch, "--micro-batches", options.micro_batches,
                 "--threads", 1, "--warm-up", options.warm_up, "--steps", options.steps, "--json", file, *flags]
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(f"torch_pipeline: {' '.join(str(word) for word in words)}:\n{done.stderr}{done.stdout}")
        return json.loads(pathlib.Path(file).read_text())["median_seconds"]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ringlet", default=str(ROOT / "build/release/bin/ringlet"))
    parser.add_argument("--model", choices=SHAPES, default="resnet18-cifar")
    parser.add_argument("--batch", type=int, default=128)
    parser.add_argument("--micro-batches", type=int, default=8)
    parser.add_argument("--stages", default="conv1..layer2,layer3..fc", help="Ringlet's, by names [%(default)s]")
    parser.add_argument("--cut", type=int, default=7, help="PyTorch's: modules of the first stage; 3 are in front of the blocks [%(default)s]")
    parser.add_argument("--schedule", choices=SCHEDULES, default="1f1b")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--steps", type=int, default=4, help="timed steps a turn")
    parser.add_argument("--warm-up", type=int, default=1)
    parser.add_argument("--json", type=pathlib.Path)
    options = parser.parse_args()
    if options.batch % options.micro_batches != 0:
        sys.exit("torch_pipeline: --batch is no multiple of --micro-batches")
    seconds = {}
    for turn in range(options.turns):
        step, far = torch_pipeline(options)
        seconds.setdefault("PyTorch, two stages", []).append(step)
        seconds.setdefault("PyTorch, one stage", []).append(torch_alone(options))
        seconds.setdefault("Ringlet, two stages", []).append(
            ringlet(options, "--stages", options.stages, "--pipeline", options.schedule))
        seconds.setdefault("Ringlet, one stage", []).append(ringlet(options))
        print(f"turn {turn + 1}: " + ", ".join(f"{name} {values[-1] * 1e3:.0f} ms" for name, values in seconds.items()), flush=True)
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    peer = medians["PyTorch, two stages"]
    print(f"gradients of PyTorch's stages are within {far:.1e} of those of one process")
    print(f"Ringlet in two stages is {peer / medians['Ringlet, two stages']:.2f} times as fast as PyTorch in two, and "
          f"{medians['Ringlet, one stage'] / medians['Ringlet, two stages']:.2f} times as fast as itself in one")
    if options.json:
        commit = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty"], capture_output=True, text=True)
        processor = next((line.split(":")[1].strip() for line in open("/proc/cpuinfo") if "model name" in line), "")
        options.json.write_text(json.dumps({
            "what": "a ResNet in two stages beside torch.distributed.pipelining over Gloo", "date": datetime.date.today().isoformat(),
            "commit": commit.stdout.strip(), "processor": processor, "pytorch": torch.__version__, "model": options.model,
            "batch": options.batch, "micro_batches": options.micro_batches, "schedule": options.schedule, "stages": options.stages,
            "steps": options.steps, "seconds": seconds, "farthest_gradient": far}, indent=1) + "\n")


if __name__ == "__main__":
    main()
