"""``python -m benchmarks.stress [--settings N] [--jobs N]``: plain loops with defaults, judged.

Each setting (table, goal, batch, learning rate, network, seed) is run by every method and by
cross-entropy. ``prepare`` first makes the tables' files; ``record`` keeps the figures of a run.

``images [--device cuda] [--seeds N] [--jobs N] [--seconds S] --out FILE.jsonl`` runs the methods
with a guard on one class of CIFAR-10 against the rest, and needs torch, numpy, scipy and
scikit-learn alone. What the file holds already is not run again; no run goes on after S seconds.
``several`` runs goals over groups, several classes and labels (28 settings make each pair once).
``record --out FILE.jsonl`` and ``report`` take files of either kind.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
import time
from pathlib import Path

from benchmarks.results.recording import PACKAGES, environment, record
from benchmarks.stress import image_jobs, images, several, several_tables, tables
from benchmarks.stress.draws import GUARDED, METHODS, draw
from benchmarks.stress.residual import NORMS
from benchmarks.stress.running import run
from benchmarks.stress.several import SEVERAL

DATA = Path(os.environ.get("SETPOINT_DATA", Path(__file__).parents[3] / "shared" / "data"))
COMMAND = "python -m benchmarks.stress"


def main(arguments: list[str] | None = None) -> int:
    """Parse, run, report; 1 where a run of images failed."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.stress",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    actions = ("run", "several", "images", "prepare", "report", "record")
    parser.add_argument("action", nargs="?", default="run", choices=actions)
    parser.add_argument("--settings", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--methods", help="separated by commas; of images, the guarded ones")
    parser.add_argument("--out", type=Path, help="stress.jsonl, -several or -images")
    parser.add_argument("--device", default="cpu", help="of images")
    parser.add_argument("--seeds", type=int, default=5, help="of images")
    parser.add_argument("--epochs", type=int, default=images.EPOCHS, help="of images")
    parser.add_argument("--norm", choices=NORMS, default="batch", help="of the network of images")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="of images: at most")
    options = parser.parse_args(arguments)
    _complete(options, parser)
    if options.action == "prepare":
        tables.prepare(DATA)
        several_tables.prepare(DATA)
        return 0
    if options.action == "images":
        return _images(options, parser)
    if options.action in ("run", "several"):
        _run(options)
    if not options.out.is_file():
        parser.error(f"there is no file {options.out}: name the file of a run by --out")
    lines = image_jobs.lines_of(options.out)
    records = [line for line in lines if "number" in line]
    if options.action == "record":
        _record(lines, records, options.seed)
    # here, as the machine that runs the images may have no rich
    from rich.console import Console

    from benchmarks.stress.page import report
    from benchmarks.stress.several_page import report as report_several

    if any("excess" in r for r in records):
        return report_several(Console(width=120), records)
    return report(Console(width=120), records)


def _complete(options: argparse.Namespace, parser: argparse.ArgumentParser) -> None:
    """The file and the methods where they are not named; an error where a method is unknown."""
    names = {"images": "stress-images.jsonl", "several": "stress-several.jsonl"}
    options.out = options.out or Path(names.get(options.action, "stress.jsonl"))
    if options.methods is None:
        usual = (*METHODS, *GUARDED)
        options.methods = {"images": GUARDED, "several": SEVERAL}.get(options.action, usual)
        return
    options.methods = tuple(options.methods.split(","))
    for name in options.methods:
        if name not in (*METHODS, *GUARDED):
            parser.error(f"no method {name!r}: choose from {', '.join((*METHODS, *GUARDED))}")


def _images(options: argparse.Namespace, parser: argparse.ArgumentParser) -> int:
    until = time.time() + options.seconds
    pace = images.Pace(DATA, options.device, options.epochs, options.norm, until)
    try:
        failed = image_jobs.run_all(options.out, options.seeds, options.methods, pace, options.jobs)
    except ValueError as error:
        parser.error(str(error))
    return int(failed > 0)


def _record(lines: list[dict], records: list[dict], seed: int) -> None:
    """Keep the figures under the name of their kind: runs of images have a share of positives."""
    about = dict(next(line for line in lines if "environment" in line))
    made_in, runs = about.pop("environment"), [_short(r) for r in records]
    if any("share" in r for r in records):
        order = ("cross-entropy", *METHODS, *GUARDED)  # they end in any
        runs.sort(key=lambda r: (r["number"], order.index(r["method"])))
        record(
            "stress-images",
            f"{COMMAND} images --norm {about['norm']}",
            runs,
            made_in=made_in,
            **about,
        )
    elif any("excess" in r for r in records):
        record(
            "stress-several",
            f"{COMMAND} several --settings 28 --seed {seed}",
            runs,
            made_in=made_in,
        )
    else:
        record("stress", COMMAND, runs, made_in=made_in)


def _short(one: dict) -> dict:
    """A record without what nobody reads again; a setting's fields stand beside cross-entropy."""
    unread = ["auroc_plain", "finite", "own_train", "decided", "said_held", "seconds"]
    unread += ["auroc", "bounded", "steps"]
    if one["method"] != "cross-entropy":
        unread += ["table", "aim", "batch", "rate", "network", "seed", "share"]
    return {
        key: round(value, 4) if isinstance(value, float) else value
        for key, value in one.items()
        if key not in unread
    }


def _run(options: argparse.Namespace) -> None:
    done = set()
    if options.out.exists():  # taken up where it was stopped
        lines = options.out.read_text("utf-8").splitlines()
        done = {json.loads(line).get("number") for line in lines}
    of_several = options.action == "several"
    draws, one = (several.draw, several.run) if of_several else (draw, run)
    settings = [s for s in draws(options.settings, options.seed) if s.number not in done]
    context = multiprocessing.get_context("spawn")
    with context.Pool(options.jobs) as pool, options.out.open("a", encoding="utf-8") as file:
        file.write(json.dumps({"environment": environment(PACKAGES)}) + "\n")
        jobs = [pool.apply_async(one, (setting, options.methods)) for setting in settings]
        for count, job in enumerate(jobs, 1):
            file.write("".join(json.dumps(record) + "\n" for record in job.get()))
            file.flush()
            if count % 25 == 0:
                print(f"{count}/{len(jobs)} settings", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
