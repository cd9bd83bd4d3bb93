"""A curve drawn with characters: Braille dots, or ASCII where the stream has nothing else."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from rich.text import Text

Place = tuple[float, float]

#: Bit of the Braille dot at (column, row) of a cell two dots wide and four high.
_BITS = ((0x01, 0x02, 0x04, 0x40), (0x08, 0x10, 0x20, 0x80))


@dataclass(frozen=True)
class Pen:
    """The signs a picture is drawn with, and the dots of one cell."""

    across: int
    down: int
    mark: str
    cross: str
    bound: str
    up: str
    corner: str
    along: str

    def cell(self, dots: Iterable[Place]) -> str:
        """The sign for the dots set in one cell."""
        if self.across == 1:
            return "*"
        return chr(0x2800 + sum(_BITS[int(x)][int(y)] for x, y in dots))


BRAILLE = Pen(2, 4, "●", "✕", "┊", "│", "└", "─")
ASCII = Pen(1, 1, "O", "X", ":", "|", "+", "-")


@dataclass(frozen=True)
class Axis:
    """A stretch of numbers laid over a number of dots."""

    low: float
    high: float

    @classmethod
    def over(cls, values: Sequence[float]) -> Axis:
        """The axis that just holds all values."""
        low, high = min(values), max(values)
        return cls(low, high) if high > low else cls(low - 0.5, high + 0.5)

    def dot(self, value: float, dots: int) -> int:
        """The dot, counted from ``low``, nearest to a value."""
        share = (value - self.low) / (self.high - self.low)
        return round(share * (dots - 1))

    def label(self, value: float) -> str:
        """A value in three digits; what is nothing beside the length of the axis is 0."""
        return f"{value:.3g}" if abs(value) > 1e-4 * (self.high - self.low) else "0"


@dataclass(frozen=True)
class Picture:
    """A curve, one marked point and one bound on x.

    Parameters
    ----------
    x_name, y_name : str
    x, y : sequence of float
        Finite, of one length; neighbours are joined.
    mark : (x, y), optional
    good : bool
        Whether the mark is what was asked for; it says so by its sign and its colour.
    bound : float, optional
    """

    x_name: str
    y_name: str
    x: Sequence[float]
    y: Sequence[float]
    mark: Place | None = None
    good: bool = True
    bound: float | None = None

    def draw(self, width: int, height: int = 11, pen: Pen = BRAILLE) -> list[Text]:
        """Lines of at most ``width`` columns: y name, picture, x axis with its numbers."""
        extra = [] if self.bound is None else [self.bound]
        marks = [] if self.mark is None else [self.mark]
        x_axis = Axis.over([*self.x, *extra, *(x for x, _ in marks)])
        y_axis = Axis.over([*self.y, *(y for _, y in marks)])
        middle = (y_axis.low + y_axis.high) / 2
        places = {0: y_axis.high, height // 2: middle, height - 1: y_axis.low}
        ticks = {row: y_axis.label(value) for row, value in places.items()}
        margin = max(map(len, ticks.values()))
        columns = max(10, width - margin - 2)
        cells = self._cells(x_axis, y_axis, columns, height, pen)
        lines = [Text(f"{'':{margin}} {self.y_name}")]
        for row in range(height):
            line = Text(f"{ticks.get(row, ''):>{margin}} {pen.up}", "dim")
            for column in range(columns):
                line.append(*cells.get((column, row), (" ", "")))
            line.rstrip()
            lines.append(line)
        lines.append(Text(f"{'':{margin}} {pen.corner}{pen.along * columns}", "dim"))
        lines.append(Text(f"{'':{margin + 2}}{self._feet(x_axis, columns)}", "dim"))
        return lines

    def _cells(
        self, x_axis: Axis, y_axis: Axis, columns: int, rows: int, pen: Pen
    ) -> dict[tuple[int, int], tuple[str, str]]:
        """Sign and style of every cell that is not blank."""
        wide, high = columns * pen.across, rows * pen.down

        def cell(x: float, y: float) -> tuple[int, int]:
            column = x_axis.dot(x, wide) // pen.across
            return column, (high - 1 - y_axis.dot(y, high)) // pen.down

        cells: dict[tuple[int, int], tuple[str, str]] = {}
        if self.bound is not None:
            column = cell(self.bound, y_axis.low)[0]
            cells |= {(column, row): (pen.bound, "yellow") for row in range(rows)}
        spots = [
            (x_axis.dot(x, wide), high - 1 - y_axis.dot(y, high))
            for x, y in zip(self.x, self.y, strict=True)
        ]
        dots: dict[tuple[int, int], set[Place]] = {}
        for x, y in _joined(spots):
            key = (x // pen.across, y // pen.down)
            dots.setdefault(key, set()).add((x % pen.across, y % pen.down))
        cells |= {key: (pen.cell(inside), "cyan") for key, inside in dots.items()}
        if self.mark is not None:
            look = (pen.mark, "bold green") if self.good else (pen.cross, "bold red")
            cells[cell(*self.mark)] = look
        return cells

    def _feet(self, axis: Axis, columns: int) -> str:
        """The numbers under the x axis, and its name where there is room."""
        low, high = axis.label(axis.low), axis.label(axis.high)
        feet = [*low.ljust(columns)]
        feet[columns - len(high) :] = high
        middle = (columns - len(self.x_name)) // 2
        if len(low) + 1 < middle:
            feet[middle : middle + len(self.x_name)] = self.x_name
        return "".join(feet)


def _joined(spots: Sequence[tuple[int, int]]) -> Iterable[tuple[int, int]]:
    """All dots on the straight lines from each spot to the next."""
    if spots:
        yield spots[0]
    for (x, y), (to_x, to_y) in pairwise(spots):
        steps = max(abs(to_x - x), abs(to_y - y))
        for step in range(1, steps + 1):
            yield round(x + (to_x - x) * step / steps), round(y + (to_y - y) * step / steps)
