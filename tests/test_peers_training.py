"""The comparison of training on goals: judged by the definitions, and chosen on the tune rows."""

from types import SimpleNamespace

import numpy as np
import pandas
import pytest
import torch
from benchmarks.peers.networks import shuffled
from benchmarks.peers.training import cases, comparison, judging, loop, page
from benchmarks.peers.training.batch_rates import SURROGATES, BatchGoal
from benchmarks.peers.training.ranges import MAX_FPR, MIN_TPR
from benchmarks.results.recording import Recording
from sklearn import metrics


def rows_and_scores(seed, n=200, ties=False):
    random = np.random.default_rng(seed)
    y = (random.random(n) < 0.3).astype(int)
    scores = random.normal(size=n) + 1.5 * y
    return y, np.round(scores) if ties else scores


@pytest.mark.parametrize("ties", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_two_way_area_is_that_of_the_polygon_inside_the_corner(seed, ties):
    y, scores = rows_and_scores(seed, ties=ties)
    fpr, tpr, _ = metrics.roc_curve(y, scores, drop_intermediate=False)
    # the mean height above MIN_TPR at many false positive rates, none of them at a rise
    at = (np.arange(200_000) + 0.5) / 200_000 * MAX_FPR
    above = np.maximum(np.interp(at, fpr, tpr) - MIN_TPR, 0).mean() / (1 - MIN_TPR)
    assert judging.two_way_auroc(y, scores) == pytest.approx(above, abs=2e-4)


def test_two_way_area_at_its_ends():
    y = np.array([0, 1] * 10)
    assert judging.two_way_auroc(y, y.astype(float)) == pytest.approx(1)
    assert judging.two_way_auroc(y, -y.astype(float)) == 0
    assert judging.two_way_auroc(y, np.zeros(20)) == 0


@pytest.mark.parametrize("seed", range(3))
def test_mean_f1_over_thresholds_as_scikit_learn_has_it(seed):
    y, z = rows_and_scores(seed)
    p = 1 / (1 + np.exp(-z))
    expected = np.mean([metrics.f1_score(y, p >= t) for t in np.arange(1, 10) / 10])
    assert judging.over_thresholds(y, z) == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(3))
def test_standing_as_scikit_learn_has_it(seed):
    y, z = rows_and_scores(seed)
    decided = z > 1
    precision, recall = metrics.precision_score(y, decided), metrics.recall_score(y, decided)
    found = judging.standing("floor", y, decided)
    assert found["bounded"] == pytest.approx(precision)
    assert found["merit"] == pytest.approx(max(-1, recall - 5 * max(0, 0.8 - precision)))
    assert found["kept"] == (precision >= 0.8)
    fpr = metrics.recall_score(1 - y, decided)
    found = judging.standing("cap", y, decided)
    assert found["bounded"] == pytest.approx(fpr)
    assert found["merit"] == pytest.approx(max(-1, recall - 50 * max(0, fpr - 0.01)))
    assert found["kept"] == (fpr <= 0.01)


@pytest.mark.parametrize("aim", ["floor", "cap"])
def test_nothing_decided_keeps_the_bound_and_gains_nothing(aim):
    found = judging.standing(aim, np.array([0, 1]), np.array([False, False]))
    assert (found["merit"], found["kept"]) == (0, True)


@pytest.mark.parametrize("aim", ["floor", "cap"])
def test_hard_violation_is_that_of_the_decisions(aim):
    y, z = (torch.from_numpy(x) for x in rows_and_scores(0))
    goal = BatchGoal.of(aim, "sigmoid", y)
    found = judging.standing(aim, y.numpy(), (z >= 0).numpy())
    positives, decided = int((y == 1).sum()), int((z >= 0).sum())
    if aim == "floor":  # .8 FP − .2 TP = (.8 − precision) · decided
        expected = (0.8 - found["bounded"]) * decided / positives
    else:
        expected = found["bounded"] - 0.01
    assert float(goal.hard(z, y)) == pytest.approx(expected)
    if aim == "floor":
        ratio = BatchGoal.of(aim, "ratio", y)
        assert float(ratio.hard(z, y)) == pytest.approx(0.8 - found["bounded"])
        assert float(ratio.hard(-z.abs(), y)) == pytest.approx(0.8)  # nothing decided


@pytest.mark.parametrize("aim", ["floor", "cap"])
def test_hinges_bound_the_hard_violation_and_far_logits_meet_it(aim):
    y, z = (torch.from_numpy(x) for x in rows_and_scores(1))
    hinge = BatchGoal.of(aim, "hinge", y)
    assert hinge.violation(z, y) >= hinge.hard(z, y)
    for surrogate in ("sigmoid", "log", "ratio"):
        goal = BatchGoal.of(aim, surrogate, y)
        assert float(goal.violation(1e6 * z, y)) == pytest.approx(float(goal.hard(z, y)))


@pytest.mark.parametrize("surrogate", SURROGATES)
def test_objectives_are_zero_where_no_positive_is_missed(surrogate):
    y = torch.tensor([0, 1, 1, 0])
    goal = BatchGoal.of("floor", surrogate, y)
    far = torch.tensor([50.0, 50.0, 50.0, 50.0])
    assert float(goal.objective(far, y)) == pytest.approx(0, abs=1e-6)
    assert float(goal.objective(-far, y)) >= 1 - 1e-6


