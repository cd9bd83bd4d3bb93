"""Parquet and Arrow (Feather) files."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from setpoint._core.errors import FileError
from setpoint.datasets.file_signature import refuse_other_type, refuse_repeated

if TYPE_CHECKING:
    import pandas as pd


def read_parquet(path: Path, columns: Sequence[str] | None) -> pd.DataFrame:
    """Read a Parquet file; only the wanted columns are decoded."""
    return _read(path, columns, "Parquet")


def read_arrow(path: Path, columns: Sequence[str] | None) -> pd.DataFrame:
    """Read an Arrow file or stream, which Feather (version 2) is as well."""
    return _read(path, columns, "Arrow")


def _read(path: Path, columns: Sequence[str] | None, kind: str) -> pd.DataFrame:
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
    wanted = _stored(columns, table.column_names)
    return table if wanted is None else table.select(wanted)


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
