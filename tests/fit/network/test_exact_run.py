"""The exact problem over all rows: never worse than iterate 0, told honestly, taken up anywhere."""

import copy
import math

import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score, precision_score, recall_score
from torch import nn

import setpoint as sp
from setpoint._core.errors import DataError, FileError, GoalError, SetpointError
from setpoint.fit.network.exact_run import fit_exact, last_layer
from setpoint.goals import Task
from setpoint.methods import Exact

FPOR = "maximize recall subject to precision >= 0.8"
FROP = "maximize precision subject to recall >= 0.8"
QUICK = Exact(rounds=6, steps=15, walks=80)


def _rows(n=400, seed=0):
    """Two kinds of positives that no line has on one side: cross-entropy is misled."""
    r = np.random.default_rng(seed)
    y = (r.random(n) < 0.25).astype(int)
    X = r.normal(size=(n, 2))
    first = r.random(n) < 0.5
    X[(y == 1) & first, 0] += 3.2
    X[(y == 1) & ~first, 1] += 1.6
    X[y == 0, 1] *= 1.6
    return torch.tensor(X, dtype=torch.float32), torch.tensor(y)


def _warm(X, y):
    """Converged logistic regression as a linear layer."""
    found = LogisticRegression(C=1e3).fit(X.numpy(), y.numpy())
    layer = nn.Linear(X.shape[1], len(found.coef_))
    with torch.no_grad():
        layer.weight.copy_(torch.tensor(found.coef_))
        layer.bias.copy_(torch.tensor(found.intercept_))
    return layer


X, Y = _rows()
WARM = _warm(X, Y)


def _decided(solved, rows=X):
    with torch.no_grad():
        return (solved.model(rows).reshape(-1) >= solved.threshold).numpy()


@pytest.mark.parametrize("goal", [FPOR, FROP, "maximize f1", "maximize mcc"])
@pytest.mark.parametrize("regulariser", ["trim", "relabel"])
def test_it_is_never_worse_than_cross_entropy_at_its_best_threshold(goal, regulariser):
    method = Exact(rounds=6, steps=15, walks=80, regulariser=regulariser)
    solved = fit_exact(goal, copy.deepcopy(WARM), X, Y, method=method)
    d = _decided(solved)
    rule = sp.tune(goal, Y.numpy() == 1, WARM(X)[:, 0].detach().numpy())
    verdict = solved.verdict
    assert verdict.start.value == pytest.approx(rule.value, abs=1e-9)
    assert verdict.feasible
    assert verdict.value >= rule.value
    said = {FPOR: recall_score, FROP: precision_score, "maximize f1": f1_score}
    if goal in said:
        assert verdict.value == pytest.approx(said[goal](Y, d))
    if goal == FPOR:
        assert precision_score(Y, d) >= 0.8
        assert verdict.value > rule.value + 0.05  # the rows are made so that there is more to have


def test_what_the_verdict_says_of_other_rows_is_what_they_show():
    other, labels = _rows(seed=1)
    solved = fit_exact(FPOR, copy.deepcopy(WARM), X, Y, tune=(other, labels), method=QUICK)
    d, tune = _decided(solved, other), solved.verdict.tune
    assert tune.value == pytest.approx(recall_score(labels, d))
    precision = precision_score(labels, d)
    assert tune.constraints[0].excess == pytest.approx(0.8 - precision)
    assert tune.feasible == (precision >= 0.8)
    text = str(solved.verdict)
    assert "one point of precision costs" in text
    assert "within 0.02 of the threshold" in text


def test_what_the_penalty_paid_is_about_the_slope_of_recall_along_the_bound():
    rows, labels = _rows(1500, seed=3)
    method = Exact(rounds=30, steps=40, walks=0)
    solved = fit_exact(FPOR, _warm(rows, labels), rows, labels, method=method)
    (paid,) = solved.verdict.multipliers
    assert paid.constraint == "precision >= 0.8"
    found = sp.diagnose(FPOR, labels.numpy() == 1, solved.model(rows)[:, 0].detach().numpy())
    (price,) = found.prices
    assert price.slope / 4 < paid.multiplier < price.slope * 4
    assert solved.verdict.stationarity < 0.1
    assert len(solved.verdict.prices) == 1


def test_an_equation_missed_from_below_does_not_hold():
    goal = "maximize recall subject to positive_rate == 0.9"
    method = Exact(rounds=1, steps=1, walks=0, threshold="fixed")
    verdict = fit_exact(goal, copy.deepcopy(WARM), X, Y, method=method).verdict
    for stand in (verdict.train, verdict.start):
        assert stand.feasible == (stand.constraints[0].excess <= 1e-9)
        assert stand.constraints[0].excess >= 0


