"""NCCL between processes on one GPU: 1, 2 and 3 ranks learn what one replica learns."""

import json
import socket

from gpu import process
from gpu.parts.runs import TRAIN
from gpu.process import Failed

RANKS = (1, 2, 3)


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
            "NCCL_MAX_CTAS": 2}


def run_ranks(context, ranks, metrics):
    how = ["--sync", "ring"] if context.rehearsal else ["--sync", "nccl", "--transport", "nccl"]
    command = [context.program("ringlet"), *TRAIN, "--processes", "--device", "cpu" if context.rehearsal else context.device,
               *how, "--no-out", "--metrics", metrics, "--force"]
    port, children = free_port(), []
    with open(context.log, "ab") as log:
        for rank in range(ranks):
            extra = {name: str(value) for name, value in environment(rank, ranks, port).items()}
            children.append(process.start(command, {**context.env, **extra}, context.root, log))
        statuses = [process.wait(child, 45) for child in children]
    if any(statuses):
        raise Failed(f"{ranks} ranks ended with {statuses} (124: took longer than 45 s)\n" + context.log_tail())


def check(context):
    reference = context.folder / "one.jsonl"
    context.run([context.program("ringlet"), *TRAIN, "--device", context.device, "--no-out", "--metrics", reference], 45)
    expected = losses(reference)
    differences = context.figures["largest_difference_of_a_loss"] = {}
    for ranks in RANKS:
        metrics = context.folder / f"nccl{ranks}.jsonl"
        try:
            run_ranks(context, ranks, metrics)
            found = losses(metrics)
        except Failed as failure:
            context.red(str(failure))
            continue
        differences[str(ranks)] = max(abs(a - b) for a, b in zip(found, expected))
        if len(found) != len(expected) or differences[str(ranks)] > 1e-4:
            context.red(f"{ranks} ranks learn something else: a loss differs by {differences[str(ranks)]}")
        context.save()
