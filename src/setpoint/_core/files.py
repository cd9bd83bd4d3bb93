"""Writing files so that a half-written one never stands under its name."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from setpoint._core.errors import FileError


def write_text(path: str | os.PathLike[str], text: str) -> Path:
    """Write ``text`` to a temporary name beside ``path``, then rename it.

    Raises
    ------
    FileError
        If the folder does not exist or cannot be written; nothing is left behind.
    """
    target = Path(path)
    name = None
    try:
        with tempfile.NamedTemporaryFile(
            "w", dir=target.parent, prefix=f".{target.name}.", delete=False, encoding="utf-8"
        ) as handle:
            name = handle.name
            handle.write(text)
            handle.flush()
            os.fsync(handle.fileno())
        os.replace(name, target)
    except OSError as error:
        if name is not None:
            Path(name).unlink(missing_ok=True)
        reason = error.strerror or error
        raise FileError(f'cannot write "{target}": {reason}. Nothing was written.') from error
    return target
