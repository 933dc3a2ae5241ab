"""scripts/gpu_check: from the command line to the exit code."""

import datetime
import json
import pathlib
import re
import sys
import tempfile

from gpu import machine, options, paths, read_ahead
from gpu.parts import PARTS
from gpu.process import Failed
from gpu.report import Report
from gpu.runner import Runner, Stopped

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
DONE = ("green", "RED", "skipped")


def default_folder(about):
    slug = re.sub(r"[^a-z0-9]+", "-", about["gpu"].get("name", "gpu").lower()).strip("-")
    return ROOT / "bench" / "results" / f"{datetime.date.today().isoformat()}-{slug}"


def commit(found):
    if found.manifest:
        return found.manifest["commit"]
    return machine.first_line(["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=12"])


def earlier_parts(path):
    """What an earlier call settled; what it did not finish runs again."""
    try:
        parts = json.loads(path.read_text(encoding="utf-8"))["parts"]
        return {name: result for name, result in parts.items() if result["verdict"] in DONE}
    except (ValueError, KeyError, TypeError):
        raise Failed(f"{path} is no report.json of gpu_check") from None


def check(chosen):
    if not chosen.rehearse and not machine.has_gpu():
        raise Failed("there is no NVIDIA GPU on this machine; scripts/test checks everything else, and --rehearse tries "
                     "this script")
    found = paths.find(ROOT, chosen.build, chosen.no_build)
    parts = [part for part in PARTS if part.name in chosen.wanted]
    if chosen.no_build or found.manifest:
        parts = [part for part in parts if part.name != "build"]
    elif PARTS[0] not in parts:
        parts.insert(0, PARTS[0])
    if not chosen.rehearse:
        read_ahead.start()
    settled = earlier_parts(chosen.earlier) if chosen.earlier else {}
    about = machine.describe()
    with tempfile.TemporaryDirectory(prefix="gpu_check.") as name:
        work = pathlib.Path(name)
        report = Report(chosen.out or default_folder(about), work, {
            "date": datetime.date.today().isoformat(), "commit": commit(found), "machine": about,
            "packed": found.manifest, "rehearsal": chosen.rehearse, "budget": chosen.budget, "seconds": 0,
            "arguments": sys.argv[1:], "parts": settled})
        runner = Runner(found, report, work, chosen)
        green = runner.run([part for part in parts if part.name == "build" or part.name not in settled])
        print("\n" + "\n".join(report.data["summary"]))
        print(f"gpu_check: {'nothing is red' if green else 'NOT all green'}; {report.folder}/report.txt")
    return 0 if green else 1


def main(doc):
    chosen = options.parse(doc, PARTS, ROOT)
    try:
        return check(chosen)
    except Failed as failure:
        print(f"gpu_check: {failure}", file=sys.stderr)
        return 1
    except Stopped as stop:
        print("gpu_check: stopped; the report has what is known so far", file=sys.stderr)
        return 128 + stop.args[0]
