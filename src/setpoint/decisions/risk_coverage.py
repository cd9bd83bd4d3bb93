"""Risk against coverage: how wrong the decisions are that a classifier keeps, sure ones first.

With losses ℓ and a threshold t on the confidence c, the rows with c >= t are accepted:

    coverage(t) = Σ w 1{c >= t} / Σ w,    risk(t) = Σ w ℓ 1{c >= t} / Σ w 1{c >= t}.

Rows of equal confidence are accepted together. Between two thresholds the curve is the mean over
all orders of the tied rows: each of them adds the mean loss of its block. The curve is then a
function of confidences and losses alone; no order of the rows or of a sort enters it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from setpoint._core.arrays import to_numpy
from setpoint._core.errors import DataError, KindError
from setpoint._core.options import is_real
from setpoint.expressions import take_names
from setpoint.expressions.rows.raw_arrays import array_of, numeric


@dataclass(frozen=True, eq=False)
class RiskCoverage:
    """Risk and coverage at every distinct confidence, thresholds descending.

    Attributes
    ----------
    thresholds : numpy.ndarray of shape (m,)
        Accept where confidence >= threshold.
    coverages, risks : numpy.ndarray of shape (m,)
        The share of rows accepted, and their mean loss.
    wrong : numpy.ndarray of shape (m,)
        The summed loss of the rows accepted: their errors, where the loss is 0 or 1.
    n : int
        Rows of positive weight.
    best : RiskCoverage or None
        The curve of the same losses in the best order, the least first, which no confidence can
        beat (its confidence is minus the loss); None where this is it.
    """

    thresholds: np.ndarray
    coverages: np.ndarray
    risks: np.ndarray
    wrong: np.ndarray
    n: int
    best: RiskCoverage | None = None

    def risk_at(self, coverage: Any) -> np.ndarray:
        """Expected selective risk at any coverage in (0, 1].

        Examples
        --------
        >>> curve = risk_coverage([0.9, 0.5, 0.5], [False, True, False])
        >>> curve.risk_at([1 / 3, 2 / 3, 1]).round(4).tolist()
        [0.0, 0.25, 0.3333]
        """
        c = to_numpy(coverage)
        if c.dtype.kind not in "fiu" or not ((c > 0) & (c <= 1)).all():
            raise DataError(f"coverage={coverage!r}: a risk is read at coverages in (0, 1]")
        return self._accepted_loss(c) / c

    def aurc(self, alpha: float = 1.0) -> float:
        """AURC-α = (1/m) Σ_{i=1..m} risk(i/n) with m = ⌈α n⌉.

        The mean selective risk over the lowest coverages 1/n, …, m/n: after the first row, the
        first two, and so on. A fraction, not a percentage, and divided by m: it is a risk, not
        an area of size α. Without weights this is the mean over all orders of tied rows; with
        them the weighted curve is read at the same coverages.

        Parameters
        ----------
        alpha : float in (0, 1]
            Taken as it is written: 0.7 of 10 rows are 7.

        Examples
        --------
        >>> risk_coverage([4, 3, 2, 1], [0, 1, 0, 1]).aurc(alpha=0.5)  # (0 + 1/2) / 2
        0.25
        """
        return float(self.risk_at(self._grid(alpha)).mean())

    def augrc(self) -> float:
        """AUGRC = (1/n) Σ_{i=1..n} (i/n) risk(i/n), the mean of accepted and wrong.

        Between 0 and the mean loss; about half of that for a confidence that says nothing.

        References
        ----------
        Traub et al., "Overcoming common flaws in the evaluation of selective classification
        systems", NeurIPS 2024.

        Examples
        --------
        >>> risk_coverage([4, 3, 2, 1], [0, 1, 0, 1]).augrc()  # (0 + 1 + 1 + 2) / 4 / 4
        0.25
        """
        return float(self._accepted_loss(self._grid(1.0)).mean())

    def excess_aurc(self, alpha: float = 1.0) -> float:
        """AURC-α less that of the best order of the same losses; 0 where no order does better.

        Examples
        --------
        >>> risk_coverage([4, 3, 2, 1], [0, 1, 0, 1]).excess_aurc(alpha=0.5)  # best: 0, 0, 1, 1
        0.25
        """
        own = self.aurc(alpha)
        return 0.0 if self.best is None else max(0.0, own - self.best.aurc(alpha))

    def _accepted_loss(self, coverage: np.ndarray) -> np.ndarray:
        """Risk × coverage: straight within a block, since each of its rows adds the same."""
        kept = np.concatenate([[0.0], self.coverages])
        return np.interp(coverage, kept, np.concatenate([[0.0], self.coverages * self.risks]))

    def _grid(self, alpha: float) -> np.ndarray:
        """1/n, …, ⌈α n⌉/n."""
        if not is_real(alpha) or not 0 < alpha <= 1:
            raise DataError(f"alpha={alpha!r}: a share of the rows is needed, in (0, 1]")
        m = math.ceil(Fraction(repr(float(alpha))) * self.n)  # in floats 0.7 * 10 exceeds 7
        return np.arange(1, m + 1) / self.n


def risk_coverage(confidence: Any, wrong: Any, *, sample_weight: Any = None) -> RiskCoverage:
    """Risk and coverage of decisions, accepted in the order of their confidence.

    Parameters
    ----------
    confidence : array-like of shape (n,)
        Higher is surer, on any scale: only its order counts. Infinities are allowed.
    wrong : array-like of shape (n,)
        Booleans, True where the decision is wrong (see :func:`selective_errors`), or losses,
        finite and not negative.
    sample_weight : array-like of shape (n,), optional
        Coverage and risk are then shares of weight. Their scale does not matter, and rows of
        weight 0 are left out.

    Examples
    --------
    >>> curve = risk_coverage([0.9, 0.8, 0.8, 0.1], [False, True, False, True])
    >>> curve.coverages.tolist(), curve.risks.round(4).tolist(), curve.wrong.tolist()
    ([0.25, 0.75, 1.0], [0.0, 0.3333, 0.5], [0.0, 1.0, 2.0])
    """
    score = numeric(array_of(confidence, "confidence", 1), "confidence")
    if str(score.dtype) in ("bool", "torch.bool"):
        raise KindError("confidence is booleans, which look like decisions; pass scores")
    score = to_numpy(score).astype(np.float64)
    if not score.size:
        raise DataError("confidence is empty; there is no row to accept")
    if np.isnan(score).any():
        row = int(np.isnan(score).argmax())
        raise DataError(f"confidence is nan at row {row}; drop or repair rows without one")
    loss = _amounts(wrong, "wrong", score.size)
    weight = np.ones_like(score)
    if sample_weight is not None:
        weight = _amounts(sample_weight, "sample_weight", score.size)
        if not weight.any():
            raise DataError("sample_weight sums to zero; at least one row must count")
        score, loss, weight = (a[weight > 0] for a in (score, loss, weight))
    return _curve(score, loss, weight, _curve(-loss, loss, weight, None))


def selective_errors(predicted: Any, actual: Any, unknown: Any = -1) -> np.ndarray:
    """Where a decision is wrong if it is accepted: predicted ≠ actual, or actual = unknown.

    Parameters
    ----------
    predicted, actual : array-like of shape (n,)
        In the same labels; the column indices that ``confidence`` gives, for one.
    unknown : label
        Stands in ``actual`` for a class that the model does not have (a label shift). Any
        decision on such a row is wrong.

    Examples
    --------
    >>> selective_errors([0, 1, 2, 1], [0, 2, 2, -1]).tolist()
    [False, True, False, True]
    """
    first, second = array_of(predicted, "predicted", 1), array_of(actual, "actual", 1)
    n = first.shape[0]
    if second.shape[0] != n:
        raise DataError(f"predicted has {n} rows and actual {second.shape[0]}; they must match")
    first, second = take_names(first, "predicted", n), take_names(second, "actual", n)
    if (first.dtype.kind in "US") != (second.dtype.kind in "US"):
        raise KindError(
            f"predicted holds {first.dtype} and actual {second.dtype}; pass both in the same labels"
        )
    known = (second.dtype.kind in "US") == isinstance(unknown, str)
    return (first != second) | (second == unknown if known else False)


def _curve(
    score: np.ndarray, loss: np.ndarray, weight: np.ndarray, best: RiskCoverage | None
) -> RiskCoverage:
    rising, block = np.unique(score, return_inverse=True)
    accepted = np.bincount(block, weight)[::-1].cumsum()
    wrong = np.bincount(block, weight * loss)[::-1].cumsum()
    return RiskCoverage(
        thresholds=rising[::-1].copy(),
        coverages=accepted / accepted[-1],
        risks=wrong / accepted,
        wrong=wrong,
        n=score.size,
        best=best,
    )


def _amounts(x: Any, name: str, n: int) -> np.ndarray:
    """Finite numbers that are not negative, one for each row."""
    a = to_numpy(numeric(array_of(x, name, 1), name)).astype(np.float64)
    if a.size != n:
        raise DataError(f"confidence has {n} rows and {name} has {a.size}; they must match")
    bad = ~((a >= 0) & (a <= 1e100))
    if bad.any():
        row = int(bad.argmax())
        raise DataError(
            f"{name} is {a[row]:g} at row {row}; it must be finite, not negative, at most 1e100"
        )
    return a
