"""Intervals for the figures of a report, in closed form and along a whole curve at once.

a share, k of n rows           Clopper & Pearson (1934), exact
a share of weighted rows       the same at the effective number of rows n = (Σw)² / Σw²
                               and k = share · n  (Korn & Graubard 1998), approximate
the area under the ROC         DeLong, DeLong & Clarke-Pearson (1988), approximate
average precision a            logit a ± z (P a (1 − a))^(−1/2) with P positives, approximate
                               (Boyd, Eng & Page 2013)
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from setpoint.statistics.binomial import lower, upper

Z = 1.959963984540054  #: the normal quantile of 97.5%
HALF = 0.025  #: the error of each end of a 95% interval

EXACT = "exact binomial (Clopper–Pearson)"
EFFECTIVE = "binomial at the effective number of weighted rows, approximate"
DELONG = "DeLong, approximate"
LOGIT = "logit interval, approximate"


def share_interval(k: Any, n: Any) -> tuple[Any, Any]:
    """The 95% interval of a share, k of n; k and n need not be whole; (0, 1) where n is 0.

    Examples
    --------
    >>> [round(float(x), 4) for x in share_interval(8, 10)]
    [0.4439, 0.9748]
    """
    return lower(k, n, HALF), upper(k, n, HALF)


def auroc_interval(positive: np.ndarray, scores: np.ndarray) -> tuple[float, float] | None:
    """DeLong's interval around the area under the ROC; None where it has no width to give."""
    from scipy.stats import rankdata

    m, n = int(positive.sum()), int((~positive).sum())
    if min(m, n) < 2:
        return None
    ranks = rankdata(scores)
    above = (ranks[positive] - rankdata(scores[positive])) / n  # share of negatives below each
    below = 1 - (ranks[~positive] - rankdata(scores[~positive])) / m
    error = math.sqrt(above.var(ddof=1) / m + below.var(ddof=1) / n)
    if error == 0:
        return None
    area = float(above.mean())
    return max(0.0, area - Z * error), min(1.0, area + Z * error)


def precision_interval(area: float, positives: int) -> tuple[float, float] | None:
    """The logit interval around an average precision."""
    if positives < 1 or area * (1 - area) < 1e-12:  # all right or all wrong: no spread to go by
        return None
    middle, width = math.log(area / (1 - area)), Z / math.sqrt(positives * area * (1 - area))
    low, high = (1 / (1 + math.exp(-(middle + side * width))) for side in (-1, 1))
    return low, high