def test_the_plain_loop_learns_and_gives_the_threshold_back():
    random = np.random.default_rng(0)
    rows = {"seed": np.array(0)}
    for part in ("train", "tune", "test"):
        x = random.normal(size=(400, 3))
        rows |= {f"x_{part}": x, f"y_{part}": (x[:, 0] > 0).astype(int)}

    def setup(model, y):
        plain = loop.cross_entropy(model, y)
        return loop.Training(plain.step, plain.slower, threshold=lambda: 0.25)

    found = loop.trained(setup, shuffled, rows, steps=200)
    assert metrics.roc_auc_score(rows["y_test"], found["test"]) > 0.95
    assert found["threshold"] == 0.25


def test_cases_are_split_and_written_for_every_side(tmp_path, monkeypatch):
    random = np.random.default_rng(0)
    table = {"a": random.normal(size=100), "b": list("xy") * 50, "target": [0, 0, 0, 0, 1] * 20}
    pandas.DataFrame(table).to_parquet(tmp_path / "toy.parquet")
    monkeypatch.setenv("SETPOINT_DATA", str(tmp_path))
    found = cases.prepare(tmp_path, ("toy",), (0, 1))
    assert [case.seed for case in found.values()] == [0, 1]
    with np.load(tmp_path / "case001.npz") as rows:
        assert rows["seed"] == 1
        assert [rows[f"x_{part}"].shape for part in ("train", "tune", "test")] == [
            (60, 3),
            (20, 3),
            (20, 3),
        ]
        assert [int(rows[f"y_{part}"].sum()) for part in ("train", "tune", "test")] == [12, 4, 4]


def written(folder, runs):
    """A case of ten rows a part, and what a side wrote for it."""
    y = np.array([0] * 6 + [1] * 4)
    part = SimpleNamespace(y=y)
    rows = SimpleNamespace(name="toy", train=part, tune=part, test=part)
    made = {}
    for name, (tune, test) in runs.items():
        made |= {f"{name}|train": tune, f"{name}|tune": tune, f"{name}|test": test}
        made[f"{name}|threshold"] = np.array(0.0)
    np.savez(folder / "case000.out.npz", **made)
    return {"case000": SimpleNamespace(seed=0, rows=rows)}


def test_the_setting_is_chosen_on_tune_rows_and_judged_on_test_rows(tmp_path):
    good, bad = np.arange(10.0) - 5.5, -np.arange(10.0)
    lost = np.full(10, np.nan)
    cases = written(
        tmp_path,
        {"ap|peer|a": (good, bad), "ap|peer|b": (bad, good), "ap|peer|c": (lost, lost)},
    )
    (line,) = comparison.collected(tmp_path, cases)
    assert line["setting"] == "a"
    assert line["figure"] == pytest.approx((1 / 7 + 2 / 8 + 3 / 9 + 4 / 10) / 4, abs=1e-4)
    assert line["hindsight"] == 1
    assert not list(tmp_path.glob("*.out.npz"))


def test_cross_entropy_is_judged_for_every_aim(tmp_path):
    z = np.arange(10.0) - 5.5
    lines = comparison.collected(tmp_path, written(tmp_path, {"|cross-entropy|": (z, z)}))
    assert {(x["aim"], x.get("at")) for x in lines} == {
        *((aim, None) for aim in judging.RANKED),
        *((aim, at) for aim in judging.BOUNDED for at in ("own", "tuned")),
    }
    assert all(x["merit"] == 1 for x in lines if "merit" in x)


def recording(gap):
    """Two ways on three tables, the other ahead of ours by a gap on one of them."""
    lines = []
    for t in "abc":
        for seed in range(4):
            for way in ("GoalLoss, pairwise", "LibAUC"):
                ahead = gap if (t, way) == ("b", "LibAUC") else 0.0
                x = {"table": t, "seed": seed, "n test": 10, "part": "ranked", "aim": "ap"}
                lines.append({**x, "way": way, "figure": 0.5 + 0.01 * seed + ahead})
    return Recording("peers-training", {"command": "c"}, tuple(lines))


def test_a_table_on_which_ours_is_behind_is_named():
    assert "On no table" in page._behind(recording(0.0))
    assert "On no table" in page._behind(recording(-0.2))
    text = page._behind(recording(0.2))
    assert text.count("LibAUC") == 1
    assert "| average precision | GoalLoss, pairwise | LibAUC | b | −.200 ± .000 |" in text


def test_paces_are_ratios_to_cross_entropy_of_the_same_process():
    paces = {"ap|LibAUC": 3.0, "|cross-entropy": 1.5}
    (line,) = comparison.pace_lines("LibAUC", "loop", paces)
    assert (line["ms"], line["plain ms"]) == (3.0, 1.5)
    made = Recording("peers-training", {}, (line,))
    assert "| average precision | LibAUC | 3.00 | 2.00 × |" in page._paces(made)
