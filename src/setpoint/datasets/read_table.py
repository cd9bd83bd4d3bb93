"""A table from a file: read as what its name says, or refused with a sentence."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from setpoint._core.errors import DataError, FileError, KindError
from setpoint._core.words import listing, nearest
from setpoint.datasets.arrow_files import ARROW_FORMATS, read_arrow
from setpoint.datasets.columns.column_roles import column
from setpoint.datasets.text_dialect import TEXT_DIALECTS
from setpoint.datasets.text_files import read_text

if TYPE_CHECKING:
    import pandas as pd


def endings() -> tuple[str, ...]:
    """Endings of the files that are read."""
    return (*TEXT_DIALECTS, *ARROW_FORMATS)


def read_table(path: str | os.PathLike[str], columns: Sequence[str] | None = None) -> pd.DataFrame:
    r"""Read a table from a file.

    The ending of the name tells the type: ``.csv`` and ``.csv.gz`` (commas), ``.tsv`` (tabs), all
    in UTF-8 with a header line; ``.parquet``; ``.feather`` and ``.arrow``. Empty cells, ``NA``,
    ``NaN``, ``null`` and ``None`` are missing values, as in pandas.

    Parameters
    ----------
    path : str or path
        The file.
    columns : sequence of str, optional
        The columns wanted, in this order; all by default.

    Returns
    -------
    pandas.DataFrame
        At least one row, unrepeated column names (text), index 0 … n−1.

    Raises
    ------
    FileError
        If there is no such file, or it is empty, of an unknown or another type, damaged, without
        rows, not UTF-8, has a repeated column name or a row longer than the header.
    DataError
        If a column wanted is not there, or is named twice.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = pathlib.Path(folder, "loans.csv")
    ...     _ = file.write_text("amount,fraud\n120,no\n950,yes\n")
    ...     table = read_table(file)
    >>> table
       amount fraud
    0     120    no
    1     950   yes
    """
    check_columns(columns)
    file = Path(path)
    with worded_os_errors(file):
        table = _read(file, ending_of(file), columns)
    if len(table) == 0:
        raise FileError(f'"{file}" has a header but no rows.')
    if columns is None:
        return table
    for name in columns:
        column(table, name, "wanted")
    return table.loc[:, list(columns)]


def read_as_text(path: str | os.PathLike[str], table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of a separated file as the texts they are written in, to be written again.

    ``table`` is what :func:`read_table` made of the file; it is returned where the file is no text.
    """
    file = Path(path)
    dialect = TEXT_DIALECTS.get(ending_of(file))
    if dialect is None:
        return table
    texts = read_text(file, dialect, as_written=True)
    return texts if texts.shape == table.shape else table


def check_columns(columns: Sequence[str] | None) -> None:
    """Raise if the columns wanted are no list of unrepeated names."""
    if isinstance(columns, str):
        raise KindError(f'columns is the text "{columns}"; give a list: columns=["{columns}"].')
    if columns is not None and len(set(columns)) < len(columns):
        raise DataError(f"columns names one of {listing(columns)} twice; name each once.")


@contextmanager
def worded_os_errors(file: Path) -> Iterator[None]:
    """Turn failures of the system into sentences about the file."""
    try:
        yield
    except OSError as error:
        raise FileError(f'"{file}" cannot be opened: {error.strerror or error}.') from error


def _read(file: Path, ending: str, columns: Sequence[str] | None) -> pd.DataFrame:
    if ending in ARROW_FORMATS:
        return read_arrow(file, columns, ARROW_FORMATS[ending])
    return read_text(file, TEXT_DIALECTS[ending])


def ending_of(file: Path) -> str:
    """Return the known ending of a file that exists and is not empty."""
    if file.is_dir():
        raise FileError(f'"{file}" is a folder; give one file in it.')
    if not file.exists():
        raise FileError(_missing(file))
    ending = next((e for e in endings() if file.name.lower().endswith(e)), None)
    if ending is None:
        raise FileError(
            f'"{file.name}" is of an unknown type; the name must end in '
            f"{listing(endings()[:-1])} or {endings()[-1]}."
        )
    if file.stat().st_size == 0:
        raise FileError(f'"{file}" is empty; it needs a header and rows.')
    return ending


def _missing(file: Path) -> str:
    folder = file.parent
    if not folder.is_dir():
        return f'there is no file "{file}": there is no folder "{folder}".'
    # Names are compared without their endings: .csv alone would make any two files alike.
    files = sorted(entry.name for entry in folder.iterdir() if entry.is_file())
    stem = nearest(_stem(file.name), map(_stem, files))
    alike = [name for name in files if _stem(name) == stem]
    near = nearest(file.name, alike) or next(iter(alike), None)
    return f'there is no file "{file}".' + (f' Did you mean "{folder / near}"?' if near else "")


def _stem(name: str) -> str:
    return name.partition(".")[0]
