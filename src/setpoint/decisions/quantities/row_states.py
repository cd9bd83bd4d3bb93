"""What a row can be, as far as the events of some totals can tell: never read off the rows seen."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np

from setpoint.expressions import Columns, Population, Total
from setpoint.expressions.rows.row_events import (
    ACTUAL,
    BIN,
    CORRECT,
    DECIDED,
    KEPT,
    Event,
    Label,
)
from setpoint.expressions.rows.task import Task

MOST_STATES = 200_000
ROWS, FLAGGED = "rows", "rows decided positive"  #: who has a say


def states_of(totals: list[Total], population: Population) -> Columns | None:
    """One row for everything a row can be, as far as the events of the totals can tell.

    More than can occur does no harm, less would: all classes, all groups and one group more.
    """
    if any(total.quantity != "one" or total.event.about(BIN) for total in totals):
        return None  # errors of regression have no bound
    events = [total.event for total in totals]
    groups = _group_values(events)
    kept = [False, True] if population.abstains else [False]
    sides = _sides(events, population.task)
    size = len(sides) * len(kept) * int(np.prod([len(v) for v in groups.values()] or [1]))
    if not sides or size > MOST_STATES:
        return None
    rows: list[Any] = list(product(sides, kept, *groups.values()))
    actual, decided = (np.array([row[0][i] for row in rows]) for i in (0, 1))
    return Columns(
        population.task,
        actual=actual,
        decided=decided,
        abstained=np.array([row[1] for row in rows]) if population.abstains else None,
        groups={
            name: np.array([row[2 + j] for row in rows], dtype=object)
            for j, name in enumerate(groups)
        },
    )


def _sides(events: list[Event], task: Task) -> list[tuple]:
    """Pairs of what a row is and how it is decided."""
    kind = task.kind
    if kind == "binary":
        return list(product([False, True], repeat=2))
    if kind == "multiclass":
        places = _named_places(events, task.sides)
        none = [] if task.unknown is None else [-1]
        return list(product([*none, *places], places))
    if kind != "multilabel":
        return []
    named = {x.value for e in events for x in e.about(DECIDED, ACTUAL, CORRECT)}
    several = None in named  # all labels at once
    names = [c for c in task.sides if several or c in named]
    if len(names) > 8:
        return []
    width = len(task.sides)
    places = [task.sides.index(name) for name in names]
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


def _named_places(events: list[Event], classes: tuple[Label, ...]) -> list[int]:
    """The classes that the events name, and two others: of more they cannot tell."""
    labels = {x.value for e in events for x in e.about(DECIDED, ACTUAL, CORRECT)}
    named = [i for i, label in enumerate(classes) if label in labels]
    return [*named, *[i for i in range(len(classes)) if i not in set(named)][:2]]


def _group_values(events: list[Event]) -> dict[str, list]:
    own = (DECIDED, ACTUAL, CORRECT, KEPT, BIN)
    named: dict[str, dict] = {}
    for event in events:
        for literal in event.literals:
            if literal.column not in own:
                named.setdefault(literal.column, {})[literal.value] = None
    return {name: [*values, _Other()] for name, values in named.items()}


class _Other:
    """A group that no event names."""

    def __eq__(self, other: object) -> bool:
        return self is other

    __hash__ = object.__hash__


def who_has_say(states: Columns, has_say: np.ndarray) -> str:
    """The rows that have a say, as one would call them."""
    if states.task.kind != "binary" or states.decided is None:
        return ROWS
    undecided = np.zeros(states.size, bool) if states.abstained is None else states.abstained
    flagged = states.decided & ~undecided
    kinds = {
        FLAGGED: flagged,
        "positives": states.actual,
        "negatives": ~states.actual,
        "rows decided at all": ~undecided,
    }
    for name, member in kinds.items():
        if member[has_say].all() and not member.all():
            return name
    return ROWS
