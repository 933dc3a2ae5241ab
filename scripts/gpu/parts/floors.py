"""Kernels that pass over memory against the bytes that they must move, cuDNN's beside ours."""

import json


def check(context):
    result = context.folder / "floors.json"
    batches = "32" if context.rehearsal else "256,4096"
    context.run([context.program("kernel_floors"), "--device", context.device, "--batch", batches, "--json", result], 55)
    context.figures.update(json.loads(result.read_text(encoding="utf-8")))
