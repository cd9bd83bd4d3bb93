"""Metrics of decisions about one class: rates and functions of TP, FP, FN, TN.

Each row is a tree over totals; see :mod:`setpoint.expressions.totals` for Rate(q | e).
"""

from __future__ import annotations

import math
from typing import Any

from setpoint._core.errors import GoalError
from setpoint._core.options import is_real
from setpoint.expressions import Expression, Over, Ratio, Sum, Total, rate
from setpoint.expressions.rows.row_events import (
    actual,
    correct,
    decided,
    incorrect,
    not_actual,
    not_decided,
)
from setpoint.expressions.value_intervals import NONNEGATIVE
from setpoint.metrics.definition import HIGHER, LOWER, NEITHER, MetricDefinition, metric

_SIGNED = (-1.0, 1.0)

tp = metric("tp", Total(decided & actual), HIGHER, NONNEGATIVE)
fp = metric("fp", Total(decided & not_actual), LOWER, NONNEGATIVE)
fn = metric("fn", Total(not_decided & actual), LOWER, NONNEGATIVE)
tn = metric("tn", Total(not_decided & not_actual), HIGHER, NONNEGATIVE)

precision = metric("precision", rate(actual, given=decided))
recall = metric("recall", rate(decided, given=actual))
specificity = metric("specificity", rate(not_decided, given=not_actual))
fpr = metric("fpr", rate(decided, given=not_actual), LOWER)
fnr = metric("fnr", rate(not_decided, given=actual), LOWER)
npv = metric("npv", rate(not_actual, given=not_decided))
fdr = metric("fdr", rate(not_actual, given=decided), LOWER)
false_omission_rate = metric("false_omission_rate", rate(actual, given=not_decided), LOWER)
accuracy = metric("accuracy", rate(correct))
error_rate = metric("error_rate", rate(incorrect), LOWER)
balanced_accuracy = metric("balanced_accuracy", Over("present", recall, "class"))
positive_rate = metric("positive_rate", rate(decided), NEITHER)
prevalence = metric("prevalence", rate(actual), NEITHER)
jaccard = metric("jaccard", Ratio(Total(decided & actual), Total(decided) + Total(actual) - tp))
g_mean = metric("g_mean", (recall * specificity) ** 0.5)
youden = metric("youden", recall + specificity - 1, HIGHER, _SIGNED)

# With s rows in all, c of them correct, pₖ decided and tₖ actually in class k:
_rows, _hits = Total(), Total(correct)
_by_chance = Over("summed", Total(decided) * Total(actual), "class")
_decided_apart = Over("summed", Total(decided) * (_rows - Total(decided)), "class")
_actual_apart = Over("summed", Total(actual) * (_rows - Total(actual)), "class")
_chance_apart = Over("summed", Total(decided) * (_rows - Total(actual)), "class")
_covariance = _hits * _rows - _by_chance

mcc = metric("mcc", Ratio(_covariance, (_decided_apart * _actual_apart) ** 0.5), HIGHER, _SIGNED)
kappa = metric("kappa", Ratio(_covariance, _chance_apart), HIGHER, _SIGNED)


def _f_beta(beta: float) -> Expression:
    b2 = float(beta) ** 2
    return Ratio((1 + b2) * Total(decided & actual), Total(decided) + b2 * Total(actual))


f1 = metric("f1", _f_beta(1))


def f_beta(beta: float) -> Expression:
    """F-beta: (1+β²) TP / ((1+β²) TP + β² FN + FP); recall counts β times as much as precision.

    Examples
    --------
    >>> import setpoint as sp
    >>> sp.f_beta(2)([1, 1, 0], [1, 0, 0])
    0.5555555555555556
    """
    if not is_real(beta) or not 0 < beta <= 1e6:
        raise GoalError(f"f_beta({beta!r}): beta is a positive number")
    return metric("f_beta", _f_beta(float(beta)), arguments=((None, float(beta)),))


def cost(*, fp: float = 0, fn: float = 0, tp: float = 0, tn: float = 0) -> Expression:
    """Mean cost per row: (c_fp FP + c_fn FN + c_tp TP + c_tn TN) / rows; a gain is negative.

    Examples
    --------
    >>> import setpoint as sp
    >>> sp.cost(fp=1, fn=10)([1, 0, 0, 0], [0, 1, 0, 0])
    2.75
    """
    prices: dict[str, Any] = {"fp": fp, "fn": fn, "tp": tp, "tn": tn}
    for name, price in prices.items():
        if not is_real(price) or not math.isfinite(price):
            raise GoalError(f"cost({name}={price!r}): a cost is a finite number")
    given = {name: price for name, price in prices.items() if price != 0}
    if not given:
        raise GoalError(
            "cost() needs at least one cost that is not 0, for example cost(fp=1, fn=10)"
        )
    events = {
        "fp": decided & not_actual,
        "fn": not_decided & actual,
        "tp": decided & actual,
        "tn": not_decided & not_actual,
    }
    parts = tuple(price * Total(events[name]) for name, price in given.items())
    span = (float(min(prices.values())), float(max(prices.values())))
    return metric("cost", Ratio(Sum(parts), Total()), LOWER, span, tuple(given.items()))


