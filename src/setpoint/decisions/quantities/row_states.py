"""What a row can be, as far as the events of some totals can tell: never read off the rows seen."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np

from setpoint.expressions import Columns, Total
from setpoint.expressions.rows.row_events import ACTUAL, BIN, CORRECT, DECIDED, KEPT, Event

MOST_STATES = 200_000
ROWS, FLAGGED = "rows", "rows decided positive"  #: who has a say


def states_of(totals: list[Total], columns: Columns) -> Columns | None:
    """One row for everything a row can be, as far as the events of the totals can tell.

    More than can occur does no harm, less would: all classes, all groups and one group more.
    """
    if any(total.quantity != "one" or total.event.about(BIN) for total in totals):
        return None  # errors of regression have no bound
    events = [total.event for total in totals]
    groups = _groupstates_of(events, columns)
    kept = [False, True] if columns.abstained is not None else [False]
    sides = _sides(events, columns)
    size = len(sides) * len(kept) * int(np.prod([len(v) for v in groups.values()] or [1]))
    if not sides or size > MOST_STATES:
        return None
    rows: list[Any] = list(product(sides, kept, *groups.values()))
    actual, decided = (np.array([row[0][i] for row in rows]) for i in (0, 1))
    return replace(
        columns,
        actual=actual,
        decided=decided,
        scores=None,
        weight=None,
        query=None,
        abstained=np.array([row[1] for row in rows]) if columns.abstained is not None else None,
        groups={
            name: np.array([row[2 + j] for row in rows], dtype=object)
            for j, name in enumerate(groups)
        },
    )


def _sides(events: list[Event], columns: Columns) -> list[tuple]:
    """Pairs of what a row is and how it is decided."""
    kind = columns.task.kind
    if kind == "binary":
        return list(product([False, True], repeat=2))
    if kind == "multiclass":
        places = _named_places(events, columns)
        none = [] if columns.task.unknown is None else [-1]
        return list(product([*none, *places], places))
    if kind != "multilabel":
        return []
    said = {x.value for e in events for x in e.about(DECIDED, ACTUAL, CORRECT)}
    several = None in said  # all labels at once
    names = [c for c in columns.classes if several or c in said]
    if len(names) > 8:
        return []
    width = len(columns.classes)
    places = [columns.classes.index(name) for name in names]
    sides = []
    for actual in product([False, True], repeat=len(places)):
        for decided in product([False, True], repeat=len(places)):
            both = []
            for bits in (actual, decided):
                row = np.zeros(width, bool)
                row[places] = bits
                both.append(row)
            sides.append(tuple(both))
    return sides


def _named_places(events: list[Event], columns: Columns) -> list[int]:
    """The classes that the events name, and two others: of more they cannot tell."""
    said = {x.value for e in events for x in e.about(DECIDED, ACTUAL, CORRECT)}
    named = [i for i, label in enumerate(columns.classes) if label in said]
    return [*named, *[i for i in range(len(columns.classes)) if i not in set(named)][:2]]


def _groupstates_of(events: list[Event], columns: Columns) -> dict[str, list]:
    own = (DECIDED, ACTUAL, CORRECT, KEPT, BIN)
    said: dict[str, dict] = {}
    for event in events:
        for literal in event.literals:
            if literal.column not in own:
                said.setdefault(literal.column, {})[literal.value] = None
    return {name: [*values, _Other()] for name, values in said.items()}


class _Other:
    """A group that no event names."""

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = object.__hash__


def who_has_say(states: Columns, has_say: np.ndarray) -> str:
    """The rows that have a say, as one would call them."""
    if states.task.kind != "binary" or states.decided is None:
        return ROWS
    left = np.zeros(states.size, bool) if states.abstained is None else states.abstained
    flagged = states.decided & ~left
    kinds = {
        FLAGGED: flagged,
        "positives": states.actual,
        "negatives": ~states.actual,
        "rows decided at all": ~left,
    }
    for name, member in kinds.items():
        if member[has_say].all() and not member.all():
            return name
    return ROWS
