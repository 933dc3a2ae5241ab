"""NCCL between processes on one GPU: 1, 2 and 3 ranks learn what one replica learns, launch by launch and as graphs."""

import json
import socket
import time

from gpu import process
from gpu.parts.runs import TRAIN
from gpu.process import Failed

LIMIT = 20  # seconds, of one run
RUNS = ((1, "off"), (2, "off"), (2, "on"), (3, "on"))  # ranks, --graph


def losses(path):
    with open(path, encoding="utf-8") as file:
        return [row["loss"] for row in map(json.loads, file) if row["kind"] == "step"]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def environment(rank, ranks, port):
    return {"RANK": rank, "WORLD_SIZE": ranks, "LOCAL_RANK": rank, "LOCAL_WORLD_SIZE": ranks,
            "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port,
            # NCCL takes ranks on one GPU for a mistake unless they seem to be on several hosts.
            "NCCL_HOSTID": f"r{rank}", "NCCL_SOCKET_IFNAME": "lo", "NCCL_NET": "Socket", "NCCL_IB_DISABLE": 1,
            "NCCL_P2P_DISABLE": 1, "NCCL_SHM_DISABLE": 1, "NCCL_NVLS_ENABLE": 0, "NCCL_MNNVL_ENABLE": 0,
            "NCCL_MAX_CTAS": 2,
            # Processes on one GPU take turns of two milliseconds: the fewer times they wait for each other the better.
            "NCCL_PROTO": "Simple"}


def training(context):
    """Few steps, of which the last are captured and replayed; smaller in a rehearsal."""
    shorter = {"2000": "100", "500": "20", "96": "24", "15": "4"} if context.rehearsal else {"15": "5"}
    return [shorter.get(word, word) for word in TRAIN]


def run_ranks(context, ranks, graph, metrics):
    on_gpu = context.device.startswith("cuda")  # or on the stand-in for one, which has an NCCL
    how = ["--sync", "nccl", "--transport", "nccl"] if on_gpu else ["--sync", "ring"]
    command = [context.program("ringlet"), *training(context), "--processes", "--device", context.device,
               *how, "--graph", graph, "--no-out", "--metrics", metrics, "--force"]
    port, children = free_port(), []
    with open(context.log, "ab") as log:
        for rank in range(ranks):
            extra = {name: str(value) for name, value in environment(rank, ranks, port).items()}
            children.append(process.start(command, {**context.env, **extra}, context.root, log))
        limit = context.seconds(LIMIT)
        until = time.monotonic() + limit
        statuses = [process.wait(child, max(until - time.monotonic(), 0)) for child in children]
    if any(statuses):
        raise Failed(f"{ranks} ranks ended with {statuses} (124: took longer than {limit:.0f} s)\n" + context.log_tail())


def check(context):
    reference = context.folder / "one.jsonl"
    context.run([context.program("ringlet"), *training(context), "--device", context.device, "--no-out", "--metrics", reference], context.seconds(45))
    expected = losses(reference)
    differences = context.figures["largest_difference_of_a_loss"] = {}
    for ranks, graph in RUNS:
        name = f"{ranks}, graph {graph}"
        metrics = context.folder / f"nccl{ranks}{graph}.jsonl"
        try:
            run_ranks(context, ranks, graph, metrics)
            found = losses(metrics)
        except Failed as failure:
            context.red(f"--graph {graph}: {failure}")
            continue
        differences[name] = max(abs(a - b) for a, b in zip(found, expected))
        if len(found) != len(expected) or differences[name] > 1e-4:
            context.red(f"{ranks} ranks (--graph {graph}) learn something else: a loss differs by {differences[name]}")
        context.save()
