"""What a rule already knows of the columns it is applied to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from setpoint._core.errors import KindError
from setpoint._core.words import listing
from setpoint.cli.output import count
from setpoint.decisions import DecisionRule
from setpoint.expressions import Label


def score_columns(rule: DecisionRule, given: Sequence[str]) -> tuple[str, ...]:
    """The columns of scores; of a multiclass rule, without others, those named as its classes."""
    kind, classes = rule.task.kind, tuple(map(str, rule.task.classes or ()))
    if kind not in ("multiclass", "multilabel"):
        if len(given) > 1:
            raise KindError(f"this rule is {kind} and takes one --score; {len(given)} are given.")
        return tuple(given)
    what = "class" if kind == "multiclass" else "label"
    if not given and kind == "multiclass":
        return classes
    if len(given) != len(classes):
        raise KindError(
            f"this rule needs one score per {what} ({listing(classes)}): say --scores with "
            f"{count(len(classes), 'column')}, in that order; given: "
            f"{listing(given) or 'none'}."
        )
    if set(given) == set(classes) and tuple(given) != classes:
        raise KindError(
            f"the scores are named in another order than the rule has them; say --scores "
            f"{','.join(classes)}."
        )
    return tuple(given)


def positive_of(rule: DecisionRule, given: str | None) -> Any:
    """The positive label: as the rule has it, or as it is given."""
    known = rule.task.positive
    if known is None:
        return given
    if given is not None and given != str(known):
        raise KindError(f"--positive {given} contradicts the rule, which has {known!r} as positive")
    return known


def in_zeros_and_ones(rule: DecisionRule) -> DecisionRule:
    """The rule for labels that have been turned into 0 and 1."""
    return replace(rule, task=replace(rule.task, positive=None))


def in_classes_of(rule: DecisionRule, values: np.ndarray) -> np.ndarray:
    """Labels as the rule has its classes: the number 1 for a text "1", or the other way."""
    spelled: dict[str, Label] = {str(c): c for c in rule.task.classes or ()}
    return np.array([spelled.get(str(v), v) for v in values.tolist()])
