"""Test programs of the rooms that touch CUDA, one process a room."""

import os
import re
import shutil
import time

from gpu.gtest import run_tests
from gpu.process import Failed, Skipped

NO_GPU = re.compile(r"no GPU: |there is no GPU|there is no NCCL")
# Of a sanitizer, Nsight Compute or the driver: this machine lets nobody look into its GPU.
NO_LOOKING_IN = re.compile(r"LibraryNotLoaded|Device not supported|ERR_NVGPUCTRPERM|InjectionNotFound")
SANITIZED = "*uda*-*Nccl*"
# What can be turned off (base/switches.h), the newest and so the likeliest first.
SWITCHES = {"narrow sums": "RINGLET_NARROW_SUMS", "early launches": "RINGLET_EARLY_LAUNCHES", "graphs": "RINGLET_CAPTURES",
            "branches": "RINGLET_BRANCHES", "fused products": "RINGLET_FUSED", "NCCL's memory": "RINGLET_NCCL_MEMORY",
            "NCCL's threads": "RINGLET_NCCL_THREADS"}
MOST_AGAIN = 24  # tests that are tried again
RACES = 60  # seconds
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


def narrow(context, name):
    """The red tests of a room once more as they were, and without each thing that can be turned off: whose fault is it?"""
    red = [test for test, result in context.figures["tests"][name].items()
           if result["verdict"] not in ("passed", "skipped")][:MOST_AGAIN]
    tried = context.figures.setdefault("narrowed", {})

    def again(variables):
        results = {}
        prefix = ["env", *(f"{variable}=off" for variable in variables)]
        try:
            run_tests(context.program(f"{name}_tests"), ":".join(red), context, results, prefix=prefix)
        except Failed:  # none of them is a result too
            pass
        tried[" ".join(variables) or "nothing"] = count(results)
        context.save()
        return all(results.get(test, {}).get("verdict") in ("passed", "skipped") for test in red)

    if again([]):
        said = "green at the second try, with nothing turned off: it depends on time"
    else:
        cured = [f"{what} ({variable}=off)" for what, variable in SWITCHES.items() if again([variable])]
        said = "green without " + ", or without ".join(cured) if cured else \
            "green without all that can be turned off" if again(SWITCHES.values()) else \
            "red too without each and all that can be turned off"
    context.figures["narrowed_to"] = said
    context.reds = [line.replace(f" tests of {name}_tests: ", f" tests of {name}_tests, {said}: ") for line in context.reds]
    context.save()


def room(name, pattern):
    """Where tests fail, they are tried again with this and that turned off."""
    def check(context):
        # A machine without a GPU may lack CUDA's libraries too, and these tests ask them. Beside a real GPU, plans
        # for described ones say nothing new, and take seconds.
        run_room(context, name, pattern + ("-CudaLibraries.*:CudnnGraph*:*/CudnnGraph*" if context.rehearsal else
                                           "-CudnnGraph*:*/CudnnGraph*" if name == "kernels" else ""))
        if context.reds and context.figures["tests"][name]:
            narrow(context, name)
    return check


def without_gpu(context):
    """All tests of these rooms that need no GPU: another processor and other versions of libraries."""
    for name in ROOMS:
        run_room(context, name, "Bits.*:Counting.*:*.Says*:*Ring*" if context.rehearsal else "*-*uda*:*Nccl*")


def races(context):
    """Grids that are launched early, with everything on, again and again: a race may show once in many rounds."""
    begun, rounds, worst = time.monotonic(), 0, {}
    while rounds < 2 or (time.monotonic() - begun < RACES and not context.rehearsal):
        results = {}
        try:
            run_tests(context.program("kernels_tests"), "CudaEarlyLaunches.*", context, results)
        except Failed as failure:
            context.red(f"kernels_tests: {failure}")
            break
        rounds += 1
        for name, result in results.items():
            if name not in worst or worst[name]["verdict"] in ("passed", "skipped"):
                worst[name] = result
        context.figures.update(rounds=rounds, tests={"kernels": worst}, counts={"kernels": count(worst)})
        context.save()
    judge(context, worst, "kernels")


def sanitizer(tool):
    def check(context):
        program = shutil.which("compute-sanitizer") or "/usr/local/cuda/bin/compute-sanitizer"
        if not os.path.exists(program):
            raise Skipped("compute-sanitizer is not installed (it comes with the CUDA toolkit)")
        # What calls of CUDA return is checked by the tests; libraries try some in vain.
        options = ["--report-api-errors", "no"] if tool == "memcheck" else []
        prefix = [program, "--tool", tool, *options, "--kernel-name", "kns=ringlet"]
        status, said = context.run([*prefix, context.program("ringlet"), "devices"], 60, check=False)
        if status != 0 and NO_LOOKING_IN.search(said):
            raise Skipped(f"{tool}: " + next(line for line in said.splitlines() if NO_LOOKING_IN.search(line)).strip("= "))
        for name in ("kernels",) if tool == "memcheck" else ("kernels", "comm"):
            run_room(context, name, SANITIZED, prefix=prefix, test_limit=120)
        log = context.log.read_text(errors="replace")
        reports = re.findall(r"ERROR SUMMARY: (\d+) error|RACECHECK SUMMARY: (\d+) hazard", log)  # of all four tools
        context.figures["reports"] = sum(int(a or b) for a, b in reports)
        if context.figures["reports"]:
            context.red(f"{tool} has {context.figures['reports']} reports; logs.tar.gz has them")
        elif not reports and not context.rehearsal:
            context.red(f"{tool} printed no summary")
    return check
