"""The operating point that rows show: where a binary goal wants its threshold, with a margin.

Along all thresholds of the rows the goal's objective e₀ and violations vⱼ are read from cells c. A
threshold keeps a constraint with margin z where

    vⱼ + z sⱼ <= 0,      sⱼ² = (Σ c gⱼ² − (Σ c gⱼ)²) / n,      gⱼ = ∂vⱼ/∂c,

sⱼ the standard error of vⱼ by the delta method (of precision >= α it is √(α (1 − α) / decided)
where the bound is just met). The best threshold with the whole margin is taken, else with half of
it, and so on; where none keeps every constraint, the one that breaks them least.

The rows also show the intercept a at which the scores are calibrated in the mean,
Σ w σ(z + a) = Σ w y. A threshold θ of the score is then one of probability σ(θ + a).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from scipy.optimize import nnls
from scipy.special import expit
from scipy.stats import binomtest

from setpoint.methods.confusion.goal_over_cells import Lowered
from setpoint.methods.guard.recent_rows import ObservedRows

SHARES = (1.0, 0.5, 0.25, 0.0)  #: of the margin, tried in turn
LEAST = 3.0  #: rows decided on either side by which a threshold counts, where there are as many
NEAR = 1e-9  #: rounding that a rate may exceed its bound by
URGENT = 10.0  #: what breaking a constraint by one unit costs where none can hold
ALL = 256  #: ranks that are all looked at; a reading of 8192 rows takes a third of the time
NEWTON = 25  #: steps of the intercept, at most; five are usual


@dataclass(frozen=True)
class ObservedPoint:
    """A threshold and what stands there.

    Attributes
    ----------
    threshold : float
    share : float
        Of the margin that is kept; −1 where a constraint is broken at every threshold.
    cells : numpy.ndarray
        (tables · 4,) of the decisions there, per unit of mass.
    """

    threshold: float
    share: float
    cells: np.ndarray


def operating_point(
    lowered: Lowered,
    rows: ObservedRows,
    margin: float,
    charges: np.ndarray | None = None,
    exempt: np.ndarray | None = None,
) -> ObservedPoint:
    """The best threshold of the rows, one for all tables, with a margin of so many standard errors.

    Parameters
    ----------
    lowered : Lowered
        Of a binary task.
    rows : ObservedRows
    margin : float
    charges : numpy.ndarray, optional
        (m,) prices of constraints that are paid for instead of kept; not-a-number for those that
        are kept, as all are by default.
    """
    order = np.argsort(-rows.scores)
    value, actual, w = rows.scores[order], rows.y[order] > 0, rows.weight[order].astype(np.float64)
    last = _candidates(value)
    tables = lowered.cells.shape[0]
    table = rows.table if tables == 1 else rows.table[order]
    cells = _along(actual, w, table, tables, last)
    decided = np.append(0.0, last + 1.0)
    mass = float(w.sum())
    values, memory = lowered.read(cells)
    merit, violations = values[:, 0], values[:, 1:]
    least = min(LEAST, decided[-1] / 4)
    counts = (decided >= least) & (decided[-1] - decided >= 0)
    errors = standard_errors(lowered, cells, memory, violations, mass * mass / float(w @ w))
    equal = np.asarray(lowered.equal_of(violations)) > 0
    if exempt is not None:
        errors = errors * ~exempt
    if charges is not None:
        paid = np.isfinite(charges)
        merit = merit + violations[:, paid] @ charges[paid]
        violations, errors, equal = violations[:, ~paid], errors[:, ~paid], equal[~paid]
    excess = np.where(equal, np.abs(violations) - 1 / len(value), violations)
    if not violations.shape[1]:
        some = merit if charges is None else np.where(counts, merit, np.inf)
        place, share = int(np.argmin(some)), 1.0
    else:
        place, share = _best(merit, excess, errors * ~equal, counts, margin)
    ends = np.append(value[0] + 1.0, value[last])
    below = ends[place + 1] if place + 1 < len(ends) else ends[place] - 1.0
    return ObservedPoint(float((ends[place] + below) / 2), share, cells[place])


def _along(
    actual: np.ndarray, w: np.ndarray, table: np.ndarray, tables: int, last: np.ndarray
) -> np.ndarray:
    """Cells (T, tables · 4) per unit of mass where the rows up to each of ``last`` are decided."""
    mass = w.sum()
    parts = []
    for k in range(tables):
        own = w if tables == 1 else w * (table == k)
        tp = np.append(0.0, np.cumsum(own * actual)[last])
        fp = np.append(0.0, np.cumsum(own * ~actual)[last])
        parts += [fp[-1] - fp, fp, tp[-1] - tp, tp]
    return np.stack(parts, 1) / mass


def _candidates(value: np.ndarray) -> np.ndarray:
    """The last row of each group of ties, of falling scores.

    Of many, those up to a rank of :data:`ALL`, and then each a hundredth further down at most.
    """
    last = np.flatnonzero(np.append(value[1:] != value[:-1], True))
    if len(last) <= 4 * ALL:
        return last
    return last[_sparse(len(last))]


@lru_cache(maxsize=64)
def _sparse(count: int) -> np.ndarray:
    """Ranks among so many."""
    further = np.unique(np.geomspace(ALL, count - 1, 3 * ALL).astype(np.intp))
    return np.concatenate([np.arange(ALL), further])


def _best(
    merit: np.ndarray, excess: np.ndarray, errors: np.ndarray, counts: np.ndarray, margin: float
) -> tuple[int, float]:
    for share in SHARES if margin > 0 else (0.0,):
        kept = counts & ((excess + share * margin * errors).max(1) <= NEAR)
        if kept.any():
            return int(np.argmin(np.where(kept, merit, np.inf))), share
    charged = merit + URGENT * excess.clip(min=0).sum(1)
    return int(np.argmin(np.where(counts, charged, np.inf))), -1.0


def standard_errors(
    lowered: Lowered, cells: np.ndarray, memory: object, violations: np.ndarray, size: float
) -> np.ndarray:
    """(T, m) of the violations at cells (T, cells) of this many rows."""
    errors = np.zeros_like(violations)
    for j in range(violations.shape[1]):
        one = np.zeros((len(cells), 1 + violations.shape[1]))
        one[:, 1 + j] = 1
        slope = lowered.prices(cells, memory, one)
        errors[:, j] = np.sqrt(spread(cells, slope, 1) / size)
    return errors


def spread(cells: np.ndarray, slope: np.ndarray, labels: int) -> np.ndarray:
    """(T,) variance of the influence of one row: slopes (T, cells) at cells per unit of mass.

    Of several labels each is taken by itself, and the variances are summed.
    """
    if labels == 1:
        return np.maximum((cells * slope**2).sum(1) - (cells * slope).sum(1) ** 2, 0.0)
    tables = cells.reshape(len(cells), -1, labels, 4), slope.reshape(len(cells), -1, labels, 4)
    mass, square = (tables[0] * tables[1] ** k for k in (1, 2))
    return np.maximum(square.sum((1, 3)) - mass.sum((1, 3)) ** 2, 0.0).sum(1)


NEWEST = 512  #: rows that are compared with the window
UNLIKE = 0.05  #: probability below which they are decided unlike the window


def followed(threshold: float, scores: np.ndarray) -> float:
    """The threshold, moved where the newest rows are decided unlike all rows beyond chance.

    At high learning rates scores move between one step and the next by more than the margin, and
    the threshold of all rows may decide nobody of the newest. Then it is the one that decides the
    same share of these. Of 300 runs this moves the constraints kept by one or two either way, and
    leaves none in which nobody is decided.

    Parameters
    ----------
    threshold : float
    scores : numpy.ndarray
        (n,), the oldest first.
    """
    if len(scores) < 4 * NEWEST:
        return threshold
    newest = scores[-NEWEST:]
    share = float(np.mean(scores >= threshold))
    count = int((newest >= threshold).sum())
    if share in (0.0, 1.0) or binomtest(count, NEWEST, share).pvalue >= UNLIKE:
        return threshold
    return float(np.quantile(newest, 1 - share))


def intercept(scores: np.ndarray, y: np.ndarray, weight: np.ndarray, start: float = 0.0) -> float:
    """The a at which Σ w σ(z + a) = Σ w y, by Newton's method; within ±30."""
    share = float(weight @ y / weight.sum())
    a = start
    for _ in range(NEWTON):
        p = expit(scores + a)
        gap = float(weight @ p / weight.sum()) - share
        slope = float(weight @ (p * (1 - p)) / weight.sum())
        step = float(np.clip(gap / max(slope, 1e-9), -2, 2))
        a = float(np.clip(a - step, -30, 30))
        if abs(step) < 1e-6:
            break
    return a


