"""``python -m benchmarks [NAME ...] [--json FILE]``: run the benchmarks, all or the named ones.

``--quick`` runs those of a minute or less, ``--record`` keeps the figures for docs/results.md
(``python -m benchmarks.results`` makes the page). The folders have commands of their own, which
``python -m benchmarks stress …`` and ``python -m benchmarks.stress …`` both reach.

The exit code is 1 when a stated target is missed or the libraries disagree, else 0. Nothing else
heavy should run meanwhile: the ratios are robust to a slow machine, not to a busy one.
"""

from __future__ import annotations

import argparse
import sys
from importlib import import_module
from pathlib import Path

from rich.console import Console

from benchmarks import (
    bias,
    certify,
    f1bounds,
    hostile,
    imports,
    main_job,
    offsets,
    pairs,
    power,
    selective,
    selective_proof,
    steps,
    tune,
)
from benchmarks.harness import machine, write_json
from benchmarks.results.recording import record

BENCHMARKS = {
    "tune": tune.run,
    "imports": imports.run,
    "offsets": offsets.run,
    "steps": steps.run,
    "pairs": pairs.run,
    "bias": bias.run,
    "hostile": hostile.run,
    "certify": certify.run,
    "main_job": main_job.run,
    "f1bounds": f1bounds.run,
    "power": power.run,
    "selective": selective.run,
    "selective_proof": selective_proof.run,
}
QUICK = ("imports", "steps", "bias", "certify", "f1bounds")
FOLDERS = (
    "exact",
    "implicit",
    "peers",
    "portfolio",
    "restoration",
    "robustness",
    "solver",
    "stress",
)
WIDTH = 100


def main(arguments: list[str] | None = None) -> int:
    """Parse the command line, run, report; return the exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    if arguments and arguments[0] in FOLDERS:
        return import_module(f"benchmarks.{arguments[0]}.__main__").main(arguments[1:]) or 0
    options = _options(arguments)
    console = Console()
    if console.width < WIDTH:
        console = Console(width=WIDTH)
    about = machine()
    console.print(", ".join(f"{k} {v}" for k, v in about.items() if k != "simd"), highlight=False)
    console.print(f"numpy's SIMD extensions: {', '.join(about['simd'])}", highlight=False)
    figures = {}
    for name in dict.fromkeys(options.names or (QUICK if options.quick else BENCHMARKS)):
        console.print()
        figures[name] = BENCHMARKS[name](console, options.repeats, options.rows)
    missed = sum(row["verdict"] == "MISSED" for rows in figures.values() for row in rows)
    if options.json:
        settings = {"repeats": options.repeats, "rows": options.rows}
        write_json(options.json, {"machine": about, **settings, "missed": missed, **figures})
    if options.record:
        for name, rows in figures.items():
            record(name, f"python -m benchmarks {name}", rows)
    console.print()
    console.print(f"[red]{missed} MISSED[/red]" if missed else "[green]all targets held[/green]")
    return 1 if missed else 0


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks", description=__doc__.split("\n")[0]
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=" or ".join(BENCHMARKS))
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
    parser.add_argument("--quick", action="store_true", help=f"only {', '.join(QUICK)}")
    parser.add_argument("--record", action="store_true", help="keep the figures for the page")
    parser.add_argument("--repeats", type=int, default=9, metavar="N", help="rounds (default 9)")
    parser.add_argument(
        "--rows",
        type=int,
        default=1_000_000,
        metavar="N",
        help="rows of tune's data (default 1,000,000, which the targets are meant for)",
    )
    options = parser.parse_args(arguments)
    for name in options.names:
        if name not in BENCHMARKS:
            parser.error(f"there is no benchmark {name!r}; there are {', '.join(BENCHMARKS)}")
    if options.json and not options.json.absolute().parent.is_dir():
        parser.error(f"the folder of {options.json} does not exist")
    if options.repeats < 1 or options.rows < 1000:
        parser.error("--repeats must be at least 1 and --rows at least 1000")
    return options


if __name__ == "__main__":
    sys.exit(main())
