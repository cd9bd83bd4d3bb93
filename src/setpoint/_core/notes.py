"""Notes: what a user should know of a result, as data that code can read and a sentence for people.

Code asks for the ``code`` and the ``data`` of a note; its ``text`` is for eyes alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class NoteCode(StrEnum):
    """What a note is about."""

    OTHER = "other"  # saved before notes had codes, or only for people


@dataclass(frozen=True)
class Note:
    """One thing to know.

    >>> note = Note(NoteCode.OTHER, "the table has one row twice")
    >>> str(note)
    'the table has one row twice'
    """

    code: NoteCode
    text: str
    data: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.text

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {"code": str(self.code), "text": self.text, "data": dict(self.data)}

    @classmethod
    def from_json(cls, data: Any) -> Note:
        """Read what :meth:`to_json` wrote, or the bare sentence of an earlier version."""
        if isinstance(data, str):
            return cls(NoteCode.OTHER, data)
        known = data["code"] in NoteCode.__members__.values()
        code = NoteCode(data["code"]) if known else NoteCode.OTHER
        return cls(code, data["text"], data.get("data", {}))


def texts(notes: Iterable[Note]) -> tuple[str, ...]:
    """The sentences of notes."""
    return tuple(note.text for note in notes)
