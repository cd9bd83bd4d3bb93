"""Rows of a new file scored by the models of a run, held to the columns it was fitted on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from setpoint._core.errors import DataError, FileError, KindError
from setpoint.cli.files.saved_run import SavedRun
from setpoint.cli.inputs.scored_table import Roles, ScoredTable, roles_of, rows_of, spelled_for
from setpoint.datasets import column, read_table
from setpoint.datasets.columns.column_names import absent_features

if TYPE_CHECKING:
    import pandas as pd

    from setpoint.estimators.classifier import GoalClassifier


@dataclass(frozen=True, eq=False)
class Scorer:
    """The models of a run."""

    classifier: GoalClassifier

    @classmethod
    def open(cls, folder: Path) -> Scorer:
        """Load a run folder; nothing in it is executed."""
        from setpoint.estimators.classifier import GoalClassifier, load

        fitted = load(folder)
        if not isinstance(fitted, GoalClassifier):
            raise FileError(
                f"{folder} holds a regressor; read it in Python: sp.load({str(folder)!r})"
            )
        return cls(fitted)

    def strangers(self, table: pd.DataFrame) -> list[str]:
        """Columns that the run was not fitted on."""
        known = set(self._names(table))
        return [name for name in map(str, table.columns) if name not in known]

    def scores(self, table: pd.DataFrame, first: int = 0) -> np.ndarray:
        """Scores as the rule takes them.

        Parameters
        ----------
        table : pandas.DataFrame
            With the columns that were fitted on, in any order, and perhaps others.
        first : int
            Rows before these in their file, so that a mistake names its row.
        """
        rows = self._columns(table)
        try:
            return self.classifier._scores(rows)
        except DataError:
            schema = self.classifier.run_.encoder.schema
            if schema is not None and first:
                schema.apply(rows, first)  # says the same of the right row
            raise

    def fitted_on(self, table: pd.DataFrame, y: np.ndarray) -> bool:
        """Whether this is the very table of the fit; ``y`` as codes of the classes."""
        from setpoint.fit.pipeline import fingerprint_of

        names = self._names(table)
        if not set(names) <= set(map(str, table.columns)):
            return False
        return fingerprint_of(table.loc[:, names], y) == self.classifier.run_.fingerprint

    def _names(self, table: pd.DataFrame) -> list[str]:
        named = getattr(self.classifier, "feature_names_in_", None)
        return list(map(str, table.columns)) if named is None else list(map(str, named))

    def _columns(self, table: pd.DataFrame) -> pd.DataFrame:
        """The columns fitted on, in their order; those that were ignored may be missing."""
        wanted, there = self._names(table), set(map(str, table.columns))
        schema = self.classifier.run_.encoder.schema
        ignored = set() if schema is None else set(wanted) - set(schema.inputs)
        absent = [name for name in wanted if name not in there]
        needed = [name for name in absent if name not in ignored]
        if needed:
            raise absent_features(needed, table.columns)
        if not absent:
            return table.loc[:, wanted]
        return table.reindex(columns=wanted)


# Labelled rows scored by a run, as the commands for rules take them.


@dataclass(frozen=True)
class OutputColumns:
    """Columns as the options name them; a run knows its label, and has no need of scores."""

    label: Sequence[str] | None = None
    score: Sequence[str] | None = None
    scores: str | None = None
    positive: str | None = None
    weight: str | None = None
    group: Sequence[str] | None = None
    query: str | None = None

    def roles(self, run: SavedRun, names: Sequence[str]) -> Roles:
        """Which column is what; ``names`` are the columns of the scores."""
        if self.score or self.scores:
            raise KindError("a run scores the rows itself; leave --score and --scores out.")
        label = list(self.label or run.target)
        return roles_of(
            run.rule.point,
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
class ScoredByRun:
    """Rows with the scores of a run, and whether they are the table it was fitted on."""

    rows: ScoredTable
    fitted_on: bool


def scored_rows(
    run: SavedRun, file: Path, columns: OutputColumns, one_sided: bool = False
) -> ScoredByRun:
    """Rows of a file with the scores of a run."""
    columns.roles(run, _names(run))  # mistakes in the options before the models are loaded
    return take_rows(run, read_table(file), Scorer.open(run.folder), columns, one_sided)


def take_rows(
    run: SavedRun,
    table: pd.DataFrame,
    scorer: Scorer,
    columns: OutputColumns,
    one_sided: bool = False,
) -> ScoredByRun:
    """Rows of a table with the scores of a run."""
    names = _names(run)
    roles = replace(columns.roles(run, names), one_sided=one_sided)
    for name in roles.labels:  # missed before the columns of the scores are there
        column(table, name, "label")
    scores = scorer.scores(table)
    parts = scores.reshape(len(table), -1).astype(np.float64)
    outputs = {name: parts[:, j] for j, name in enumerate(names)}
    rows = spelled_for(run.rule.task, rows_of(table.assign(**outputs), roles))
    rows = replace(rows, task=replace(rows.task, score=run.rule.task.score))
    return ScoredByRun(rows, scorer.fitted_on(table, _codes(run, rows.y)))


def _codes(run: SavedRun, y: np.ndarray) -> np.ndarray:
    """Labels as the fit counted them: the place of the class, or 0 and 1."""
    if run.rule.task.kind != "multiclass":
        return y.astype(np.int64)
    places = {str(name): place for place, name in enumerate(run.about["classes"])}
    return np.array([places.get(str(label), -1) for label in y.tolist()])


def _names(run: SavedRun) -> tuple[str, ...]:
    """Columns that the scores stand in for a moment: names that no file has."""
    classes = run.rule.task.classes or ("",)
    single = run.rule.task.kind == "binary"
    return tuple(f"\0score {name}" for name in (("",) if single else classes))


# Decisions of a run in the label's own words, and its scores, as columns of a table.


DECISION, SCORE = "decision", "score"


def score_columns(classifier: GoalClassifier, scores: np.ndarray) -> dict[str, np.ndarray]:
    """One column, or one for each class or label."""
    if scores.ndim == 1:
        return {SCORE: scores}
    names = classifier.task_.classes or ()
    return {f"{SCORE}_{name}": scores[:, j] for j, name in enumerate(names)}


def decision_columns(
    classifier: GoalClassifier, scores: np.ndarray, group: Any = None
) -> dict[str, np.ndarray]:
    """The decisions as classes; of several labels 0 and 1 each; None where nothing is decided."""
    rule, task = classifier.rule_, classifier.task_
    decided = np.asarray(rule.decide(scores, group=group))
    if task.kind == "multilabel":
        names = task.classes or ()
        return {f"{DECISION}_{name}": decided[:, j].astype(int) for j, name in enumerate(names)}
    if task.kind == "multiclass":
        return {DECISION: decided}
    pair = np.array([*pair_of(classifier), None], dtype=object)
    if rule.point.may_abstain:  # -1 is the last: nothing is decided
        return {DECISION: pair[decided.astype(np.int64)]}
    words = np.array(pair_of(classifier))
    if words.dtype.kind == "U" and not all(isinstance(x, str) for x in pair[:2]):
        words = pair[:2]  # "not 1" and 1: numpy would make texts of both
    return {DECISION: words[decided.astype(np.int64)]}


def pair_of(classifier: GoalClassifier) -> list[Any]:
    """The negative and the positive class of a binary task."""
    return classifier._labels.pair.tolist()


def counted(decided: Mapping[str, np.ndarray], counts: dict[str, dict[str, int]]) -> None:
    """Add the rows of each decision to the counts so far."""
    for name, values in decided.items():
        there = counts.setdefault(name, {})
        some = (
            values[np.array([v is not None for v in values])] if values.dtype == object else values
        )
        for value, many in zip(*np.unique(some.astype(str), return_counts=True), strict=True):
            there[str(value)] = there.get(str(value), 0) + int(many)
