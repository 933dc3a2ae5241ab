"""Starts a program with the libraries and data that lie beside it; see the script `run` of the packed files."""

import os
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "scripts"))

from gpu import paths  # noqa: E402  # pylint: disable=wrong-import-position
from gpu.process import Failed  # noqa: E402  # pylint: disable=wrong-import-position


def main(words):
    if not words or words[0] in ("-h", "--help"):
        print(f"usage: run PROGRAM [ARGUMENTS]; PROGRAM is one of {', '.join(paths.PROGRAMS)}, or any other command")
        return 0 if words else 2
    found = paths.find(ROOT, None, True)
    program = str(found.program(words[0])) if words[0] in paths.PROGRAMS else words[0]
    try:
        os.execvpe(program, [program, *words[1:]], found.environment())
    except OSError as error:
        raise Failed(f"cannot start {program}: {error.strerror}") from None


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except Failed as failure:
        sys.exit(f"run: {failure}")
