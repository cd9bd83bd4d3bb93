"""Metrics of a ranking: leaves whose state is the rows themselves, merged by concatenation.

Ties are never broken: rows with equal scores enter a curve together, and at a border such as
"the first k" each of them counts with the fraction of it that fits.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from setpoint._core.arrays import namespace, to_numpy
from setpoint._core.errors import DataError, GoalError, Spelling
from setpoint._core.options import is_real
from setpoint.expressions.candidate_scan import scan
from setpoint.expressions.constraint import Constraint
from setpoint.expressions.evaluate import Reading
from setpoint.expressions.leaf import Leaf
from setpoint.expressions.node import ATOM, Node
from setpoint.expressions.rows.columns import Columns
from setpoint.expressions.rows.row_events import ACTUAL, EVERYTHING, Event, Literal, Not, Side
from setpoint.expressions.rows.task import Task
from setpoint.expressions.threshold_sweep import Sweep


class RankedRows(NamedTuple):
    """Rows of a ranking; (n,) each."""

    scores: Any
    gain: Any  # 0/1 for a class, a relevance for ranking
    weight: Any
    query: np.ndarray | None


class Curve(Leaf):
    """A leaf that judges scores.

    Subclasses are frozen dataclasses with the fields ``where`` (rows), ``label`` (the class in
    question) and ``by`` (None or "query").
    """

    merges = "concatenate"
    ranks: ClassVar[bool] = False  #: taken by query wherever queries are given

    where: Event
    label: Side
    by: str | None

    @property
    def need(self) -> str:
        """Scores."""
        return "scores"

    @abstractmethod
    def measure_one(self, rows: RankedRows) -> float | None:
        """The value on one list of rows (numpy); None where undefined."""

    def of(self, side: Side) -> Self:
        return replace(self, label=side) if self.label is None else self  # type: ignore[type-var]

    def within(self, event: Event) -> Self:
        return replace(self, where=self.where & event)  # type: ignore[type-var]

    def measure(self, columns: Columns) -> RankedRows:
        if columns.scores is None:
            raise DataError(f"{self} judges scores, and only decisions were given; pass scores")
        if self.by == "query" and columns.query is None:
            raise DataError(
                "{metric} is taken by query: {way}, the query of each row",
                metric=str(self),
                way=Spelling("pass query=", "say --query"),
            )
        if self.ranks and columns.weight is not None:
            raise DataError(
                "{metric} takes no {argument}; each query counts once",
                metric=str(self),
                argument=Spelling("sample_weight", "weight"),
            )
        scores, gain = self._columns(columns, columns.scores)
        weight = columns.weight
        rows = columns.membership(self.where)
        if rows is None:
            return RankedRows(scores, gain, weight, columns.query)
        keep = to_numpy(rows)
        query = None if columns.query is None else columns.query[keep]
        return RankedRows(scores[rows], gain[rows], None if weight is None else weight[rows], query)

    def _columns(self, columns: Columns, scores: Any) -> tuple[Any, Any]:
        if columns.task.kind in ("ranking", "regression"):
            return scores, columns.actual
        gain = columns.membership(Event(frozenset([Literal(ACTUAL).of(self.label)])))
        rest = isinstance(self.label, Not)
        label = self.label.label if isinstance(self.label, Not) else self.label
        if columns.task.kind == "binary":
            rest = rest != (label is not None and label != columns.classes[1])
        else:
            scores = scores[:, columns.classes.index(label)]
        return (-scores if rest else scores), gain

    def merge(self, a: RankedRows, b: RankedRows) -> RankedRows:
        def join(x: Any, y: Any) -> Any:
            return None if x is None or y is None else namespace(x).concatenate([x, y])

        for x, y, name in ((a.weight, b.weight, "weights"), (a.query, b.query, "queries")):
            if (x is None) != (y is None):
                raise DataError(f"one shard has {name}, the other has none; give both or neither")
        return RankedRows(*(join(x, y) for x, y in zip(a, b, strict=True)))

    def reading(self, state: RankedRows) -> Reading:
        rows = RankedRows(*(None if x is None else to_numpy(x) for x in state))
        place = "" if self.where == EVERYTHING else f" where {self.where}"
        if rows.scores.size == 0:
            raise DataError(f"{self} needs rows{place}, and there are none")
        if rows.query is not None and (self.ranks or self.by == "query"):
            value = self._mean_over_queries(rows, rows.query)
        else:
            value = self.measure_one(rows)
        if value is None:
            raise DataError(
                f"{self} needs rows of both classes{place}, with positive weight, and does not "
                "have them"
            )
        xp = namespace(state.scores)
        if xp is not np:
            value = xp.as_tensor(value, dtype=xp.float64, device=state.scores.device)
        return Reading(value)

    def _mean_over_queries(self, rows: RankedRows, query: np.ndarray) -> float:
        order = np.argsort(query, kind="stable")
        starts = np.flatnonzero(np.r_[True, query[order][1:] != query[order][:-1]])
        values = []
        for part in np.split(order, starts[1:]):
            weight = None if rows.weight is None else rows.weight[part]
            one = self.measure_one(RankedRows(rows.scores[part], rows.gain[part], weight, None))
            values.append(0.0 if one is None else one)
        return float(np.mean(values))

    def text(self) -> tuple[str, int]:
        return type(self).__name__.lower(), ATOM

    def latex(self) -> str:
        return rf"\mathrm{{{self}}}"


def curve(rows: RankedRows) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Thresholds (descending, +inf first), TP and FP at each; (m + 1,) arrays."""
    order = np.argsort(rows.scores)[::-1]
    scores = rows.scores[order]
    hit = (rows.gain[order] > 0).astype(np.float64)
    weight = np.ones_like(hit) if rows.weight is None else rows.weight[order]
    ends = np.flatnonzero(np.r_[scores[1:] != scores[:-1], True])
    tp = np.cumsum(weight * hit)[ends]
    fp = np.cumsum(weight * (1 - hit))[ends]
    return np.r_[np.inf, scores[ends]], np.r_[0.0, tp], np.r_[0.0, fp]


