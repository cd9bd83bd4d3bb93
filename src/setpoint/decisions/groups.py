"""The groups a promise is about: those the goal speaks of, as far as any rows have shown them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from setpoint.expressions import Columns, Label, Task
from setpoint.goals import Goal

Groups = tuple[tuple[str, tuple[Label, ...]], ...]


def groups_of(goal: Goal, columns: Columns) -> Groups:
    """The values of each group column that the goal speaks of, on these rows."""
    return tuple((name, columns.group_values(name)) for name in goal.columns)


def declared(goal: Goal, columns: Columns, also: Iterable[Groups] = ()) -> Task:
    """The task with all groups declared: those of these rows, and those that others have shown.

    A group without rows here leaves nothing to prove about it: what these rows happen not to hold
    must not drop out of the promise.
    """
    known = {name: dict.fromkeys(values) for name, values in groups_of(goal, columns)}
    for groups in also:
        for name, values in groups:
            if name in known:
                known[name].update(dict.fromkeys(values))
    found = {name: tuple(sorted(values, key=_key)) for name, values in known.items()}
    return replace(columns.task, groups={**dict(columns.task.groups), **found})  # type: ignore[arg-type]


def _key(value: Label) -> tuple[str, Label]:
    return type(value).__name__, value