def test_near_counts_the_rows_at_the_threshold():
    solved = fit_exact(FPOR, copy.deepcopy(WARM), X, Y, method=QUICK)
    with torch.no_grad():
        p = torch.sigmoid(solved.model(X)[:, 0] - solved.threshold)
    assert solved.verdict.near == int(((p - 0.5).abs() < 0.02).sum())
    assert solved.verdict.rows == len(Y)


@pytest.mark.parametrize("regulariser", ["trim", "relabel", "none"])
def test_rows_gather_at_the_threshold_only_without_a_regulariser(regulariser):
    method = Exact(rounds=12, steps=40, walks=0, regulariser=regulariser)
    near = fit_exact(FPOR, copy.deepcopy(WARM), X, Y, method=method).history[-1]["near"]
    assert (near > 0.2) == (regulariser == "none")


def test_a_network_is_trained_through_all_its_layers():
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1))
    optimiser = torch.optim.Adam(model.parameters(), 0.02)
    for _ in range(150):
        loss = nn.functional.binary_cross_entropy_with_logits(model(X)[:, 0], Y.float())
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    before = copy.deepcopy(model.state_dict())
    solved = fit_exact(FPOR, model, X, Y, method=Exact(rounds=15, steps=30, walks=0))
    assert solved.model is model
    assert solved.verdict.value > solved.verdict.start.value
    assert not torch.equal(before["0.weight"], model.state_dict()["0.weight"])


def test_several_classes_by_margins():
    r = np.random.default_rng(0)
    y = r.choice(3, 300, p=[0.7, 0.2, 0.1])
    Z = torch.tensor(r.normal(size=(300, 2)) + 1.5 * np.eye(3)[y][:, :2], dtype=torch.float32)
    model, task = _warm(Z, torch.tensor(y)), Task.multiclass(range(3))
    solved = fit_exact("maximize macro(f1)", model, Z, torch.tensor(y), task=task, method=QUICK)
    with torch.no_grad():
        d = solved.model(Z).argmax(1)
    assert solved.verdict.value == pytest.approx(f1_score(y, d, average="macro"))
    assert solved.verdict.value > solved.verdict.start.value + 0.03
    floor = "maximize accuracy subject to recall.of(2) >= 0.6"
    solved = fit_exact(floor, model, Z, torch.tensor(y), task=task, method=QUICK)
    with torch.no_grad():
        d = solved.model(Z).argmax(1)
    assert solved.verdict.feasible
    assert recall_score(y == 2, d == 2) >= 0.6


def test_groups_and_weights():
    r = np.random.default_rng(2)
    group, weight = torch.tensor(r.integers(0, 2, len(Y))), torch.tensor(r.random(len(Y)) + 0.5)
    task = Task.binary(groups={"g": ["x", "y"]})
    goal = 'maximize f1 subject to gap(recall, by="g") <= 0.1'
    solved = fit_exact(
        goal, copy.deepcopy(WARM), X, Y, task=task, weight=weight, group=group, method=QUICK
    )
    d, names = _decided(solved), np.array(["x", "y"])[group]
    gap = sp.gap(sp.recall, by="g")(
        Y.numpy() == 1, d, sample_weight=weight.numpy(), group={"g": names}
    )
    assert solved.verdict.feasible
    assert gap <= 0.1 + 1e-9
    assert solved.verdict.value == pytest.approx(f1_score(Y, d, sample_weight=weight), abs=1e-6)


def test_a_run_is_taken_up_where_it_was_left(tmp_path):
    whole = fit_exact(FPOR, copy.deepcopy(WARM), X, Y, method=QUICK)
    path, seen = tmp_path / "run.safetensors", []

    def stop(event):
        seen.append(event)
        if type(event).__name__ == "EpochDone" and event.epoch == 4:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit_exact(
            FPOR, copy.deepcopy(WARM), X, Y, method=Exact(rounds=7, steps=15, walks=80),
            checkpoint=path, listener=stop, fingerprint="a",
        )  # fmt: skip
    assert not path.exists()  # before the fifth round was written
    fit_exact(FPOR, copy.deepcopy(WARM), X, Y, method=QUICK, checkpoint=path, fingerprint="a")
    assert path.exists()
    events = []
    again = fit_exact(
        FPOR, copy.deepcopy(WARM), X, Y, method=QUICK, checkpoint=path, fingerprint="a",
        listener=events.append,
    )  # fmt: skip
    assert events[0].resumed
    assert events[0].epoch == 5
    assert len(again.history) == len(whole.history)
    for a, b in zip(again.model.parameters(), whole.model.parameters(), strict=True):
        assert torch.equal(a, b)
    with pytest.raises(FileError, match="another run"):
        fit_exact(FPOR, copy.deepcopy(WARM), X, Y, method=QUICK, checkpoint=path, fingerprint="b")


