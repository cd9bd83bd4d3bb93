"""Files and folders written whole or not at all; whether a folder may be written."""

from __future__ import annotations

import hashlib
import io
import json
import os
import secrets
import shutil
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from setpoint._core.errors import FileError, Name


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[Path]:
    """The name of a file to write, beside ``path``; it takes the place of ``path`` at the end.

    Raises
    ------
    FileError
        If the folder does not exist or cannot be written; nothing is left behind.
    """
    if not isinstance(path, str | os.PathLike):
        raise FileError(f"the name of a file is needed; got {path!r}")
    target = Path(path)
    # Not tempfile: its files are private to their owner, whatever the umask says. The ending
    # stays, as writers of tables and arrays go by it.
    part = _beside(target, target.suffix)
    try:
        with suppress(OSError):
            part.lstat()
    except ValueError as error:  # a name that no file can have
        raise FileError(f'cannot write "{target}": {error}. Nothing was written.') from error
    try:
        yield part
        os.replace(part, target)
    except OSError as error:
        reason = error.strerror or error
        raise FileError(f'cannot write "{target}": {reason}. Nothing was written.') from error
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)


def _beside(target: Path, ending: str = "") -> Path:
    """A name in the same folder, and so on the same disk, that nobody else takes."""
    return target.parent / f".{target.name}.{secrets.token_hex(4)}{ending}"


