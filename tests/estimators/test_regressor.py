"""The regressor: scikit-learn's checks, tables as users have them, the choice, units, files."""

import pickle

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.base import clone
from sklearn.datasets import make_regression
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import KNeighborsRegressor
from sklearn.utils.estimator_checks import parametrize_with_checks
from torch import nn

import setpoint as sp
from setpoint.fit.regression.regression_comparison import compare
from setpoint.fit.regression.regression_targets import Scale, columns_of, parted, rarity
from setpoint.goals import Goal, Task
from setpoint.methods import Errors

WEIGHTS = (
    "the held rows are drawn by row, so a row of weight 2 and the row given twice are not parted "
    "alike"
)
QUICK = {"epochs": 8, "hidden": (8,), "patience": 5}
WORST = 'worst(mae, by="bin")'


@parametrize_with_checks(
    [sp.GoalRegressor("minimize mae", "linear", "mse", compare=False)],
    expected_failed_checks=lambda e: {"check_sample_weight_equivalence_on_dense_data": WEIGHTS},
)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


@parametrize_with_checks(
    [sp.GoalRegressor(), sp.GoalRegressor("minimize rmse", "mlp", "errors")],
    expected_failed_checks=lambda e: {"check_sample_weight_equivalence_on_dense_data": WEIGHTS},
)
@pytest.mark.slow
def test_scikit_learns_checks_of_portfolio_and_network(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    n = 400
    frame = pd.DataFrame(
        {
            "size": rng.lognormal(size=n),
            "age": np.where(rng.random(n) < 0.1, np.nan, rng.normal(40, 10, n)),
            "town": rng.choice(["de", "fr", None], n),
            "kind": pd.Categorical(rng.choice(["a", "b", "c"], n)),
        }
    )
    y = 3 * np.log(frame["size"]) + 2.0 * (frame["kind"] == "a") + rng.normal(0, 0.5, n)
    return frame, np.exp(y.to_numpy() / 4)


def test_the_portfolio_on_a_table_as_users_have_it(table):
    X, y = table
    reg = sp.GoalRegressor("minimize balanced(mae)", edges=[0.5, 1, 2], **QUICK)
    reg.fit(X[:300], y[:300])
    found = reg.comparison_
    names = [m.name for m in found.members]
    assert set(names) == {
        *("linear, mse", "linear, density", "linear, errors"),
        *("trees, mse", "trees, mae", "trees, density"),
        *("mlp, mse", "mlp, mae", "mlp, density", "mlp, errors"),
    }
    values = [m.value for m in found.members]
    assert values == sorted(values)
    assert found.gain.driven == next(m.name for m in found.members if m.driven)
    assert found.gain.plain == next(m.name for m in found.members if not m.driven)
    assert str(found).splitlines()[-1] == found.sentence
    assert found.sentence in reg.notes_
    assert reg.plan_.refitted
    assert reg.score(X[300:], y[300:]) > 0.5
    unseen = X[300:].assign(town="xx", age=None)
    assert np.isfinite(reg.predict(unseen)).all()
    again = clone(reg).fit(X[:300], y[:300])
    assert np.array_equal(again.predict(X), reg.predict(X))
    assert {"member", "phase", "epoch", "loss", "tune", "best"} <= set(reg.history_[0])


def test_the_figures_are_those_of_the_held_rows(table):
    """The comparison is read again from the metric itself, on the split that is a function of y."""
    X, y = table
    reg = sp.GoalRegressor(f"minimize {WORST}", "linear", "mse", edges=[0.5, 1], compare=False)
    reg.fit(X, y)
    parts = parted(y, reg.task_, 0.25, 0)
    assert reg.comparison_.rows == len(parts.tune)
    assert len(np.intersect1d(parts.train, parts.tune)) == 0
    kept = clone(reg).set_params(refit=False).fit(X, y)
    metric = Goal.of(reg.goal).objective
    held = X.iloc[parts.tune]
    truth = metric(y[parts.tune], kept.predict(held), task=reg.task_)
    assert kept.comparison_.members[0].value == pytest.approx(truth, rel=1e-9)
    assert kept.evaluate(held, y[parts.tune]).value == pytest.approx(truth, rel=1e-9)
    assert not kept.plan_.refitted


def test_bins_are_ten_of_equal_width_and_said_so(table):
    X, y = table
    reg = sp.GoalRegressor("minimize balanced(mae)", "linear", "mse", compare=False).fit(X, y)
    np.testing.assert_allclose(reg.task_.edges, np.linspace(y.min(), y.max(), 11)[1:-1])
    assert any("ten of equal width" in note for note in reg.notes_)
    own = sp.GoalRegressor("minimize balanced(mae)", "linear", "mse", task=Task.regression([1.0]))
    assert own.set_params(compare=False).fit(X, y).task_.edges == (1.0,)
    plain = sp.GoalRegressor("minimize mae", "linear", "mse", compare=False).fit(X, y)
    assert plain.task_.edges is None


@pytest.mark.parametrize("unit", [1e6, 1e-6])
def test_other_units_give_the_same_model(unit):
    X, y = make_regression(200, 4, noise=10.0, random_state=0)
    y = y + 300
    made = []
    for u in (1.0, unit):
        goal = f"minimize rmse subject to {WORST} <= {30 * u!r}"
        reg = sp.GoalRegressor(goal, "mlp", "errors", edges=[u * 200, u * 350], compare=False)
        made.append(reg.set_params(**{**QUICK, "epochs": 15, "learning_rate": 0.03}).fit(X, u * y))
    ours, theirs = made
    np.testing.assert_allclose(theirs.predict(X) / unit, ours.predict(X), rtol=1e-3)
    assert ours.score(X, y) > 0.5


def test_a_bound_that_plain_errors_break_is_held():
    """Few large targets: plain errors give them up, a bound on their error does not."""
    rng = np.random.default_rng(1)
    x = rng.uniform(0, 1, (1500, 1))
    rare = rng.random(1500) < 0.05
    X = np.column_stack([x, rng.normal(0, 1, 1500) + 1.2 * rare])
    y = x[:, 0] + 5 * rare + rng.normal(0, 0.1, 1500)
    goal = f"minimize rmse subject to {WORST} <= 2.5"
    settings = {"edges": [3.0], "epochs": 30, "patience": 30}
    reg = sp.GoalRegressor(goal, "linear", **settings).fit(X, y)
    assert reg.comparison_.chosen in ("linear, errors", "linear, density")
    by_name = {m.name: m for m in reg.comparison_.members}
    assert not by_name["linear, mse"].holds
    assert by_name["linear, errors"].holds
    assert by_name["linear, errors"].value < by_name["linear, density"].value + 0.1
    assert reg.certificate_ is None
    assert any("a figure, not a proof" in note for note in reg.notes_)
    assert not reg.plan_.refitted


def test_groups(table):
    X, y = table
    group = np.where(X["kind"] == "a", "a", "rest")
    goal = 'minimize mae subject to gap(mae, by="group") <= 0.05'
    reg = sp.GoalRegressor(goal, "linear", "errors", compare=False, **QUICK)
    reg.fit(X, y, group=group)
    assert reg.task_.groups == (("group", ("a", "rest")),)
    assert reg.evaluate(X, y, group=group).kept[0].value is not None
    with pytest.raises(sp.DataError, match="pass group="):
        reg.fit(X, y)


# --- the choice ----------------------------------------------------------------------------------


def fared(goal, task, y, shared=False, **predicted):
    members = [
        (k.replace("_", ", "), "errors" in k, columns_of(task, y, p, None, {}))
        for k, p in predicted.items()
    ]
    return compare(Goal.of(goal), members, [name for name, _, _ in members], shared)


def test_the_simpler_is_kept_unless_rows_tell_them_apart():
    rng = np.random.default_rng(0)
    y = rng.normal(0, 1, 200)
    noise = rng.normal(0, 1, (2, 200))
    even = fared(
        "minimize mae", Task.regression(), y, a_mse=y + noise[0], b_errors=y + 0.99 * noise[0]
    )
    assert even.gain.value == pytest.approx(-0.01 * np.abs(noise[0]).mean())
    # 1 % better on every row is told apart, pairwise; 1 % with other noise is not
    assert even.chosen == "b, errors"
    vague = fared(
        "minimize mae", Task.regression(), y, a_mse=y + noise[0], b_errors=y + 0.99 * noise[1]
    )
    assert vague.chosen == "a, mse"
    assert vague.gain.low < 0 < vague.gain.high
    worse = fared(
        "minimize mae", Task.regression(), y, a_mse=y + noise[0], b_errors=y + 2 * noise[1]
    )
    assert worse.chosen == "a, mse"
    assert "A plain loss is better here" in worse.sentence
    assert type(worse).from_json(worse.to_json()) == worse


def test_rows_that_were_fitted_on_are_not_said_to_be_nothing_to_compare():
    y = np.linspace(0, 1, 8)
    both = fared("minimize mae", Task.regression(), y, shared=True, a_mse=y + 0.2, b_errors=y + 0.1)
    assert both.gain is None
    assert both.chosen == "a, mse"
    assert both.sentence == (
        "a, mse is taken; the rows are those the models were fitted on, so they cannot show "
        "whether training on the goal pays."
    )
    alone = fared("minimize mae", Task.regression(), y, shared=True, a_mse=y + 0.2)
    assert "there was nothing to compare" in alone.sentence


def test_those_that_hold_the_constraints_come_first():
    y = np.linspace(0, 10, 100)
    task = Task.regression([5.0])
    good = np.where(y < 5, y, y + 3.0)
    even = y + 2.0
    found = fared(f"minimize mae subject to {WORST} <= 2.5", task, y, a_mse=good, b_errors=even)
    assert found.chosen == "b, errors"
    assert [m.holds for m in found.members] == [True, False]


def test_rarity_gives_every_bin_the_same_weight():
    y = np.array([0.0] * 8 + [9.0] * 2)
    weight = rarity(y, Task.regression([5.0]), None)
    assert weight[:8].sum() == pytest.approx(weight[8:].sum())
    assert weight.mean() == pytest.approx(1)
    own = rarity(y, Task.regression([5.0]), np.arange(1.0, 11.0))
    assert own[:8].sum() == pytest.approx(own[8:].sum())


def test_scale_of_targets_that_do_not_vary():
    assert Scale.of(np.full(5, 7.0), None) == Scale(7.0, 7.0)
    assert Scale.of(np.zeros(5), None) == Scale(0.0, 1.0)
    reg = sp.GoalRegressor(model="linear", compare=False, **QUICK)
    X = np.random.default_rng(0).normal(size=(30, 2))
    np.testing.assert_allclose(reg.fit(X, np.full(30, 7.0)).predict(X), 7.0, atol=1e-3)


# --- other models, files -------------------------------------------------------------------------


class Net(nn.Module):
    def __init__(self, inputs):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(inputs, 4), nn.Tanh(), nn.Linear(4, 1))

    def forward(self, x):
        return self.layers(x)


