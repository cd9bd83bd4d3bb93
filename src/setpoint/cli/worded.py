"""Decisions of a run in the label's own words, and its scores, as columns of a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from setpoint.estimators.classifier import GoalClassifier

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
    if rule.kind == "abstain":  # -1 is the last: nothing is decided
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
