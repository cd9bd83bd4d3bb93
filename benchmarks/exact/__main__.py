"""Run one of the tables; what is done is kept in a file and not done again."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from types import ModuleType

from rich.console import Console

from benchmarks.exact import __doc__ as description
from benchmarks.exact import ablation, scale, table1
from benchmarks.exact.features import INTO
from benchmarks.exact.report import REPORTS
from benchmarks.implicit.running import made_in, run
from benchmarks.results.recording import record

TABLES: dict[str, ModuleType] = {"table1": table1, "ablation": ablation, "scale": scale}


def main(arguments: list[str] | None = None) -> int:
    """Parse the command line, run, report, record."""
    options = _options(arguments)
    console = Console(width=max(120, Console().width))
    module = TABLES[options.table]
    jobs = module.jobs(options.seeds, options.data, quick=options.quick)
    alone = [job for job in jobs if getattr(module, "alone", lambda job: False)(job)]
    if alone:  # what is timed has the machine to itself
        run(module.work, alone, options.json, 1, console)
    lines = module.select(run(module.work, jobs, options.json, options.workers, console))
    console.print(REPORTS[options.table](lines), markup=False, highlight=False, soft_wrap=True)
    if options.record:
        command = f"python -m benchmarks.exact {options.table} --seeds {options.seeds}"
        record(module.NAME, command, lines, made_in=made_in(options.json))
    return 0


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.exact",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("table", choices=list(TABLES), metavar="TABLE", help=", ".join(TABLES))
    parser.add_argument("--seeds", type=int, default=5, metavar="N", help="default 5")
    parser.add_argument("--quick", action="store_true", help="small tables alone, to try it out")
    parser.add_argument(
        "--workers", type=int, default=os.cpu_count() or 1, metavar="N", help="runs at once"
    )
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="every run's line; default exact-TABLE.jsonl"
    )
    parser.add_argument("--record", action="store_true", help="keep the figures for the page")
    parser.add_argument(
        "--data", type=Path, default=INTO, metavar="DIR", help="default .data/exact"
    )
    options = parser.parse_args(arguments)
    options.json = options.json or Path(f"exact-{options.table}.jsonl")
    if options.seeds < 1 or options.workers < 1:
        parser.error("--seeds and --workers must be at least 1")
    if options.quick and options.record:
        parser.error("a quick run is not recorded")
    if not options.data.is_dir():
        parser.error(f"there is no {options.data}: run python -m benchmarks.exact.features")
    if not options.json.absolute().parent.is_dir():
        parser.error(f"the folder of {options.json} does not exist")
    return options


if __name__ == "__main__":
    sys.exit(main())
