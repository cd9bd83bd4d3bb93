"""``curve``: mean precision over recalls .95 to 1 by linear models, all rows in every step."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from benchmarks.implicit.lineup import Setup, available, entropies, greater, grid
from benchmarks.implicit.rows import split
from benchmarks.implicit.running import Line, chosen
from benchmarks.implicit.training import Pace, linear, trained
from benchmarks.implicit.ways import IMPLICIT, LAGRANGIAN, MIXED, QUANTILE

NAME = "implicit-curve"
METRIC = "auprc(min_recall=0.95)"
GOAL = f"maximize {METRIC}"
STEPS = {"letter": 400, "ijcnn1": 250, "spambase": 300, "communities-crime": 300, "adult": 250}
POINTS = 5
FULL = {"memory": 0, "warmup": 0}
BOTH = (("adam", 0.1), ("adagrad", 0.1))
KEYS = ("table", "seed", "way")


def setups() -> list[Setup]:
    """The line-up."""
    sharp = (1.0, 5.0, 10.0)
    between = {"low": 0.95, "high": 1.0, "points": POINTS}
    return available(
        [
            *entropies((0.01, 0.1, 1.0), (1, 10, 100, 1000), **FULL),
            *grid(QUANTILE, "quantile", GOAL, METRIC, BOTH, between, sharpness=sharp),
            *grid(IMPLICIT, "implicit", GOAL, METRIC, BOTH, {**FULL, "points": POINTS},
                  sharpness=sharp),
            *grid(MIXED, "implicit", GOAL, METRIC, BOTH[:1],
                  {**FULL, "points": POINTS, "cross_entropy": 0.3}, sharpness=sharp),
            *grid(LAGRANGIAN, "lagrangian", GOAL, METRIC, BOTH[:1], {**FULL, "points": POINTS},
                  sharpness=(1.0, 5.0), rate=(0.1, 0.3, 1.0, 3.0)),
        ]
    )  # fmt: skip


def jobs(splits: int, where: Path) -> list[tuple[Any, ...]]:
    """Every run; the slow ones first."""
    return [
        (name, seed, setup, where)
        for name in ("adult", "ijcnn1", "letter", "spambase", "communities-crime")
        for seed in range(splits)
        for setup in setups()
    ]


def work(name: str, seed: int, setup: Setup, where: Path) -> list[Line]:
    """One run, judged on validation and on test rows."""
    rows = split(name, seed, where)
    torch.manual_seed(seed)
    net = linear(rows.train.x.shape[1])
    ratio = float((1 - rows.train.y).sum() / rows.train.y.sum())
    pace = Pace(STEPS[name], 10)
    judge = greater(METRIC, 1)
    kept = trained(
        net, setup.loss(ratio), rows, {METRIC: judge}, pace, setup.optimiser, seed
    )[METRIC]  # fmt: skip
    about = {"table": name, "seed": seed, "way": setup.way, "config": setup.config}
    figures = {"valid": kept.value, "test": judge(rows.test.y.numpy(), kept.test)}
    return [{**about, **figures, "step": kept.step, "n test": len(rows.test.y)}]


def select(lines: list[Line]) -> list[Line]:
    """The configuration of each way and split."""
    return chosen(lines, KEYS)
