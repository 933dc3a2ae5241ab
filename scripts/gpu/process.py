"""Commands under time limits. Whatever ends, and however: nothing of it goes on running."""

import ctypes
import os
import signal
import subprocess
import time

GIVE_UP = 10  # seconds after which a killed process is left to itself
KILL_WITH_PARENT = 1  # PR_SET_PDEATHSIG
TAIL = 25  # lines of a failed command that are shown

_running = set()


class Failed(Exception):
    """A check that does not hold, and why."""


class Skipped(Exception):
    """A check that cannot be made here, and why."""


def _die_with_parent():
    ctypes.CDLL(None).prctl(KILL_WITH_PARENT, signal.SIGKILL)


def start(command, env, cwd, output):
    """Starts a command in a process group of its own."""
    try:
        process = subprocess.Popen([str(word) for word in command], cwd=cwd, env=env, stdin=subprocess.DEVNULL,
                                   stdout=output, stderr=subprocess.STDOUT, start_new_session=True,
                                   preexec_fn=_die_with_parent)
    except OSError as error:
        raise Failed(f"cannot start {command[0]}: {error.strerror}") from None
    _running.add(process)
    return process


def end(process):
    """Kills the process with all that it started, and returns its status."""
    _running.discard(process)
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    try:
        return process.wait(GIVE_UP)
    except subprocess.TimeoutExpired:  # the driver holds it; the other parts must not wait for that
        return None


def end_all():
    for process in list(_running):
        end(process)


def wait(process, limit):
    """Its status, 124 when it took longer than the limit; then nothing of it is left."""
    try:
        status = process.wait(limit)
    except subprocess.TimeoutExpired:
        status = 124
    end(process)
    return status


def tail(text, lines=TAIL):
    return "\n".join(text.splitlines()[-lines:])


def run(command, limit, log, env, cwd, check=True):
    """Runs a command with its output in the file `log`; returns (status, output)."""
    with open(log, "ab") as file:
        file.write(("$ " + " ".join(str(word) for word in command) + "\n").encode())
        file.flush()
        begin = file.tell()
        start_time = time.monotonic()
        status = wait(start(command, env, cwd, file), limit)
        seconds = time.monotonic() - start_time
    with open(log, "r+b") as file:
        file.seek(begin)
        output = file.read().decode(errors="replace")
        file.seek(0, os.SEEK_END)
        file.write(f"$ status {status}, {seconds:.1f} s\n".encode())
    if check and status != 0:
        reason = f"took longer than {limit:.0f} s" if status == 124 else f"ended with {status}"
        shown = " ".join(os.path.basename(str(command[0])) if i == 0 else str(word) for i, word in enumerate(command))
        raise Failed(f"{shown} {reason}\n{tail(output)}")
    return status, output
