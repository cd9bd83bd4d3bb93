"""Metrics of scores at an operating point: the best one metric can do while another is held."""

from __future__ import annotations

from setpoint.expressions import AtK, Best, Constraint, Expression, Number
from setpoint.expressions.ranking_curves import whole_number
from setpoint.metrics.binary import fnr, fpr, precision, recall
from setpoint.metrics.definition import HIGHER, LOWER, MetricDefinition, metric, share


def precision_at_recall(recall_floor: float) -> Expression:
    """Best precision over the thresholds with recall >= r.

    Examples
    --------
    >>> import setpoint as sp
    >>> sp.precision_at_recall(1)([1, 0, 1, 0], [0.9, 0.8, 0.7, 0.1])
    0.6666666666666666
    """
    floor = share("precision_at_recall", recall_floor)
    return _best("precision_at_recall", precision, HIGHER, recall >= floor, 0.0)


def recall_at_precision(precision_floor: float) -> Expression:
    """Best recall over the thresholds with precision >= p; 0 if there is none.

    Examples
    --------
    >>> import setpoint as sp
    >>> sp.recall_at_precision(0.9)([1, 0, 1, 0], [0.9, 0.8, 0.7, 0.1])
    0.5
    """
    floor = share("recall_at_precision", precision_floor)
    return _best("recall_at_precision", recall, HIGHER, precision >= floor, 0.0)


def tpr_at_fpr(fpr_cap: float) -> Expression:
    """Best recall over the thresholds with FPR <= f.

    Examples
    --------
    >>> import setpoint as sp
    >>> sp.tpr_at_fpr(0.1)([1, 0, 1, 0], [0.9, 0.8, 0.7, 0.1])
    0.5
    """
    return _best("tpr_at_fpr", recall, HIGHER, fpr <= share("tpr_at_fpr", fpr_cap), 0.0)


def fnr_at_fpr(fpr_cap: float) -> Expression:
    """Least FNR over the thresholds with FPR <= f.

    Examples
    --------
    >>> import setpoint as sp
    >>> sp.fnr_at_fpr(0.1)([1, 0, 1, 0], [0.9, 0.8, 0.7, 0.1])
    0.5
    """
    return _best("fnr_at_fpr", fnr, LOWER, fpr <= share("fnr_at_fpr", fpr_cap), 1.0)


def precision_at_k(k: int, *, by: str | None = None) -> Expression:
    """Precision among the k rows with the highest scores; by="query" the mean over queries.

    Examples
    --------
    >>> import setpoint as sp
    >>> sp.precision_at_k(2)([1, 0, 1, 0], [0.9, 0.8, 0.7, 0.1])
    0.5
    """
    return _at_k("precision_at_k", k, "decided", by)


def recall_at_k(k: int, *, by: str | None = None) -> Expression:
    """Recall among the k rows with the highest scores; by="query" the mean over queries.

    Examples
    --------
    >>> import setpoint as sp
    >>> sp.recall_at_k(3)([1, 0, 1, 0], [0.9, 0.8, 0.7, 0.1])
    1.0
    """
    return _at_k("recall_at_k", k, "actual", by)


def _best(
    name: str, objective: Expression, sense: int, held: Constraint, empty: float
) -> Expression:
    bound = held.right.value if isinstance(held.right, Number) else None
    body = Best(objective, sense, held, empty)
    return metric(name, body, sense, arguments=((None, bound),))


def _at_k(name: str, k: int, given: str, by: str | None) -> Expression:
    k = whole_number(name, k)
    body = AtK(k, given, by=by)
    arguments = ((None, k),) if by is None else ((None, k), ("by", by))
    return metric(name, body, arguments=arguments)


_BEST = "brute force over thresholds"
ROWS = (
    MetricDefinition(
        "precision_at_recall",
        precision_at_recall,
        "max precision s.t. recall >= r",
        _BEST,
        "best precision that keeps a recall",
        examples=("precision_at_recall(0.9)",),
    ),
    MetricDefinition(
        "recall_at_precision",
        recall_at_precision,
        "max recall s.t. precision >= p",
        _BEST,
        "best recall that keeps a precision",
        examples=("recall_at_precision(0.9)",),
    ),
    MetricDefinition(
        "tpr_at_fpr",
        tpr_at_fpr,
        "max TPR s.t. FPR <= f",
        _BEST,
        "best recall that keeps a false alarm rate",
        examples=("tpr_at_fpr(0.01)",),
    ),
    MetricDefinition(
        "fnr_at_fpr",
        fnr_at_fpr,
        "min FNR s.t. FPR <= f",
        _BEST,
        "fewest misses that keep a false alarm rate",
        examples=("fnr_at_fpr(0.01)",),
    ),
    MetricDefinition(
        "precision_at_k",
        precision_at_k,
        "Σ w s y / Σ w s, s = the k highest scores",
        "brute force",
        "precision of the k rows that come first",
        examples=(
            "precision_at_k(100)",
            'precision_at_k(5, by="query")',
        ),
    ),
    MetricDefinition(
        "recall_at_k",
        recall_at_k,
        "Σ w s y / Σ w y, s = the k highest scores",
        "brute force",
        "share of the positives among the first k rows",
        examples=(
            "recall_at_k(100)",
            'recall_at_k(5, by="query")',
        ),
    ),
)
