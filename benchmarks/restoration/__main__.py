"""Work off the jobs of a part; record what they came to."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from benchmarks.restoration import __doc__ as description
from benchmarks.restoration import listing, noise
from benchmarks.restoration.data import DATASETS, FOLDER, pack_all
from benchmarks.restoration.running import environment
from benchmarks.restoration.shelf import Job, Shelf
from benchmarks.restoration.tasks import TASKS
from benchmarks.restoration.ways import WAYS
from benchmarks.restoration.workers import work_off
from benchmarks.results.recording import record

JOBS = FOLDER / "restoration" / "jobs"
DRY = FOLDER / "restoration" / "dry"
LINES: dict[str, Callable[[Sequence[Job], Shelf], list[dict[str, Any]]]] = {
    "table": listing.table_lines,
    "noise": listing.noise_lines,
    "video": listing.video_lines,
    "gpu": listing.time_lines,
    "tune": listing.tune_lines,
}
PARTS = (*LINES, "all", "pictures", "pack", "merge")


def main(arguments: list[str] | None = None) -> int:
    """Parse the command line, run, record; 1 where jobs are left or a target is missed."""
    options = _options(arguments)
    shelf = Shelf(options.folder or (DRY if options.smoke else JOBS))
    if options.part == "merge":
        for file in options.files:
            print(f"{shelf.take(file)} results from {file}")
        return 0
    if options.part == "pack":
        print(*(f"{path} {path.stat().st_size:,} bytes" for path in pack_all()), sep="\n")
        return 0
    if options.part == "pictures":
        # imported here: drawing needs matplotlib, which a device machine may not have
        from benchmarks.restoration.pictures import draw

        print(*(f"wrote {path}" for path in draw(_jobs(options, "table"), shelf)), sep="\n")
        return 0
    if options.part == "all":
        return int(_all(options, shelf))
    jobs, alone = _jobs(options, options.part), options.part == "gpu"
    left = shelf.left(jobs, alone=alone)
    if left and not options.only_record:
        left = _worked(jobs, shelf, options, alone, options.seconds)
    lines = LINES[options.part](jobs, shelf)
    for line in lines:
        print(_said(line))
    if left:
        print(f"{len(left)} jobs are left: the same command goes on with them")
    marks = {x.get("code") for _, x in listing.made(jobs, shelf)}
    if len(marks) > 1:
        print(f"these results come from {len(marks)} states of the code")
    if options.record and lines:
        held = [x["environment"] for _, x in listing.made(jobs, shelf) if x.get("environment")]
        made_in = max(held, key=lambda x: "device" in x, default=environment(options.device))
        command = f"python -m benchmarks.restoration {options.part} --record"
        record(f"restoration-{options.part}", command, lines, made_in=made_in)
    return int(bool(left) or any(x.get("verdict") == "MISSED" for x in lines))


def _all(options: argparse.Namespace, shelf: Shelf) -> bool:
    """All side by side, then those that are timed once more and alone; whether some are left."""
    begun = time.time()
    sets = options.data or (list(listing.SMOKE) if options.smoke else ["mnist", "cifar10"])
    count = options.images or (listing.FEW if options.smoke else None)
    ways = options.method or [name for name, way in WAYS.items() if way.tabled]
    alone, jobs = listing.everything(sets, ways, count, options.smoke)
    left = _worked(jobs, shelf, options, False, options.seconds)
    if not left:
        left = _worked(alone, shelf, options, True, options.seconds - (time.time() - begun))
    print(f"{len(left)} jobs are left")
    return bool(left)


def _worked(
    jobs: list[Job], shelf: Shelf, options: argparse.Namespace, alone: bool, seconds: float
) -> list[Job]:
    return work_off(
        jobs,
        shelf,
        workers=options.jobs,
        device=options.device,
        seconds=seconds,
        alone=alone,
        bundle=None if options.out is None else options.out / f"{options.part}.jsonl",
        say=lambda text: print(text, flush=True),
    )


def _jobs(options: argparse.Namespace, part: str) -> list[Job]:
    named = listing.TOLD if part == "noise" else [name for name, way in WAYS.items() if way.tabled]
    ways = options.method or list(named)
    tasks = options.task or list(TASKS)
    default = list(listing.SMOKE) if options.smoke else ["mnist", "cifar10"]
    data = options.data or default
    count = options.images or (listing.FEW if options.smoke else None)
    if part == "noise":
        task = options.task[0] if options.task else noise.TASK
        return listing.noise_jobs(options.data or default[:1], ways, task, count, options.smoke)
    if part == "video":
        return listing.video_jobs(count, options.smoke)
    if part == "tune":
        return listing.tune_jobs(data, ways, tasks, count, options.smoke)
    if part == "gpu":
        # what is timed anew is one task of one set; what is there may be told of all
        data = options.data or (default if options.only_record else default[:1])
        tasks = options.task or (list(TASKS) if options.only_record else [listing.TIMED])
    return listing.table_jobs(data, ways, tasks, count, options.smoke)


def _said(line: dict[str, Any]) -> str:
    """For the screen: lists as their mean."""
    words = []
    for key, value in line.items():
        if key.endswith("_error") or value is None:
            continue
        if isinstance(value, list):
            value = sum(value) / len(value)
        words.append(f"{key} {value:.5g}" if isinstance(value, float) else f"{key} {value}")
    return ", ".join(words)


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.restoration",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("part", choices=PARTS, metavar="PART", help=", ".join(PARTS))
    parser.add_argument("files", type=Path, nargs="*", metavar="FILE", help="merge: bundles")
    parser.add_argument("--record", action="store_true", help="keep the figures for the page")
    parser.add_argument(
        "--only-record", action="store_true", help="make no job: record those that are there"
    )
    parser.add_argument("--device", default="cpu", help="cpu (default) or cuda")
    parser.add_argument(
        "--jobs", type=int, metavar="K", help="processes at once (6 on cuda, else 1)"
    )
    parser.add_argument("--images", type=int, metavar="N", help="images of each set, or clips")
    parser.add_argument("--task", nargs="+", choices=TASKS, metavar="TASK", help=", ".join(TASKS))
    parser.add_argument(
        "--method", nargs="+", choices=list(WAYS), metavar="WAY", help=", ".join(WAYS)
    )
    parser.add_argument("--data", nargs="+", choices=list(DATASETS), metavar="SET")
    parser.add_argument(
        "--seconds", type=float, default=1e6, help="begin no job after so many; then end"
    )
    parser.add_argument("--folder", type=Path, help="where results are kept")
    parser.add_argument("--out", type=Path, help="also bundle the results in this folder")
    parser.add_argument("--smoke", action="store_true", help="a dry run: 8×8 digits, few steps")
    options = parser.parse_args(arguments)
    if options.files and options.part != "merge":
        parser.error(f"{options.part} takes no files")
    for file in options.files:
        if not file.is_file():
            parser.error(f"there is no {file}")
    if options.smoke and options.record:
        parser.error("a dry run is not recorded")
    if options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
    options.jobs = options.jobs or (6 if options.device == "cuda" else 1)
    options.record = options.record or options.only_record
    return options


if __name__ == "__main__":
    sys.exit(main())