def test_a_module_of_ones_own(tmp_path):
    X, y = make_regression(150, 3, random_state=0)
    torch.manual_seed(0)
    net = Net(3)
    reg = sp.GoalRegressor("minimize mae", net, "errors", compare=False, epochs=15)
    reg.set_params(learning_rate=0.03).fit(X, y)
    assert reg.score(X, y) > 0.3
    assert isinstance(reg.model_, Net)
    reg.save(tmp_path)
    with pytest.raises(sp.KindError, match="module of your own"):
        sp.GoalRegressor.load(tmp_path)
    back = sp.GoalRegressor.load(tmp_path, model=Net(3))
    assert np.array_equal(back.predict(X), reg.predict(X))


def test_a_regressor_of_scikit_learn(tmp_path):
    X, y = make_regression(120, 3, noise=5.0, random_state=0)
    reg = sp.GoalRegressor("minimize mae", LinearRegression()).fit(X, y)
    assert {m.name for m in reg.comparison_.members} == {
        "LinearRegression, own",
        "LinearRegression, density",
    }
    assert reg.score(X, y) > 0.9
    reg.save(tmp_path)
    assert np.array_equal(sp.GoalRegressor.load(tmp_path).predict(X), reg.predict(X))
    with pytest.raises(sp.KindError, match="takes no sample_weight"):
        sp.GoalRegressor("minimize mae", KNeighborsRegressor(), "density").fit(X, y)


