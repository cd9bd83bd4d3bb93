"""Run the strategies on the tables, or report what was run."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.portfolio import __doc__ as about
from benchmarks.portfolio.report import report
from benchmarks.portfolio.running import load, run
from benchmarks.portfolio.strategies import STRATEGIES
from benchmarks.portfolio.tables import DEFAULT, P0

GOALS = ("G1", "G2", "G3", "G4")


def main(arguments: list[str] | None = None) -> int:
    """Parse the command line, run, report."""
    options = _options(arguments)
    console = Console()
    if options.run:
        run(options, console)
    if options.report:
        records = load(options.report)
        kept = [r for r in records if r["table"] in options.tables and r["split"] in options.splits]
        sys.stdout.write(report(kept, options.against))
    return 0


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.portfolio",
        description=about,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--run", type=Path, metavar="FILE.jsonl", help="append results there")
    parser.add_argument("--report", type=Path, nargs="+", metavar="FILE.jsonl", default=[])
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, metavar="N")
    parser.add_argument("--strategies", nargs="+", choices=list(STRATEGIES), metavar="NAME",
                        default=list(STRATEGIES), help=", ".join(STRATEGIES))  # fmt: skip
    parser.add_argument("--tables", nargs="+", choices=[*P0, "all"], metavar="NAME",
                        default=list(DEFAULT), help=f"of {', '.join(P0)}, or all")  # fmt: skip
    parser.add_argument("--splits", nargs="+", type=int, default=list(range(5)), metavar="SEED")
    parser.add_argument("--goals", nargs="+", choices=GOALS, default=list(GOALS), metavar="G")
    parser.add_argument("--against", metavar="STRATEGY", help="of the report: the paired comparison"
                        " is with it (default: the single one of the best mean merit)")  # fmt: skip
    parser.add_argument(
        "--data", type=Path, metavar="DIR", help="default $SETPOINT_DATA, else ../shared/data"
    )
    options: Any = parser.parse_args(arguments)
    options.data = options.data or Path(os.environ.get("SETPOINT_DATA") or "../shared/data")
    if "all" in options.tables:
        options.tables = list(P0)
    if not options.run and not options.report:
        parser.error("say --run FILE.jsonl, --report FILE.jsonl, or both")
    missing = [t for t in options.tables if not (options.data / f"{t}.parquet").is_file()]
    if options.run and missing:
        parser.error(f"{options.data} holds no {', '.join(missing)}; say --data DIR")
    if options.run and not options.run.absolute().parent.is_dir():
        parser.error(f"the folder of {options.run} does not exist")
    return options


if __name__ == "__main__":
    sys.exit(main())
