"""Test programs of the rooms that touch CUDA, one process a room."""

import os
import re
import shutil

from gpu.gtest import run_tests
from gpu.process import Failed, Skipped

NO_GPU = re.compile(r"no GPU: |there is no GPU|there is no NCCL")
SANITIZED = "*uda*-*Nccl*"
ROOMS = ("kernels", "nn", "comm", "train")


def count(results):
    counts = {}
    for result in results.values():
        counts[result["verdict"]] = counts.get(result["verdict"], 0) + 1
    return counts


def judge(context, results, room):
    """Notes what is not green of one program's tests."""
    wrong = [name for name, result in results.items() if result["verdict"] not in ("passed", "skipped")]
    if wrong:
        context.red(f"{len(wrong)} of {len(results)} tests of {room}_tests: " +
                    ", ".join(f"{name} {results[name]['verdict']}" for name in wrong))
    no_gpu = [name for name, result in results.items()
              if result["verdict"] == "skipped" and NO_GPU.search(result.get("message", ""))]
    if no_gpu and not context.rehearsal:
        context.red(f"{len(no_gpu)} tests of {room}_tests saw no GPU or no NCCL, the first {no_gpu[0]}")


def run_room(context, room, pattern, **how):
    results = context.figures.setdefault("tests", {}).setdefault(room, {})
    try:
        run_tests(context.program(f"{room}_tests"), pattern, context, results, **how)
    except Failed as failure:
        context.red(f"{room}_tests: {failure}")
    finally:
        context.figures.setdefault("counts", {})[room] = count(results)
        judge(context, results, room)


def room(name, pattern):
    def check(context):
        # A machine without a GPU may lack CUDA's libraries too, and these tests ask them.
        run_room(context, name, pattern + ("-CudaLibraries.*:CudnnGraph*:*/CudnnGraph*" if context.rehearsal else ""))
    return check


def kernels(context):
    """Where a test fails, all run once more without early launches (cuda_grid.cuh): is it those?"""
    pattern = "*uda*:*Cudnn*:*Cublas*"
    room("kernels", pattern)(context)
    if not context.reds or context.rehearsal:
        return
    again = {}
    try:
        run_tests(context.program("kernels_tests"), pattern, context, again, prefix=["env", "RINGLET_EARLY_LAUNCHES=off"])
    finally:
        context.figures["without_early_launches"] = count(again)
        context.red(f"with RINGLET_EARLY_LAUNCHES=off: {count(again)}")


def without_gpu(context):
    """All tests of these rooms that need no GPU: another processor and other versions of libraries."""
    for name in ROOMS:
        run_room(context, name, "Bits.*:Counting.*:*.Says*:*Ring*" if context.rehearsal else "*-*uda*:*Nccl*")


def sanitizer(tool):
    def check(context):
        program = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
        if not os.path.exists(program):
            raise Skipped("compute-sanitizer is not installed (it comes with the CUDA toolkit)")
        # What calls of CUDA return is checked by the tests; libraries try some in vain.
        options = ["--report-api-errors", "no"] if tool == "memcheck" else []
        prefix = [program, "--tool", tool, *options, "--kernel-name", "kns=ringlet"]
        for name in ("kernels", "comm"):
            run_room(context, name, SANITIZED, prefix=prefix, test_limit=120)
        log = context.log.read_text(errors="replace")
        reports = re.findall(r"ERROR SUMMARY: (\d+) error|RACECHECK SUMMARY: (\d+) hazard", log)
        context.figures["reports"] = sum(int(a or b) for a, b in reports)
        if context.figures["reports"]:
            context.red(f"{tool} has {context.figures['reports']} reports; logs.tar.gz has them")
        elif not reports and not context.rehearsal:
            context.red(f"{tool} printed no summary")
    return check
