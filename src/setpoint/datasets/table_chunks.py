"""A table from a file a chunk at a time: the cells of the whole, in the memory of a chunk."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from setpoint._core.errors import FileError, KindError
from setpoint._core.options import whole
from setpoint.datasets import arrow_files, text_files
from setpoint.datasets.columns.column_roles import column
from setpoint.datasets.columns.schema import Schema
from setpoint.datasets.read_table import check_columns, ending_of, worded_os_errors
from setpoint.datasets.text_dialect import TEXT_DIALECTS

if TYPE_CHECKING:
    import pandas as pd


class Chunks(Iterator["pd.DataFrame"]):
    """The chunks of a file, one after another; made by :func:`read_chunks`.

    Attributes
    ----------
    progress : float
        The share of the work of reading that is done, from 0 to 1: bytes read, or rows.
    start : int
        Rows of the file before the chunk last given.
    """

    def __init__(self, path: Path, columns: Sequence[str] | None) -> None:
        self.path = path
        self.columns = columns
        self.progress = 0.0
        self.start = 0
        self._rows_read = 0
        self._frames: Generator[pd.DataFrame] | None = None

    def _report(self, share: float) -> None:
        self.progress = max(self.progress, share)

    def __next__(self) -> pd.DataFrame:
        if self._frames is None:
            raise StopIteration
        with worded_os_errors(self.path):
            frame = next(self._frames, None)
        if frame is None:
            self.close()
            if not self._rows_read:
                raise FileError(f'"{self.path}" has a header but no rows.')
            self.progress = 1.0
            raise StopIteration
        self.start = self._rows_read
        self._rows_read += len(frame)
        return frame if self.columns is None else frame.loc[:, list(self.columns)]

    def close(self) -> None:
        """Close the file; nothing more is given."""
        if self._frames is not None:
            self._frames.close()
            self._frames = None

    def __enter__(self) -> Chunks:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def read_chunks(
    path: str | os.PathLike[str],
    rows: int = 100_000,
    columns: Sequence[str] | None = None,
    *,
    like: Schema | None = None,
) -> Chunks:
    r"""Read a table from a file, some rows at a time.

    The chunks put together are what :func:`read_table` makes of the file, cell by cell, and a
    column is of one type in all of them. The index counts the rows of the file. Two things differ:
    dictionaries of a Parquet or Arrow file are given as their values, not as categories, and whole
    numbers of a text file beyond 64 bits as texts.

    Parameters
    ----------
    path : str or path
        As in :func:`read_table`.
    rows : int
        Rows a chunk; the last may have fewer.
    columns : sequence of str, optional
        The columns wanted, in this order; all by default.
    like : Schema, optional
        The schema that the chunks are for. A text file is then read once instead of twice: the
        columns that are numbers to the schema are read as numbers, as far as a chunk allows, and
        all others as the texts they are.

    Returns
    -------
    Chunks
        An iterator of data frames that knows its ``progress`` and the ``start`` of the last chunk.

    Raises
    ------
    FileError, DataError, KindError
        As :func:`read_table`, at once or, where only the rows tell, when they are read.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "loans.csv")
    ...     _ = file.write_text("amount,fraud\n120,no\n950,yes\n\n70.5,no\n")
    ...     for chunk in read_chunks(file, rows=2):
    ...         print(chunk)
       amount fraud
    0   120.0    no
    1   950.0   yes
       amount fraud
    2    70.5    no
    """
    whole("rows", rows, 1, error=KindError)
    check_columns(columns)
    file = Path(path)
    with worded_os_errors(file):
        ending = ending_of(file)
        dialect = TEXT_DIALECTS.get(ending)
        if dialect is None:
            header = arrow_files.header(file, arrow_files.ARROW_FORMATS[ending])
        else:
            header = text_files.header(file, dialect)
    for name in columns or ():
        column(header, name, "wanted")
    chunks = Chunks(file, columns)
    rows = int(rows)
    report = chunks._report
    if dialect is None:
        kind = arrow_files.ARROW_FORMATS[ending]
        chunks._frames = arrow_files.chunks(file, kind, rows, columns, report)
    elif like is None:
        chunks._frames = text_files.chunks_alike(file, dialect, rows, report)
    else:
        texts = set(header.columns) - {c.name for c in like.columns if c.kind == "number"}
        chunks._frames = text_files.chunks_as(file, dialect, rows, texts, report)
    return chunks


def count_rows(path: str | os.PathLike[str]) -> int | None:
    """Count the rows of a file, where it says so itself; None for a text file, to be read for that.

    Raises
    ------
    FileError
        As :func:`read_table`.
    """
    file = Path(path)
    kind = arrow_files.ARROW_FORMATS.get(ending_of(file))
    return None if kind is None else arrow_files.rows_of(file, kind)
