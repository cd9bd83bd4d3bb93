"""Run one of the tables; what is done is kept in a file and not done again."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from types import ModuleType

from rich.console import Console

from benchmarks.bridging_data import folder
from benchmarks.implicit import __doc__ as description
from benchmarks.implicit import curve, fairness, images, point
from benchmarks.implicit.report import REPORTS
from benchmarks.implicit.running import made_in, run
from benchmarks.results.recording import record

TABLES: dict[str, ModuleType] = {
    "curve": curve,
    "point": point,
    "images": images,
    "fairness": fairness,
}


def main(arguments: list[str] | None = None) -> int:
    """Parse the command line, run, choose, report, record."""
    options = _options(arguments)
    console = Console(width=max(120, Console().width))
    table = TABLES[options.table]
    jobs = table.jobs(options.splits, folder(options.data))
    lines = table.select(run(table.work, jobs, options.json, options.workers, console))
    console.print(REPORTS[options.table](lines), markup=False, highlight=False, soft_wrap=True)
    if options.record:
        command = f"python -m benchmarks.implicit {options.table} --splits {options.splits}"
        about = getattr(table, "ABOUT", {})
        record(table.NAME, command, lines, made_in=made_in(options.json), **about)
    return 0


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.implicit",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("table", choices=list(TABLES), metavar="TABLE", help=", ".join(TABLES))
    parser.add_argument("--splits", type=int, default=5, metavar="N", help="default 5")
    parser.add_argument(
        "--workers", type=int, default=os.cpu_count() or 1, metavar="N", help="runs at once"
    )
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="every run's line; default implicit-TABLE.jsonl"
    )
    parser.add_argument("--record", action="store_true", help="keep the figures for the page")
    parser.add_argument(
        "--data", type=Path, metavar="DIR", help="default $SETPOINT_DATA, else ../shared/data"
    )
    options = parser.parse_args(arguments)
    options.json = options.json or Path(f"implicit-{options.table}.jsonl")
    if options.splits < 1 or options.workers < 1:
        parser.error("--splits and --workers must be at least 1")
    if not options.json.absolute().parent.is_dir():
        parser.error(f"the folder of {options.json} does not exist")
    return options


if __name__ == "__main__":
    sys.exit(main())
