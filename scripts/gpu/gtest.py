"""A test program, test by test: each verdict counts as soon as it is printed. Behind a test that crashes or
hangs, or that leaves CUDA broken for all that come after it, the program is started anew."""

import os
import re
import select
import subprocess
import time

from gpu import process
from gpu.process import Failed

VERDICT = re.compile(r"\[ +(OK|FAILED|SKIPPED) +\] ([\w/]+\.[\w/]+)(?:, where .*)? \((\d+) ms\)")
BEGIN = re.compile(r"\[ RUN +\] ([\w/]+\.[\w/]+)")
WORDS = {"OK": "passed", "FAILED": "failed", "SKIPPED": "skipped"}
# After these every call of CUDA fails in that process.
BROKEN = re.compile(r"cudaError(?:IllegalAddress|IllegalInstruction|MisalignedAddress|InvalidAddressSpace|InvalidPc|"
                    r"LaunchFailure|LaunchTimeout|Assert|HardwareStackError|ECCUncorrectable|ExternalDevice)|"
                    r"illegal memory access|unspecified launch failure|misaligned address|device-side assert")
MESSAGE_LINES = 12  # of each failed test
STARTS = 12  # of one program


def listed(program, pattern, context, prefix=()):
    """The names of the tests that the pattern picks, in their order."""
    _, output = context.run([*prefix, program, "--gtest_list_tests", f"--gtest_filter={pattern}"], 60)
    names, suite = [], ""
    for line in output.splitlines():
        word = line.split("#")[0].strip()
        if line.startswith("  "):
            names.append(suite + word)
        elif re.fullmatch(r"[\w/]+\.", word):
            suite = word
    return names


class Session:
    """One start of the program, and what it says."""

    def __init__(self, command, context, test_limit):
        self.process = process.start(command, context.env, context.root, subprocess.PIPE)
        self.log = open(context.log, "ab", buffering=0)
        self.test_limit = test_limit
        self.pending = b""

    def lines(self):
        """Its lines, until it ends; TimeoutError when a test says nothing for too long."""
        descriptor = self.process.stdout.fileno()
        while True:
            if not select.select([descriptor], [], [], self.test_limit)[0]:
                raise TimeoutError
            data = os.read(descriptor, 1 << 16)
            if not data:
                break
            self.log.write(data)
            *whole, self.pending = (self.pending + data).split(b"\n")
            for line in whole:
                yield line.decode(errors="replace")
        if self.pending:
            yield self.pending.decode(errors="replace")

    def close(self, wait_for_it):
        """How it ended by itself, or None where it had to be ended."""
        status = None
        if wait_for_it:
            try:
                status = self.process.wait(10)
            except subprocess.TimeoutExpired:
                pass
        process.end(self.process)
        self.process.stdout.close()
        self.log.close()
        return status


def run_tests(program, pattern, context, results, test_limit=60, prefix=()):
    """Runs the tests that the pattern picks and adds {name: {verdict, seconds, message}} to results."""
    names = listed(program, pattern, context)
    if not names:
        raise Failed(f"{os.path.basename(str(program))} has no test {pattern}")
    for _ in range(STARTS):
        left = [name for name in names if name not in results]
        if not left:
            return names
        flags = context.folder / "flags"  # a command line would be too short for all names
        flags.write_text("--gtest_filter=" + ":".join(left) + "\n", encoding="utf-8")
        command = [*prefix, program, f"--gtest_flagfile={flags}", "--gtest_color=no"]
        before = len(results)
        run_once(Session(command, context, test_limit), results, context)
        if len(results) == before:
            raise Failed(f"{os.path.basename(str(program))} runs none of {len(left)} tests\n" + context.log_tail())
    left = [name for name in names if name not in results]
    if left:
        raise Failed(f"started {STARTS} times; {len(left)} tests were not run, the first {left[0]}")
    return names


def run_once(session, results, context):
    """Takes verdicts until the program ends or has to be ended."""
    current, begun, said, why, unfinished = None, 0.0, [], None, "crashed"

    def judge(verdict, seconds, lines):
        results[current] = {"verdict": verdict, "seconds": round(seconds, 3)}
        if lines:
            results[current]["message"] = "\n".join(lines[:MESSAGE_LINES])
        context.save_soon()

    try:
        for line in session.lines():
            verdict, begin = VERDICT.search(line), BEGIN.search(line)
            if begin:
                if current is not None:
                    judge("failed", time.monotonic() - begun, ["no verdict was printed", *said])
                current, begun, said = begin[1], time.monotonic(), []
            elif verdict and verdict[2] == current:
                judge(WORDS[verdict[1]], int(verdict[3]) / 1000, [] if verdict[1] == "OK" else said)
                current = None
                if verdict[1] == "FAILED" and BROKEN.search("\n".join(said)):
                    why = "broken"
                    break
            else:
                said.append(line)
    except TimeoutError:
        why, unfinished = f"said nothing for {session.test_limit:.0f} s", "hung"
    except BaseException:
        why, unfinished = "the time of its part ran out", "unfinished"
        raise
    finally:
        status = session.close(wait_for_it=why is None)
        if current is not None:
            judge(unfinished, time.monotonic() - begun, [why or f"the program ended with {status}", *said])