@pytest.mark.parametrize("model", ["linear", "trees", "mlp"])
def test_what_is_saved_is_read_back(table, tmp_path, model):
    X, y = table
    reg = sp.GoalRegressor("minimize mae", model, "mse", compare=False, **QUICK).fit(X, y)
    reg.save(tmp_path / "run")
    back = sp.GoalRegressor.load(tmp_path / "run")
    assert np.array_equal(back.predict(X), reg.predict(X))
    assert str(back.plan_) == str(reg.plan_)
    assert back.comparison_ == reg.comparison_
    assert back.notes_ == reg.notes_
    assert np.array_equal(pickle.loads(pickle.dumps(reg)).predict(X), reg.predict(X))
    place = tmp_path / "run" / "regressor.json"
    place.write_text(place.read_text().replace("minimize mae", "minimize mse"))
    with pytest.raises(sp.FileError, match="changed after it was written"):
        sp.GoalRegressor.load(tmp_path / "run")


# --- refusals ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"goal": "maximize f1"}, "mae, mse, rmse, r2"),
        ({"goal": "minimize mae subject to mae <= -1"}, "never hold"),
        ({"model": "tree"}, "trees"),
        ({"model": 3}, "torch module or a regressor"),
        ({"model": "trees", "method": "errors"}, "LightGBM on plain losses"),
        ({"model": LinearRegression(), "method": "errors"}, "its own loss"),
        ({"method": "error"}, "errors"),
        ({"method": sp.methods.Costs()}, "Errors"),
        ({"task": "binary"}, "binary"),
        ({"task": Task.regression([1.0]), "edges": [2.0]}, "twice"),
        ({"edges": "ab"}, "inner edges"),
        ({"edges": [2.0, 1.0]}, "increasing"),
        ({"epochs": 0}, "epochs"),
        ({"learning_rate": 0.0}, "learning_rate"),
        ({"random_state": -1}, "random_state"),
        ({"listener": 3}, "listener"),
        ({"device": "nowhere"}, "device"),
    ],
)
def test_odd_settings_are_sentences(options, words):
    X, y = np.zeros((20, 2)), np.arange(20.0)
    with pytest.raises(sp.SetpointError) as error:
        sp.GoalRegressor(**{"model": "linear", "compare": False, **options}).fit(X, y)
    assert words in str(error.value)
    assert len(str(error.value).split()) >= 4


