"""A small version of the stress runs: plain loops with defaults on rare positives keep a goal."""

import numpy as np
import pytest
import torch
from benchmarks.stress.draws import METHODS, Setting, aims_with
from benchmarks.stress.judging import judged
from benchmarks.stress.running import scored, train
from benchmarks.stress.tables import Part, Table
from sklearn.datasets import make_classification
from torch import nn

import setpoint as sp

STEPS = 500
AIMS = aims_with(0.7)


def parts(x, y, seed):
    """A table split 60/20/20 and standardised."""
    order = np.random.default_rng(seed).permutation(len(y))
    train_rows, tune, test = np.split(order, [int(0.6 * len(y)), int(0.8 * len(y))])
    x = ((x - x[train_rows].mean(0)) / x[train_rows].std(0)).astype(np.float32)
    return [Part(x[rows], y[rows]) for rows in (train_rows, tune, test)]


@pytest.fixture(scope="module")
def tables():
    """Diseased trees among 5,000 (5 %), and made-up rows with 3 % of one class."""
    wilt = sp.datasets.load("wilt")
    x, y = make_classification(
        5_000, 12, n_informative=6, weights=[0.97], flip_y=0.005, class_sep=1.5, random_state=0
    )
    found = {"wilt": (wilt.X.to_numpy(float), np.asarray(wilt.y)), "made": (x, y)}
    return {name: Table(name, *parts(x, y.astype(np.int64), 1)) for name, (x, y) in found.items()}


SETTINGS = [
    Setting(0, "wilt", "f1", 32, 1e-3, "64-32", 0),
    Setting(1, "wilt", "floor", 32, 1e-3, "64-32", 1),
    Setting(2, "wilt", "cap", 256, 1e-2, "64-32", 2),
    Setting(3, "wilt", "recall", 32, 1e-2, "linear", 3),
    Setting(4, "made", "floor", 256, 1e-3, "linear", 4),
    Setting(5, "made", "recall", 32, 1e-3, "64-32", 5),
    Setting(6, "made", "cap", 32, 3e-4, "linear", 6),
]


@pytest.mark.parametrize("method", ["auto", *METHODS])
def test_no_plain_loop_collapses_and_constraints_are_kept(tables, method):
    kept = []
    for setting in SETTINGS:
        table, aim = tables[setting.table], AIMS[setting.aim]
        loss = sp.GoalLoss(aim.text, method)
        model, _ = train(loss, setting, table, STEPS)
        plain, _ = train(nn.BCEWithLogitsLoss(), setting, table, STEPS)
        with torch.no_grad():
            own = scored(model, table).less(loss.threshold)
            found = judged(aim, table, own, scored(plain, table))
        assert not found["collapsed"], setting
        if found["kept"] is not None and found["feasible"]:
            kept.append(found["kept"])
            (constraint,) = loss.status().constraints
            assert constraint.low <= constraint.value <= constraint.high
    assert len(kept) >= 5
    assert np.mean(kept) >= 0.8


def test_as_published_a_plain_loop_collapses(tables):
    """What the guard is for; were the check above blind, it would find nothing here either."""
    collapsed = []
    for setting in SETTINGS[:2]:
        table, aim = tables[setting.table], AIMS[setting.aim]
        plain, _ = train(nn.BCEWithLogitsLoss(), setting, table, STEPS)
        for method in ("implicit", "lagrangian"):
            loss = sp.GoalLoss(aim.text, method, guard=False)
            model, _ = train(loss, setting, table, STEPS)
            own = scored(model, table).less(loss.threshold)
            collapsed.append(judged(aim, table, own, scored(plain, table))["collapsed"])
    assert any(collapsed)
