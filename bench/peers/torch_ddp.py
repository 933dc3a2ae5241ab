"""Times PyTorch's DistributedDataParallel over Gloo on the very work of `ringlet bench train --model lenet-d2l`.

Started as one of several processes by torchrun, by scripts/machines --each, or by whoever sets RANK, WORLD_SIZE,
MASTER_ADDR and MASTER_PORT. Process 0 prints a line of JSON: the median over some hundred steps of the time of a
step, and the samples of the whole world in that time. The batches are different random pixels that lie in memory.

  scripts/machines 2 --each 1 --rate 1gbit -- python3 bench/peers/torch_ddp.py --batch 256
"""

import argparse
import json
import statistics
import time

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel

from torch_lenet import BATCHES_IN_TURN, lenet


def measure(options):
    batch = options.batch // dist.get_world_size()
    torch.manual_seed(1)
    model = DistributedDataParallel(lenet("cpu"), bucket_cap_mb=options.bucket_kb / 1024)
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    images = [torch.rand(batch, 1, 28, 28) for _ in range(BATCHES_IN_TURN)]
    labels = [torch.randint(0, 10, (batch,)) for _ in range(BATCHES_IN_TURN)]

    def step(i):
        optimizer.zero_grad(set_to_none=True)
        criterion(model(images[i % BATCHES_IN_TURN]), labels[i % BATCHES_IN_TURN]).backward()
        optimizer.step()

    for i in range(options.warm_up):
        step(i)
    seconds = []
    for i in range(options.steps):
        start = time.perf_counter()
        step(i)
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--batch", type=int, default=256, help="samples of a step over all processes [%(default)s]")
    parser.add_argument("--bucket-kb", type=int, default=25 * 1024, help="DDP's bucket_cap_mb [%(default)s]")
    parser.add_argument("--threads", type=int, default=1, help="of each process [%(default)s]")
    parser.add_argument("--warm-up", type=int, default=20)
    parser.add_argument("--steps", type=int, default=200)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    dist.init_process_group("gloo")
    median = measure(options)
    if dist.get_rank() == 0:
        print(json.dumps({"who": f"torch {torch.__version__.split('+')[0]} DDP over gloo", "batch": options.batch,
                          "processes": dist.get_world_size(), "bucket_kb": options.bucket_kb,
                          "milliseconds": 1e3 * median, "samples_per_second": options.batch / median}), flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