@dataclass(frozen=True, eq=False, repr=False)
class Auroc(Curve):
    """Area under the ROC polygon, for FPR up to ``max_fpr`` and above the TPR ``min_tpr``.

    A = ∫ max(TPR − r, 0) dFPR over [0, m], m = max_fpr, r = min_tpr. With ``standardized`` it is
    mapped to [0.5, 1] where chance and perfection are (McClish 1989): ½ (1 + (A − c) / (a − c))
    with a = m (1 − r) and c = max(m − r, 0)²/2, the area under the diagonal. Without, it is A
    itself; A / a is the mean over pairs of the m highest negatives and the 1 − r lowest positives,
    the two-way partial AUC of Yang et al. (2019).
    """

    max_fpr: float = 1.0
    standardized: bool = True
    where: Event = EVERYTHING
    label: Side = None
    by: str | None = None
    min_tpr: float = 0.0

    options = ("max_fpr", "min_tpr", "standardized")

    def __post_init__(self) -> None:
        _check_share("auroc", "max_fpr", self.max_fpr, low_open=True)
        _check_share("auroc", "min_tpr", self.min_tpr, high_open=True)
        if not isinstance(self.standardized, bool):
            raise GoalError(f"auroc(standardized={self.standardized!r}): it is true or false")

    def measure_one(self, rows: RankedRows) -> float | None:
        _, tp, fp = curve(rows)
        if tp[-1] <= 0 or fp[-1] <= 0:
            return None
        fpr, tpr = fp / fp[-1], tp / tp[-1]
        if self.max_fpr == 1 and not self.min_tpr:
            return float(np.trapezoid(tpr, fpr))
        stop = int(np.searchsorted(fpr, self.max_fpr, "right"))
        edge = np.interp(self.max_fpr, fpr[stop - 1 : stop + 1], tpr[stop - 1 : stop + 1])
        area = _area_above(np.r_[fpr[:stop], self.max_fpr], np.r_[tpr[:stop], edge], self.min_tpr)
        chance, most = self.bounds
        return 0.5 * (1 + (area - chance) / (most - chance)) if self.standardized else area

    @property
    def bounds(self) -> tuple[float, float]:
        """The area under the diagonal, and that of a perfect ranking."""
        chance = 0.5 * max(self.max_fpr - self.min_tpr, 0.0) ** 2
        return chance, self.max_fpr * (1 - self.min_tpr)


def _area_above(x: np.ndarray, y: np.ndarray, floor: float) -> float:
    """∫ max(y − floor, 0) dx of a polygon that never falls."""
    if not floor:
        return float(np.trapezoid(y, x))
    first = int(np.searchsorted(y, floor))  # the first corner at the floor or above it
    if first == len(y):
        return 0.0
    x, y = x[max(first - 1, 0) :], y[max(first - 1, 0) :] - floor
    if y[0] < 0:  # the edge that crosses begins where it does
        x[0] += (x[1] - x[0]) * -y[0] / (y[1] - y[0])
        y[0] = 0.0
    return float(np.trapezoid(y, x))


@dataclass(frozen=True, eq=False, repr=False)
class PrecisionOverRecall(Curve):
    """Mean precision over the recalls from ``min_recall`` to 1; from 0 it is average precision.

    (1 / (1 − r)) Σₖ max(0, Rₖ − max(Rₖ₋₁, r)) Pₖ, r = min_recall, over thresholds descending.
    """

    min_recall: float = 0.0
    where: Event = EVERYTHING
    label: Side = None
    by: str | None = None

    options = ("min_recall", "by")

    def __post_init__(self) -> None:
        _check_share("auprc", "min_recall", self.min_recall, high_open=True)
        _check_by("average_precision", self.by)

    def measure_one(self, rows: RankedRows) -> float | None:
        _, tp, fp = curve(rows)
        if tp[-1] <= 0:
            return 0.0
        recall = np.maximum(tp / tp[-1], self.min_recall)
        decided = tp + fp
        precision = tp / np.where(decided > 0, decided, 1.0)
        return float(np.diff(recall) @ precision[1:] / (1 - self.min_recall))


