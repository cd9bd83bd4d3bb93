"""Names for trees: every metric that can be said, by task."""

from typing import TYPE_CHECKING

from setpoint.metrics.binary import (
    accuracy,
    balanced_accuracy,
    cost,
    error_rate,
    f1,
    f_beta,
    false_omission_rate,
    fdr,
    fn,
    fnr,
    fp,
    fpr,
    g_mean,
    jaccard,
    kappa,
    mcc,
    npv,
    positive_rate,
    precision,
    prevalence,
    recall,
    specificity,
    tn,
    tp,
    youden,
)
from setpoint.metrics.operating_points import (
    fnr_at_fpr,
    precision_at_k,
    precision_at_recall,
    recall_at_k,
    recall_at_precision,
    tpr_at_fpr,
)
from setpoint.metrics.ranking import auprc, auroc, average_precision, mean_average_precision, ndcg
from setpoint.metrics.reductions import (
    absolute,
    balanced,
    gap,
    greatest,
    hamming_loss,
    least,
    macro,
    maximum,
    micro,
    minimum,
    ratio,
    weighted,
    worst,
)
from setpoint.metrics.regression import mae, mse, r2, rmse
from setpoint.metrics.selective import coverage, selective_risk
from setpoint.metrics.table import METRICS, NAMES, metric

if TYPE_CHECKING:
    from setpoint.expressions import Named

__all__ = [
    "METRICS",
    "NAMES",
    "absolute",
    "accuracy",
    "auprc",
    "auroc",
    "average_precision",
    "balanced",
    "balanced_accuracy",
    "cost",
    "coverage",
    "error_rate",
    "f1",
    "f_beta",
    "false_omission_rate",
    "fdr",
    "fn",
    "fnr",
    "fnr_at_fpr",
    "fp",
    "fpr",
    "g_mean",
    "gap",
    "greatest",
    "hamming_loss",
    "jaccard",
    "kappa",
    "least",
    "macro",
    "mae",
    "maximum",
    "mcc",
    "mean_average_precision",
    "metric",
    "micro",
    "minimum",
    "mse",
    "ndcg",
    "npv",
    "positive_rate",
    "precision",
    "precision_at_k",
    "precision_at_recall",
    "prevalence",
    "r2",
    "ratio",
    "recall",
    "recall_at_k",
    "recall_at_precision",
    "rmse",
    "selective_risk",
    "specificity",
    "tn",
    "tp",
    "tpr_at_fpr",
    "weighted",
    "worst",
    "youden",
]

if TYPE_CHECKING:  # a type checker reads no table; an alias that is absent here works all the same
    informedness: Named
    iou: Named
    ppv: Named
    selection_rate: Named
    sensitivity: Named
    tnr: Named
    tpr: Named
    __all__ += ["informedness", "iou", "ppv", "selection_rate", "sensitivity", "tnr", "tpr"]
else:
    aliases = {alias: NAMES[alias] for row in METRICS.values() for alias in row.aliases}
    globals().update(aliases)
    __all__ += aliases
    del aliases


def __dir__() -> list[str]:
    return sorted(__all__)
