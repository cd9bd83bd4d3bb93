"""The data and the searches that ``benchmarks.tune`` measures.

Data
    5 % positives in random order, seed 0; score = sigmoid of a normal draw, N(0, 1) for negatives
    and N(1.5, 1) for positives; float64, continuous. Variants: the same scores as float32, the
    same rounded to 3 decimals (a thousand distinct values), and the same with sample weights
    uniform in [0.5, 2].

Searches
    ``numpy.argsort`` (the base), ``setpoint.tune``, and two peers for one task, the highest recall
    with precision >= 0.5: scikit-learn's ``precision_recall_curve`` with a search in the curve, and
    torchmetrics' ``binary_recall_at_fixed_precision`` with ``thresholds=None``. Of several equally
    good thresholds all of them take the highest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.harness import one_thread

GOALS = (
    "maximize f1",
    "maximize recall subject to precision >= 0.5",
    "minimize fnr subject to fpr <= 0.01",
    "maximize mcc",
    "maximize recall subject to precision >= 0.3, fpr <= 0.05",
)
SHARED_GOAL = GOALS[1]
SHARED_PRECISION = 0.5
WARM_ROWS = 1000


@dataclass(frozen=True)
class Rows:
    """Labels, scores and perhaps weights, one entry for each row."""

    y: np.ndarray  # (n,) int64, 0 or 1
    scores: np.ndarray  # (n,) float64 or float32, in (0, 1)
    weight: np.ndarray | None = None  # (n,) float64

    def head(self, count: int) -> Rows:
        """Copy the first ``count`` rows."""
        return Rows(*(None if c is None else c[:count].copy() for c in vars(self).values()))

    def recall(self, threshold: float) -> float:
        """Recall of deciding ``scores >= threshold``."""
        positive = self.y if self.weight is None else self.y * self.weight
        return float(positive[self.scores >= threshold].sum() / positive.sum())

    def save(self, folder: Path) -> None:
        """Write one ``.npy`` file for each column."""
        folder.mkdir()
        for name, column in vars(self).items():
            if column is not None:
                np.save(folder / f"{name}.npy", column)

    @classmethod
    def load(cls, folder: Path) -> Rows:
        """Read what ``save`` wrote."""
        return cls(**{file.stem: np.load(file) for file in folder.glob("*.npy")})


@dataclass(frozen=True)
class Answer:
    """What a search returned; ``recall`` is ``None`` where it does not return one."""

    threshold: float
    recall: float | None = None
    feasible: bool = True


def make_rows(count: int) -> dict[str, Rows]:
    """Draw the data: a name and the rows of each variant, all of the same draw."""
    rng = np.random.default_rng(0)
    y = np.zeros(count, dtype=np.int64)
    y[: count // 20] = 1
    rng.shuffle(y)
    scores = 1.0 / (1.0 + np.exp(-(rng.standard_normal(count) + 1.5 * y)))
    weight = rng.uniform(0.5, 2.0, count)
    return {
        "float64": Rows(y, scores),
        "float32": Rows(y, scores.astype(np.float32)),
        "3 decimals": Rows(y, scores.round(3)),
        "weighted": Rows(y, scores, weight),
    }


def numpy_argsort(goal: str, rows: Rows) -> Callable[[], None]:
    """Sort, and nothing else: what every exact search has to do at least."""
    del goal

    def call() -> None:
        np.argsort(rows.scores)

    return call


def setpoint_tune(goal: str, rows: Rows) -> Callable[[], Answer]:
    """``setpoint.tune`` of a goal parsed beforehand."""
    import setpoint

    parsed = setpoint.Goal.parse(goal)
    weights = {} if rows.weight is None else {"sample_weight": rows.weight}

    def call() -> Answer:
        rule = setpoint.tune(parsed, rows.y, rows.scores, **weights)
        return Answer(float(rule.threshold), feasible=bool(rule.feasible))

    return call


def scikit_learn(goal: str, rows: Rows) -> Callable[[], Answer]:
    """``precision_recall_curve``, then the best point of it."""
    from sklearn.metrics import precision_recall_curve

    _only_shared(goal)

    def call() -> Answer:
        precision, recall, thresholds = precision_recall_curve(
            rows.y, rows.scores, sample_weight=rows.weight
        )
        precision, recall = precision[:-1], recall[:-1]  # the last point has no threshold
        met = precision >= SHARED_PRECISION
        if not met.any():
            return Answer(float("inf"), 0.0, feasible=False)
        at = np.flatnonzero(met & (recall == recall[met].max()))[-1]
        return Answer(float(thresholds[at]), float(recall[at]))

    return call


def torchmetrics(goal: str, rows: Rows) -> Callable[[], Answer]:
    """``binary_recall_at_fixed_precision`` on tensors that share the arrays' memory."""
    import torch
    from torchmetrics.functional.classification import binary_recall_at_fixed_precision

    _only_shared(goal)
    scores, target = torch.from_numpy(rows.scores), torch.from_numpy(rows.y)

    def call() -> Answer:
        recall, threshold = binary_recall_at_fixed_precision(
            scores, target, min_precision=SHARED_PRECISION, thresholds=None
        )
        return Answer(threshold.item(), recall.item(), feasible=recall.item() > 0)

    return call


def _only_shared(goal: str) -> None:
    if goal != SHARED_GOAL:
        raise ValueError(f"The peers are asked for {SHARED_GOAL!r} only, not {goal!r}.")


SEARCHES = {
    "numpy.argsort": numpy_argsort,
    "setpoint": setpoint_tune,
    "scikit-learn": scikit_learn,
    "torchmetrics": torchmetrics,
}


def prepare(
    search: str, goal: str, folder: str
) -> tuple[Callable[[], object], Callable[[], object]]:
    """Load rows and the one library needed; return the call on a few rows, and on all."""
    rows = Rows.load(Path(folder))
    make = SEARCHES[search]
    calls = make(goal, rows.head(WARM_ROWS)), make(goal, rows)
    one_thread()
    return calls
