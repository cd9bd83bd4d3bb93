"""``python -m benchmarks.results [--take FILE ...] [--check]``: make docs/results.md anew.

``--take`` first records the figures of long benchmarks from the files they wrote; ``--check``
writes nothing and fails where the page is not what the recorded files make.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from benchmarks.results.page import PAGE, assemble
from benchmarks.results.taking import take
from setpoint._core.files import write_text


def main(arguments: list[str] | None = None) -> int:
    """Parse the command line, take, write or check."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.results",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--take", type=Path, nargs="+", metavar="FILE", default=[])
    parser.add_argument(
        "--elsewhere", action="store_true", help="a portfolio's runs were made on another machine"
    )
    parser.add_argument("--check", action="store_true", help="compare, write nothing")
    options = parser.parse_args(arguments)
    for file in options.take:
        if not file.is_file():
            parser.error(f"there is no file {file}")
    for path in take(options.take, elsewhere=options.elsewhere):
        print(f"recorded {path.name}")
    text = assemble()
    if options.check:
        same = PAGE.is_file() and PAGE.read_text(encoding="utf-8") == text
        print(f"{PAGE.name} is {'what' if same else 'NOT what'} benchmarks/recorded makes")
        return 0 if same else 1
    write_text(PAGE, text)
    print(f"wrote docs/{PAGE.name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
