"""Every strategy between 2, 4 and 8 replicas on one device: exact results, and their times."""

import json

from gpu.process import Failed


def check(context):
    rows = context.figures["rows"] = []
    result = context.folder / "all-reduce.json"
    sizes = ["--begin", "4K", "--end", "4K" if context.rehearsal else "64M", "--factor", "16"]
    for ranks in (2,) if context.rehearsal else (2, 4, 8):
        try:
            context.run([context.program("ringlet"), "bench", "all-reduce", "--ranks", ranks, "--devices",
                         ",".join([context.device] * ranks), "--transport", "local", *sizes, "--json", result, "--force"], 60)
        except Failed as failure:
            context.red(f"{ranks} ranks: {failure}")
            continue
        rows += json.loads(result.read_text(encoding="utf-8"))["rows"]
        context.save()