LOWEST = 1e-3  #: of a price, so that it can come back by multiplication
LIMIT = 100.0  #: of a price, in units of the objective; at 100 the objective hardly counts


def price_at(
    lowered: Lowered,
    cells: np.ndarray,
    probability: float,
    limit: float,
    near: np.ndarray | None = None,
    charges: np.ndarray | None = None,
) -> np.ndarray:
    """Multipliers (m,) at which the goal itself would choose this threshold of probability.

    Deciding a row of probability t is worth t·u − (1 − t)·d more than not, u what a positive gains
    by it and d what a negative loses. The threshold is best where that is 0 for the objective and
    the constraints together: one linear equation in λ >= 0, of which the least solution is taken.
    For recall subject to precision >= α it is λ = t / (α − t). Where there is none (t >= α), the
    part that comes nearest to the threshold by itself gets all the weight: a constraint ``limit``,
    the objective every other price at its least.

    Parameters
    ----------
    near : numpy.ndarray, optional
        (tables,) shares of the rows at the threshold; of several tables u and d are means by them.
    charges : numpy.ndarray, optional
        (m,) prices that stand already; not-a-number for those to be found.

    Examples
    --------
    >>> import setpoint as sp
    >>> from setpoint.methods.confusion.confusion_cells import Cells
    >>> goal = sp.Goal.parse("maximize recall subject to precision >= 0.9")
    >>> lowered = Lowered(goal, Cells(sp.Task.binary()))
    >>> cells = np.array([0.78, 0.02, 0.02, 0.18])
    >>> price_at(lowered, cells, 0.6, 100.0), price_at(lowered, cells, 0.95, 100.0)
    (array([2.]), array([100.]))
    """
    m = len(lowered.constraints)
    prices = np.full(m, np.nan) if charges is None else charges.copy()
    open_ = np.isnan(prices)
    if not open_.any():
        return prices
    values, memory = lowered.read(cells[None])
    up, down = np.zeros(1 + m), np.zeros(1 + m)
    share = np.ones(1) if near is None else near
    for j in range(1 + m):
        one = np.zeros_like(values)
        one[:, j] = -1
        worth = lowered.prices(cells[None], memory, one).reshape(-1, 2, 2)
        up[j] = share @ (worth[:, 1, 1] - worth[:, 1, 0])
        down[j] = share @ (worth[:, 0, 0] - worth[:, 0, 1])
    # what is charged already counts with the objective
    paid = np.append(1.0, np.where(open_, 0.0, prices))
    up, down = (np.append(x @ paid, x[1:][open_]) for x in (up, down))
    prices[open_] = _balanced(up, down, probability, limit)
    return prices


