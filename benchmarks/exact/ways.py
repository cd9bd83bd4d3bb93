"""Those who take part: rows in, scores of every row and an own threshold out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import torch
from torch import nn

from benchmarks.exact.aims import PARTS, counted, feasible, merit, rates, threshold
from benchmarks.exact.start import shifted
from benchmarks.implicit.rows import Part, Split
from benchmarks.implicit.training import Pace, scores, trained
from benchmarks.portfolio.models import lightgbm
from benchmarks.portfolio.tables import Aim
from setpoint.losses import GoalLoss
from setpoint.methods import Lagrangian

PLAIN, WEIGHTED, ON = "cross-entropy", "weighted cross-entropy", "cross-entropy, trained on"
LAGRANGIAN, TREES = "Lagrangian", "LightGBM"
TRIM, RELABEL = "exact, trim", "exact, relabel"
ORDER = (PLAIN, WEIGHTED, ON, LAGRANGIAN, TREES, RELABEL, TRIM)

#: how a Lagrangian is trained: steps, adam's rate; the grid is chosen from on the tune rows
PACES = {"linear": (Pace(300, 10), 0.03), "perceptron": (Pace(1000, 25, batch=1024), 3e-3)}
GRID = tuple(product((1.0, 5.0), (0.3, 1.0, 3.0)))  #: sharpness, rate of the dual


@dataclass(frozen=True)
class Scored:
    """Scores of each part, the threshold a way comes with, and what else it tells."""

    scores: Mapping[str, np.ndarray]
    own: float = 0.0
    more: Mapping[str, Any] | None = None


def by_net(net: nn.Module, rows: Split, own: float = 0.0, **more: Any) -> Scored:
    """Logits."""
    return Scored({key: scores(net, getattr(rows, key).x) for key in PARTS}, own, more)


def by_trees(rows: Split, seed: int) -> Scored:
    """LightGBM at its defaults; probabilities."""
    model = lightgbm(seed).fit(rows.train.x.numpy(), rows.train.y.numpy())
    found = {key: model.predict_proba(getattr(rows, key).x.numpy())[:, 1] for key in PARTS}
    return Scored(found, 0.5)


def by_lagrangian(aim: Aim, model: str, start: nn.Module, rows: Split, seed: int) -> Scored:
    """From the warm start, its threshold made 0; the step by train rows, the options by tune rows.

    A step is judged as exact judges its own: by the goal at the threshold 0 on the training rows.
    """
    y = rows.train.y.numpy()
    pace, rate = PACES[model]
    first = shifted(start, threshold(aim, y, scores(start, rows.train.x)))
    everything = Part(*(torch.cat([getattr(getattr(rows, k), f) for k in PARTS]) for f in _FIELDS))
    sizes = np.cumsum([len(getattr(rows, key).y) for key in PARTS])[:-1]
    memory = 8192 if pace.batch else 0
    best: tuple[float, Scored] | None = None
    for sharpness, step in GRID:
        net = shifted(first, 0.0)
        method = Lagrangian(sharpness=sharpness, rate=step)
        loss = GoalLoss(aim.text, method, memory=memory, warmup=0, guard=False)
        kept = trained(
            net, loss, Split(rows.train, rows.train, everything), {"goal": judge(aim)}, pace,
            ("adam", rate), seed,
        )["goal"]  # fmt: skip
        found: dict[str, np.ndarray] = dict(zip(PARTS, np.split(kept.test, sizes), strict=True))
        tune = rows.tune.y.numpy()
        value = merit(aim, counted(tune, found["tune"], 0.0), int(tune.sum()))
        if best is None or value > best[0]:
            best = value, Scored(found, 0.0, {"config": f"sharpness {sharpness:g}, rate {step:g}"})
    assert best is not None
    return best[1]


_FIELDS = ("x", "y", "group")


def judge(aim: Aim) -> Callable[[np.ndarray, np.ndarray], float]:
    """The gain at threshold 0 where the constraint holds, else less than any gain."""

    def value(y: np.ndarray, s: np.ndarray) -> float:
        count, positives = counted(y, s, 0.0), int(y.sum())
        found = rates(count, positives)
        if feasible(aim, count, positives):
            return found[aim.gain]
        return found[aim.bounded or aim.gain] - 2

    return value
