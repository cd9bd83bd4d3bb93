"""Reductions: over classes, groups and target bins; least, greatest, absolute value."""

from __future__ import annotations

from typing import Any

from setpoint._core.errors import GoalError
from setpoint.expressions import Expression, Over, Several
from setpoint.expressions.rows.row_events import actual, decided
from setpoint.expressions.totals import Total
from setpoint.metrics.definition import LOWER, MetricDefinition, metric


def macro(inner: Expression) -> Expression:
    """Mean over classes, each against the rest.

    Examples
    --------
    >>> import setpoint as sp
    >>> sp.macro(sp.recall)(["a", "a", "b"], ["a", "b", "b"], task="multiclass")
    0.75
    """
    return Over("macro", inner, "class")


def micro(inner: Expression) -> Expression:
    """The metric of the totals summed over classes.

    Examples
    --------
    >>> import setpoint as sp
    >>> sp.micro(sp.f1)(["a", "a", "b"], ["a", "b", "b"], task="multiclass")
    0.6666666666666666
    """
    return Over("micro", inner, "class")


def weighted(inner: Expression) -> Expression:
    """Mean over classes, weighted by the rows of each.

    Examples
    --------
    >>> import setpoint as sp
    >>> sp.weighted(sp.recall)(["a", "a", "b"], ["a", "b", "b"], task="multiclass")
    0.6666666666666666
    """
    return Over("weighted", inner, "class")


def balanced(inner: Expression) -> Expression:
    """Mean over the target bins that hold rows, for regression.

    Examples
    --------
    >>> import setpoint as sp
    >>> task = sp.Task.regression(edges=[10.0])
    >>> sp.balanced(sp.mae)([1.0, 2.0, 11.0], [1.5, 2.0, 12.0], task=task)
    0.625
    """
    return Over("balanced", inner, "bin")


def worst(inner: Expression, *, by: str) -> Expression:
    """The worst value over classes, groups or bins; the metric's direction says which that is.

    Examples
    --------
    >>> import setpoint as sp
    >>> sp.worst(sp.recall, by="group")([1, 1, 1], [1, 0, 1], group=["a", "a", "b"])
    0.5
    """
    return Over("worst", inner, by)


def least(inner: Expression, *, by: str) -> Expression:
    """The least value over classes, groups or bins.

    Examples
    --------
    >>> import setpoint as sp
    >>> sp.least(sp.positive_rate, by="group")([1, 0, 1], [1, 0, 1], group=["a", "a", "b"])
    0.5
    """
    return Over("least", inner, by)


def greatest(inner: Expression, *, by: str) -> Expression:
    """The greatest value over classes, groups or bins.

    Examples
    --------
    >>> import setpoint as sp
    >>> sp.greatest(sp.positive_rate, by="group")([1, 0, 1], [1, 0, 1], group=["a", "a", "b"])
    1.0
    """
    return Over("greatest", inner, by)


def gap(inner: Expression, *, by: str) -> Expression:
    """Greatest minus least value over classes, groups or bins.

    Examples
    --------
    >>> import setpoint as sp
    >>> sp.gap(sp.recall, by="group")([1, 1, 1], [1, 0, 1], group=["a", "a", "b"])
    0.5
    """
    return Over("gap", inner, by)


def ratio(inner: Expression, *, by: str) -> Expression:
    """Least over greatest value over classes or groups (the 80 % rule is ratio >= 0.8).

    Examples
    --------
    >>> import setpoint as sp
    >>> sp.ratio(sp.positive_rate, by="group")([1, 0, 1], [1, 0, 1], group=["a", "a", "b"])
    0.5
    """
    return Over("ratio", inner, by)


def minimum(*parts: Expression) -> Expression:
    """The least of several metrics.

    Examples
    --------
    >>> import setpoint as sp
    >>> sp.minimum(sp.precision, sp.recall)([1, 1, 0], [1, 0, 0])
    0.5
    """
    return _several("min", parts)


