"""Comma- and tab-separated text, with the silent repairs of pandas turned into sentences.

Left alone, pandas renames a repeated column, takes the first column as an index where rows are
longer than the header, and reads a file separated by semicolons as one column. Each is caught here.
"""

from __future__ import annotations

import csv
import gzip
import io
import re
import warnings
import zlib
from collections.abc import Generator
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from setpoint._core.errors import FileError
from setpoint.datasets.file_signature import refuse_other_type, refuse_repeated

if TYPE_CHECKING:
    import pandas as pd

_UNPACKING = (EOFError, gzip.BadGzipFile, zlib.error)
_SEPARATORS = {",": "commas", "\t": "tabs", ";": "semicolons", "|": "bars"}


def exact_floats() -> dict[str, Any]:
    """Options that make ``read_csv`` return the float nearest to the text, to the last bit.

    pandas 3.1 does so by itself and warns of the option; before, the default could miss by a bit,
    and a score on the threshold would be decided differently.
    """
    import pandas as pd

    release = tuple(int(part) for part in pd.__version__.split(".")[:2])
    return {} if release >= (3, 1) else {"float_precision": "round_trip"}


def read_text(path: Path, separator: str, zipped: bool, as_written: bool = False) -> pd.DataFrame:
    """Read separated text; the caller has checked that ``path`` is a file that is not empty.

    ``as_written``: every value is the text in the file, and nothing is missing.
    """
    import pandas as pd

    values: dict[str, Any] = (
        {"dtype": str, "keep_default_na": False} if as_written else exact_floats()
    )

    if zipped:
        _refuse_not_gzip(path)
    try:
        with _opened(path, zipped) as file:
            _refuse_not_text(path, file.read(4096))
            _check_header(path, separator, zipped)
            file.seek(0)
            with warnings.catch_warnings():
                # index_col=False: a first row longer than the header warns and is not an index.
                warnings.simplefilter("error", pd.errors.ParserWarning)
                return pd.read_csv(
                    file,
                    sep=separator,
                    index_col=False,
                    encoding="utf-8-sig",
                    low_memory=False,
                    **values,
                )
    except UnicodeDecodeError as error:
        raise FileError(f'"{path.name}" is not UTF-8; save it as UTF-8.') from error
    except _UNPACKING as error:
        raise FileError(
            f'"{path.name}" cannot be unpacked as gzip ({error}). It may be cut short; '
            "copy it again."
        ) from error
    except (pd.errors.ParserError, pd.errors.ParserWarning, csv.Error) as error:
        raise FileError(_parser_sentence(path, separator, zipped, str(error))) from error


def _opened(path: Path, zipped: bool) -> BinaryIO:
    return cast("BinaryIO", gzip.open(path, "rb") if zipped else path.open("rb"))


def _rows(path: Path, separator: str, zipped: bool) -> Generator[tuple[int, list[str]]]:
    """Yield the line number and the fields of each row that is not blank."""
    with (
        _opened(path, zipped) as file,
        io.TextIOWrapper(file, encoding="utf-8-sig", newline="") as text,
    ):
        reader = csv.reader(text, delimiter=separator)
        for row in reader:
            if any(cell.strip() for cell in row):
                yield reader.line_num, row


def _refuse_not_gzip(path: Path) -> None:
    with path.open("rb") as file:
        head = file.read(8)
    refuse_other_type(path, head, "gzip")
    if not head.startswith(b"\x1f\x8b"):
        raise FileError(
            f'"{path.name}" is not gzip; if it is plain text, rename it to end in .csv.'
        )


def _refuse_not_text(path: Path, head: bytes) -> None:
    if not head.strip():
        raise FileError(f'"{path}" is empty; it needs a header and rows.')
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise FileError(f'"{path.name}" is not UTF-8 but UTF-16; save it as UTF-8.')
    refuse_other_type(path, head, "text")
    if b"\0" in head:
        raise FileError(f'"{path.name}" does not hold text; it is another kind of file, renamed.')


def _check_header(path: Path, separator: str, zipped: bool) -> None:
    """Hold the header to unrepeated names and to the separator the ending of the name promises."""
    with closing(_rows(path, separator, zipped)) as rows:
        _, header = next(rows, (0, [""]))
        _, first = next(rows, (0, [""])) if len(header) == 1 else (0, [""])
    # pandas numbers columns without a name by their place, so these do not clash.
    refuse_repeated(path, [name for name in header if name])
    if len(header) > 1:
        return
    usual, line = _SEPARATORS[separator], separator.join(first)
    for other, plural in _SEPARATORS.items():
        if other != separator and 0 < header[0].count(other) == line.count(other):
            raise FileError(
                f'"{path.name}" is separated by {plural}, not {usual}; save it with {usual}.'
            )


def _parser_sentence(path: Path, separator: str, zipped: bool, reason: str) -> str:
    """Word a failure of the parser; a row too long is looked up for its line and its lengths."""
    with suppress(csv.Error, ValueError, *_UNPACKING):
        width = 0
        for line, row in _rows(path, separator, zipped):
            width = width or len(row)
            if any(row[width:]):
                return (
                    f'line {line} of "{path.name}" has {len(row)} fields, the header {width}; '
                    "put a field that holds a separator in quotes."
                )
    if found := re.search(r"EOF inside string starting at row (\d+)", reason):
        line = int(found[1]) + 1
        return (
            f'"{path.name}" has a quote that is opened near line {line} and never closed; close it.'
        )
    reason = reason.removeprefix("Error tokenizing data. C error: ").strip()
    return f'"{path.name}" cannot be read as separated text: {reason}.'
