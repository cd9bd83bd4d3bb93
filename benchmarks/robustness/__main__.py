"""Run one part; print and record."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

from rich.console import Console

from benchmarks.harness import one_thread
from benchmarks.results.recording import record
from benchmarks.robustness import __doc__ as description
from benchmarks.robustness import gpu, norms, within
from benchmarks.robustness.models import INTO, SEEDS

PARTS = ("max", "min", "perceptual", "gpu")
OTHERS = {
    "max": ("torchattacks 3.5.1 and PyGRANSO 1.2.0", "; ".join(norms.SETUPS.values())),
    "min": ("foolbox 3.3.4 and PyGRANSO 1.2.0", "; ".join(norms.SETUPS.values())),
}


def main(arguments: list[str] | None = None) -> int:
    """Parse the command line, run, report, record; 1 where a target is missed."""
    options = _options(arguments)
    console = Console(width=max(120, Console().width))
    one_thread()
    made_in = None
    if options.part == "gpu":
        lines, made_in = gpu.run(options.json, console)
    elif options.part == "perceptual":
        lines = within.run(console)
    else:
        lines = norms.run(options.part, console)
    if options.record:
        peer, setup = OTHERS.get(options.part, (None, None))
        more: dict[str, Any] = {"peer": peer, "setup": setup} if peer else {}
        command = f"python -m benchmarks.robustness {options.part} --record"
        record(f"robustness-{options.part}", command, lines, made_in=made_in, **more)
    return int(any(x.get("verdict") == "MISSED" for x in lines))


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.robustness",
        description=description,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("part", choices=PARTS, metavar="PART", help=", ".join(PARTS))
    parser.add_argument("--record", action="store_true", help="keep the figures for the page")
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="gpu: what benchmarks.robustness.gpu wrote there"
    )
    options = parser.parse_args(arguments)
    for name in SEEDS:
        if not (INTO / f"{name}.safetensors").is_file():
            parser.error("networks are missing: run python -m benchmarks.robustness.models")
    if options.json is not None and not options.json.is_file():
        parser.error(f"there is no {options.json}")
    return options


if __name__ == "__main__":
    sys.exit(main())