@dataclass(frozen=True, eq=False, repr=False)
class AtK(Curve):
    """Precision or recall among the k rows with the highest scores.

    With sᵢ = 1 above the border, (k − rows above)/(rows tied) on it, 0 below:
    precision = Σ w s y / Σ w s,  recall = Σ w s y / Σ w y.
    By query, one with fewer than k rows uses all of its rows.
    """

    k: int
    given: str = "decided"  # or "actual": the denominator
    where: Event = EVERYTHING
    label: Side = None
    by: str | None = None

    options = ("by",)

    def __post_init__(self) -> None:
        _check_by("precision_at_k", self.by)

    def measure_one(self, rows: RankedRows) -> float | None:
        n = rows.scores.size
        if self.k > n and self.by is None:
            raise DataError(f"k = {self.k} is more than the {n} rows given; take k <= {n}")
        k = min(self.k, n)
        border = np.partition(rows.scores, n - k)[n - k]
        above, tied = rows.scores > border, rows.scores == border
        share = above + tied * ((k - above.sum()) / tied.sum())
        share = share if rows.weight is None else share * rows.weight
        hit = rows.gain > 0
        if self.given == "decided":
            bottom = share.sum()
        else:
            bottom = hit.sum() if rows.weight is None else rows.weight[hit].sum()
        return float(share[hit].sum() / bottom) if bottom > 0 else 0.0


@dataclass(frozen=True, eq=False, repr=False)
class Ndcg(Curve):
    """Normalised discounted cumulative gain of the first k, mean over queries.

    DCG = Σ_{rank ≤ k} g / log₂(rank + 1), tied rows sharing the mean of their gains
    (McSherry & Najork 2008), over its greatest value; 0 where that is 0.
    """

    k: int | None = None
    gain: str = "linear"
    where: Event = EVERYTHING
    label: Side = None
    by: str | None = None

    options = ("gain",)
    ranks = True

    def __post_init__(self) -> None:
        _check_by("ndcg", self.by)
        if self.gain not in ("linear", "exponential"):
            raise GoalError(f'ndcg(gain="{self.gain}"): gain is "linear" or "exponential"')

    def measure_one(self, rows: RankedRows) -> float | None:
        n = rows.scores.size
        gain = rows.gain * 1.0 if self.gain == "linear" else 2.0**rows.gain - 1
        discount = 1 / np.log2(np.arange(n) + 2)
        if self.k is not None:
            discount[self.k :] = 0
        order = np.argsort(-rows.scores, kind="stable")
        starts = np.flatnonzero(np.r_[True, np.diff(rows.scores[order]) != 0])
        sizes = np.diff(np.r_[starts, n])
        shared = np.add.reduceat(gain[order], starts) / sizes
        best = float(np.sort(gain)[::-1] @ discount)
        return float(shared @ np.add.reduceat(discount, starts)) / best if best > 0 else 0.0


def _check_share(
    name: str, option: str, x: Any, low_open: bool = False, high_open: bool = False
) -> None:
    above = is_real(x) and (x > 0 if low_open else x >= 0)
    below = is_real(x) and (x < 1 if high_open else x <= 1)
    if not above or not below:
        ends = f"{'(' if low_open else '['}0, 1{')' if high_open else ']'}"
        raise GoalError(f"{name}({option}={x!r}): {option} is a number in {ends}")


def whole_number(name: str, k: Any) -> int:
    """Check a k; 3.0 is 3."""
    if not is_real(k) or not math.isfinite(k) or k < 1 or k != math.floor(k):
        raise GoalError(f"{name}({k!r}): k is a whole number, at least 1")
    return int(k)


def _check_by(name: str, by: Any) -> None:
    if by not in (None, "query"):
        raise GoalError(f'{name}(by="{by}"): only by="query" is known here')


# One metric at the best threshold that holds another: ``recall_at_precision(0.9)``.


@dataclass(frozen=True, eq=False, repr=False)
class Best(Curve):
    """Best value of ``objective`` over all thresholds at which ``constraint`` holds.

    Thresholds at which either is an empty rate do not count; ``empty`` is the value where none is
    left.
    """

    objective: Node
    sense: int
    constraint: Constraint
    empty: float
    where: Event = EVERYTHING
    label: Side = None
    by: str | None = None

    def text(self) -> tuple[str, int]:
        return f"best({self.objective} where {self.constraint})", ATOM

    def latex(self) -> str:
        end = "max" if self.sense > 0 else "min"
        return rf"\{end}_{{{self.constraint.latex()}}} {self.objective.latex()}"

    def measure_one(self, rows: RankedRows) -> float:
        columns = Columns(Task(), rows.gain > 0, scores=rows.scores, weight=rows.weight)
        over = scan(Sweep(columns), self.objective, self.sense, [self.constraint])
        index, feasible = over.choose()
        return self.sense * float(over.merit[index]) if feasible else self.empty
