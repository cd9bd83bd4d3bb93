"""Files the commands write: never over another unless told to, whole or not at all."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from setpoint._core.errors import FileError


def refuse_existing(paths: Iterable[Path], force: bool, read: Path | None = None) -> None:
    """Raise before any work is done if a file could not be written, or would be overwritten.

    ``read`` is the file the rows come from; it is kept even with ``force``.
    """
    seen: set[Path] = set()
    for path in paths:
        if read is not None and path.resolve() == read.resolve():
            raise FileError(f'"{path}" is the file the rows come from; give another name.')
        if path.resolve() in seen:
            raise FileError(f'"{path}" is named for two files; give each its own name.')
        seen.add(path.resolve())
        if path.is_dir():
            raise FileError(f'"{path}" is a folder; give the name of a file.')
        if not path.parent.is_dir():
            raise FileError(f'cannot write "{path}": there is no folder "{path.parent}".')
        if path.exists() and not force:
            raise FileError(f'"{path}" exists; say --force to overwrite it, or give another name.')


def make_folder(path: Path) -> None:
    """Make a folder and its parents where they are missing."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = error.strerror or error
        raise FileError(f'cannot make the folder "{path}": {reason}.') from error
