"""The benchmark of goals over groups, classes and labels: its figures, its judging, one run."""

import numpy as np
import pytest
from benchmarks.stress import several
from benchmarks.stress.page import shown
from benchmarks.stress.several_judging import (
    SeveralAim,
    aims,
    excesses,
    feasible,
    figure,
    judged,
    merit,
)
from benchmarks.stress.several_page import rows as page_rows
from benchmarks.stress.several_tables import NAMES, Rows, SeveralTable
from sklearn import metrics

import setpoint as sp


def made(kind, seed=0, n=300):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 5)).astype(np.float32)
    group = rng.integers(0, 2, n)
    y = {
        "groups": (x[:, 0] + rng.normal(size=n) > 0.3) * 1,
        "classes": (x[:, :3] + rng.normal(size=(n, 3))).argmax(1),
        "labels": (x[:, :2] + rng.normal(size=(n, 2)) > 0.5) * 1,
    }[kind]
    return Rows(x, y, group if kind == "groups" else 0 * group)


def table(kind, name):
    size = {"groups": 2, "classes": 3, "labels": 2}[kind]
    return SeveralTable(name, kind, size, *(made(kind, seed) for seed in range(3)))


def test_figures_are_those_of_scikit_learn():
    rng = np.random.default_rng(9)
    groups, classes, labels = (made(kind) for kind in ("groups", "classes", "labels"))
    d = rng.random(300) < 0.4
    recalls = [
        metrics.recall_score(groups.y[groups.group == g], d[groups.group == g]) for g in (0, 1)
    ]
    assert figure("gap recall", "groups", groups, d) == pytest.approx(max(recalls) - min(recalls))
    assert figure("worst recall", "groups", groups, d) == pytest.approx(min(recalls))
    assert figure("f1", "groups", groups, d) == pytest.approx(metrics.f1_score(groups.y, d))
    k = rng.integers(0, 3, 300)
    assert figure("macro f1", "classes", classes, k) == pytest.approx(
        metrics.f1_score(classes.y, k, average="macro")
    )
    precision = metrics.precision_score(classes.y, k, average=None)
    assert figure("precision 2", "classes", classes, k) == pytest.approx(precision[2])
    several_ = rng.random((300, 2)) < 0.5
    assert figure("macro precision", "labels", labels, several_) == pytest.approx(
        metrics.precision_score(labels.y, several_, average="macro")
    )


def test_an_empty_rate_breaks_its_bound_by_all_of_it():
    aim = SeveralAim("x", "", "accuracy", (("precision 2", True, 0.7),))
    rows = made("classes")
    nobody = np.zeros(300, int)
    assert excesses(aim, "classes", rows, nobody) == [0.7]
    assert merit(aim, "classes", rows, nobody) == -1.0


def test_every_goal_is_one_that_the_methods_take():
    pairs = {(s.table, s.aim) for s in several.draw(28)}
    assert pairs == {(name, aim.name) for name in NAMES for aim in aims(name)}
    for aim in (a for name in NAMES for a in aims(name)):
        assert str(sp.Goal.parse(aim.text))


@pytest.mark.parametrize(
    ("kind", "name", "aim"),
    [
        ("groups", "adult", "parity"),
        ("classes", "satimage", "macro f1"),
        ("labels", "made-up labels", "labels f1"),
    ],
)
def test_a_setting_is_run_by_every_method(kind, name, aim, monkeypatch):
    monkeypatch.setattr(several, "STEPS", 40)
    monkeypatch.setattr(several, "read", lambda table_name, seed: table(kind, table_name))
    setting = several.SeveralSetting(0, name, aim, 32, 1e-2, "linear", 0)
    records = several.run(setting, ("costs", "costs guarded"))
    assert [r["method"] for r in records] == ["cross-entropy", "costs", "costs guarded"]
    assert all(-1 <= r["own"] <= 1 for r in records)
    assert {row[0] for row in page_rows(records)} == {shown(r["method"]) for r in records}


def test_a_lost_group_is_a_collapse():
    rows = table("groups", "adult")
    aim = aims("adult")[0]
    good = tuple(p.x[:, 0].astype(float) for p in (rows.train, rows.tune, rows.test))
    lost = tuple(
        np.where(p.group == 0, -5.0, p.x[:, 0]) for p in (rows.train, rows.tune, rows.test)
    )
    assert not judged(rows, aim, good, good, 0.0)["collapsed"]
    assert judged(rows, aim, lost, good, 0.0)["collapsed"]
    assert feasible(rows, aim, good[0])
