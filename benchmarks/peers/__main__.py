"""``python -m benchmarks.peers [NAME ...]``: the comparisons with peers, all or the named ones.

Each takes one to three minutes of one core (the simulated draws some more, training about 25) and
replaces its file in ``benchmarks/recorded``; ``python -m benchmarks.results`` then makes the page
anew. A peer that is not installed is left out, and the page says so.
"""

from __future__ import annotations

import argparse
import sys

from rich.console import Console

from benchmarks.harness import one_thread
from benchmarks.peers import fairness, lagrangian, proving, ranking, simulated, thresholds
from benchmarks.peers.training import comparison as training

COMPARISONS = {
    "thresholds": thresholds.run,
    "proving": proving.run,
    "fairness": fairness.run,
    "ranking": ranking.run,
    "lagrangian": lagrangian.run,
    "simulated": simulated.run,
    "training": training.run,
}


def main(arguments: list[str] | None = None) -> int:
    """Parse the command line, run."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.peers")
    parser.add_argument("names", nargs="*", metavar="NAME", help=" or ".join(COMPARISONS))
    names = parser.parse_args(arguments).names
    for name in names:
        if name not in COMPARISONS:
            parser.error(f"there is no comparison {name!r}; there are {', '.join(COMPARISONS)}")
    one_thread()
    console = Console()
    for name in names or COMPARISONS:
        COMPARISONS[name](console)
    return 0


if __name__ == "__main__":
    sys.exit(main())
