"""Key figures with their 95% intervals: the objective, the limits, and what one usually asks."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from setpoint._core.errors import DataError
from setpoint._core.json_codec import Record
from setpoint.decisions import Certificate
from setpoint.decisions.quantities.from_expression import claim_of
from setpoint.decisions.quantities.rate import Rate
from setpoint.expressions import Columns, Curve, Domain, Expression, Population, measure
from setpoint.goals import Goal
from setpoint.metrics import (
    accuracy,
    auroc,
    average_precision,
    balanced_accuracy,
    f1,
    fnr,
    fpr,
    macro,
    micro,
    npv,
    positive_rate,
    precision,
    prevalence,
    recall,
    specificity,
)
from setpoint.statistics.confidence_intervals import (
    DELONG,
    EFFECTIVE,
    EXACT,
    HALF,
    LOGIT,
    auroc_interval,
    precision_interval,
    share_interval,
)

OBJECTIVE, LIMIT, ALSO = "objective", "limit", "also"
_ALSO = {
    "binary": (precision, recall, fpr, f1, accuracy, positive_rate, auroc, average_precision),
    "multiclass": (accuracy, balanced_accuracy, macro(f1)),
    "multilabel": (micro(f1), macro(f1)),
}
_SHARES = (precision, recall, fpr, fnr, specificity, npv, accuracy, positive_rate, prevalence)


@dataclass(frozen=True)
class KeyFigure(Record):
    """One figure on some rows.

    Attributes
    ----------
    name : str
        The metric.
    role : {"objective", "limit", "also"}
    value, low, high : float or None
        The figure and its interval; None where there is none.
    how : str
        The kind of interval, in words.
    k, n : int or None
        Where it is a share of rows: k of n.
    op, asked : str and float, or None
        What was asked of it, for a limit.
    words : str
        The figure in plain words, where there are some.
    """

    name: str
    role: str
    value: float | None
    low: float | None = None
    high: float | None = None
    how: str = ""
    k: int | None = None
    n: int | None = None
    op: str | None = None
    asked: float | None = None
    words: str = ""


@dataclass(frozen=True)
class FiguresOnRows(Record):
    """The key figures on the rows of that name."""

    on: str
    items: tuple[KeyFigure, ...]


@dataclass(frozen=True)
class RowsSummary(Record):
    """Rows that a report measures: how many, and how many positives where the task is binary."""

    name: str
    rows: int
    positives: int | None
    weighted: bool


def key_figures(
    goal: Goal, columns: Columns, certificate: Certificate | None = None
) -> tuple[KeyFigure, ...]:
    """The figures of a rule on rows that hold its decisions.

    Parameters
    ----------
    goal : Goal
        Lowered.
    columns : Columns
    certificate : Certificate, optional
        Of this rule on these rows: the interval around its objective is wide enough for the choice
        among candidates that was made on them.
    """
    figures = [replace(_figure(goal.objective, columns), role=OBJECTIVE)]
    if certificate is not None and certificate.value is not None:
        low, high = map(_finite, certificate.interval)
        how = f"{certificate.interval_how}, as in the certificate"
        figures[0] = replace(figures[0], low=low, high=high, how=how)
    for constraint in goal.constraints:
        asked = constraint.number
        if asked is None:
            body = constraint.left - constraint.right
            asked = 0.0
            name = f"{constraint.left} - {constraint.right}"
        else:
            body = constraint.left
            name = str(constraint.left)
        figure = _figure(body, columns)
        figures.append(replace(figure, name=name, role=LIMIT, op=constraint.op, asked=asked))
    names = {figure.name for figure in figures}
    if columns.abstained is None:  # what is usual is told of rules that decide every row
        also = [metric for metric in _ALSO[columns.task.kind] if str(metric) not in names]
        figures += [_figure(metric, columns) for metric in also]
    return tuple(figures)


def _figure(metric: Expression, columns: Columns) -> KeyFigure:
    try:
        ground = metric.expand(Domain(columns))
        if any(isinstance(leaf, Curve) for leaf in ground.leaves()):
            return _of_scores(metric, columns)
        if columns.weight is not None:
            share = _weighted_share(ground, columns)
            if share is not None:
                return replace(share, name=str(metric))
        return _of_decisions(str(metric), ground, columns)
    except DataError:  # rows without one of the classes
        return KeyFigure(str(metric), ALSO, None)


def _of_decisions(name: str, ground: Expression, columns: Columns) -> KeyFigure:
    quantity = claim_of(ground, Population.of(columns), name).on(columns)
    if quantity.value is None:
        return KeyFigure(name, ALSO, None)
    low, high = _finite(quantity.lower(HALF)), _finite(quantity.upper(HALF))
    k = n = None
    if len(quantity.rates) == 1 and quantity.rates[0].pure:
        k, n = quantity.rates[0].k, quantity.rates[0].n
    pure = isinstance(quantity, Rate) and quantity.pure
    how = EXACT if pure else quantity.how
    share = k is not None and n and math.isclose(quantity.value, k / n)
    return KeyFigure(
        name=name,
        role=ALSO,
        value=quantity.value,
        low=low,
        high=high,
        how=how,
        k=k if share else None,
        n=n if share else None,
    )


def _of_scores(metric: Expression, columns: Columns) -> KeyFigure:
    """The area under a curve; an interval for the two that have one in closed form."""
    value = float(measure(metric, columns).value())
    ends, how = None, "no interval"
    if columns.task.kind == "binary" and columns.weight is None:
        if metric == auroc:
            ends, how = auroc_interval(columns.actual, np.asarray(columns.scores)), DELONG
        elif metric == average_precision:
            ends, how = precision_interval(value, int(columns.actual.sum())), LOGIT
    low, high = ends or (None, None)
    return KeyFigure(str(metric), ALSO, value, low, high, how if ends else "no interval")


def _weighted_share(ground: Expression, columns: Columns) -> KeyFigure | None:
    """A share of weighted rows, where the metric is one."""
    if columns.task.kind != "binary" or columns.abstained is not None or columns.weight is None:
        return None
    domain = Domain(columns)
    form = ground.normal().key()
    for metric in _SHARES:
        if metric.expand(domain).normal().key() == form:
            inside, among = members(str(metric), columns)
            share, size = weighted_share(inside, among, columns.weight)
            if share is None:
                return KeyFigure(str(metric), ALSO, None)
            low, high = share_interval(share * size, size)
            return KeyFigure(str(metric), ALSO, share, float(low), float(high), EFFECTIVE)
    return None


def members(name: str, columns: Columns) -> tuple[np.ndarray, np.ndarray]:
    """Of a share of binary rows: who counts, and among whom."""
    actual, decided = np.asarray(columns.actual), np.asarray(columns.decided)
    every = np.ones(actual.shape, bool)
    table: Mapping[str, tuple[np.ndarray, np.ndarray]] = {
        "precision": (actual, decided),
        "recall": (decided, actual),
        "fpr": (decided, ~actual),
        "fnr": (~decided, actual),
        "specificity": (~decided, ~actual),
        "npv": (~actual, ~decided),
        "accuracy": (actual == decided, every),
        "positive_rate": (decided, every),
        "prevalence": (actual, every),
    }
    return table[name]


def weighted_share(
    inside: np.ndarray, among: np.ndarray, weight: np.ndarray | None
) -> tuple[float | None, float]:
    """Σ w (inside and among) / Σ w (among), and the effective number of rows it rests on."""
    if weight is None:
        size = int(among.sum())
        return (float((inside & among).sum() / size) if size else None), float(size)
    w = weight[among].astype(np.float64)
    total = w.sum()
    if total <= 0:
        return None, 0.0
    return float(w[inside[among]].sum() / total), float(total**2 / (w**2).sum())


def _finite(x: Any) -> float | None:
    return float(x) if x is not None and math.isfinite(x) else None
