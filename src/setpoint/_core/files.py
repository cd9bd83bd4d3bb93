"""Writing files so that a half-written one never stands under its name."""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

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


# Folders that are whole or refused: gathered beside their place, sealed by a manifest.


MANIFEST = "manifest.json"
FORMAT = "setpoint manifest 1"


@contextmanager
def gathered(path: Any) -> Iterator[Path]:
    """A new folder to write into; what is in it moves to ``path``, sealed, when the block ends.

    Where anything goes wrong nothing is moved, and what was written is removed.
    """
    target = Path(path)
    try:
        target.mkdir(parents=True, exist_ok=True)
        made = target / f".new-{secrets.token_hex(4)}"
        made.mkdir()
    except OSError as error:
        reason = error.strerror or error
        raise FileError(f'cannot make the folder "{target}": {reason}') from error
    try:
        yield made
        names = sorted(_files(made))
        seal = {"format": FORMAT, "files": {name: digest(made / name) for name in names}}
        write_text(made / MANIFEST, json.dumps(seal, indent=1) + "\n")
        old = set(_sealed(target))
        (target / MANIFEST).unlink(missing_ok=True)  # until all is in its place, nothing is sealed
        for name in names:
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            os.replace(made / name, target / name)
        for name in old - set(names):
            (target / name).unlink(missing_ok=True)
        os.replace(made / MANIFEST, target / MANIFEST)
    except OSError as error:
        reason = error.strerror or error
        raise FileError(f'cannot write the folder "{target}": {reason}') from error
    finally:
        shutil.rmtree(made, ignore_errors=True)


def verified(folder: Path) -> frozenset[str]:
    """The files of a folder, if it holds what its manifest says."""
    if not folder.is_dir():
        raise FileError(f'there is no folder "{folder}"')
    if not (folder / MANIFEST).exists():
        begun = (folder / "work").is_dir()
        way = (
            "the fit was not finished; run the same command again to go on"
            if begun
            else ("it is no run of Setpoint, or was not written to the end")
        )
        raise FileError(f'"{folder}" has no {MANIFEST}: {way}')
    seal = read_json(folder / MANIFEST)
    if not isinstance(seal, dict) or seal.get("format") != FORMAT:
        raise FileError(f'"{folder / MANIFEST}" is no manifest of Setpoint')
    names = _names(seal, folder)
    for name, mark in names.items():
        path = folder / name
        if not path.is_file():
            raise FileError(f'"{folder}" lacks "{name}": it was not written to the end, or changed')
        if digest(path) != mark:
            raise FileError(
                f'"{path}" was changed after it was written: its checksum is not that of the '
                "manifest. Fit again, or take the folder from where it came"
            )
    return frozenset(names)


def _names(seal: dict[str, Any], folder: Path) -> dict[str, str]:
    files = seal.get("files")
    if not isinstance(files, dict) or not files.keys() & {"classifier.json", "regressor.json"}:
        raise FileError(f'"{folder / MANIFEST}" is damaged: it lists no estimator')
    for name in files:
        if not isinstance(name, str) or ".." in Path(name).parts or Path(name).is_absolute():
            raise FileError(f'"{folder / MANIFEST}" names "{name}", outside its folder')
    return files


def _sealed(folder: Path) -> list[str]:
    """Files of a manifest that is there, if it can be read."""
    try:
        return list(_names(read_json(folder / MANIFEST), folder))
    except (FileError, AttributeError):
        return []


def _files(folder: Path) -> list[str]:
    return [p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()]


def digest(path: Path) -> str:
    """The sha256 of a file."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise FileError(f'cannot read "{path}": {error.strerror}') from error


def read_json(path: Path) -> Any:
    """The data of a JSON file."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, json.JSONDecodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise FileError(f'cannot read "{path}": {reason}') from error
