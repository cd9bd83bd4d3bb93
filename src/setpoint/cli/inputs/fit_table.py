"""Table of a fit: the features, the target, and the columns that have another role."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from setpoint._core.errors import DataError, KindError
from setpoint.cli.inputs.fit_target import Target, read_target, unlabelled, without_label
from setpoint.cli.inputs.scored_table import columns_of, group_values
from setpoint.cli.words import count
from setpoint.datasets import Schema, column, numbers, read_table
from setpoint.datasets.columns.column_names import absent_column, quoted
from setpoint.goals import Goal

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Uses:
    """Which column is what, as the options say it.

    Parameters
    ----------
    target : tuple of str
        One column; several of a multilabel task.
    positive, task : str, optional
    weight, split, together, time : str, optional
        Columns that are no features.
    groups : tuple of str
        Columns that the goal, the rule or the report go by; they are features as well.
    keep, drop : tuple of str
    drop_unlabelled : bool
    """

    target: tuple[str, ...]
    positive: str | None = None
    task: str | None = None
    weight: str | None = None
    split: str | None = None
    together: str | None = None
    time: str | None = None
    groups: tuple[str, ...] = ()
    keep: tuple[str, ...] = ()
    drop: tuple[str, ...] = ()
    drop_unlabelled: bool = False

    @property
    def roles(self) -> dict[str, str]:
        """Columns with a role that makes them no feature, by the option."""
        named = {
            "weight": self.weight,
            "split": self.split,
            "together": self.together,
            "time": self.time,
        }
        return {role: name for role, name in named.items() if name is not None}


@dataclass(frozen=True, eq=False)
class FitTable:
    """Rows as :meth:`setpoint.GoalClassifier.fit` takes them.

    Attributes
    ----------
    X : pandas.DataFrame
    target : Target
    more : dict
        ``sample_weight``, ``group``, ``split``, ``together``, ``time``, where they are given.
    schema : Schema
        What the columns are, as far as all rows together tell.
    notes : tuple of str
    """

    X: pd.DataFrame
    target: Target
    schema: Schema
    more: dict[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def columns_line(self) -> str:
        """14 columns: 6 numeric, 5 category, 1 date, 2 ignored."""
        kinds = self.schema.counts()
        many = ", ".join(f"{n} {kind}" for kind, n in kinds.items() if n)
        return f"{count(sum(kinds.values()), 'column')} ({many})"

    def record(self) -> dict[str, Any]:
        """Plain data."""
        rows = {"rows": len(self.X), "columns": self.schema.counts()}
        return {**rows, **self.target.record(), "notes": list(self.notes)}


def read_given(path: Path, goal: Goal, uses: Uses) -> FitTable:
    """Read the file and take each column for its role."""
    table = read_table(path)
    _refuse_twice(uses)
    missing = without_label(table, uses.target)
    notes: list[str] = []
    if missing.any():
        if not uses.drop_unlabelled:
            raise unlabelled(missing, uses.target)
        if missing.all():
            raise DataError("no row has a label; there is nothing to learn from.")
        table = table.loc[~missing].reset_index(drop=True)
        notes.append(f"{count(int(missing.sum()), 'row')} without a label left out.")
    target = read_target(table, uses.target, goal, uses.task, uses.positive)
    more = _more(table, goal, uses)
    for option, names in (("drop", uses.drop), ("keep", uses.keep)):
        for name in names:
            column(table, name, f"--{option}")
    away = [*uses.target, *uses.roles.values(), *uses.drop]
    X = table.drop(columns=list(dict.fromkeys(away)))
    if X.shape[1] == 0:
        raise DataError("no column is left to learn from: all are dropped or have another role.")
    for role, name in uses.roles.items():
        notes.append(f'column "{name}" (--{role}) is no feature.')
    if uses.drop:
        notes.append(f"dropped on request: {quoted(uses.drop, most=8)}.")
    X = _kept(X, uses.keep)
    return FitTable(X, target, Schema.fit(X), more, tuple(notes))


def _more(table: pd.DataFrame, goal: Goal, uses: Uses) -> dict[str, Any]:
    more: dict[str, Any] = {}
    if uses.weight is not None:
        more["sample_weight"] = weights(table, uses.weight)
    sought = columns_of(goal)
    if "group" in goal.columns and "group" not in table.columns:
        example = next(iter(uses.groups), "sex")
        remedy = f'name the column itself, for example by="{example}"'
        raise absent_column("group", 'by="group" in the goal', table.columns, remedy)
    groups = tuple(dict.fromkeys([*uses.groups, *sought]))
    if groups:
        more["group"] = {name: group_values(table, name, "group") for name in groups}
    for role in ("split", "together", "time"):
        name = getattr(uses, role)
        if name is not None:
            more[role] = column(table, name, role).reset_index(drop=True)
    return more


def weights(table: pd.DataFrame, name: str) -> np.ndarray:
    """A column of weights, none of them negative."""
    values = numbers(table, name, "weight")
    if (values < 0).any():
        row = int((values < 0).argmax())
        raise DataError(
            f'column "{name}" (weight) is {values[row]:g} in data row {row + 1}; weights are not '
            "negative."
        )
    return values


def _refuse_twice(uses: Uses) -> None:
    """Raise where one column is named for two things."""
    roles = [("target", name) for name in uses.target] + list(uses.roles.items())
    roles += [("keep", name) for name in uses.keep] + [("drop", name) for name in uses.drop]
    seen: dict[str, str] = {}
    for role, name in roles:
        if seen.setdefault(name, role) != role:
            raise KindError(f'column "{name}" is named as --{seen[name]} and as --{role}.')
    for name in uses.groups:
        if name in uses.target:
            raise KindError(f'column "{name}" is named as --target and as --group.')


def _kept(X: pd.DataFrame, keep: Sequence[str]) -> pd.DataFrame:
    """The columns of ``keep`` such that they are used: whole numbers as floats are never an id."""
    if not keep:
        return X
    from pandas.api import types

    found = Schema.fit(X)
    ignored = {c.name: c.why for c in found.columns if c.kind == "ignored"}
    made = X.copy(deep=False)
    for name in keep:
        if name not in ignored:
            continue
        if not types.is_integer_dtype(X[name].dtype):
            raise DataError(f'column "{name}" cannot be kept: {ignored[name]}.')
        made[name] = X[name].astype(np.float64)
    return made
