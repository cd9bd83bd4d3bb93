"""The exact method on a split, from the warm start."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from scipy.special import expit
from torch import nn

from benchmarks.exact.aims import counted
from benchmarks.exact.ways import Scored, by_net
from benchmarks.implicit.rows import Split
from benchmarks.portfolio.tables import Aim
from setpoint.fit.network.exact_run import ExactSolution, fit_exact
from setpoint.methods import Exact

#: gradient steps of its penalty, which cross-entropy that is trained on gets as well
STEPS = Exact().rounds * Exact().steps
NEAR = 0.02  #: a probability so near the threshold is a singular point


def by_exact(aim: Aim, start: nn.Module, rows: Split, seed: int, **options: Any) -> Scored:
    """All rows at once; options are those of ``Exact``, everything else its default."""
    found = solved(aim, start, rows, seed, **options)
    scored = by_net(found.model, rows, found.threshold)
    share = near(scored.scores["train"], found.threshold)
    # what it says of itself on the training rows is what is counted here
    tp, fp = counted(rows.train.y.numpy(), scored.scores["train"], found.threshold)
    said = found.verdict.train.value
    value = {"recall": tp / float(rows.train.y.sum()), "precision": tp / max(tp + fp, 1)}
    value["f1"] = 2 * tp / (tp + fp + float(rows.train.y.sum()))
    assert abs(value[aim.gain] - said) < 1e-6, (value, said)
    more = {"origin": found.verdict.origin, "near": share, "ties": found.verdict.ties}
    return Scored(scored.scores, scored.own, more)


def solved(
    aim: Aim, start: nn.Module, rows: Split, seed: int, checkpoint: Any = None, **options: Any
) -> ExactSolution:
    """The solution itself."""
    train, tune = rows.train, rows.tune
    return fit_exact(
        aim.text, copy.deepcopy(start), train.x, train.y, tune=(tune.x, tune.y),
        method=Exact(**options), seed=seed, checkpoint=checkpoint,
    )  # fmt: skip


def near(scores: np.ndarray, threshold: float) -> float:
    """Share of rows whose probability, counted from the threshold, is within .02 of ½."""
    return float((np.abs(expit(scores - threshold) - 0.5) < NEAR).mean())
