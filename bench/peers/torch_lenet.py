"""Times PyTorch on the very work of `ringlet bench train --model lenet-d2l` on a GPU.

Prints a line of JSON a row: eager and compiled, f32 with and without TF32. The batches are different
random pixels that lie on the device, so that nothing but the training step is timed.
"""

import json
import statistics
import time

import torch
from torch import nn

WARM_UP, STEPS = 50, 300


def lenet():
    return nn.Sequential(
        nn.Conv2d(1, 20, 3), nn.ReLU(), nn.AvgPool2d(2), nn.Conv2d(20, 50, 5), nn.ReLU(), nn.AvgPool2d(2),
        nn.Flatten(), nn.Linear(800, 128), nn.ReLU(), nn.Linear(128, 10)).cuda()


def measure(batch, tf32, compiled):
    torch.backends.cuda.matmul.allow_tf32 = tf32
    torch.backends.cudnn.allow_tf32 = tf32
    torch.backends.cudnn.benchmark = True
    model, loss = lenet(), nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.2)
    images = [torch.rand(batch, 1, 28, 28, device="cuda") for _ in range(8)]
    labels = [torch.randint(0, 10, (batch,), device="cuda") for _ in range(8)]

    def step(x, y):
        optimizer.zero_grad(set_to_none=True)
        loss(model(x), y).backward()
        optimizer.step()

    run = torch.compile(step) if compiled else step
    for i in range(WARM_UP):
        run(images[i % 8], labels[i % 8])
    torch.cuda.synchronize()
    seconds = []
    for _ in range(5):  # steps are not waited for one by one: a queue of them, five times
        start = time.perf_counter()
        for i in range(STEPS):
            run(images[i % 8], labels[i % 8])
        torch.cuda.synchronize()
        seconds.append((time.perf_counter() - start) / STEPS)
    median = statistics.median(seconds)
    return {"who": f"torch {torch.__version__.split('+')[0]}", "mode": "compiled" if compiled else "eager",
            "batch": batch, "tf32": tf32, "milliseconds": 1e3 * median, "samples_per_second": batch / median}


if __name__ == "__main__":
    for size in (256, 4096):
        for allow in (False, True):
            for how in (False, True):
                print(json.dumps(measure(size, allow, how)), flush=True)
