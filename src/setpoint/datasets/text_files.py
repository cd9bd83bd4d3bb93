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
from collections.abc import Callable, Generator, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

import numpy as np

from setpoint._core.errors import FileError
from setpoint.datasets.file_signature import refuse_other_type, refuse_repeated
from setpoint.datasets.text_dialect import SEPARATORS, TextDialect

if TYPE_CHECKING:
    import pandas as pd


_UNPACKING = (EOFError, gzip.BadGzipFile, zlib.error)


def exact_floats() -> dict[str, Any]:
    """Options that make ``read_csv`` return the float nearest to the text, to the last bit.

    pandas 3.1 does so by itself and warns of the option; before, the default could miss by a bit,
    and a score on the threshold would be decided differently.
    """
    import pandas as pd

    release = tuple(int(part) for part in pd.__version__.split(".")[:2])
    return {} if release >= (3, 1) else {"float_precision": "round_trip"}


def read_text(path: Path, dialect: TextDialect, as_written: bool = False) -> pd.DataFrame:
    """Read separated text; the caller has checked that ``path`` is a file that is not empty.

    ``as_written``: every value is the text in the file, and nothing is missing.
    """
    import pandas as pd

    options = _options(dialect)
    if as_written:
        options |= {"dtype": str, "keep_default_na": False}
    if dialect.zipped:
        _refuse_not_gzip(path)
    with _worded_failures(path, dialect), _opened(path, dialect) as file:
        _refuse_not_text(path, file.read(4096))
        _check_header(path, dialect)
        file.seek(0)
        with warnings.catch_warnings():
            # index_col=False: a first row longer than the header warns and is not an index.
            warnings.simplefilter("error", pd.errors.ParserWarning)
            return pd.read_csv(file, **options)


def _opened(path: Path, dialect: TextDialect) -> BinaryIO:
    return cast("BinaryIO", gzip.open(path, "rb") if dialect.zipped else path.open("rb"))


def _rows(path: Path, dialect: TextDialect) -> Generator[tuple[int, list[str]]]:
    """Yield the line number and the fields of each row that is not blank."""
    with (
        _opened(path, dialect) as file,
        io.TextIOWrapper(file, encoding="utf-8-sig", newline="") as text,
    ):
        reader = csv.reader(text, delimiter=dialect.separator)
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


def _check_header(path: Path, dialect: TextDialect) -> None:
    """Hold the header to unrepeated names and to the separator the ending of the name promises."""
    with closing(_rows(path, dialect)) as rows:
        _, header = next(rows, (0, [""]))
        _, first = next(rows, (0, [""])) if len(header) == 1 else (0, [""])
    # pandas numbers columns without a name by their place, so these do not clash.
    refuse_repeated(path, [name for name in header if name])
    if len(header) > 1:
        return
    promised = dialect.separators
    line = dialect.separator.join(first)
    for other, plural in SEPARATORS.items():
        if other != dialect.separator and 0 < header[0].count(other) == line.count(other):
            raise FileError(
                f'"{path.name}" is separated by {plural}, not {promised}; save it with {promised}.'
            )


def _parser_sentence(path: Path, dialect: TextDialect, reason: str) -> str:
    """Word a failure of the parser; a row too long is looked up for its line and its lengths."""
    with suppress(csv.Error, ValueError, *_UNPACKING):
        width = 0
        for line, row in _rows(path, dialect):
            width = width or len(row)
            if any(row[width:]):
                return (
                    f'line {line} of "{path.name}" has {len(row)} fields, the header {width}; '
                    "put a field that holds a separator in quotes."
                )
    if match := re.search(r"EOF inside string starting at row (\d+)", reason):
        line = int(match[1]) + 1
        return (
            f'"{path.name}" has a quote that is opened near line {line} and never closed; close it.'
        )
    reason = reason.removeprefix("Error tokenizing data. C error: ").strip()
    return f'"{path.name}" cannot be read as separated text: {reason}.'


# Separated text a chunk at a time, each column of one type in all chunks.
#
# Whole, a column is read as whole numbers if all its cells are, else as floats, else as truth
# values, else as texts; a gap makes floats of whole numbers. A chunk alone may look like something
# narrower.
# So the file is read twice: once to learn what each chunk looks like, and once as the widest of
# them.


#: how a chunk of a column looks; "nothing" if all its cells are missing
NOTHING, WHOLE, FLOAT, TRUTH, GAPPED, TEXT = (
    "nothing", "whole", "float", "truth", "truth with gaps", "text",
)  # fmt: skip
_TYPES = {NOTHING: "float64", WHOLE: "int64", FLOAT: "float64", TRUTH: "bool"}
_WORDS = {"true": True, "false": False}

Report = Callable[[float], None]


def header(path: Path, dialect: TextDialect) -> pd.DataFrame:
    """Hold a file to being separated text, and return its header as a table without rows."""
    if dialect.zipped:
        _refuse_not_gzip(path)
    with _worded_failures(path, dialect):
        with _open_with_position(path, dialect) as (file, _):
            _refuse_not_text(path, file.read(4096))
        _check_header(path, dialect)
        with _open_with_position(path, dialect) as (file, _):
            import pandas as pd

            return pd.read_csv(file, nrows=0, **_options(dialect))


