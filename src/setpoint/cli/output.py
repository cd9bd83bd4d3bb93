"""What is printed: a screen for people, one JSON object for programs, and the exit codes.

The screen takes its width from the terminal (80 columns without one), has colours only on a
terminal, and says everything in ASCII where the stream cannot carry more.
"""

from __future__ import annotations

import json
import sys
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Annotated, Any

import typer
from rich import box
from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from setpoint.decisions.frontier import number_to

#: Signs the library's sentences and formulas use, as ASCII says them.
_ASCII = {
    **{"≥": ">=", "≤": "<=", "−": "-", "–": "-", "—": "-", "·": "*", "×": "x", "…": "..."},
    **{"Σ": "sum", "√(": "sqrt(", "√": "sqrt ", "β": "b", "²": "^2", "ₖ": "_k", "½": "1/2"},
    **{"ŷ": "yhat", "ȳ": "ymean", "→": "->"},
}
#: A line under the header and nothing else: ``box.SIMPLE_HEAD`` in ASCII.
_ASCII_HEAD = box.Box("    \n    \n -- \n    \n    \n    \n    \n    \n", ascii=True)

Json = Annotated[
    bool, typer.Option("--json", help="Print one JSON object on stdout and nothing else.")
]


class Code(IntEnum):
    """Exit codes; ``setpoint --help`` lists them."""

    OK = 0
    UNEXPECTED = 1
    MISTAKE = 2
    INFEASIBLE = 3
    STOPPED = 130


@dataclass(frozen=True)
class Screen:
    """A stream for people to read.

    Parameters
    ----------
    console : rich.console.Console
    unicode : bool
        Whether the stream can carry more than ASCII.
    """

    console: Console
    unicode: bool

    @classmethod
    def open(cls, stderr: bool = False) -> Screen:
        """The screen on stdout or stderr as they are now."""
        console = Console(stderr=stderr, highlight=False, markup=False, emoji=False)
        return cls(console, "utf" in console.encoding)

    @property
    def width(self) -> int:
        """Columns."""
        return self.console.width

    def say(self, text: str) -> str:
        """The text as the stream can carry it."""
        if self.unicode:
            return text.encode("utf-8", "replace").decode("utf-8")  # lone surrogates of file names
        for sign, spelled in _ASCII.items():
            text = text.replace(sign, spelled)
        return unicodedata.normalize("NFKD", text).encode("ascii", "replace").decode("ascii")

    def text(self, text: str | Text, style: str = "") -> Text:
        """The text with a style, as the stream can carry it."""
        if isinstance(text, Text):
            return text
        return Text(self.say(text), style)

    def show(self, what: RenderableType, indent: int = 1) -> None:
        """Print anything; without a terminal no line ends in blanks."""
        padded = Padding(what, (0, 0, 0, indent))
        if self.console.is_terminal:
            self.console.print(padded)
            return
        with self.console.capture() as printed:
            self.console.print(padded)
        for line in printed.get().splitlines():
            self.console.out(line.rstrip(), highlight=False)

    def line(self, text: str | Text = "", style: str = "") -> None:
        """Print a line; it wraps at words."""
        self.show(self.text(text, style))

    def facts(self, facts: Iterable[tuple[str, str | Text]]) -> None:
        """Print names and what is said of each, aligned."""
        grid = Table.grid(padding=(0, 2, 0, 0))
        grid.add_column(no_wrap=True, min_width=15)
        grid.add_column(overflow="fold")
        for name, said in facts:
            grid.add_row(self.text(name, "bold"), self.text(said))
        self.show(grid)

    def table(
        self,
        headers: Sequence[str],
        rows: Sequence[Sequence[str | Text]],
        numeric: Sequence[int] = (),
        gaps: Sequence[int] = (),
    ) -> None:
        """Print a table: ``numeric`` columns to the right, a line after the rows in ``gaps``."""
        shape = box.SIMPLE_HEAD if self.unicode else _ASCII_HEAD
        made = Table(box=shape, header_style="bold", collapse_padding=True, pad_edge=False)
        cells = [tuple(map(self.text, row)) for row in rows]
        widest = max(cell_len(line) for row in cells for line in row[0].plain.split("\n"))
        for index, header in enumerate(headers):
            made.add_column(
                self.text(header),
                justify="right" if index in numeric else "left",
                overflow="fold",
                min_width=min(28, self.width // 3, widest) if index == 0 else None,
            )
        for index, row in enumerate(cells):
            made.add_row(*row, end_section=index in gaps)
        self.show(made, indent=0)


def number(value: float | None, otherwise: str = "empty") -> str:
    """A number in four significant digits; None is an empty rate.

    >>> number(0.98765), number(1.0), number(None)
    ('0.9877', '1', 'empty')
    """
    return otherwise if value is None else f"{value:.4g}"


def count(many: int, one: str, several: str | None = None) -> str:
    """A count and its noun.

    >>> count(1, "row"), count(1210, "row")
    ('1 row', '1,210 rows')
    """
    return f"{many:,} {one if many == 1 else several or one + 's'}"


def print_json(data: Mapping[str, Any]) -> None:
    """Print one JSON object on stdout; infinities as strings, never NaN as a number."""
    sys.stdout.write(json.dumps(_plain(data), indent=1, allow_nan=False) + "\n")
    sys.stdout.flush()


def _plain(data: Any) -> Any:
    if isinstance(data, Mapping):
        return {str(key): _plain(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_plain(value) for value in data]
    return number_to(data)
