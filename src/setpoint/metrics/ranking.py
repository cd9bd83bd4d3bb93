"""Metrics of a whole curve, and of rankings by query."""

from __future__ import annotations

from dataclasses import replace

from setpoint.expressions import Auroc, Expression, Ndcg, PrecisionOverRecall
from setpoint.expressions.ranking_curves import whole_number
from setpoint.metrics.definition import HIGHER, MetricDefinition, metric

auroc = metric("auroc", Auroc(), HIGHER)
average_precision = metric("average_precision", PrecisionOverRecall())
mean_average_precision = metric("mean_average_precision", PrecisionOverRecall(by="query"))
auprc = replace(average_precision, name="auprc")


def ndcg(k: int | None = None, *, gain: str = "linear") -> Expression:
    """Normalised discounted cumulative gain of the first k, mean over queries.

    DCG = Σ_{rank ≤ k} g / log₂(rank + 1) over its greatest value; g is the relevance, or
    2^relevance − 1 with ``gain="exponential"``; tied rows share the mean of their gains.

    Examples
    --------
    >>> import setpoint as sp
    >>> round(sp.ndcg(2)([2, 0, 1], [0.1, 0.9, 0.8], task="ranking"), 4)
    0.2398
    """
    k = None if k is None else whole_number("ndcg", k)
    first = () if k is None else ((None, k),)
    arguments = first if gain == "linear" else (*first, ("gain", gain))
    return metric("ndcg", Ndcg(k, gain), arguments=arguments)


_SCORES = "[1, 0, 1, 0], [0.9, 0.8, 0.7, 0.1]"
ROWS = (
    MetricDefinition(
        "auroc",
        auroc,
        "P(score of a positive > score of a negative) + ½ P(equal)",
        "scikit-learn: roc_auc_score",
        "area under the ROC curve; partial up to max_fpr and above min_tpr, McClish-corrected "
        "unless standardized=false",
        examples=(
            "auroc",
            "auroc(max_fpr=0.05)",
            "auroc(max_fpr=0.05, standardized=false)",
            "auroc(max_fpr=0.3, min_tpr=0.7)",
        ),
        call=_SCORES,
        value="0.75",
    ),
    MetricDefinition(
        "average_precision",
        average_precision,
        "Σₖ (Rₖ − Rₖ₋₁) Pₖ",
        "scikit-learn: average_precision_score",
        "mean precision over all recalls",
        examples=(
            "average_precision",
            'average_precision(by="query")',
        ),
        call=_SCORES,
        value="0.8333333333333333",
    ),
    MetricDefinition(
        "auprc",
        auprc,
        "(1/(1−r)) Σₖ max(0, Rₖ − max(Rₖ₋₁, r)) Pₖ",
        "brute force",
        "mean precision over the recalls from min_recall to 1",
        examples=(
            "auprc",
            "auprc(min_recall=0.95)",
        ),
        call=_SCORES,
        value="0.8333333333333333",
    ),
    MetricDefinition(
        "mean_average_precision",
        mean_average_precision,
        "mean over queries of average precision",
        "scikit-learn: average_precision_score per query",
        "average precision by query",
        call='[1, 0, 1, 0], [0.9, 0.8, 0.1, 0.7], query=["a", "a", "b", "b"]',
        value="0.75",
    ),
    MetricDefinition(
        "ndcg",
        ndcg,
        "DCG / greatest DCG, mean over queries",
        "scikit-learn: ndcg_score",
        "normalised discounted cumulative gain",
        examples=(
            "ndcg(10)",
            'ndcg(10, gain="exponential")',
        ),
    ),
)
