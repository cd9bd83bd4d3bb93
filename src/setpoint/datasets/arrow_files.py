"""Parquet and Arrow (Feather) files."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from setpoint._core.errors import FileError
from setpoint.datasets.file_signature import refuse_other_type, refuse_repeated

if TYPE_CHECKING:
    import pandas as pd


#: ending of a file's name -> format; Feather (version 2) is an Arrow file
ARROW_FORMATS = {".parquet": "Parquet", ".feather": "Arrow", ".arrow": "Arrow"}


def read_arrow(path: Path, columns: Sequence[str] | None, kind: str) -> pd.DataFrame:
    """Read a Parquet file (only the wanted columns are decoded), or an Arrow file or stream."""
    import pyarrow as pa

    with path.open("rb") as file:
        refuse_other_type(path, file.read(8), kind)
    try:
        table = _parquet(path, columns) if kind == "Parquet" else _arrow(path, columns)
        frame = table.to_pandas()
    except FileError:
        raise
    except (pa.ArrowException, OSError, EOFError) as error:
        reason = str(error).splitlines()[0].split(". ")[0].rstrip(". ")
        raise FileError(
            f'"{path.name}" cannot be read as {kind}: {reason}. '
            "It may be cut short or another kind of file, renamed."
        ) from error
    return _plain(frame)


def _parquet(path: Path, columns: Sequence[str] | None) -> Any:
    from pyarrow import parquet

    # Not parquet.read_table: it takes folders named key=value for columns.
    with parquet.ParquetFile(path) as file:
        stored = file.schema_arrow.names
        refuse_repeated(path, stored)
        return file.read(columns=_stored(columns, stored))


def _arrow(path: Path, columns: Sequence[str] | None) -> Any:
    import pyarrow as pa

    with pa.OSFile(str(path)) as source:
        is_file = source.read(6) == b"ARROW1"
        source.seek(0)
        with pa.ipc.open_file(source) if is_file else pa.ipc.open_stream(source) as reader:
            refuse_repeated(path, reader.schema.names)
            table = reader.read_all()
    names = _stored(columns, table.column_names)
    return table if names is None else table.select(names)


def _stored(columns: Sequence[str] | None, stored: Sequence[str]) -> list[str] | None:
    """Return the wanted columns, or all if one is not there: the caller names the nearest."""
    if not columns or not set(columns) <= set(stored):
        return None
    return list(columns)


def _plain(frame: pd.DataFrame) -> pd.DataFrame:
    """Columns named by text and rows counted from 0; a named index is a column like any other."""
    named = any(level is not None for level in frame.index.names)
    frame = frame.reset_index(drop=not named)
    frame.columns = [str(name) for name in frame.columns]
    return frame


# Parquet and Arrow (Feather) files a chunk at a time, each column of one type in all chunks.
#
# Without gaps a column of whole numbers is read as such, with gaps as floats; truth values with
# gaps become objects. Whether there is a gap in the file is known from the counts that it keeps,
# or from a first look at those columns alone. Dictionaries, which may differ from batch to batch,
# are written out: a cell is the same, its column is of values instead of categories.


Report = Callable[[float], None]


@dataclass(frozen=True)
class ArrowFileFacts:
    """What is known of a file before its rows are read.

    Attributes
    ----------
    rows : int
    gapped : frozenset of str
        Columns of whole numbers or truth values with a gap somewhere.
    counted : tuple of (str, int, int), optional
        Name, start and step of an index that is no column of the file but is counted up.
    """

    rows: int
    gapped: frozenset[str]
    counted: tuple[str, int, int] | None


def header(path: Path, kind: str) -> pd.DataFrame:
    """A table without rows, with the columns that the file has."""
    with _worded_failures(path, kind), _opened(path, kind) as file:
        refuse_repeated(path, file.schema.names)
        rows = file.rows()
        return _framed(
            file.schema.empty_table(), ArrowFileFacts(rows, frozenset(), _index(file, rows)), 0
        )


def rows_of(path: Path, kind: str) -> int:
    """How many rows the file has, by what it says of itself."""
    with _worded_failures(path, kind), _opened(path, kind) as file:
        return file.rows()


def chunks(
    path: Path, kind: str, rows: int, columns: Sequence[str] | None, report: Report
) -> Generator[pd.DataFrame]:
    """Tables of ``rows`` rows, the last of what is left."""
    import pyarrow as pa

    with _worded_failures(path, kind), _opened(path, kind) as file:
        names = _stored(columns, file.schema.names)
        facts = _facts(file)
        start = 0  # rows given out before this chunk
        waiting: list[Any] = []
        rows_waiting = 0
        for batch in file.batches(names, rows):
            waiting.append(batch)
            rows_waiting += batch.num_rows
            while rows_waiting >= rows:
                table = pa.Table.from_batches(waiting)
                yield _framed(table.slice(0, rows), facts, start)
                start += rows
                rows_waiting -= rows
                report(start / facts.rows)
                waiting = table.slice(rows).to_batches() if rows_waiting else []
        if rows_waiting:
            report(1.0)
            yield _framed(pa.Table.from_batches(waiting), facts, start)


class _Parquet:
    """A Parquet file, read by batches of rows."""

    def __init__(self, file: Any) -> None:
        self.file = file
        self.schema = file.schema_arrow

    def rows(self) -> int:
        return self.file.metadata.num_rows

    def batches(self, columns: Sequence[str] | None, rows: int) -> Iterator[Any]:
        return self.file.iter_batches(batch_size=rows, columns=columns)

    def gaps(self, names: list[str]) -> set[str]:
        """Which of the columns have a gap: by the counts of the file, where it keeps them."""
        metadata = self.file.metadata
        with_gaps: set[str] = set()
        unsure: set[str] = set()
        for i in range(metadata.num_row_groups):
            group = metadata.row_group(i)
            for j in range(group.num_columns):
                part = group.column(j)
                name = part.path_in_schema
                counts = part.statistics
                if name not in names:
                    continue
                if counts is None or not counts.has_null_count:
                    unsure.add(name)
                elif counts.null_count:
                    with_gaps.add(name)
        unsure -= with_gaps
        return with_gaps | _gaps(self.batches(sorted(unsure), 1 << 16), unsure)


class _Arrow:
    """An Arrow file or stream: its own batches, however many rows they have."""

    def __init__(self, source: Any) -> None:
        import pyarrow as pa

        self.source = source
        self.is_file = source.read(6) == b"ARROW1"
        self.open = pa.ipc.open_file if self.is_file else pa.ipc.open_stream
        with self._reader() as reader:
            self.schema = reader.schema

    def rows(self) -> int:
        return sum(batch.num_rows for batch in self.batches(self.schema.names[:1], 0))

    def batches(self, columns: Sequence[str] | None, rows: int) -> Iterator[Any]:
        with self._reader(columns) as reader:
            if self.is_file:
                yield from map(reader.get_batch, range(reader.num_record_batches))
            else:
                yield from reader

    def gaps(self, names: list[str]) -> set[str]:
        return _gaps(self.batches(names, 0), set(names))

    def _reader(self, columns: Sequence[str] | None = None) -> Any:
        import pyarrow as pa

        self.source.seek(0)
        if columns is None:
            return self.open(self.source)
        fields = [self.schema.get_field_index(name) for name in columns]
        return self.open(self.source, options=pa.ipc.IpcReadOptions(included_fields=fields))


def _gaps(batches: Iterator[Any], names: set[str]) -> set[str]:
    with_nulls: set[str] = set()
    for batch in batches if names else ():
        with_nulls |= {name for name in names if batch.column(name).null_count}
    return with_nulls


def _facts(file: _Parquet | _Arrow) -> ArrowFileFacts:
    import pyarrow as pa

    is_plain = (pa.types.is_integer, pa.types.is_boolean)
    names = [field.name for field in file.schema if any(is_(field.type) for is_ in is_plain)]
    rows = file.rows()
    return ArrowFileFacts(rows, frozenset(file.gaps(names)), _index(file, rows))


def _index(file: _Parquet | _Arrow, rows: int) -> tuple[str, int, int] | None:
    """Name, start and step of an index that only counts: pandas keeps those instead of a column."""
    for index in (file.schema.pandas_metadata or {}).get("index_columns", ()):
        if isinstance(index, dict) and index.get("name") is not None:
            start, stop, step = (index[key] for key in ("start", "stop", "step"))
            if len(range(start, stop, step)) == rows:
                return str(index["name"]), start, step
    return None


def _framed(table: Any, facts: ArrowFileFacts, done: int) -> pd.DataFrame:
    """A chunk as the rows of the whole table that it is, ``done`` rows before it."""
    import pandas as pd
    import pyarrow as pa

    for j, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            values = table.column(j).cast(field.type.value_type)
            table = table.set_column(j, field.with_type(field.type.value_type), values)
    frame = _plain(table.to_pandas())
    for name in facts.gapped.intersection(frame.columns):
        kind = frame[name].dtype
        if isinstance(kind, np.dtype) and kind.kind in "iub":
            frame[name] = frame[name].astype(object if kind.kind == "b" else "float64")
    if facts.counted is not None and facts.counted[0] not in frame.columns:
        name, start, step = facts.counted
        frame.insert(0, name, start + step * np.arange(done, done + len(frame)))
    frame.index = pd.RangeIndex(done, done + len(frame))
    return frame


@contextmanager
def _opened(path: Path, kind: str) -> Iterator[_Parquet | _Arrow]:
    with path.open("rb") as file:
        refuse_other_type(path, file.read(8), kind)
    if kind == "Parquet":
        from pyarrow import parquet

        # Left alone, all that will be read is fetched at once: the whole file.
        with parquet.ParquetFile(path, pre_buffer=False, buffer_size=1 << 20) as source:
            yield _Parquet(source)
        return
    import pyarrow as pa

    with pa.memory_map(str(path)) as source:
        yield _Arrow(source)


@contextmanager
def _worded_failures(path: Path, kind: str) -> Iterator[None]:
    """Failures of the reader in the sentences of ``read_table``."""
    import pyarrow as pa

    try:
        yield
    except FileError:
        raise
    except (pa.ArrowException, OSError, EOFError) as error:
        reason = str(error).splitlines()[0].split(". ")[0].rstrip(". ")
        raise FileError(
            f'"{path.name}" cannot be read as {kind}: {reason}. '
            "It may be cut short or another kind of file, renamed."
        ) from error
