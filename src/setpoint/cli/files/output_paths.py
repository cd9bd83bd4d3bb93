"""Files the commands write: never over another unless told to, whole or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterable
from io import BytesIO
from pathlib import Path
from typing import Any

from setpoint._core.errors import FileError
from setpoint._core.words import listing


def refuse_existing(
    paths: Iterable[Path | None],
    force: bool,
    rows: Iterable[Path | None] = (),
    read: Iterable[Path | None] = (),
) -> None:
    """Raise before any work is done if a file could not be written, or would be overwritten.

    ``rows`` are the files the rows come from, ``read`` others that are read; they are kept even
    with ``force``.
    """
    sources = {path.resolve() for path in rows if path is not None}
    others = {path.resolve() for path in read if path is not None}
    seen: set[Path] = set()
    for path in paths:
        if path is None:
            continue
        if path.resolve() in sources:
            raise FileError(f'"{path}" is the file the rows come from; give another name.')
        if path.resolve() in others:
            raise FileError(f'"{path}" is read, and would be overwritten; give another name.')
        if path.resolve() in seen:
            raise FileError(f'"{path}" is named for two files; give each its own name.')
        seen.add(path.resolve())
        if path.is_dir():
            raise FileError(f'"{path}" is a folder; give the name of a file.')
        if not path.parent.is_dir():
            raise FileError(f'cannot write "{path}": there is no folder "{path.parent}".')
        if path.exists() and not force:
            raise FileError(f'"{path}" exists; say --force to overwrite it, or give another name.')


def refuse_unwritable(path: Path, why: str) -> None:
    """Raise before any work is done if a file that is there could not be written again."""
    if not os.access(path, os.W_OK) or not os.access(path.resolve().parent, os.W_OK | os.X_OK):
        raise FileError(f'cannot write "{path}", {why}; make it and its folder writable first.')


# Plots as bytes: drawn before anything is written, the same twice.


PLOTS = (".svg", ".png", ".pdf")


def as_bytes(axes: Any, path: Path) -> bytes:
    """The figure of some axes as a file of the type that the ending of the name tells."""
    import matplotlib

    with BytesIO() as file, matplotlib.rc_context({"svg.hashsalt": "setpoint"}):
        kind = path.suffix.lower().removeprefix(".")
        metadata = {"png": {}, "svg": {"Date": None}, "pdf": {"CreationDate": None}}[kind]
        axes.figure.savefig(file, format=kind, dpi=150, metadata=metadata)
        return file.getvalue()


def refuse_ending(path: Path | None) -> None:
    """Raise if the name of a plot does not tell its type."""
    if path is not None and path.suffix.lower() not in PLOTS:
        raise FileError(
            f'"{path.name}" is no name for a plot; it must end in {listing(PLOTS[:-1])} or '
            f"{PLOTS[-1]}."
        )