def chunks_as(
    path: Path, dialect: TextDialect, rows: int, texts: set[str], report: Report
) -> Generator[pd.DataFrame]:
    """Chunks with the columns ``texts`` as they are written, all others as what a chunk holds."""
    types = dict.fromkeys(texts, str)
    for chunk in _chunks(path, dialect, rows, report, dtype=types):
        for name in chunk.columns.difference(list(texts)):
            if chunk[name].dtype.kind in "iu":
                chunk[name] = chunk[name].astype("float64")
        yield chunk


def chunks_alike(
    path: Path, dialect: TextDialect, rows: int, report: Report
) -> Generator[pd.DataFrame]:
    """Chunks of the table that the whole file is."""
    names: list[str] = []
    looks: list[str] = []
    only = None
    first_pass = _chunks(path, dialect, rows, lambda share: report(share / 2))
    for number, chunk in enumerate(first_pass):
        seen = [_look(chunk.iloc[:, j]) for j in range(chunk.shape[1])]
        looks = seen if not looks else [_wider(a, b) for a, b in zip(looks, seen, strict=True)]
        names, only = list(chunk.columns), chunk if number == 0 else None
    if only is not None:  # one chunk, which is the whole
        yield only
    if only is not None or not names:
        return
    kinds = dict(zip(names, looks, strict=True))
    types = {name: _TYPES.get(look, str) for name, look in kinds.items()}
    second = _chunks(path, dialect, rows, lambda s: report(0.5 + s / 2), dtype=types)
    for chunk in second:
        for name, look in kinds.items():
            if look == GAPPED:
                words = chunk[name].astype(object).str.strip().str.lower()
                chunk[name] = words.map(_WORDS).astype(object)
        yield chunk


def _chunks(
    path: Path, dialect: TextDialect, rows: int, report: Report, **options: Any
) -> Generator[pd.DataFrame]:
    import pandas as pd

    size = max(path.stat().st_size, 1)
    read: Any = pd.read_csv
    with (
        _worded_failures(path, dialect),
        _open_with_position(path, dialect) as (file, raw),
        read(file, chunksize=rows, **_options(dialect), **options) as reader,
    ):
        iterator = iter(reader)
        while True:
            # Not around the yield: what the caller warns of is the caller's.
            with warnings.catch_warnings():
                warnings.simplefilter("error", pd.errors.ParserWarning)
                chunk = next(iterator, None)
            if chunk is None:
                return
            report(min(1.0, raw.tell() / size))
            if len(chunk):
                yield chunk


def _options(dialect: TextDialect) -> dict[str, Any]:
    """Options of ``read_csv`` for a dialect; whole and chunked reading share them."""
    return {
        "sep": dialect.separator,
        "index_col": False,
        "encoding": "utf-8-sig",
        "low_memory": False,
        **exact_floats(),
    }


@contextmanager
def _open_with_position(path: Path, dialect: TextDialect) -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """The bytes of the text, and the file they come from, which tells how far it is read."""
    with path.open("rb") as raw:
        if not dialect.zipped:
            yield raw, raw
            return
        with gzip.GzipFile(fileobj=raw) as file:
            yield cast("BinaryIO", file), raw


@contextmanager
def _worded_failures(path: Path, dialect: TextDialect) -> Iterator[None]:
    """Turn failures of the parser into sentences about the file."""
    import pandas as pd

    try:
        yield
    except UnicodeDecodeError as error:
        raise FileError(f'"{path.name}" is not UTF-8; save it as UTF-8.') from error
    except _UNPACKING as error:
        raise FileError(
            f'"{path.name}" cannot be unpacked as gzip ({error}). It may be cut short; '
            "copy it again."
        ) from error
    except (pd.errors.ParserError, pd.errors.ParserWarning, csv.Error) as error:
        raise FileError(_parser_sentence(path, dialect, str(error))) from error


def _look(column: pd.Series) -> str:
    """How a chunk of a column looks."""
    kind = column.dtype.kind
    if kind == "f":
        return NOTHING if column.isna().all() else FLOAT
    if kind == "b":
        return TRUTH
    if kind == "i":
        return WHOLE
    # Whole numbers beyond 64 bits are texts too: pandas has no one type for them.
    if kind == "O" and all(isinstance(cell, bool | np.bool_) for cell in column.dropna()):
        return GAPPED
    return TEXT


def _wider(a: str, b: str) -> str:
    """How two chunks look as one.

    >>> _wider(WHOLE, FLOAT), _wider(WHOLE, NOTHING), _wider(TRUTH, NOTHING), _wider(TRUTH, WHOLE)
    ('float', 'float', 'truth with gaps', 'text')
    """
    if a == b:
        return a
    pair = {a, b}
    if pair <= {NOTHING, WHOLE, FLOAT}:
        return FLOAT
    return GAPPED if pair <= {NOTHING, TRUTH, GAPPED} else TEXT
