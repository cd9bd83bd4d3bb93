"""Labelled rows scored by a run, as the commands for rules take them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from setpoint._core.errors import KindError
from setpoint.cli.files.saved_run import Run
from setpoint.cli.inputs.run_scores import Scorer
from setpoint.cli.inputs.scored_table import Roles, Rows, rows_of
from setpoint.cli.ruled import roles_of, spelled_for
from setpoint.datasets import column, read_table

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Columns:
    """Columns as the options name them; a run knows its label, and has no need of scores."""

    label: Sequence[str] | None = None
    score: Sequence[str] | None = None
    scores: str | None = None
    positive: str | None = None
    weight: str | None = None
    group: Sequence[str] | None = None
    query: str | None = None

    def roles(self, run: Run, names: Sequence[str]) -> Roles:
        """Which column is what; ``names`` are the columns of the scores."""
        if self.score or self.scores:
            raise KindError("a run scores the rows itself; leave --score and --scores out.")
        label = list(self.label or run.target)
        return roles_of(
            run.rule,
            run.rule.goal,
            label,
            names,
            None,
            self.positive,
            self.weight,
            self.group,
            self.query,
        )


@dataclass(frozen=True, eq=False)
class Scored:
    """Rows with the scores of a run, and whether they are the table it was fitted on."""

    rows: Rows
    fitted_on: bool


def scored_rows(run: Run, file: Path, columns: Columns, one_sided: bool = False) -> Scored:
    """Rows of a file with the scores of a run."""
    columns.roles(run, _names(run))  # mistakes in the options before the models are loaded
    return take_rows(run, read_table(file), Scorer.open(run.folder), columns, one_sided)


def take_rows(
    run: Run, table: pd.DataFrame, scorer: Scorer, columns: Columns, one_sided: bool = False
) -> Scored:
    """Rows of a table with the scores of a run."""
    names = _names(run)
    roles = replace(columns.roles(run, names), one_sided=one_sided)
    for name in roles.labels:  # missed before the columns of the scores are there
        column(table, name, "label")
    scores = scorer.scores(table)
    parts = scores.reshape(len(table), -1).astype(np.float64)
    made = {name: parts[:, j] for j, name in enumerate(names)}
    rows = spelled_for(run.rule.task, rows_of(table.assign(**made), roles))
    rows = replace(rows, task=replace(rows.task, score=run.rule.task.score))
    return Scored(rows, scorer.fitted_on(table, _codes(run, rows.y)))


def _codes(run: Run, y: np.ndarray) -> np.ndarray:
    """Labels as the fit counted them: the place of the class, or 0 and 1."""
    if run.rule.task.kind != "multiclass":
        return y.astype(np.int64)
    places = {str(name): place for place, name in enumerate(run.about["classes"])}
    return np.array([places.get(str(label), -1) for label in y.tolist()])


def _names(run: Run) -> tuple[str, ...]:
    """Columns that the scores stand in for a moment: names that no file has."""
    classes = run.rule.task.classes or ("",)
    single = run.rule.task.kind == "binary"
    return tuple(f"\0score {name}" for name in (("",) if single else classes))