@pytest.mark.parametrize(
    "y", [["a"] * 20, [None] * 20, np.full(20, np.nan), np.arange(19.0), np.full(20, 1e200), None]
)
def test_odd_targets_are_sentences(y):
    X = np.random.default_rng(0).normal(size=(20, 2))
    with pytest.raises(ValueError, match=" "):
        sp.GoalRegressor(model="linear", compare=False).fit(X, y)


def test_odd_weights_are_sentences():
    X, y = np.random.default_rng(0).normal(size=(20, 2)), np.arange(20.0)
    for weight, words in ((-np.ones(20), "not negative"), (np.zeros(20), "zero")):
        with pytest.raises(ValueError, match=words):
            sp.GoalRegressor(model="linear", compare=False).fit(X, y, sample_weight=weight)


def test_a_method_with_options(table):
    X, y = table
    reg = sp.GoalRegressor("minimize mae", "linear", Errors(squared_error=0.5), **QUICK).fit(X, y)
    assert reg.comparison_.chosen == "linear, errors"
    assert len(reg.comparison_.members) == 4


def test_bins_without_rows_are_remarked_upon():
    X, y = np.arange(60.0)[:, None], np.arange(60.0)
    made = sp.GoalRegressor('minimize worst(mae, by="bin")', "linear", edges=[100.0, 200.0])
    made.set_params(epochs=2, compare=False, method="errors").fit(X, y)
    assert any("2 of 3 target bins hold no row" in note for note in made.notes_)
    with pytest.raises(sp.KindError, match="edges must be numbers"):
        made.set_params(edges=["a"]).fit(X, y)
