"""The three files that a run leaves: report.json, report.txt and logs.tar.gz, true at every moment.

Each is written aside and renamed. A part that is running has its log beside them, as running.log, so that
it is there too if the machine is taken away.
"""

import json
import tarfile

from gpu import summary


def write(path, text):
    aside = path.with_name(path.name + ".part")
    aside.write_text(text, encoding="utf-8")
    aside.replace(path)


class Report:
    """What is known so far. `data` is what report.json holds."""

    def __init__(self, folder, work, data):
        self.folder, self.work, self.data = folder, work, data
        folder.mkdir(parents=True, exist_ok=True)
        self.running_log = folder / "running.log"
        self.logs = work / "logs"
        self.logs.mkdir()

    def save(self):
        self.data["summary"] = summary.top(self.data)
        write(self.folder / "report.json", json.dumps(self.data, indent=1) + "\n")
        write(self.folder / "report.txt", "\n".join(summary.text(self.data)) + "\n")

    def keep_log(self, name):
        """Moves the log of a part that has ended into the archive."""
        if self.running_log.exists():
            (self.logs / f"{name}.log").write_bytes(self.running_log.read_bytes())
            aside = self.folder / "logs.tar.gz.part"
            with tarfile.open(aside, "w:gz") as tar:
                tar.add(self.logs, arcname="logs")
            aside.replace(self.folder / "logs.tar.gz")
            self.running_log.unlink()