def maximum(*parts: Expression) -> Expression:
    """The greatest of several metrics.

    Examples
    --------
    >>> import setpoint as sp
    >>> sp.maximum(sp.precision, sp.recall)([1, 1, 0], [1, 0, 0])
    1.0
    """
    return _several("max", parts)


def absolute(inner: Expression) -> Expression:
    """The absolute value.

    Examples
    --------
    >>> import setpoint as sp
    >>> sp.absolute(sp.recall - sp.precision)([1, 1, 0], [1, 0, 0])
    0.5
    """
    if not isinstance(inner, Expression):
        raise GoalError(f"abs(…) takes a metric; got {inner!r}")
    return abs(inner)


def _several(how: str, parts: tuple[Any, ...]) -> Expression:
    lifted = [part if isinstance(part, Expression) else None for part in parts]
    if len(parts) < 2 or None in [None if x is None else 0 for x in lifted]:
        raise GoalError(f"{how}(…) takes two or more metrics; got {', '.join(map(str, parts))}")
    return Several(how, tuple(x for x in lifted if x is not None))


hamming_loss = metric(
    "hamming_loss",
    Over(
        "macro",
        (Total(decided) + Total(actual) - 2 * Total(decided & actual)) / Total(),
        "class",
    ),
    LOWER,
    tasks=("multilabel",),
)

_SK = "scikit-learn: average="
ROWS = (
    MetricDefinition(
        "macro",
        macro,
        "(1/K) Σ_c M_c",
        _SK + '"macro"',
        "mean over classes",
        examples=("macro(f1)",),
    ),
    MetricDefinition(
        "micro",
        micro,
        "M(Σ_c totals_c)",
        _SK + '"micro"',
        "pooled classes",
        examples=("micro(f1)",),
    ),
    MetricDefinition(
        "weighted",
        weighted,
        "Σ_c n_c M_c / Σ_c n_c",
        _SK + '"weighted"',
        "mean over classes by their rows",
        examples=("weighted(f1)",),
    ),
    MetricDefinition(
        "balanced",
        balanced,
        "mean over target bins",
        "brute force",
        "mean over the target bins that hold rows",
        examples=("balanced(mae)",),
    ),
    MetricDefinition(
        "worst",
        worst,
        "min or max over by",
        "brute force",
        "the worst class, group or bin",
        examples=('worst(recall, by="group")',),
    ),
    MetricDefinition(
        "least",
        least,
        "min over by",
        "brute force",
        "the least class, group or bin",
        examples=('least(positive_rate, by="group")',),
    ),
    MetricDefinition(
        "greatest",
        greatest,
        "max over by",
        "brute force",
        "the greatest class, group or bin",
        examples=('greatest(positive_rate, by="group")',),
    ),
    MetricDefinition(
        "gap",
        gap,
        "max − min over by",
        "brute force",
        "greatest minus least over classes, groups or bins",
        examples=('gap(recall, by="group")',),
    ),
    MetricDefinition(
        "ratio",
        ratio,
        "min / max over by",
        "brute force",
        "least over greatest",
        examples=('ratio(positive_rate, by="group")',),
    ),
    MetricDefinition(
        "min",
        minimum,
        "min(a, b, …)",
        "brute force",
        "the least",
        examples=("min(precision, recall)",),
    ),
    MetricDefinition(
        "max", maximum, "max(a, b, …)", "brute force", "the greatest", examples=("max(fpr, fnr)",)
    ),
    MetricDefinition(
        "abs",
        absolute,
        "|a|",
        "brute force",
        "absolute value",
        examples=("abs(precision - recall)",),
    ),
    MetricDefinition(
        "hamming_loss",
        hamming_loss,
        "wrong labels / labels",
        "scikit-learn: hamming_loss",
        "share of single labels decided wrongly (multilabel)",
        call='[[1, 0], [1, 1]], [[1, 0], [0, 1]], task="multilabel"',
        value="0.25",
    ),
)
