"""PyTorch's all-reduce over Gloo between processes of one machine, timed as mpi_all_reduce.cc times an MPI's: a line
of JSON a size (measurement.h says how). Python's own time for a call, some microseconds, is part of what a caller
waits for, and so counts.

  PYTHON bench/peers/torch_all_reduce.py --ranks 2 --sizes 4096,524288
"""

import argparse
import ctypes
import json
import mmap
import os
import signal
import statistics
import sys
import tempfile
import time

import torch
import torch.distributed as dist

MOST, FEWEST = 1000, 5
CHECKED = 4 << 20  # bytes up to which every result is compared


class Meeting:
    """A barrier and the ranks' times, in memory that forked processes share. Plain stores, a word for each rank: on
    x86 others see them in order."""

    def __init__(self, ranks):
        self.ranks, self.count = ranks, 0
        memory = mmap.mmap(-1, 64 * ranks + 8 * ranks * MOST + 8 * ranks)
        words, floats = memoryview(memory).cast("Q"), memoryview(memory).cast("d")
        self.arrived = words[:8 * ranks]
        self.seconds = [floats[8 * ranks + MOST * rank:8 * ranks + MOST * (rank + 1)] for rank in range(ranks)]
        self.wrong = words[8 * ranks + MOST * ranks:]

    def wait(self, rank):
        self.count += 1
        self.arrived[8 * rank] = self.count
        for other in range(self.ranks):
            looks = 0
            while self.arrived[8 * other] < self.count:
                looks += 1
                if looks > 200:
                    os.sched_yield()


def one_call(meeting, rank, data, call):
    """Seconds, and wrong elements where they were looked for."""
    torch.add(pattern(data, meeting.ranks), float((rank + 1) * (call % 16 + 1)), out=data)
    meeting.wait(rank)
    begin = time.perf_counter()
    dist.all_reduce(data)
    data.sum()  # reads the result
    return time.perf_counter() - begin


def pattern(data, ranks):
    """Whole numbers whose sums a float holds exactly and nothing narrower does, made once for each size."""
    if pattern.kept is None or pattern.kept.numel() != data.numel():
        pattern.kept = (torch.arange(data.numel()) * 0x9e3779b1 % ((1 << 23) // ranks)).float()
    return pattern.kept


pattern.kept = None


def wrong_in(data, ranks, call):
    added = (call % 16 + 1) * ranks * (ranks + 1) / 2
    return int((data != pattern(data, ranks) * ranks + added).sum())


def measure(meeting, rank, size, flags):
    data = torch.empty(size // 4)
    fastest, wrong = flags.seconds, 0
    for call in range(flags.warmup):
        begin = time.perf_counter()
        one_call(meeting, rank, data, call)
        wrong += wrong_in(data, meeting.ranks, call) if size <= CHECKED else 0
        fastest = min(fastest, time.perf_counter() - begin)
    meeting.seconds[rank][0] = fastest
    meeting.wait(rank)
    slowest = max(row[0] for row in meeting.seconds)
    meeting.wait(rank)
    calls = min(MOST, flags.iterations or max(FEWEST, int(flags.seconds / slowest)))
    for call in range(calls):
        meeting.seconds[rank][call] = one_call(meeting, rank, data, call)
        if size <= CHECKED or call in (0, calls - 1):
            wrong += wrong_in(data, meeting.ranks, call)
    meeting.wrong[rank] = wrong
    meeting.wait(rank)
    if rank == 0:
        print(json.dumps(row_of(meeting, size, calls)), flush=True)
    meeting.wait(rank)


def row_of(meeting, size, calls):
    times = sorted(1e6 * max(row[call] for row in meeting.seconds) for call in range(calls))
    ranks, median = meeting.ranks, statistics.median(times)
    return {"engine": "torch", "collective": "all-reduce", "ranks_as": "processes", "transport": "gloo",
            "strategy": "default", "ranks": ranks, "bytes": size, "count": size // 4, "type": "f32", "op": "sum",
            "in_place": True, "iterations": calls, "median_us": median, "min_us": times[0],
            "p99_us": times[min(calls - 1, int(0.99 * calls))], "algbw_gbs": 1e-3 * size / median,
            "busbw_gbs": 1e-3 * size / median * 2 * (ranks - 1) / ranks, "wrong": sum(meeting.wrong)}


def run(meeting, rank, flags, folder):
    if rank > 0:  # dies with rank 0, which it would wait for
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)
    allowed = sorted(os.sched_getaffinity(0))
    if flags.bind:
        os.sched_setaffinity(0, {allowed[rank % len(allowed)]})
    dist.init_process_group("gloo", init_method=f"file://{folder}/meet", rank=rank, world_size=meeting.ranks)
    for size in flags.sizes:
        measure(meeting, rank, size, flags)
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=2, metavar="N")
    parser.add_argument("--sizes", type=lambda text: [int(part) for part in text.split(",")], default=[4096])
    parser.add_argument("--iterations", type=int, metavar="N")
    parser.add_argument("--seconds", type=float, default=0.2, metavar="X")
    parser.add_argument("--warmup", type=int, default=5, metavar="N")
    parser.add_argument("--bind", action="store_true", help="each rank and its threads on one processor, in turn")
    flags = parser.parse_args()
    torch.set_num_threads(1)
    meeting = Meeting(flags.ranks)
    with tempfile.TemporaryDirectory() as folder:
        others = []
        for rank in range(1, flags.ranks):
            others.append(os.fork())
            if others[-1] == 0:
                run(meeting, rank, flags, folder)
                os._exit(0)
        run(meeting, 0, flags, folder)
        ended = [os.waitpid(pid, 0)[1] for pid in others]
    return 1 if any(ended) else 0


if __name__ == "__main__":
    sys.exit(main())