def write_bytes(path: str | os.PathLike[str], content: bytes) -> Path:
    """Write to a temporary name beside ``path``, then rename it.

    Raises
    ------
    FileError
        If the folder does not exist or cannot be written; nothing is left behind.
    """
    with replacing(path) as part, part.open("xb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    return Path(path)


def write_text(path: str | os.PathLike[str], text: str) -> Path:
    """Write text as UTF-8 in the same way."""
    return write_bytes(path, text.encode("utf-8"))


def write_json(path: str | os.PathLike[str], data: Any, *, allow_nan: bool = False) -> Path:
    """Write plain data as JSON in the same way; ``allow_nan`` is for files that we alone read."""
    return write_text(path, json_text(data, allow_nan=allow_nan))


def json_text(data: Any, *, allow_nan: bool = False) -> str:
    """Plain data as the text of a JSON file."""
    return json.dumps(data, indent=1, allow_nan=allow_nan) + "\n"


def make_folder(path: Path) -> None:
    """Make a folder and its parents where they are missing."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(f'cannot make the folder "{path}": {error.strerror or error}.') from error


def png_of(figure: Any) -> bytes:
    """A matplotlib figure as the bytes of a file; the same twice."""
    with io.BytesIO() as file:
        figure.savefig(file, format="png", dpi=150, metadata={"Software": None})
        return file.getvalue()


@contextmanager
def replacing_folder(folder: Path) -> Iterator[Path]:
    """A new folder beside ``folder``, which it replaces as a whole when the block ends.

    Raises
    ------
    FileError
        If it cannot be written; what was there before stays.
    """
    part = _beside(folder)
    old = part.with_name(f"{part.name}.old")
    try:
        part.mkdir(parents=True)
        yield part
        if folder.exists():
            os.replace(folder, old)
        os.replace(part, folder)
    except OSError as error:
        reason = error.strerror or error
        raise FileError(f'cannot write "{folder}": {reason}. Nothing was written.') from error
    finally:
        if old.exists() and not folder.exists():
            os.replace(old, folder)
        for left in (part, old):
            shutil.rmtree(left, ignore_errors=True)


def require_folder(folder: Path, option: str = "") -> None:
    """Raise, before any work is done, where a folder of that name cannot be written.

    ``option`` is the one of the command line that named it.
    """
    way = f" as {option}" if option else ""
    if folder.exists() and not folder.is_dir():
        raise FileError(f'"{folder}" is a file; name a folder{way}.')
    if not folder.name and not folder.resolve().name:
        raise FileError(f'"{folder}" cannot be replaced; name a folder in it.')
    existing = next(p for p in (folder, *folder.resolve().parents) if p.exists())
    if not existing.is_dir():
        raise FileError(f'cannot make the folder "{folder}": "{existing}" is a file.')
    if not os.access(existing, os.W_OK | os.X_OK):
        raise FileError(f'cannot write to the folder "{existing}"; name another{way}.')


def claim_folder(
    folder: Path,
    force: bool,
    *,
    own: Collection[str],
    holds: str,
    record: str = "",
    option: str = "",
) -> None:
    """The same for a folder that may hold what was written before, replaced with ``force`` alone.

    Parameters
    ----------
    own : collection of str
        The names that such a folder may hold; any other is somebody else's.
    holds : str
        What it is, in words: "an evaluation".
    record : str
        The name that must be among them, where there is one.
    option : str
        As for :func:`require_folder`.
    """
    require_folder(folder, option)
    names = {p.name for p in folder.iterdir()} if folder.is_dir() else set()
    if not names:
        return
    if (record and record not in names) or not names <= set(own):
        way = f" as {option}" if option else ""
        raise FileError(f'"{folder}" holds other files; name a new folder{way}.')
    if not force:
        raise FileError(
            '"{folder}" holds {holds}; say {argument} to replace it.',
            folder=folder,
            holds=holds,
            argument=Name("force"),
        )


# Folders that are whole or refused: gathered beside their place, sealed by a manifest.


MANIFEST = "manifest.json"
FORMAT = "setpoint manifest 1"


@contextmanager
def gathered(path: Any) -> Iterator[Path]:
    """A new folder to write into; what is in it moves to ``path``, sealed, when the block ends.

    Where anything goes wrong nothing is moved, and what was written is removed.
    """
    target = Path(path)
    new = target / f".new-{secrets.token_hex(4)}"
    make_folder(new)
    try:
        yield new
        names = sorted(_files(new))
        write_json(
            new / MANIFEST,
            {"format": FORMAT, "files": {name: digest(new / name) for name in names}},
        )
        earlier = _earlier(target)
        (target / MANIFEST).unlink(missing_ok=True)  # until all is in its place, nothing is sealed
        for name in names:
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            os.replace(new / name, target / name)
        for name in earlier - set(names):
            (target / name).unlink(missing_ok=True)
        os.replace(new / MANIFEST, target / MANIFEST)
    except OSError as error:
        reason = error.strerror or error
        raise FileError(f'cannot write the folder "{target}": {reason}') from error
    finally:
        shutil.rmtree(new, ignore_errors=True)


def sealed(folder: Path, unsealed: str) -> dict[str, str]:
    """The files that the manifest of a folder names, each with its checksum.

    Parameters
    ----------
    unsealed : str
        What it means that there is no manifest, in words.
    """
    if not folder.is_dir():
        raise FileError(f'there is no folder "{folder}"')
    if not (folder / MANIFEST).exists():
        raise FileError(f'"{folder}" has no {MANIFEST}: {unsealed}')
    seal = read_json(folder / MANIFEST)
    if not isinstance(seal, dict) or seal.get("format") != FORMAT:
        raise FileError(f'"{folder / MANIFEST}" is no manifest of Setpoint')
    files = seal.get("files")
    if not isinstance(files, dict):
        raise FileError(f'"{folder / MANIFEST}" is damaged: it lists no files')
    for name in files:
        if not isinstance(name, str) or ".." in Path(name).parts or Path(name).is_absolute():
            raise FileError(f'"{folder / MANIFEST}" names "{name}", outside its folder')
    return files


def verify(folder: Path, files: Mapping[str, str], remedy: str) -> None:
    """Raise where a file of a folder is missing, or is not the one that was sealed.

    Parameters
    ----------
    files : mapping
        As :func:`sealed` gives them.
    remedy : str
        What to do where a file was changed, in words.
    """
    for name, checksum in files.items():
        path = folder / name
        if not path.is_file():
            raise FileError(f'"{folder}" lacks "{name}": it was not written to the end, or changed')
        if digest(path) != checksum:
            raise FileError(
                f'"{path}" was changed after it was written: its checksum is not that of the '
                f"manifest. {remedy}"
            )


def _earlier(folder: Path) -> set[str]:
    """Files of the manifest that lies in a folder; none where it cannot be read."""
    try:
        return set(sealed(folder, "it is new"))
    except FileError:
        return set()


def _files(folder: Path) -> list[str]:
    return [p.relative_to(folder).as_posix() for p in folder.rglob("*") if p.is_file()]


def digest(path: Path) -> str:
    """The sha256 of a file."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise FileError(f'cannot read "{path}": {error.strerror}') from error


def read_json(path: str | os.PathLike[str], what: str = "") -> Any:
    """The data of a JSON file; ``what`` is the thing that it should hold, in words: "a rule"."""
    try:
        return json.loads(Path(path).read_text(encoding="utf-8"))
    except (OSError, TypeError, ValueError) as error:  # the last also of a name with a zero byte
        if what and isinstance(error, UnicodeDecodeError | json.JSONDecodeError):
            raise FileError(f'"{path}" is not {what}: {error}') from error
        reason = getattr(error, "strerror", None) or error
        raise FileError(f'cannot read "{path}": {reason}') from error
