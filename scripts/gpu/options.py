"""The command line of scripts/gpu_check."""

import argparse
import os
import pathlib
import re
import sys

BUDGET = 560.0  # seconds; many clusters give ten minutes a command


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one line."""

    def error(self, message):
        sys.exit(f"{self.prog}: {message}; --help names what there is")


def limits_in(texts, known, parser):
    """{part: seconds}; None stands for all parts."""
    limits = {}
    for text in texts:
        name, _, seconds = text.rpartition("=")
        if not re.fullmatch(r"\d*\.?\d+", seconds) or float(seconds) == 0:
            parser.error(f"--limit wants seconds above 0 or PART=SECONDS, not '{text}'")
        limits[names_in(name, known, parser)[0] if name else None] = float(seconds)
    return limits


def names_in(text, known, parser):
    names = text.split(",")
    for name in names:
        if name not in known:
            parser.error(f"there is no part '{name}'; there are {', '.join(known)}")
    return names


def plants_in(texts, known, parser):
    plants = {}
    for text in texts:
        how, _, name = text.partition(":")
        if how not in ("fail", "hang", "slow"):
            parser.error(f"--plant wants fail:PART, hang:PART or slow:PART, not '{text}'")
        plants[names_in(name, known, parser)[0]] = how
    return plants


def parse(doc, parts, root, arguments=None):
    known = [part.name for part in parts]
    parser = Parser(
        prog="gpu_check", description=doc, formatter_class=argparse.RawDescriptionHelpFormatter,
        epilog="Parts, in their order: " + ", ".join(part.name for part in parts if part.by_default) +
               ". Only with --only: " + ", ".join(part.name for part in parts if not part.by_default) + ".")
    parser.add_argument("--only", metavar="PARTS", help="these parts alone, comma-separated")
    parser.add_argument("--after", metavar="PART", help="only what comes after this part")
    parser.add_argument("--continue", metavar="FILE", dest="earlier", type=pathlib.Path,
                        help="go on where an earlier call was stopped: its report.json")
    parser.add_argument("--no-build", action="store_true", help="run what was built already, or packed by scripts/gpu_collect")
    parser.add_argument("--build", metavar="FOLDER", type=pathlib.Path, help="the folder of the build [build/gpu]")
    parser.add_argument("--budget", metavar="SECONDS", type=float, default=BUDGET,
                        help="of the whole call; parts that do not fit are named as not run [%(default).0f]")
    parser.add_argument("--limit", metavar="[PART=]SECONDS", action="append", default=[],
                        help="no part, or not this one, may take longer")
    parser.add_argument("--out", metavar="FOLDER", type=pathlib.Path,
                        help="where the report goes [$OUT, else bench/results/DATE-GPU]")
    parser.add_argument("--rehearse", action="store_true",
                        help="without a GPU: each part as far as it goes on the CPU, and as short as it can be")
    parser.add_argument("--plant", metavar="fail:PART", action="append", default=[],
                        help="makes a part fail, hang (hang:PART) or start its programs slowly (slow:PART): a test of this script")
    options = parser.parse_args(arguments)
    if not options.budget > 0:
        parser.error("--budget wants seconds above 0")
    if options.only and options.after:
        parser.error("--only and --after exclude each other")
    options.limits = limits_in(options.limit, known, parser)
    options.plants = plants_in(options.plant, known, parser)
    options.wanted = names_in(options.only, known, parser) if options.only else [p.name for p in parts if p.by_default]
    if options.after:
        behind = known[known.index(names_in(options.after, known, parser)[0]) + 1:]
        options.wanted = [name for name in options.wanted if name in behind]
    if options.build and not options.build.is_dir():
        parser.error(f"--build: there is no folder {options.build}")
    if options.earlier and not options.earlier.is_file():
        parser.error(f"--continue: there is no file {options.earlier}")
    if options.out is None and os.environ.get("OUT"):
        options.out = pathlib.Path(os.environ["OUT"])
    if options.out is None and options.rehearse:
        options.out = root / "build" / "rehearsal"
    return options
