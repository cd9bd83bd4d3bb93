"""``python -m benchmarks.stress [--settings N] [--jobs N]``: plain loops with defaults, judged.

Each setting (table, goal, batch, learning rate, network, seed) is run by every method and by
cross-entropy. ``prepare`` first makes the tables' files; ``record`` keeps the figures of a run.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import os
import sys
from pathlib import Path

from rich.console import Console

from benchmarks.results.recording import PACKAGES, environment, record
from benchmarks.stress import tables
from benchmarks.stress.draws import GUARDED, METHODS, draw
from benchmarks.stress.page import report
from benchmarks.stress.running import run

DATA = Path(os.environ.get("SETPOINT_DATA", Path(__file__).parents[3] / "shared" / "data"))


def main(arguments: list[str] | None = None) -> int:
    """Parse, run, report; 1 where a target is missed."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.stress", description=__doc__)
    parser.add_argument(
        "action", nargs="?", default="run", choices=("run", "prepare", "report", "record")
    )
    parser.add_argument("--settings", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--methods", default=",".join((*METHODS, *GUARDED)))
    parser.add_argument("--out", type=Path, default=Path("stress.jsonl"))
    options = parser.parse_args(arguments)
    if options.action == "prepare":
        tables.prepare(DATA)
        return 0
    if options.action == "run":
        _run(options)
    lines = [json.loads(line) for line in options.out.read_text("utf-8").splitlines()]
    records = [line for line in lines if "number" in line]
    if options.action == "record":
        made_in = next(line["environment"] for line in lines if "environment" in line)
        runs = [_short(r) for r in records]
        record("stress", "python -m benchmarks.stress", runs, made_in=made_in)
    return report(Console(width=120), records)


def _short(one: dict) -> dict:
    """A record without what nobody reads again; a setting's fields stand beside cross-entropy."""
    unread = ["auroc_plain", "finite", "own_train", "decided", "said_held", "seconds"]
    unread += ["auroc", "bounded"]
    if one["method"] != "cross-entropy":
        unread += ["table", "aim", "batch", "rate", "network", "seed"]
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
    settings = [s for s in draw(options.settings, options.seed) if s.number not in done]
    methods = tuple(options.methods.split(","))
    context = multiprocessing.get_context("spawn")
    with context.Pool(options.jobs) as pool, options.out.open("a", encoding="utf-8") as file:
        file.write(json.dumps({"environment": environment(PACKAGES)}) + "\n")
        jobs = [pool.apply_async(run, (setting, methods)) for setting in settings]
        for count, job in enumerate(jobs, 1):
            file.write("".join(json.dumps(record) + "\n" for record in job.get()))
            file.flush()
            if count % 25 == 0:
                print(f"{count}/{len(jobs)} settings", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
