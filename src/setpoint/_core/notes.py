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
    # a fit
    WEIGHTED = "weighted"  # figures count every row with its weight
    INTERRUPTED = "interrupted"  # stopped before the plan was done
    MEMBER_STOPPED = "member-stopped"  # stopped while this member was fitted
    MEMBER_TOO_LATE = "member-too-late"  # the time limit came first
    DRIVEN_KEPT = "driven-kept"  # metric-driven members earned their place in the stack
    DRIVEN_LEFT_OUT = "driven-left-out"  # they did not
    NO_TREES_COMPARED = "no-trees-compared"  # the comparison does without LightGBM
    RANKING_ONLY = "ranking-only"  # the goal leaves the threshold open
    SMALL_MARGIN = "small-margin"  # the rule has less than the margin asked for
    PROOF_PRICE = "proof-price"  # what the proven rule gives up
    PROOF_TOO_COSTLY = "proof-too-costly"  # a rule is proven, and gives up more than allowed
    PROOF_TRIED = "proof-tried"  # on rows that then went back into training
    EXTREME_RULE = "extreme-rule"  # it decides nearly nobody or nearly everybody
    CERTIFY_ROWS_SEEN = "certify-rows-seen"  # a run on the same rows was replaced
    NOT_DIAGNOSED = "not-diagnosed"  # no prices, or no number of labels
    # a loss
    CONSTRAINT_BROKEN = "constraint-broken"  # no threshold on the recent rows keeps it
    PRICE_AT_LIMIT = "price-at-limit"  # it cannot get dearer
    RANKING_BELOW_CHANCE = "ranking-below-chance"  # positive rows score lower than negative ones
    LIKE_PROBABILITIES = "like-probabilities"  # outputs that should be logits lie in [0, 1]
    FEW_IN_BATCH = "few-in-batch"  # many batches hold no row of a class


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
        has_code = data["code"] in NoteCode.__members__.values()
        code = NoteCode(data["code"]) if has_code else NoteCode.OTHER
        return cls(code, data["text"], data.get("data", {}))


def texts(notes: Iterable[Note]) -> tuple[str, ...]:
    """The sentences of notes."""
    return tuple(note.text for note in notes)
