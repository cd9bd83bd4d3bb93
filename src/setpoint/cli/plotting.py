"""Plots as bytes: drawn before anything is written, the same twice."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import Any

from setpoint._core.errors import FileError
from setpoint._core.words import listing

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
