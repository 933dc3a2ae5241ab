"""PyTorch on the same work, where python3 has it. What fails here is no fault of Ringlet's: it is said, not red."""

import json

from gpu.parts.resnets import CASES, REHEARSED
from gpu.process import Failed, Skipped


def measure(context, *words):
    rows = context.figures["rows"] = []
    peer = context.root / "bench" / "peers" / "torch_lenet.py"
    asked = "import torch" if context.rehearsal else "import torch; assert torch.cuda.is_available()"
    status, output = context.run(["python3", "-c", asked], 60, env=context.paths.plain_environment(), check=False)
    if status != 0:
        raise Skipped("python3 has no PyTorch that sees the GPU: " + (output.splitlines() or [f"status {status}"])[-1])
    few = ["--device", "cpu", "--batches", "8", "--warm-up", "1", "--steps", "2"] if context.rehearsal else []
    of_peer = ["python3", peer, *words, *few]

    def take(output):
        for line in output.splitlines():
            if line.startswith("{") and line.endswith("}"):
                rows.append(json.loads(line))

    before = context.log.stat().st_size
    try:
        status, _ = context.run(of_peer, 520, env=context.paths.plain_environment(),
                                check=False)
    finally:  # also when the time of this part runs out
        with open(context.log, "rb") as log:
            log.seek(before)
            take(log.read().decode(errors="replace"))
    bad = [row for row in rows if "error" in row]
    context.figures["rows"] = rows = [row for row in rows if "error" not in row]
    context.figures["errors"] = bad
    if not rows:
        raise Failed(f"PyTorch's measurement gave nothing (status {status})\n" + context.log_tail())


def eager(context):
    measure(context, "--modes", "eager")


def compiled(context):
    if context.rehearsal:
        measure(context, "--modes", "eager")  # compiling wants a C++ compiler, and minutes
    else:
        measure(context, "--modes", "graph,compiled,compiled-graph")


def resnets(context):
    """The cases of resnets.py, each in the memory format that is faster in that precision: of all models first what is compared first.
    In f32 cuDNN's search among its kernels takes longest."""
    cases = ",".join(f"{model}:{batch}:{shape}" for model, batch, shape, _ in (REHEARSED if context.rehearsal else CASES))
    precisions = "f32" if context.rehearsal else "tf32,bf16,f16,f32"
    measure(context, "--modes", "eager", "--cases", cases, "--precisions", precisions, "--warm-up", "4", "--steps", "4")
