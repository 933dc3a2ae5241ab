"""Times in PyTorch, over gloo, the operations of InsightFace's PartialFC_V2 with its ArcFace of today: the head of a training
whose classes' centres are cut over the processes. Written from what it computes; nothing of it is copied.

  gather          embeddings and labels of all ranks; the gradient of embeddings is summed at their owner, times the ranks
  sample          the classes that occur and random ones, by a random number for each class and the largest of them
  cosines         unit rows times unit rows, clamped
  margin          arc cosine of all cosines, + margin at the own class, cosine of all; without autograd
  cross-entropy   largest, sum and own probability over all ranks, by three all-reduces

Processes are started by whoever sets RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT (margin_head.py does). Each prints a line of
JSON: medians over the steps of its processor time and of the time by the clock, for forward and backward, and for the update (SGD
with momentum, of all rows). Times are of the process, so gloo's own thread counts.
"""

import argparse
import json
import math
import statistics
import time

import torch
import torch.distributed as dist
from torch.nn import functional


class Gather(torch.autograd.Function):
    @staticmethod
    def forward(_, mine):
        parts = [torch.empty_like(mine) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, mine)
        return torch.cat(parts)

    @staticmethod
    def backward(_, gradient):
        ranks = dist.get_world_size()
        parts = [part.contiguous() for part in gradient.chunk(ranks)]
        works = [dist.reduce(part, owner, async_op=True) for owner, part in enumerate(parts)]
        for work in works:
            work.wait()
        return parts[dist.get_rank()] * ranks


class CrossEntropy(torch.autograd.Function):
    """Mean over all samples; of each row the own class (index in this rank's columns) or -1."""

    @staticmethod
    def forward(context, logits, labels):
        largest = logits.max(dim=1, keepdim=True).values
        dist.all_reduce(largest, dist.ReduceOp.MAX)
        probabilities = logits.sub_(largest).exp_()
        total = probabilities.sum(dim=1, keepdim=True)
        dist.all_reduce(total)
        probabilities.div_(total)
        rows = torch.where(labels >= 0)[0]
        own = torch.zeros(len(labels), 1)
        own[rows, 0] = probabilities[rows, labels[rows]]
        dist.all_reduce(own)
        context.rows, context.labels, context.probabilities = rows, labels, probabilities
        return own.clamp_min(1e-30).log().mean().neg()

    @staticmethod
    def backward(context, gradient):
        logits = context.probabilities
        logits[context.rows, context.labels[context.rows]] -= 1
        return logits.div_(len(context.labels)) * gradient.item(), None


class Head:
    def __init__(self, options, margin=0.5, scale=64.0):
        rank, ranks = dist.get_rank(), dist.get_world_size()
        self.rows = options.classes // ranks + int(rank < options.classes % ranks)
        self.first = options.classes // ranks * rank + min(rank, options.classes % ranks)
        self.sampled = max(1, int(options.rate * self.rows))
        self.rate, self.margin, self.scale = options.rate, margin, scale
        self.weight = torch.nn.Parameter(torch.randn(self.rows, options.size) * 0.01)

    def sample(self, labels, own):
        order = torch.rand(self.rows)
        occurring = labels[own].unique(sorted=True)
        order[occurring] = 2
        chosen = torch.topk(order, k=max(self.sampled, len(occurring))).indices.sort().values
        labels[own] = torch.searchsorted(chosen, labels[own])
        return self.weight[chosen]

    def loss(self, embeddings, mine):
        labels = torch.cat(self.gathered(mine))
        embeddings = Gather.apply(embeddings)
        own = (labels >= self.first) & (labels < self.first + self.rows)
        labels = torch.where(own, labels - self.first, torch.full_like(labels, -1))
        weight = self.weight if self.rate == 1 else self.sample(labels, own)
        logits = functional.linear(functional.normalize(embeddings), functional.normalize(weight)).clamp(-1, 1)
        rows = torch.where(labels >= 0)[0]
        with torch.no_grad():
            logits.arccos_()
            logits[rows, labels[rows]] += self.margin
            logits.cos_()
        return CrossEntropy.apply(logits * self.scale, labels)

    @staticmethod
    def gathered(mine):
        parts = [torch.empty_like(mine) for _ in range(dist.get_world_size())]
        dist.all_gather(parts, mine)
        return parts


def measure(options):
    torch.manual_seed(1 + dist.get_rank())
    head = Head(options)
    optimizer = torch.optim.SGD([head.weight], lr=0.1, momentum=0.9, weight_decay=5e-4)
    share = options.batch // dist.get_world_size()
    embeddings = torch.randn(share, options.size, requires_grad=True)
    labels = torch.randint(0, options.classes, (share,))
    pass_cpu, pass_clock, update_cpu = [], [], []
    for step in range(options.warm_up + options.steps):
        optimizer.zero_grad(set_to_none=True)
        embeddings.grad = None
        dist.barrier()
        clock, cpu = time.perf_counter(), time.process_time()
        loss = head.loss(embeddings, labels)
        loss.backward()
        between, clock_between = time.process_time(), time.perf_counter()
        optimizer.step()
        if step >= options.warm_up:
            pass_cpu.append(between - cpu)
            pass_clock.append(clock_between - clock)
            update_cpu.append(time.process_time() - between)
    assert math.isfinite(loss.item())
    return {"peer": "pytorch", "version": torch.__version__, "rank": dist.get_rank(), "ranks": dist.get_world_size(),
            "classes": options.classes, "batch": options.batch, "size": options.size, "rate": options.rate,
            "pass_cpu_seconds": statistics.median(pass_cpu), "pass_seconds": statistics.median(pass_clock),
            "update_cpu_seconds": statistics.median(update_cpu)}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--classes", type=int, default=100_000)
    parser.add_argument("--batch", type=int, default=128, help="samples of a step over all processes")
    parser.add_argument("--size", type=int, default=512, help="numbers of an embedding")
    parser.add_argument("--rate", type=float, default=1.0, help="share of the classes that a step samples")
    parser.add_argument("--warm-up", type=int, default=2)
    parser.add_argument("--steps", type=int, default=7)
    options = parser.parse_args()
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    print(json.dumps(measure(options)), flush=True)
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
