"""Out-of-fold rows: what a portfolio says of rows that no fold model was fitted on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from setpoint.datasets import Parts
from setpoint.expressions import Columns, take_in
from setpoint.fit.conclusion.stack import Stack, fit_stack
from setpoint.fit.cross_fitting import FittedMembers
from setpoint.fit.plan import ConclusionRequest
from setpoint.fit.training_data import SOME, ClassTrainingData
from setpoint.goals import Goal, Task

_FOLDS = 5  #: dealt to the referee where one part is held: the folds of a portfolio


@dataclass(frozen=True, eq=False)
class OutOfFold:
    """The held rows of a portfolio, and the stacks that can be made of its members there.

    Attributes
    ----------
    job : ClassTrainingData
    fitted : FittedMembers
    parts : Parts
    choice : ConclusionRequest
    fold : numpy.ndarray
        The fold of each held row.
    task : Task
        With the kind of score that those have who may decide.
    """

    job: ClassTrainingData
    fitted: FittedMembers
    parts: Parts
    choice: ConclusionRequest
    fold: np.ndarray
    task: Task

    @classmethod
    def of(
        cls, job: ClassTrainingData, fitted: FittedMembers, parts: Parts, choice: ConclusionRequest
    ) -> OutOfFold:
        """The rows of a portfolio that was run on parted rows."""
        rows = parts.held
        several = len(parts.folds) > 1
        fold = parts.fold_of(len(job.target))[rows] if several else _dealt(job, rows)
        probable = all(r.probable for r in fitted.ran if r.name in choice.main)
        known = job.labels.task
        task = Task(known.kind, known.positive, known.classes, score=_score(probable))
        return cls(job, fitted, parts, choice, fold, task)

    @property
    def goal(self) -> Goal:
        """The goal, lowered."""
        return self.job.goal.lowered

    @cached_property
    def rows(self) -> np.ndarray:
        """Indices of the held rows."""
        return self.parts.held

    @cached_property
    def ran(self) -> frozenset[str]:
        """Names of the members that were run."""
        return frozenset(r.name for r in self.fitted.ran)

    # --- scores ----------------------------------------------------------------------------------

    def outputs(self, names: Sequence[str], rows: np.ndarray) -> dict[str, np.ndarray]:
        """Out-of-fold outputs of members on some of the held rows."""
        return {name: self.fitted.named(name).outputs[rows] for name in names}

    def probable(self, names: Sequence[str]) -> bool:
        """Whether outputs of all these members are logits."""
        return all(self.fitted.named(name).probable for name in names)

    def task_of(self, names: Sequence[str]) -> Task:
        """The task with the kind of score that these members have."""
        return replace(self.task, score=_score(self.probable(names)))

    def stacked(self, names: Sequence[str], rows: np.ndarray | None = None) -> Stack:
        """Members weighed on some held rows, by default all."""
        if len(names) == 1:
            return Stack.alone(names[0], raw=not self.probable(names))
        rows = self.rows if rows is None else rows
        outputs = self.outputs(names, rows)
        target, weight = self.job.target[rows], self.job.weights(rows)
        return fit_stack(names, outputs, target, weight, self.job.labels.task)

    def scores(self, stack: Stack) -> np.ndarray:
        """Scores of a stack on the held rows."""
        return stack.scores(self.outputs(stack.names, self.rows), self.task)

    def cross_scores(self, names: Sequence[str]) -> np.ndarray:
        """The same, each fold's weights from other folds: nobody is judged on their own rows."""
        if len(names) == 1:
            return self.scores(self.stacked(names))
        scores: np.ndarray | None = None
        for f in np.unique(self.fold):
            here = self.fold == f
            stack = self.stacked(names, self.rows[~here])
            part = stack.scores(self.outputs(names, self.rows[here]), self.task)
            if scores is None:
                scores = np.zeros((len(self.rows), *part.shape[1:]))
            scores[here] = part
        assert scores is not None
        return scores

    def scores_of(self, stack: Stack, rows: np.ndarray) -> np.ndarray:
        """Scores of a stack of the fold models' means, on any rows of the table."""
        job = self.job
        parts = []
        for some in np.array_split(rows, max(1, -(-len(rows) // SOME))):
            encoded = job.rows.encoder.encode(job.rows.rows("raw", some))
            outputs = {name: self.fitted.named(name).predict(encoded) for name in stack.used}
            parts.append(stack.scores(outputs, self.task))
        return np.concatenate(parts)

    # --- columns ---------------------------------------------------------------------------------

    def columns(self, rows: np.ndarray, scores: np.ndarray, task: Task | None = None) -> Columns:
        """Rows with scores as the language takes them, on the host."""
        job = self.job
        return take_in(
            task or self.task,
            job.labels.named(job.target[rows]),
            scores=scores,
            sample_weight=job.weights(rows),
            group=self.groups(rows),
        ).on_host()

    def groups(self, rows: np.ndarray) -> dict[str, Any] | None:
        """Columns that the goal speaks of, of some rows."""
        return {name: values[rows] for name, values in self.job.groups.items()} or None

    # --- the baselines ---------------------------------------------------------------------------

    def baselines(self) -> list[tuple[str, str]]:
        """The baselines that were run: a label and a member."""
        choice = self.choice
        labelled = [
            (f"{m if (m,) == choice.main else f'cross-entropy ({m})'} + tuned threshold", m)
            for m in choice.plain
        ]
        labelled.append(("lightgbm + tuned threshold", choice.trees))
        same = choice.main if choice.margin == 0 or not self.goal.constraints else ()
        return [(label, m) for label, m in labelled if m in self.ran and (m,) != same]


def _score(probable: bool) -> str:
    return "probability" if probable else "raw"


def _dealt(job: ClassTrainingData, rows: np.ndarray) -> np.ndarray:
    """Folds for the referee where there is one part of held rows: dealt by class."""
    y = job.target[rows]
    shuffled = np.random.default_rng(job.seed).random(len(y))
    order = np.lexsort((shuffled, y if y.ndim == 1 else y[:, 0]))
    fold = np.empty(len(y), np.intp)
    fold[order] = np.arange(len(y)) % _FOLDS
    return fold
