"""`ringlet bench train` at three batches x graph x precision x autotune, rows by worth: those that goals look at first, should
the time of this part run out. Last, what launching small kernels early brings (RINGLET_EARLY_LAUNCHES)."""

import itertools
import json

from gpu.process import Failed

BATCHES = (256, 32, 4096)
PRECISIONS = ("f32", "tf32", "bf16")
WITHOUT_EARLY = "graph without early launches"


def check(context):
    rows = context.figures["rows"] = []
    result = context.folder / "bench.json"
    batches, steps = ((32,), (1, 2)) if context.rehearsal else (BATCHES, (50, 300))
    cases = [(batch, precision, autotune, mode) for autotune, mode, batch, precision in
             itertools.product((False, True), ("graph", "eager"), batches, PRECISIONS)]
    cases += [(batch, "f32", False, WITHOUT_EARLY) for batch in batches if batch <= 256]
    for batch, precision, autotune, mode in cases:
        flags = ["--precision", precision, *(["--autotune"] if autotune else [])]
        if context.rehearsal and precision == "bf16":
            flags.append("--emulate-precision")  # where the device is a processor
        row = {"who": "ringlet", "batch": batch, "precision": precision, "autotune": autotune, "mode": mode}
        env = {**context.env, "RINGLET_EARLY_LAUNCHES": "off"} if mode == WITHOUT_EARLY else context.env
        try:
            context.run([context.program("ringlet"), "bench", "train", "--model", "lenet-d2l", "--batch-size", batch,
                         "--device", context.device, "--warm-up", steps[0], "--steps", steps[1],
                         "--graph", "off" if mode == "eager" else "on", *flags, "--json", result, "--force"], 40, env)
            figures = json.loads(result.read_text(encoding="utf-8"))
        except (Failed, KeyError, ValueError) as failure:
            context.red(f"batch {batch} {' '.join(flags)} {mode}: {failure}")
            continue
        rows.append({**row, "milliseconds": 1e3 * figures["median_seconds"],
                     "samples_per_second": figures["samples_per_second"], "phases": figures.get("phase_seconds")})
        context.save()
