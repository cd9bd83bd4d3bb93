"""Who takes part, and the grids among which each is chosen on validation rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

import setpoint as sp
from benchmarks.implicit.quantile import imprecision_at, midpoints, misses_at
from benchmarks.implicit.ways import PLAIN, WEIGHTED
from setpoint.losses import GoalLoss
from setpoint.methods import METHODS


@dataclass(frozen=True)
class Setup:
    """A way to train: a method with options and an optimiser; ``aim`` is what it is judged by."""

    way: str
    method: str
    goal: str = "maximize auroc"
    aim: str = ""  #: the judge it was trained for; "": all of them
    optimiser: tuple[str, float] = ("adam", 0.1)
    options: dict[str, Any] = field(default_factory=dict)
    multiple: float = 0.0  #: of the class ratio that a positive weighs; 0: none

    @property
    def config(self) -> str:
        """The choice in words."""
        kind, rate = self.optimiser
        more = [f"{k} {v:g}" if isinstance(v, float) else f"{k} {v}" for k, v in self.varied]
        return ", ".join([f"{kind} {rate:g}", *more])

    @property
    def varied(self) -> list[tuple[str, Any]]:
        """The options that the grid is over."""
        weight = [("weight", f"{self.multiple:g} × ratio")] if self.multiple else []
        named = ("sharpness", "rate", "dual_rate", "step", "points", "correction", "pool", "every")
        return weight + [(k, v) for k, v in self.options.items() if k in named]

    def loss(self, ratio: float, **more: Any) -> Any:
        """A fresh loss(logits, labels) for rows with so many negatives a positive."""
        if self.method == "quantile":
            return self._quantile()
        options = {**self.options, **more}
        if self.multiple:
            options["class_weight"] = (1.0, self.multiple * ratio)
        return GoalLoss(self.goal, self.method, guard=False, **options)

    def _quantile(self) -> Any:
        k, low, high = (self.options[x] for x in ("sharpness", "low", "high"))
        points = self.options.get("points", 1)
        if self.goal.startswith("maximize auprc"):
            return imprecision_at(midpoints(low, high, points), k)
        at = [high] if points == 1 else midpoints(low, high, points)
        return misses_at(at, k)


def entropies(rates: Sequence[float], multiples: Sequence[float], **options: Any) -> list[Setup]:
    """Cross-entropy at each rate, and weighted at all but the first rate."""
    plain = [Setup(PLAIN, "cross-entropy", optimiser=("adam", r), options=options) for r in rates]
    return plain + [
        Setup(WEIGHTED, "cross-entropy", optimiser=("adam", r), options=options, multiple=m)
        for r, m in product(rates[1:], multiples)
    ]


def grid(
    way: str,
    method: str,
    goal: str,
    aim: str,
    optimisers: Sequence[tuple[str, float]],
    fixed: dict[str, Any],
    **varied: Sequence[Any],
) -> list[Setup]:
    """Every combination of the varied options and the optimisers."""
    made = [dict(zip(varied, values, strict=True)) for values in product(*varied.values())]
    return [
        Setup(way, method, goal, aim, optimiser, {**fixed, **options})
        for optimiser, options in product(optimisers, made)
    ]


def available(setups: Sequence[Setup]) -> list[Setup]:
    """Those whose method there is."""
    return [x for x in setups if x.method == "quantile" or x.method in METHODS]


def greater(metric: str, sign: int) -> Any:
    """The metric of labels and scores, or its negative, so that greater is better."""
    value = sp.metric(metric)
    return lambda y, s: sign * float(value(y, s)) if math.isfinite(float(s.sum())) else -math.inf
