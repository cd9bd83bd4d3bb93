"""The kind of a file by its first bytes, where its name says something else."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from setpoint._core.errors import FileError

# first bytes, what they are, and what to do with such a file
_SIGNATURES = (
    (b"PAR1", "Parquet", "rename it to end in .parquet"),
    (b"ARROW1", "Arrow", "rename it to end in .arrow"),
    (b"FEA1", "Feather version 1", "write it again as Feather version 2 or Parquet"),
    (b"\x1f\x8b", "gzip", "rename it to end in .csv.gz, or unpack it"),
    (b"PK\x03\x04", "an Excel workbook or a zip archive", "save the sheet as CSV UTF-8"),
    (b"\xd0\xcf\x11\xe0", "an old Excel workbook", "save the sheet as CSV UTF-8"),
    (b"\x89PNG", "a PNG image", "give a table"),
    (b"\xff\xd8\xff", "a JPEG image", "give a table"),
    (b"%PDF", "a PDF document", "give a table"),
)


def refuse_other_type(path: Path, head: bytes, expected: str) -> None:
    """Raise if ``head`` is the beginning of a known kind of file other than ``expected``.

    >>> refuse_other_type(Path("a.csv"), b"PAR1", "text")
    Traceback (most recent call last):
        ...
    setpoint.FileError: "a.csv" holds Parquet, not text; rename it to end in .parquet.
    """
    for signature, kind, way_out in _SIGNATURES:
        if head.startswith(signature) and kind != expected:
            raise FileError(f'"{path.name}" holds {kind}, not {expected}; {way_out}.')


def refuse_repeated(path: Path, names: Sequence[str]) -> None:
    """Raise if a column name stands twice.

    >>> refuse_repeated(Path("a.csv"), ["x", "y", "x"])
    Traceback (most recent call last):
        ...
    setpoint.FileError: "a.csv" has 2 columns named "x"; rename them.
    """
    for name, times in Counter(names).items():
        if times > 1:
            raise FileError(f'"{path.name}" has {times} columns named "{name}"; rename them.')
