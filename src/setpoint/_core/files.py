"""Writing files so that a half-written one never stands under its name."""

from __future__ import annotations

import os
import secrets
from contextlib import suppress
from pathlib import Path

from setpoint._core.errors import FileError


def write_bytes(path: str | os.PathLike[str], content: bytes) -> Path:
    """Write to a temporary name beside ``path``, then rename it.

    Raises
    ------
    FileError
        If the folder does not exist or cannot be written; nothing is left behind.
    """
    if not isinstance(path, str | os.PathLike):
        raise FileError(f"the name of a file is needed; got {path!r}")
    target = Path(path)
    # Not tempfile: its files are private to their owner, whatever the umask says.
    part = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        with part.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(part, target)
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise FileError(f'cannot write "{target}": {reason}. Nothing was written.') from error
    finally:
        with suppress(ValueError):  # a name that no file can have
            part.unlink(missing_ok=True)
    return target


def write_text(path: str | os.PathLike[str], text: str) -> Path:
    """Write text as UTF-8 in the same way."""
    return write_bytes(path, text.encode("utf-8"))
