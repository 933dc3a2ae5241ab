"""What a part is given: where things are, the device, and a folder for its results."""

import time

from gpu import process

SAVE_EVERY = 5.0  # seconds
REHEARSAL = 8  # times the limits


class Context:
    """One part while it runs. What stands in `figures` is in the report even if the part fails or is killed."""

    def __init__(self, paths, folder, log, rehearsal, save):
        self.paths = paths
        self.root = paths.root
        self.folder = folder
        self.log = log
        self.rehearsal = rehearsal
        self.figures = {}
        self.reds = []
        self.slowness = 0  # seconds that each start of a program takes longer, of a fault that is planted
        self._save = save
        self._saved = 0.0

    @property
    def env(self):
        return self.paths.environment()

    @property
    def device(self):
        return self.paths.rehearsal_device() if self.rehearsal else "cuda:0"

    def seconds(self, limit):
        """A limit that holds on a GPU's host. A machine to rehearse on may be small and busy."""
        return limit * (REHEARSAL if self.rehearsal else 1)

    def program(self, name):
        return self.paths.program(name)

    def run(self, command, limit, env=None, check=True):
        if self.slowness:
            command = ["sh", "-c", f'sleep {self.slowness}; exec "$@"', "sh", *command]
        return process.run(command, limit, self.log, env or self.env, self.root, check)

    def red(self, why):
        """Notes what does not hold, and lets the part go on."""
        self.reds.append(why)
        self.save()

    def save(self):
        self._saved = time.monotonic()
        self._save()

    def save_soon(self):
        """Saves, unless that was done just now: there may be hundreds of results a second."""
        if time.monotonic() - self._saved > SAVE_EVERY:
            self.save()

    def log_tail(self):
        return process.tail(self.log.read_text(errors="replace")) if self.log.exists() else ""