def test_the_last_layer_is_found_only_where_it_ends_the_model():
    assert last_layer(WARM, X).features.shape == X.shape
    deep = nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 1))
    assert last_layer(deep, X).features.shape == (len(X), 4)
    assert last_layer(nn.Sequential(nn.Linear(2, 1), nn.Tanh()), X) is None
    assert last_layer(nn.Sequential(nn.Linear(2, 1, bias=False)), X) is None


def test_goals_it_cannot_train_on_are_refused():
    with pytest.raises(GoalError, match="along a curve"):
        fit_exact("maximize auroc", copy.deepcopy(WARM), X, Y)


def test_a_classifier_is_fitted_by_it():
    method = Exact(rounds=4, steps=10, walks=60)
    clf = sp.GoalClassifier(FPOR, model="linear", method=method, epochs=5, random_state=0)
    clf.fit(X.numpy(), Y.numpy())
    rows = [row for row in clf.history_ if row["phase"] == "exact"]
    assert len(rows) == 4
    assert all("near" in row for row in rows)
    assert any("on the training rows" in note for note in clf.notes_)


def test_rows_that_weigh_nothing_are_as_if_they_were_not_there():
    weight = torch.ones(len(Y))
    weight[:7] = 0
    a = fit_exact(FPOR, copy.deepcopy(WARM), X, Y, weight=weight, method=QUICK)
    b = fit_exact(FPOR, copy.deepcopy(WARM), X[7:], Y[7:], weight=weight[7:], method=QUICK)
    assert a.verdict == b.verdict
    with pytest.raises(DataError, match="nothing is left"):
        fit_exact(FPOR, copy.deepcopy(WARM), X, Y, weight=0 * weight)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"y": Y + 1}, "target must hold 0 and 1; got 2"),
        ({"y": Y * 0.5}, "got 0.5"),
        ({"X": X * math.nan}, "NaN or infinity"),
        ({"X": X.numpy()}, "X must be a tensor"),
        ({"X": X[:5]}, "X has 5 rows and y 400"),
        ({"weight": torch.full((len(Y),), -1.0)}, "not negative"),
        ({"method": "exact"}, "an Exact with its options"),
    ],
)
def test_odd_rows_are_sentences_before_anything_is_trained(change, words):
    given = {"X": X, "y": Y} | change
    with pytest.raises(SetpointError, match=words):
        fit_exact(FPOR, copy.deepcopy(WARM), given.pop("X"), given.pop("y"), **given)


def test_labels_in_a_column_and_groups_nobody_speaks_of_do_no_harm():
    plain = fit_exact(FPOR, copy.deepcopy(WARM), X, Y, method=QUICK)
    group = torch.zeros(len(Y), dtype=torch.long)
    same = fit_exact(FPOR, copy.deepcopy(WARM), X, Y[:, None], group=group, method=QUICK)
    assert same.verdict == plain.verdict


def test_a_frozen_layer_stays_as_it_is():
    model = nn.Sequential(nn.Linear(2, 4), nn.ReLU(), nn.Linear(4, 1))
    model[2].requires_grad_(False)
    before = model[2].weight.clone()
    fit_exact(FPOR, model, X, Y, method=QUICK)
    assert torch.equal(model[2].weight, before)


def test_walks_keep_a_threshold_that_is_fixed():
    method = Exact(rounds=2, steps=5, walks=60, threshold="fixed")
    solved = fit_exact(FPOR, copy.deepcopy(WARM), X, Y, method=method)
    plain = fit_exact(FPOR, copy.deepcopy(WARM), X, Y, method=Exact(rounds=1, steps=1, walks=0))
    assert "walk" in solved.verdict.origin
    assert solved.verdict.value > plain.verdict.start.value
    z = np.sort(WARM(X)[:, 0].detach().numpy())
    cut = sp.tune(FPOR, Y.numpy() == 1, z[np.argsort(np.argsort(WARM(X)[:, 0].detach().numpy()))])
    assert z[z < cut.threshold].max() < solved.threshold <= cut.threshold + 1e-6


def test_memberships_of_several_classes_end_on_their_decisions():
    r = np.random.default_rng(1)
    y = torch.tensor(r.choice(3, 200, p=[0.6, 0.3, 0.1]))
    Z = torch.tensor(r.normal(size=(200, 2)) + 1.2 * np.eye(3)[y][:, :2], dtype=torch.float32)
    method = Exact(rounds=25, steps=30, walks=0)
    task = Task.multiclass(range(3))
    solved = fit_exact("maximize macro(f1)", _warm(Z, y), Z, y, task=task, method=method)
    assert solved.verdict.ties < 0.2
