"""The fingerprint of some rows: known again when they come back, in any order or among others.

A row's mark is a 64-bit hash of its label and its scores. The digest is the sum of all marks, the
same for the same rows in any order. The sketch is the least marks of rows that no other row equals:
sets that have rows in common have the least marks of those in common (bottom-k sampling, Cohen &
Kaplan 2007). How many marks two sets have in common by accident follows from how often rows of one
set equal each other; where scores have few values that is often, and only the whole set is known
again. Rows scored anew by another model are other rows to it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from setpoint._core.errors import DataError, ErrorCode, FileError, Wording
from setpoint.expressions import Columns

KEPT = 256  #: marks in a sketch
_LEAST = 3  # fewer rows are not known again
_MANY = 1000  # so many are the same rows even where scores have few values
_FEW, _SHARE = 5, 0.05  # common marks, and their share beyond what accident explains


@dataclass(frozen=True)
class Fingerprint:
    """What some rows are known by.

    Attributes
    ----------
    rows : int
    digest : str
    sketch : tuple of int
    alike : float
        The chance that two of these rows are equal, from above.
    """

    rows: int
    digest: str
    sketch: tuple[int, ...] = ()
    alike: float = 1.0

    @classmethod
    def of(cls, columns: Columns) -> Fingerprint:
        """The fingerprint of labels and scores."""
        marks = row_marks(columns)
        digest = int(np.sum(marks, dtype=np.uint64))
        least = np.sort(_least(marks, 4 * KEPT))
        alone = np.ones(least.size, bool)
        alone[1:] &= least[1:] != least[:-1]
        alone[:-1] &= least[:-1] != least[1:]
        twins = int((~alone).sum()) + 3  # as if three more had been seen
        alike = min(1.0, twins / (least.size * max(columns.size - 1, 1)))
        return cls(columns.size, f"{digest:016x}", tuple(least[alone][:KEPT].tolist()), alike)

    @property
    def knows_rows(self) -> bool:
        """Whether a part of these rows would be known again among as many others."""
        return len(self.sketch) >= _LEAST and self._accident(self) < 0.3

    def _accident(self, other: Fingerprint) -> float:
        """The share of rows that have an equal in the other set by accident, at most."""
        return min(1.0, min(self.alike, other.alike) * max(self.rows, other.rows))

    def shares_rows(self, other: Fingerprint) -> bool:
        """Whether rows of the other are among these."""
        if min(self.rows, other.rows) < _LEAST:
            return False  # a row or two that look alike are nothing strange
        if self.same_rows(other):
            return True
        if min(len(self.sketch), len(other.sketch)) < _LEAST:
            return False
        reach = min(self._reach(), other._reach())
        a, b = ({m for m in f.sketch if m <= reach} for f in (self, other))
        common, fewer = len(a & b), min(len(a), len(b))
        if common < min(_FEW, max(fewer, 1)):
            return False
        return common > (_SHARE + 3 * self._accident(other)) * fewer

    def by_accident(self) -> bool:
        """Whether as many other rows may well look the same: a few rows, scores of few values."""
        return len(self.sketch) < _LEAST and self.rows < _MANY

    def same_rows(self, other: Fingerprint) -> bool:
        """Whether these are the same rows, in any order."""
        return (self.rows, self.digest) == (other.rows, other.digest)

    def _reach(self) -> float:
        """The mark up to which the sketch is complete."""
        return self.sketch[-1] if len(self.sketch) == KEPT else float("inf")

    def to_json(self) -> dict[str, Any]:
        """Plain data that :meth:`from_json` reads back."""
        return {
            "rows": self.rows,
            "digest": self.digest,
            "sketch": [f"{m:016x}" for m in self.sketch],
            "alike": self.alike,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Fingerprint:
        """Read what :meth:`to_json` wrote."""
        try:
            marks = tuple(int(m, 16) for m in data["sketch"])
            return cls(int(data["rows"]), str(data["digest"]), marks, float(data["alike"]))
        except (KeyError, TypeError, ValueError) as error:
            raise FileError(f"this is not a fingerprint: {error!r}") from error

    def __str__(self) -> str:
        return self.digest[:8]


def refuse_seen(
    rows: Fingerprint, seen: Iterable[Fingerprint], what: str, way: str | Wording
) -> None:
    """Raise where some of the rows were used before."""
    for other in seen:
        if rows.shares_rows(other):
            some = "" if rows.same_rows(other) else "some of "
            raise DataError(
                "{some}the {what} were already used {way}",
                some=some,
                what=what,
                way=way,
                code=ErrorCode.ROWS_USED,
            )


def _least(marks: np.ndarray, count: int) -> np.ndarray:
    return marks if marks.size <= count else np.partition(marks, count - 1)[:count]


def row_marks(columns: Columns) -> np.ndarray:
    """One 64-bit mark per row (the finalizer of splitmix64, Steele et al. 2014)."""
    n = columns.size
    marks = np.zeros(n, np.uint64)
    spare = np.empty(n, np.uint64)
    for part in (columns.scores, columns.actual):
        if part is None or n == 0:
            continue
        table = np.asarray(part).reshape(n, -1)
        for j in range(table.shape[1]):
            np.add(table[:, j], 0.0, out=spare.view(np.float64), casting="unsafe")  # −0 as 0
            marks ^= spare
            _mix(marks, spare)
    return marks


def _mix(x: np.ndarray, spare: np.ndarray) -> None:
    """Stir each number, in place."""
    x += np.uint64(0x9E3779B97F4A7C15)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1)):
        np.right_shift(x, np.uint64(shift), out=spare)
        x ^= spare
        x *= np.uint64(factor)
