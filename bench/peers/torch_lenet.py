"""Times PyTorch on the very work of `ringlet bench train --model lenet-d2l`.

Prints a line of JSON a row: strict f32, TF32, and bf16 by autocast; what fails is a row with "error", and the
others go on. The batches are different random pixels that lie on the device, so that nothing but the training step is timed.

  eager           as it is written
  graph           the eager step captured as one CUDA graph
  compiled        torch.compile of the network and its loss
  compiled-graph  that, captured as one CUDA graph
"""

import argparse
import json
import statistics
import time

import torch
from torch import nn

BATCHES_IN_TURN = 8


def lenet(device):
    return nn.Sequential(
        nn.Conv2d(1, 20, 3), nn.ReLU(), nn.AvgPool2d(2), nn.Conv2d(20, 50, 5), nn.ReLU(), nn.AvgPool2d(2),
        nn.Flatten(), nn.Linear(800, 128), nn.ReLU(), nn.Linear(128, 10)).to(device)


def captured(step, warm_up, images, labels):
    """The step as a CUDA graph on tensors of its own, which each call fills."""
    x, y = images[0].clone(), labels[0].clone()
    aside = torch.cuda.Stream()
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):
        for i in range(warm_up):
            step(images[i % BATCHES_IN_TURN], labels[i % BATCHES_IN_TURN])
    torch.cuda.current_stream().wait_stream(aside)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step(x, y)

    def replay(new_x, new_y):
        x.copy_(new_x)
        y.copy_(new_y)
        graph.replay()

    return replay


def measure(batch, precision, mode, options):
    device, tf32 = options.device, precision == "tf32"
    torch.backends.cuda.matmul.allow_tf32 = tf32
    torch.backends.cudnn.allow_tf32 = tf32
    torch.backends.cudnn.benchmark = True
    model, criterion = lenet(device), nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    images = [torch.rand(batch, 1, 28, 28, device=device) for _ in range(BATCHES_IN_TURN)]
    labels = [torch.randint(0, 10, (batch,), device=device) for _ in range(BATCHES_IN_TURN)]
    synchronize = torch.cuda.synchronize if device == "cuda" else lambda: None

    def loss(x, y):
        # A captured step casts the weights itself: what autocast keeps for later would not be there.
        keeps = not mode.endswith("graph")
        with torch.autocast(device, torch.bfloat16, enabled=precision == "bf16", cache_enabled=keeps):
            return criterion(model(x), y)

    # Compiled for this batch, as Ringlet's kernels are chosen for it.
    forward = torch.compile(loss, dynamic=False) if mode.startswith("compiled") else loss

    def step(x, y):
        optimizer.zero_grad(set_to_none=True)
        forward(x, y).backward()
        optimizer.step()

    run = captured(step, options.warm_up, images, labels) if mode.endswith("graph") else step
    for i in range(options.warm_up):
        run(images[i % BATCHES_IN_TURN], labels[i % BATCHES_IN_TURN])
    synchronize()
    seconds = []
    for _ in range(5):  # steps are not waited for one by one: a queue of them, five times
        start = time.perf_counter()
        for i in range(options.steps):
            run(images[i % BATCHES_IN_TURN], labels[i % BATCHES_IN_TURN])
        synchronize()
        seconds.append((time.perf_counter() - start) / options.steps)
    median = statistics.median(seconds)
    return {"milliseconds": 1e3 * median, "samples_per_second": batch / median}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--modes", default="eager,graph,compiled,compiled-graph", help="comma-separated [%(default)s]")
    parser.add_argument("--device", default="cuda", choices=("cuda", "cpu"))
    parser.add_argument("--batches", default="256,32,4096", help="comma-separated [%(default)s]")
    parser.add_argument("--warm-up", type=int, default=50)
    parser.add_argument("--steps", type=int, default=300)
    options = parser.parse_args()
    for mode in options.modes.split(","):
        for batch in map(int, options.batches.split(",")):
            for precision in ("f32", "tf32", "bf16"):
                row = {"who": f"torch {torch.__version__.split('+')[0]}", "mode": mode, "batch": batch,
                       "precision": precision}
                try:
                    row.update(measure(batch, precision, mode, options))
                except Exception as error:  # pylint: disable=broad-except  # one way that fails must not cost the others
                    row["error"] = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
                print(json.dumps(row), flush=True)


if __name__ == "__main__":
    main()
