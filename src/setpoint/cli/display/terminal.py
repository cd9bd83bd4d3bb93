"""Output of the commands: a screen for people, one JSON object for programs, and the exit codes.

The screen takes its width from the terminal (80 columns without one), has colours only on a
terminal, and says everything in ASCII where the stream cannot carry more.
"""

from __future__ import annotations

import json
import sys
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import typer
from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from setpoint._core.json_codec import number_to

#: Signs the library's sentences and formulas use, as ASCII says them.
_ASCII = {
    **{"≥": ">=", "≤": "<=", "−": "-", "–": "-", "—": "-", "·": "*", "×": "x", "…": "..."},
    **{"Σ": "sum", "√(": "sqrt(", "√": "sqrt ", "β": "b", "²": "^2", "ₖ": "_k", "½": "1/2"},
    **{"ŷ": "yhat", "ȳ": "ymean", "→": "->"},
}
_APART = 2  #: blanks between the columns of a table
_NARROW = 16  #: columns of text are not made narrower while another way is left

Json = Annotated[
    bool,
    typer.Option("--json", metavar="", help="Print one JSON object on stdout and nothing else."),
]
Force = Annotated[bool, typer.Option("--force", metavar="", help="Overwrite files.")]


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

    def note(self, sentence: str) -> None:
        """Write one line, as it is, with the name of the program before it."""
        self.console.file.write(f"{self.say(f'setpoint: {sentence}')}\n")
        self.console.file.flush()

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
        solid: Sequence[int] = (),
        spare: Sequence[int] = (),
        legend: str = "",
    ) -> None:
        """Print a table; no letter is cut off, and no number is broken in two.

        ``numeric`` columns stand to the right and, like ``solid`` ones, never wrap; the others
        wrap at words. Columns in ``spare`` are left out, in that order, where the screen is too
        narrow for all. A blank line follows the rows in ``gaps``, the ``legend`` the last one.
        """
        cells = [[self.text(cell) for cell in row] for row in (headers, *rows)]
        for cell in cells[0]:
            cell.stylize("bold")
        whole = {*numeric, *solid}
        columns = list(range(len(headers)))
        room = self.width - 1
        left_out = iter(spare)
        while True:
            longest = [_widest(cells, c) for c in columns]
            least = [
                n if c in whole else min(n, max(_NARROW, _widest(cells, c, word=True)))
                for c, n in zip(columns, longest, strict=True)
            ]
            free = room - _APART * (len(columns) - 1)
            drop = next(left_out, None) if sum(least) > free else None
            if drop is None:
                break
            columns.remove(drop)
        words = [
            n if c in whole else _widest(cells, c, word=True)
            for c, n in zip(columns, longest, strict=True)
        ]
        widths = longest
        for floor in (least, [min(a, b) for a, b in zip(least, words, strict=True)], [1] * 99):
            widths = _squeezed(widths, floor, free)
        rule = "─" if self.unicode else "-"
        self.show("")
        for index, row in enumerate(cells):
            self._row([row[c] for c in columns], widths, [c in numeric for c in columns])
            if index == 0:
                self.show(Text(rule * (sum(widths) + _APART * (len(widths) - 1))))
            if index - 1 in gaps:
                self.show("")
        if legend:
            self.line(legend, "dim")
        self.show("")

    def _row(self, cells: Sequence[Text], widths: Sequence[int], right: Sequence[bool]) -> None:
        wrapped = [
            list(cell.wrap(self.console, width, overflow="fold"))
            for cell, width in zip(cells, widths, strict=True)
        ]
        for index in range(max(map(len, wrapped))):
            line = Text(no_wrap=True)
            for lines, width, to_right in zip(wrapped, widths, right, strict=True):
                part = lines[index].copy() if index < len(lines) else Text()
                part.rstrip()
                blanks = " " * max(0, width - part.cell_len)
                line.append(" " * _APART if line else "")
                line = line + Text(blanks) + part if to_right else line + part + Text(blanks)
            line.rstrip()
            self.show(line)


def _widest(cells: Sequence[Sequence[Text]], column: int, word: bool = False) -> int:
    """Columns that the longest line, or the longest word, of a column takes."""
    parts = (row[column].plain for row in cells)
    split = str.split if word else str.splitlines
    return max((cell_len(part) for text in parts for part in split(text)), default=0)


def _squeezed(widths: Sequence[int], floor: Sequence[int], free: int) -> list[int]:
    """Widths that add up to ``free`` where the floor allows it: the widest column gives first."""
    fitted = list(widths)
    while sum(fitted) > free:
        able = [i for i, width in enumerate(fitted) if width > floor[i]]
        if not able:
            break
        fitted[max(able, key=lambda i: fitted[i])] -= 1
    return fitted


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
