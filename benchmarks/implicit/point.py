"""``point``: the miss rate at a false positive rate, by linear models and perceptrons."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch

import setpoint as sp
from benchmarks.implicit.lineup import Setup, available, entropies, greater, grid
from benchmarks.implicit.rows import split
from benchmarks.implicit.running import Line, chosen
from benchmarks.implicit.training import Kept, Pace, linear, perceptron, trained
from benchmarks.implicit.ways import IMPLICIT, LAGRANGIAN, MIXED, QUANTILE, WARM

NAME = "implicit-point"
RATES = (0.01, 0.02, 0.05, 0.1)
TABLES = ("adult", "covtype_2v4", "ijcnn1", "letter")
KEYS = ("table", "model", "fpr", "seed", "way")
PACES = {
    "linear": Pace(300, 10),
    "perceptron": Pace(1500, 50, batch=1024, decay=True),
}
FULL = {"memory": 0, "warmup": 0}


def metric(rate: float) -> str:
    """The name of the judge."""
    return f"fnr_at_fpr({rate:g})"


def setups(model: str) -> list[Setup]:
    """The line-up of a model."""
    large = model == "perceptron"
    if large:
        made = entropies((1e-3, 3e-3, 1e-2), (0.01, 0.1, 1, 10), **FULL)
    else:
        made = entropies((0.01, 0.1, 1.0), (1e-4, 1e-3, 0.01, 0.1, 1, 10, 100), **FULL)
    by = (("adam", 1e-2), ("adam", 3e-3)) if large else (("adam", 0.1), ("adagrad", 0.1))
    steps = (1.0, 3.0) if large else (0.1, 0.3, 1.0, 3.0)
    sharp = (1.0, 5.0) if large else (1.0, 5.0, 10.0)
    half = PACES[model].steps // 2
    for rate in RATES:
        aim, goal = metric(rate), f"minimize {metric(rate)}"
        plain: dict[str, Any] = {} if large else FULL
        made += grid(QUANTILE, "quantile", goal, aim, by, {"low": 0.0, "high": rate},
                     sharpness=sharp)  # fmt: skip
        made += grid(IMPLICIT, "implicit", goal, aim, by, plain, sharpness=sharp)
        made += grid(LAGRANGIAN, "lagrangian", f"minimize fnr subject to fpr <= {rate:g}", aim,
                     by[:1], plain, sharpness=(1.0, 5.0), rate=steps)  # fmt: skip
        mixed = {**plain, "cross_entropy": 0.3}
        made += grid(MIXED, "implicit", goal, aim, by[:1], mixed,
                     sharpness=sharp[-1:] if large else sharp)  # fmt: skip
        warm = {**plain, "warmup": half}
        made += grid(WARM, "implicit", goal, aim, by if large else by[:1], warm,
                     sharpness=sharp[-1:] if large else sharp)  # fmt: skip
    return available(made)


def jobs(splits: int, where: Path) -> list[tuple[Any, ...]]:
    """Every run, split by split."""
    return [
        (name, model, seed, setup, where)
        for seed in range(splits)
        for model in ("perceptron", "linear")
        for name in TABLES
        for setup in setups(model)
    ]


def work(name: str, model: str, seed: int, setup: Setup, where: Path) -> list[Line]:
    """One run; cross-entropy's is judged at every rate, the others' at their own."""
    rows = split(name, seed, where)
    torch.manual_seed(seed)
    net = (perceptron if model == "perceptron" else linear)(rows.train.x.shape[1])
    ratio = float((1 - rows.train.y).sum() / rows.train.y.sum())
    judges = {r: greater(metric(r), -1) for r in RATES if setup.aim in ("", metric(r))}
    kept = trained(
        net, setup.loss(ratio), rows, {metric(r): j for r, j in judges.items()}, PACES[model],
        setup.optimiser, seed,
    )  # fmt: skip
    about = {"table": name, "model": model, "seed": seed, "way": setup.way}
    about |= {"config": setup.config, "n test": len(rows.test.y)}
    return [
        {**about, "fpr": rate, **outcome(rows.tune.y.numpy(), rows.test.y.numpy(), rate, kept[key])}
        for rate in judges
        for key in (metric(rate),)
    ]


def outcome(tune: np.ndarray, test: np.ndarray, rate: float, kept: Kept) -> dict[str, Any]:
    """At the point of the test rows' ROC curve, and at the threshold of the validation rows."""
    rule = sp.tune(f"minimize fnr subject to fpr <= {rate:g}", tune, kept.tune)
    decided = np.asarray(rule.decide(kept.test)).astype(bool)
    return {
        "valid": kept.value,
        "step": kept.step,
        "fnr": float(sp.metric(metric(rate))(test, kept.test)),
        "fnr carried": 1 - float(decided[test == 1].mean()),
        "fpr carried": float(decided[test == 0].mean()),
    }


def select(lines: list[Line]) -> list[Line]:
    """The configuration of each way, rate and split."""
    return chosen(lines, KEYS)
