"""Curves as data: ROC, precision–recall, and any metric against the threshold."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from setpoint._core.arrays import to_numpy
from setpoint._core.errors import DataError, GoalError, KindError, Name
from setpoint.expressions import Columns, Domain, Expression, Label, Sweep, Task, Total, take_in
from setpoint.metrics import fpr, metric, precision, recall


@dataclass(frozen=True, eq=False)
class MetricCurve:
    """Two metrics along the threshold, thresholds descending; undefined points are left out.

    Attributes
    ----------
    x_name, y_name : str
    thresholds, x, y : numpy.ndarray of shape (m,)
    """

    x_name: str
    y_name: str
    thresholds: np.ndarray
    x: np.ndarray
    y: np.ndarray


def metric_curve(
    x: Expression | str,
    y: Expression | str,
    y_true: Any,
    scores: Any,
    *,
    sample_weight: Any = None,
    group: Any = None,
    positive: Label = None,
    task: Task | None = None,
) -> MetricCurve:
    """Any two metrics of decisions at every distinct threshold.

    Examples
    --------
    >>> curve = metric_curve("fpr", "recall", [0, 1, 0, 1], [0.1, 0.4, 0.35, 0.8])
    >>> curve.x.tolist(), curve.y.tolist()
    ([0.0, 0.0, 0.0, 0.5, 1.0], [0.0, 0.5, 1.0, 1.0, 1.0])
    """
    columns = take_in(
        Task.make(task, positive), y_true, scores=scores, sample_weight=sample_weight, group=group
    )
    if columns.task.kind != "binary":
        raise GoalError(f"a curve along one threshold is for binary tasks, not {columns.task.kind}")
    if columns.scores is None:
        raise KindError("scores must be an array with one entry per row; got None")
    sweep = Sweep(columns)
    first, second = (metric(m) if isinstance(m, str) else m for m in (x, y))
    if not isinstance(first, Expression) or not isinstance(second, Expression):
        raise KindError(f"a curve is drawn of two metrics; got {x!r} and {y!r}")
    (a, a_ok), (b, b_ok) = (_along(m, sweep, columns) for m in (first, second))
    ok = a_ok & b_ok
    if not ok.any():
        raise DataError(
            "{first} against {second} is defined nowhere: {argument} lacks a class",
            first=str(first),
            second=str(second),
            argument=Name("y_true"),
        )
    return MetricCurve(str(first), str(second), sweep.thresholds[ok], a[ok], b[ok])


def roc_curve(y_true: Any, scores: Any, **more: Any) -> MetricCurve:
    """FPR against recall; keyword arguments as for :func:`metric_curve`."""
    return metric_curve(fpr, recall, y_true, scores, **more)


def pr_curve(y_true: Any, scores: Any, **more: Any) -> MetricCurve:
    """Recall against precision; keyword arguments as for :func:`metric_curve`."""
    return metric_curve(recall, precision, y_true, scores, **more)


def _along(m: Expression, sweep: Sweep, columns: Columns) -> tuple[np.ndarray, np.ndarray]:
    ground = m.expand(Domain(columns))
    if not all(isinstance(leaf, Total) for leaf in ground.leaves()):
        raise GoalError(f'"{m}" does not follow from a threshold; curves are drawn of decisions')
    env = {leaf: sweep.state(leaf, 0, sweep.size) for leaf in ground.leaves()}
    value, defined = ground.read(env)
    shape = (sweep.size,)
    return np.broadcast_to(to_numpy(value), shape), np.broadcast_to(np.asarray(defined), shape)
