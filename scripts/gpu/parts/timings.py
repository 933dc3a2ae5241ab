"""`ringlet bench train` at three batches x graph x TF32 x autotune. The batch that the goals look at comes first."""

import itertools
import json

from gpu.process import Failed

BATCHES = (256, 32, 4096)


def check(context):
    rows = context.figures["rows"] = []
    result = context.folder / "bench.json"
    batches, steps = ((32,), (1, 2)) if context.rehearsal else (BATCHES, (50, 300))
    for batch, tf32, autotune, graph in itertools.product(batches, (False, True), (False, True), (True, False)):
        flags = [*(["--tf32"] if tf32 else []), *(["--autotune"] if autotune else [])]
        row = {"who": "ringlet", "batch": batch, "tf32": tf32, "autotune": autotune, "mode": "graph" if graph else "eager"}
        try:
            context.run([context.program("ringlet"), "bench", "train", "--model", "lenet-d2l", "--batch-size", batch,
                         "--device", context.device, "--warm-up", steps[0], "--steps", steps[1],
                         "--graph", "on" if graph else "off", *flags, "--json", result, "--force"], 40)
            figures = json.loads(result.read_text(encoding="utf-8"))
        except (Failed, KeyError, ValueError) as failure:
            context.red(f"batch {batch} {' '.join(flags)} {row['mode']}: {failure}")
            continue
        rows.append({**row, "milliseconds": 1e3 * figures["median_seconds"],
                     "samples_per_second": figures["samples_per_second"], "phases": figures.get("phase_seconds")})
        context.save()