def _balanced(up: np.ndarray, down: np.ndarray, probability: float, limit: float) -> np.ndarray:
    """The multipliers of what follows the first entry, by what deciding is worth to each."""
    m = len(up) - 1
    gain = probability * up - (1 - probability) * down
    if not np.isfinite(gain).all() or not np.abs(gain[1:]).max():
        return np.ones(m)
    if (gain[1:] * gain[0] < 0).any() or gain[0] == 0:
        return np.clip(nnls(gain[None, 1:], -gain[:1])[0], LOWEST, limit)
    whole = up + down
    own = np.where(np.abs(whole) > 0, down / np.where(whole == 0, 1, whole), 0.5)
    nearest = int(np.argmin(np.abs(own - probability)))
    prices = np.full(m, LOWEST)
    if nearest:
        prices[nearest - 1] = limit
    return prices


def near_threshold(rows: ObservedRows, threshold: float, tables: int) -> np.ndarray:
    """(tables,) shares of the rows whose scores are nearest to the threshold."""
    if tables == 1:
        return np.ones(1)
    some = max(1, min(len(rows.y), max(50, len(rows.y) // 10)) - 1)
    nearest = np.argpartition(np.abs(rows.scores - threshold), some)[: some + 1]
    mass = np.bincount(rows.table[nearest], rows.weight[nearest], minlength=tables)
    return mass / mass.sum()