_SK = "scikit-learn: "
ROWS = (
    MetricDefinition(
        "tp", tp, "TP = Σ w s y", _SK + "confusion_matrix", "rows decided and actual", value="3.0"
    ),
    MetricDefinition(
        "fp",
        fp,
        "FP = Σ w s (1−y)",
        _SK + "confusion_matrix",
        "rows decided, not actual",
        value="2.0",
    ),
    MetricDefinition(
        "fn",
        fn,
        "FN = Σ w (1−s) y",
        _SK + "confusion_matrix",
        "rows actual, not decided",
        value="1.0",
    ),
    MetricDefinition(
        "tn",
        tn,
        "TN = Σ w (1−s)(1−y)",
        _SK + "confusion_matrix",
        "rows neither decided nor actual",
        value="2.0",
    ),
    MetricDefinition(
        "precision",
        precision,
        "TP / (TP + FP)",
        _SK + "precision_score",
        "share of the decided that are right",
        ("ppv",),
        value="0.6",
    ),
    MetricDefinition(
        "recall",
        recall,
        "TP / (TP + FN)",
        _SK + "recall_score",
        "share of the positives that are caught",
        ("tpr", "sensitivity"),
        value="0.75",
    ),
    MetricDefinition(
        "specificity",
        specificity,
        "TN / (TN + FP)",
        _SK + "recall_score(pos_label=0)",
        "share of the negatives that are left alone",
        ("tnr",),
        value="0.5",
    ),
    MetricDefinition(
        "fpr",
        fpr,
        "FP / (FP + TN)",
        "brute force",
        "share of the negatives that are decided",
        value="0.5",
    ),
    MetricDefinition(
        "fnr",
        fnr,
        "FN / (FN + TP)",
        "brute force",
        "share of the positives that are missed",
        value="0.25",
    ),
    MetricDefinition(
        "npv",
        npv,
        "TN / (TN + FN)",
        "brute force",
        "share of the rows left alone that are negative",
        value="0.6666666666666666",
    ),
    MetricDefinition(
        "fdr",
        fdr,
        "FP / (TP + FP)",
        "brute force",
        "share of the decided that are wrong",
        value="0.4",
    ),
    MetricDefinition(
        "false_omission_rate",
        false_omission_rate,
        "FN / (FN + TN)",
        "brute force",
        "share of the rows left alone that are positive",
        value="0.3333333333333333",
    ),
    MetricDefinition(
        "accuracy",
        accuracy,
        "correct / rows",
        _SK + "accuracy_score",
        "share of rows decided correctly; multilabel: all labels right",
        value="0.625",
    ),
    MetricDefinition(
        "error_rate",
        error_rate,
        "wrong / rows",
        _SK + "zero_one_loss",
        "share of rows decided wrongly",
        value="0.375",
    ),
    MetricDefinition(
        "balanced_accuracy",
        balanced_accuracy,
        "mean of the recalls of the classes present",
        _SK + "balanced_accuracy_score",
        "accuracy if every class had equally many rows",
        value="0.625",
    ),
    MetricDefinition(
        "f1",
        f1,
        "2 TP / (2 TP + FP + FN)",
        _SK + "f1_score",
        "harmonic mean of precision and recall",
        value="0.6666666666666666",
    ),
    MetricDefinition(
        "f_beta",
        f_beta,
        "(1+β²) TP / ((1+β²) TP + β² FN + FP)",
        _SK + "fbeta_score",
        "recall counts β times as much as precision",
        examples=("f_beta(2)",),
    ),
    MetricDefinition(
        "jaccard",
        jaccard,
        "TP / (TP + FP + FN)",
        _SK + "jaccard_score",
        "overlap of decided and actual",
        ("iou",),
        value="0.5",
    ),
    MetricDefinition(
        "mcc",
        mcc,
        "(c s − Σ pₖ tₖ) / √(Σ pₖ (s−pₖ) · Σ tₖ (s−tₖ))",
        _SK + "matthews_corrcoef",
        "correlation of decided and actual",
        value="0.2581988897471611",
    ),
    MetricDefinition(
        "kappa",
        kappa,
        "(c s − Σ pₖ tₖ) / (s² − Σ pₖ tₖ)",
        _SK + "cohen_kappa_score",
        "agreement beyond chance",
        value="0.25",
    ),
    MetricDefinition(
        "g_mean",
        g_mean,
        "√(TPR · TNR)",
        "brute force",
        "geometric mean of the two recalls",
        value="0.6123724356957945",
    ),
    MetricDefinition(
        "youden",
        youden,
        "TPR + TNR − 1",
        "brute force",
        "recall of both classes together, less one",
        ("informedness",),
        value="0.25",
    ),
    MetricDefinition(
        "positive_rate",
        positive_rate,
        "(TP + FP) / rows",
        "brute force",
        "share of rows decided positive",
        ("selection_rate",),
        value="0.625",
    ),
    MetricDefinition(
        "prevalence",
        prevalence,
        "P / rows",
        "brute force",
        "share of rows that are positive",
        value="0.5",
    ),
    MetricDefinition(
        "cost",
        cost,
        "(c_fp FP + c_fn FN + c_tp TP + c_tn TN) / rows",
        "brute force",
        "mean cost per row",
        examples=("cost(fp=1, fn=10)",),
    ),
)
