"""The folder of a run: whether it may be written, taken up again, or is somebody else's.

manifest.json     a run is there, whole
work              a folder: a fit is going on, or was stopped; its asked.json says which
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from setpoint._core.errors import FileError
from setpoint._core.files import (
    MANIFEST,
    make_folder,
    read_json,
    require_folder,
    sealed,
    write_json,
)
from setpoint.fit.run_files import CLASSIFIER, WORK

ASKED = "asked.json"


@dataclass(frozen=True)
class Folder:
    """A folder that a run is to be written to.

    Attributes
    ----------
    path : Path
    missing : tuple of Path
        The folders that did not exist before, the innermost first.
    resumed : bool
        Whether finished parts of the same fit lie in it.
    finished : bool
        Whether a run that was fitted to its end lies in it.
    looked : bool
        Whether a finished run is replaced, whose certify rows have had their say.
    asked : mapping
        What the fit is, as its work folder notes it.
    """

    path: Path
    missing: tuple[Path, ...]
    resumed: bool
    finished: bool
    looked: bool = False
    asked: Mapping[str, Any] = field(default_factory=dict)

    @property
    def work(self) -> Path:
        """Where finished parts are kept."""
        return self.path / WORK

    def begin(self) -> None:
        """Make the folder, and note what it is for."""
        try:
            if self.work.exists() and not self.resumed:
                shutil.rmtree(self.work)
        except OSError as error:
            raise FileError(f'cannot empty "{self.work}": {error.strerror or error}.') from error
        make_folder(self.work)
        try:
            write_json(self.work / ASKED, dict(self.asked))
        except FileError:
            shutil.rmtree(self.work, ignore_errors=True)  # without its note it is nobody's
            raise

    @property
    def begun(self) -> bool:
        """Whether the work in the folder is this fit's, and not that of one before it."""
        return self.work.is_dir() and _read(self.work / ASKED) == dict(self.asked)

    @property
    def kept(self) -> bool:
        """Whether parts of this fit are done."""
        return self.begun and any(p.name != ASKED for p in self.work.iterdir())

    def finish(self) -> None:
        """Remove the finished parts: the run holds them."""
        shutil.rmtree(self.work, ignore_errors=True)

    def withdraw(self) -> None:
        """Leave no trace of a fit that came to nothing; what was there before stays."""
        if self.begun and not self.resumed:
            shutil.rmtree(self.work, ignore_errors=True)
        for place in self.missing:
            with suppress(OSError):  # not empty, or never made
                place.rmdir()


def claim(out: Path, asked: Mapping[str, Any], force: bool, source: Path) -> Folder:
    """A folder that may be written, or a sentence why not; nothing is changed yet."""
    if out.resolve() in (source.resolve(), *source.resolve().parents) and out.is_dir():
        raise FileError(f'"{source}" lies in "{out}", where the run is to go; name another --out.')
    require_folder(out, "--out")
    if not out.exists():
        missing = tuple(p for p in (out.resolve(), *out.resolve().parents) if not p.exists())
        return Folder(out, missing, resumed=False, finished=False, asked=asked)
    begun, whole = (out / WORK).is_dir(), (out / MANIFEST).is_file()
    if not begun and not whole:
        if any(out.iterdir()):
            raise FileError(
                f'"{out}" holds other files, and no run of Setpoint; name a new folder as --out.'
            )
        return Folder(out, (), resumed=False, finished=False, asked=asked)
    if begun:
        same = _read(out / WORK / ASKED) == dict(asked)
        if not same and not force:
            raise FileError(
                f'"{out}" holds a fit of something else that was not finished; name another folder '
                "as --out, or say --force to begin anew in it."
            )
        finished = whole and _finished(out)
        # A finished run beside the work is being replaced: begun again or taken up, the new fit
        # is the second that looks at its certify rows.
        return Folder(out, (), resumed=same, finished=finished, looked=finished, asked=asked)
    if not force:
        raise FileError(
            f'"{out}" holds a finished run; say --force to fit again and replace it, or name '
            "another folder as --out."
        )
    finished = _finished(out)
    return Folder(out, (), resumed=False, finished=finished, looked=finished, asked=asked)


def _finished(run: Path) -> bool:
    """Whether the seal names a classifier that was fitted to its end; stray files do not count."""
    try:
        named = CLASSIFIER in sealed(run, "it is no run")
    except FileError:
        return False
    about = _read(run / CLASSIFIER) if named else None
    return isinstance(about, dict) and about.get("finished") is True


def _read(path: Path) -> Any:
    try:
        return read_json(path)
    except FileError:
        return None
