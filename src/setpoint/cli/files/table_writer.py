"""Rows written one chunk after another: to a temporary name, renamed when the last one is there."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from setpoint._core.errors import FileError
from setpoint._core.files import replacing

if TYPE_CHECKING:
    import pandas as pd

_WRITTEN = (".csv", ".parquet")


def refuse_unwritten(path: Path) -> None:
    """Raise where the name of a table has an ending that cannot be written."""
    if path.suffix.lower() not in _WRITTEN:
        raise FileError(f'"{path.name}" must end in {" or ".join(_WRITTEN)}.')


class TableWriter:
    """A file that takes tables with the same columns."""

    def __init__(self, path: Path) -> None:
        self.path, self.binary = path, path.suffix.lower() == ".parquet"
        self._file: Any = None
        self._writer: Any = None
        self._schema: Any = None

    def open(self) -> None:
        """Begin."""
        self._file = self.path.open("xb")

    def write(self, table: pd.DataFrame) -> None:
        """Add rows."""
        if not self.binary:
            first = self._schema is None
            self._schema = True
            text = table.to_csv(index=False, header=first, lineterminator="\n")
            self._file.write(text.encode("utf-8"))
            return
        import pyarrow as pa
        from pyarrow import parquet

        rows = pa.Table.from_pandas(table, preserve_index=False)
        if self._writer is None:
            self._schema = pa.schema([_wide(field) for field in rows.schema])
            self._writer = parquet.ParquetWriter(self._file, self._schema)
        self._writer.write_table(rows.cast(self._schema))

    def close(self) -> None:
        """End; what is written is on the disk."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None
        if self._file is not None:
            self._file.flush()
            os.fsync(self._file.fileno())
        self.abandon()

    def abandon(self) -> None:
        """Close whatever is open, without a complaint."""
        file, self._file, self._writer = self._file, None, None
        if file is not None:
            file.close()


def _wide(field: Any) -> Any:
    """A type that later rows fit into as well: a column without values is one of texts."""
    import pyarrow as pa

    return field.with_type(pa.string()) if pa.types.is_null(field.type) else field


@contextmanager
def table_writer(path: Path) -> Iterator[TableWriter]:
    """A file to write to, which stands under its name when the block ends well.

    Raises
    ------
    FileError
        If it cannot be written; nothing is left behind.
    """
    with replacing(path) as part:
        table = TableWriter(part)
        try:
            table.open()
            yield table
            table.close()
        finally:
            with suppress(OSError):  # what could not be written cannot be flushed either
                table.abandon()
