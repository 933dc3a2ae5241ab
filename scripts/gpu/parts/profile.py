"""How long each kernel of a training step takes, by Nsight Compute: durations only, clocks left alone."""

import csv
import re
import shutil

from gpu.parts.tests import NO_LOOKING_IN
from gpu.process import Failed, Skipped

WARM_UP, STEPS = 2, 2
REHEARSED = False  # a test of this script has a tool that only pretends


def kernels(text):
    """Launches and mean microseconds by kernel, from what `ncu --csv --print-units base` prints."""
    lines = text.splitlines()
    begin = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if begin is None:
        refusal = next((line for line in lines if NO_LOOKING_IN.search(line)), None)
        if refusal:
            raise Skipped("ncu may not look into this GPU: " + refusal.strip("= "))
        raise Failed("ncu printed no table\n" + "\n".join(lines[-10:]))
    rows = {}
    for row in csv.DictReader(line for line in lines[begin:] if line.startswith('"')):
        if row.get("Metric Name") != "gpu__time_duration.sum" or not re.search(r"\d", row.get("Metric Value") or ""):
            continue
        rows.setdefault(row["Kernel Name"], []).append(float(row["Metric Value"].replace(",", "")) / 1e3)
    table = [{"kernel": name, "launches": len(times), "mean_us": round(sum(times) / len(times), 3),
              "sum_us": round(sum(times), 1)} for name, times in rows.items()]
    return sorted(table, key=lambda row: -row["sum_us"])


def check(context):
    program = shutil.which("ncu")
    if program is None:
        raise Skipped("ncu (Nsight Compute) is not installed")
    if context.rehearsal and not REHEARSED:
        raise Skipped("ncu needs a GPU")
    for name, flags in (("f32", []), ("tf32", ["--tf32"])):
        status, output = context.run(
            [program, "--csv", "--print-units", "base", "--metrics", "gpu__time_duration.sum", "--clock-control", "none",
             context.program("ringlet"), "bench", "train", "--model", "lenet-d2l", "--batch-size", 256, "--device",
             context.device, "--graph", "off", "--warm-up", WARM_UP, "--steps", STEPS, *flags], 60,
            check=False)
        if status != 0 and not NO_LOOKING_IN.search(output):
            raise Failed(f"ncu ended with {status}\n{context.log_tail()}")
        context.figures[name] = {"steps": WARM_UP + STEPS, "kernels": kernels(output)}
        context.save()
