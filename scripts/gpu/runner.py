"""Runs the parts one after the other, each under its limit and all under one budget."""

import signal
import time
import traceback

from gpu import goals, process
from gpu.context import REHEARSAL, Context
from gpu.process import Failed, Skipped


SLOW = 0.2  # seconds more for each start of a program, where a part is planted as slow: 2 s on a GPU's host with cold disks


class Overtime(BaseException):
    """The part has used up its time. No part catches this."""


class Stopped(BaseException):
    """Somebody wants this script to end."""


def _overtime(*_):
    raise Overtime


def _stopped(number, _):
    raise Stopped(number)


class Runner:
    """Verdicts go into report.data["parts"], which is written whenever something is known."""

    def __init__(self, paths, report, folder, options):
        self.paths, self.report, self.folder, self.options = paths, report, folder, options
        self.begin = time.monotonic()
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, _stopped)
        signal.signal(signal.SIGALRM, _overtime)

    def seconds(self):
        return time.monotonic() - self.begin

    def save(self):
        data = self.report.data
        data["seconds"] = round(self.seconds(), 1)
        data["goals"] = goals.judge(data["parts"])
        self.report.save()

    def run(self, parts):
        """True when nothing is red."""
        results = self.report.data["parts"]
        for part in parts:
            results[part.name] = {"verdict": "not run", "why": "its turn did not come"}
        self.save()
        try:
            for part in parts:
                left = max(self.options.budget - self.seconds(), 0)
                if left < self.usual(part):
                    results[part.name] = {"verdict": "not run", "why": f"{left:.0f} s left, it takes about {self.usual(part):.0f}"}
                    self.save()
                    self.tell(part)
                    continue
                self.attempt(part, min(self.limit(part), left))
                if part.name == "build" and results["build"]["verdict"] == "RED":
                    break
        except Stopped as stop:
            self.report.data["stopped"] = signal.Signals(stop.args[0]).name
            self.save()
            raise
        return all(result["verdict"] != "RED" for result in results.values())

    def limit(self, part):
        most = part.limit * (REHEARSAL if self.options.rehearse else 1)
        return min(self.options.limits.get(part.name, most), self.options.limits.get(None, most))

    def usual(self, part):
        return min(2 if self.options.rehearse else part.usual, self.limit(part))

    def attempt(self, part, limit):
        """Runs one part; whatever becomes of it, its figures up to there are kept."""
        result = self.report.data["parts"][part.name] = {"verdict": "running"}
        folder = self.folder / part.name
        folder.mkdir()
        context = Context(self.paths, folder, self.report.running_log, self.options.rehearse, self.save)
        context.log.write_text(f"# {part.name}\n", encoding="utf-8")
        context.figures = result
        self.save()
        start = time.monotonic()
        verdict, why = "not run", ["stopped from outside"]
        try:
            verdict, why = self.judged(part, context, limit)
        finally:
            process.end_all()
            why = context.reds + why
            result["verdict"] = "RED" if context.reds and verdict != "not run" else verdict
            result["seconds"] = round(time.monotonic() - start, 1)
            if why:
                result["why"] = "\n".join(why)
            self.report.keep_log(part.name)
            self.save()
            self.tell(part)

    def judged(self, part, context, limit):
        """(verdict, why) of one part, which has this many seconds."""
        try:
            try:
                signal.setitimer(signal.ITIMER_REAL, limit)
                self.plant(part, context)
                part.check(context)
                return "green", []
            finally:  # inside of the other: the time may run out just here
                signal.setitimer(signal.ITIMER_REAL, 0)
        except Overtime:
            return "RED", [f"took longer than its limit of {limit:.3g} s"]
        except Skipped as reason:
            return "skipped", [str(reason)]
        except Failed as failure:
            return "RED", [str(failure)]
        except Exception:  # pylint: disable=broad-except  # a mistake of ours must not cost the other parts
            said = traceback.format_exc().strip()
            return "RED", [said.splitlines()[-1], said]

    def plant(self, part, context):
        planted = self.options.plants.get(part.name)
        if planted == "fail":
            context.run(["sh", "-c", "echo planted; exit 3"], 60)
        elif planted == "hang":
            context.run(["sleep", "100000"], 100000)
        elif planted == "slow":
            context.slowness = SLOW

    def tell(self, part):
        result = self.report.data["parts"][part.name]
        print(f"{result['verdict']:8} {part.name:16} {result.get('seconds', 0):6.1f} s", flush=True)
        if result.get("why"):
            print("    " + result["why"].replace("\n", "\n    "), flush=True)
