"""Jobs and what came of them, one JSON each in a folder.

A run that is killed loses nothing that was done. A job is known by a key that holds everything its
figures depend on, so that changed settings make it anew. A bundle is all of a folder's results in
one file, a line each.
"""

from __future__ import annotations

import hashlib
import json
import lzma
import os
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from setpoint._core.files import write_text

VERSION = 2  #: raised where a method has changed so that results made before no longer count
Found = dict[str, Any]


@dataclass(frozen=True)
class Job:
    """One way on one task of one set; ``options`` go to the way beside its settings."""

    part: str
    data: str
    way: str
    task: str
    images: int
    options: dict[str, Any] = field(default_factory=dict)
    smoke: bool = False
    version: int = VERSION

    @property
    def key(self) -> str:
        """The name of its file, in letters, digits, points and dashes."""
        text = json.dumps(asdict(self), sort_keys=True)
        words = (self.part, self.data, self.way, self.task)
        name = ".".join(word.replace(" ", "-") for word in words)
        return f"{name}.{hashlib.sha256(text.encode()).hexdigest()[:8]}"

    @classmethod
    def of(cls, held: Found) -> Job:
        """From what :func:`dataclasses.asdict` made."""
        return cls(**{"version": 1, **held})


@dataclass(frozen=True)
class Shelf:
    """A folder of results."""

    folder: Path

    def claim(self, job: Job) -> bool:
        """Take a job; False where another process has it."""
        try:
            os.close(os.open(self.folder / f"{job.key}.claim", os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return False
        return True

    def put(self, job: Job, found: Found) -> None:
        """Keep what came of a job."""
        text = json.dumps({"job": asdict(job), **found})
        write_text(self.folder / f"{job.key}.json", text + "\n")

    def get(self, job: Job) -> Found | None:
        """What came of it; None where it was not made yet, or failed."""
        path = self.folder / f"{job.key}.json"
        if not path.is_file():
            return None
        found = json.loads(path.read_text(encoding="utf-8"))
        return None if "error" in found else found

    def open(self, jobs: Iterable[Job], *, alone: bool = False) -> list[Job]:
        """Those still to be made; claims and errors of a run before are forgotten."""
        self.folder.mkdir(parents=True, exist_ok=True)
        for path in self.folder.glob("*.claim"):
            path.unlink()
        return self.left(jobs, alone=alone)

    def left(self, jobs: Iterable[Job], *, alone: bool = False) -> list[Job]:
        """Those without a result, or without one that was made alone on the device."""
        found = []
        for job in jobs:
            held = self.get(job)
            if held is None or (alone and held.get("beside")):
                found.append(job)
        return found

    def bundle(self, file: Path) -> int:
        """All results in one file; how many."""
        paths = sorted(self.folder.glob("*.json"))
        texts = [path.read_text(encoding="utf-8") for path in paths]
        write_text(file, "".join(texts))
        return len(texts)

    def take(self, file: Path) -> int:
        """Unpack a bundle, compressed or not; a result never gives way to an error."""
        self.folder.mkdir(parents=True, exist_ok=True)
        count = 0
        raw = file.read_bytes()
        raw = lzma.decompress(raw) if file.suffix == ".xz" else raw
        for text in raw.decode().splitlines():
            found = json.loads(text)
            job = Job.of(found["job"])
            if "error" in found and self.get(job) is not None:
                continue
            write_text(self.folder / f"{job.key}.json", text + "\n")
            count += 1
        return count

    def full(self, jobs: Iterable[Job]) -> list[Job]:
        """Those that failed because the device had no memory left."""
        return [job for job in jobs if "OutOfMemory" in self._error(job)]

    def errors(self, jobs: Iterable[Job]) -> list[str]:
        """One sentence for each job that failed."""
        texts = [(job, self._error(job)) for job in jobs]
        return [f"{job.key}: {text.strip().splitlines()[-1]}" for job, text in texts if text]

    def _error(self, job: Job) -> str:
        path = self.folder / f"{job.key}.json"
        if not path.is_file():
            return ""
        return json.loads(path.read_text(encoding="utf-8")).get("error", "")
