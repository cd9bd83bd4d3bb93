"""Boosted trees under a goal: one contract for every library; equal to its own log loss."""

import importlib
import json
import pickle
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.metrics import log_loss, precision_recall_curve, roc_auc_score
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks

import setpoint as sp
from setpoint._core.errors import DataError, FileError, GoalError, KindError
from setpoint.boosting import BOOSTERS, GoalLGBMClassifier, GoalXGBClassifier, merit
from setpoint.goals import Goal, Task
from setpoint.methods import SoftSet
from setpoint.rules.goal_on_rows import Point

FLOOR = "maximize recall subject to precision >= 0.7"
K = 4
EVERY = pytest.mark.parametrize("name", BOOSTERS)
WEIGHTED = pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    n = 900
    X = rng.normal(size=(n, 6))
    X[rng.random((n, 6)) < 0.03] = np.nan
    z = 1.5 * np.nan_to_num(X[:, 0] + X[:, 1] * X[:, 2]) - 1.5
    y = (rng.random(n) < 1 / (1 + np.exp(-z))).astype(int)
    several = np.digitize(z + rng.normal(size=n), [-3, -1.5, 0])
    return X, y, several, rng.random(n) + 0.2


def estimator(name, goal="maximize accuracy", method="costs", **options):
    settings = {"n_estimators": 20, "n_jobs": 1, **options}
    return BOOSTERS[name].estimator(goal, method, **settings)


# --- equal to the built-in -----------------------------------------------------------------------


def own_lightgbm(X, y, w, classes, rounds, params):
    import lightgbm as lgb

    kind = {"objective": "binary"} if classes == 2 else {"objective": "multiclass"}
    more = {} if classes == 2 else {"num_class": classes}
    fixed = {"verbosity": -1, "num_threads": 1, "deterministic": True, "force_row_wise": True}
    return lgb.train({**fixed, **params, **kind, **more}, lgb.Dataset(X, y, weight=w), rounds)


def own_xgboost(X, y, w, classes, rounds, params):
    import xgboost as xgb

    kind = {"objective": "binary:logistic"}
    if classes > 2:
        kind = {"objective": "multi:softprob", "num_class": classes}
    data = xgb.DMatrix(X, y, weight=w)
    return xgb.train({"nthread": 1, "verbosity": 0, **params, **kind}, data, rounds)


def own_catboost(X, y, w, classes, rounds, params):
    import catboost

    kind = {"loss_function": "Logloss" if classes == 2 else "MultiClass", "iterations": rounds}
    fixed = {"logging_level": "Silent", "allow_writing_files": False, "thread_count": 1}
    shares = np.bincount(y, w) / (len(y) if w is None else w.sum())
    start = np.log(shares[1] / shares[0]) if classes == 2 else np.log(shares)
    baseline = np.tile(start, (len(y), 1))
    return catboost.CatBoost({**fixed, **params, **kind}).fit(
        catboost.Pool(X, y, weight=w, baseline=baseline if classes > 2 else baseline[:, 0])
    )


def own_scores(name, booster, X, y, w, classes):
    if name == "lightgbm":
        return booster.predict(X, raw_score=True)
    if name == "xgboost":
        return booster.predict(importlib.import_module("xgboost").DMatrix(X), output_margin=True)
    shares = np.bincount(y, w) / (len(y) if w is None else w.sum())
    start = np.log(shares[1] / shares[0]) if classes == 2 else np.log(shares)
    return booster.predict(X, prediction_type="RawFormulaVal") + start


OWN = {"lightgbm": own_lightgbm, "xgboost": own_xgboost, "catboost": own_catboost}
PARAMS = {
    "lightgbm": {"learning_rate": 0.1, "num_leaves": 12},
    "xgboost": {"eta": 0.1, "max_depth": 4},
    "catboost": {
        "learning_rate": 0.1,
        "boosting_type": "Plain",
        "leaf_estimation_iterations": 1,
        "leaf_estimation_method": "Newton",
        "random_seed": 0,
        "bootstrap_type": "No",
        "random_strength": 0,
    },
}


def splits(name, booster):
    """Features and thresholds of all splits, in order."""
    if name == "catboost":
        return [json.dumps(tree["splits"]) for tree in _catboost_trees(booster)]
    frame = booster.trees_to_dataframe()
    columns = ["split_feature", "threshold"] if name == "lightgbm" else ["Feature", "Split"]
    return frame[columns].astype(str).to_numpy().tolist()


def _catboost_trees(booster):
    return json.loads(BOOSTERS["catboost"].estimator._write(booster))["oblivious_trees"]


@WEIGHTED
@pytest.mark.parametrize("classes", [2, K])
@EVERY
def test_costs_that_are_all_one_are_the_librarys_own_log_loss(table, name, classes, weighted):
    X, y, several, w = table
    y, w = (y if classes == 2 else several), (w if weighted else None)
    rounds = 6 if name == "catboost" and classes > 2 else 40
    own = OWN[name](X, y, w, classes, rounds, PARAMS[name])
    mine = {k: v for k, v in PARAMS[name].items() if k not in ("learning_rate", "eta")}
    for method in ("costs", "cross-entropy"):
        clf = estimator(name, method=method, n_estimators=rounds, params=mine).fit(X, y, w)
        assert splits(name, clf.booster_) == splits(name, own)
        want = own_scores(name, own, X, y, w, classes)
        np.testing.assert_allclose(clf.decision_function(X), want, rtol=1e-6, atol=1e-6)
        assert want.std() > 0.3  # there was something to learn


@pytest.mark.parametrize("name", ["lightgbm", "xgboost"])
def test_the_start_score_matters(table, name):
    """Without it the trees are others, as users of custom objectives found."""
    X, y, _, _ = table
    objective = BOOSTERS[name].objective("maximize accuracy")
    start = objective.start(y)
    assert start[0] == pytest.approx(np.log(y.mean() / (1 - y.mean())))
    found = []
    for s in (start, 0 * start):
        params = {"verbosity": -1 if name == "lightgbm" else 0}
        data = objective.data(X, y, start=s)
        if name == "lightgbm":
            module = importlib.import_module("lightgbm")
            booster = module.train({**params, "objective": objective, "metric": "None"}, data, 5)
        else:
            module = importlib.import_module("xgboost")
            params["disable_default_eval_metric"] = True
            booster = module.train(params, data, 5, obj=objective)
        found.append(objective.scores(booster, X, s))
    assert np.abs(found[0] - found[1]).max() > 0.1


# --- early stopping on the exact goal ------------------------------------------------------------


def by_hand(y, scores, floor=0.7):
    """Greatest recall at precision >= floor; None where no threshold reaches it."""
    precision, recall, _ = precision_recall_curve(y, scores)
    met = precision[:-1] >= floor - 1e-12
    return recall[:-1][met].max() if met.any() else None


def test_lightgbm_stops_on_the_goal_and_on_nothing_else(table):
    lgb = importlib.import_module("lightgbm")
    X, y, _, _ = table
    objective, metric = (kind(FLOOR) for kind in BOOSTERS["lightgbm"][:2])
    start = objective.start(y[:600])
    train = objective.data(X[:600], y[:600], start=start)
    valid = objective.data(X[600:], y[600:], start=start, reference=train)
    record, handed = {}, []

    def watched(scores, data):  # a sum in another order ties other rows
        handed.append(scores.copy())
        return metric(scores, data)

    booster = lgb.train(
        {"objective": objective, "metric": "None", "verbosity": -1, "num_leaves": 8, "seed": 0},
        train,
        120,
        valid_sets=[valid],
        feval=watched,
        callbacks=[lgb.early_stopping(25, verbose=False), lgb.record_evaluation(record)],
    )
    (history,) = record["valid_0"].values()
    assert list(record["valid_0"]) == ["goal"]
    for i, (told, scores) in enumerate(zip(history, handed, strict=True), 1):
        if i <= booster.best_iteration:  # the trees that are kept
            again = booster.predict(X[600:], raw_score=True, num_iteration=i) + start[0]
            np.testing.assert_allclose(scores, again, atol=1e-12)
        found = by_hand(y[600:], scores)
        assert (told >= 0) == (found is not None)
        assert found is None or told == pytest.approx(found)
    losses = [log_loss(y[600:], 1 / (1 + np.exp(-scores))) for scores in handed]
    assert len(history) < 120
    assert booster.best_iteration == int(np.argmax(history)) + 1
    assert booster.best_iteration != int(np.argmin(losses)) + 1


def test_xgboost_stops_on_the_goal_and_on_nothing_else(table):
    xgb = importlib.import_module("xgboost")
    X, y, _, _ = table
    objective, metric = (kind(FLOOR) for kind in BOOSTERS["xgboost"][:2])
    start = objective.start(y[:600])
    train, valid = (
        objective.data(X[part], y[part], start=start) for part in (slice(600), slice(600, None))
    )
    record = {}
    booster = xgb.train(
        {"max_depth": 3, "eta": 0.1, "disable_default_eval_metric": True, "verbosity": 0},
        train,
        120,
        obj=objective,
        custom_metric=metric,
        maximize=True,
        evals=[(valid, "held")],
        early_stopping_rounds=25,
        evals_result=record,
        verbose_eval=False,
    )
    assert list(record["held"]) == ["goal"]
    for i, told in enumerate(record["held"]["goal"], 1):
        found = by_hand(y[600:], booster.predict(valid, iteration_range=(0, i), output_margin=True))
        assert (told >= 0) == (found is not None)
        assert found is None or told == pytest.approx(found, abs=1e-6)  # it keeps six digits
    assert booster.best_iteration == int(np.argmax(record["held"]["goal"]))


@EVERY
def test_an_estimator_keeps_the_round_that_is_best_for_the_goal(table, name):
    X, y, _, w = table
    clf = estimator(name, FLOOR, n_estimators=80, early_stopping=20).fit(X, y, w)
    assert clf.n_iter_ == int(np.argmax(clf.history_)) + 1
    assert len(clf.history_) == min(80, clf.n_iter_ + 20)
    apart = sp.datasets.split(y, 0.2, 0).tune
    metric = BOOSTERS[name].metric(FLOOR)
    told = metric.value(clf.decision_function(X[apart]), y[apart], w[apart])
    assert told == pytest.approx(max(clf.history_), abs=0.02)  # a sum in another order ties others
    rule = sp.tune(FLOOR, y[apart], clf.decision_function(X[apart]), sample_weight=w[apart])
    assert told == pytest.approx(rule.value) if rule.feasible else told < 0


def test_a_feasible_model_ranks_above_all_others():
    goal = Goal.parse("minimize fnr subject to fpr <= 0.1")
    points = [
        Point(0.2, (0.1,), (0.0,)),
        Point(1.0, (0.0,), (-0.1,)),
        Point(0.0, (0.2,), (0.1,)),
        Point(0.0, (0.9,), (0.8,)),
        Point(None, (None,), (float("inf"),)),
    ]
    merits = [merit(goal, point) for point in points]
    assert merits == sorted(merits, reverse=True)
    assert len(set(merits)) == len(merits)
    assert np.isfinite(merits).all()
    counting = Goal.parse("maximize tp subject to fpr <= 0.1")
    assert merit(counting, Point(0.0, (0.0,), (-0.1,))) > merit(counting, Point(9e9, (1,), (0.9,)))


def test_a_goal_on_the_ranking_stops_plain_log_loss(table):
    X, y, _, _ = table
    clf = GoalLGBMClassifier("maximize auroc", "cross-entropy", n_estimators=60, early_stopping=10)
    clf.set_params(n_jobs=1).fit(X, y)
    apart = sp.datasets.split(y, 0.2, 0).tune
    told = roc_auc_score(y[apart], clf.decision_function(X[apart]))
    assert max(clf.history_) == pytest.approx(told, abs=1e-3)
    assert clf.n_iter_ == int(np.argmax(clf.history_)) + 1


def test_cross_validation_keeps_its_folds_apart(table):
    lgb = importlib.import_module("lightgbm")
    X, y, _, _ = table
    objective, metric = (kind("maximize f1") for kind in BOOSTERS["lightgbm"][:2])
    params = {"objective": objective, "metric": "None", "verbosity": -1, "seed": 0}
    data = objective.data(X, y, start=objective.start(y), free_raw_data=False)
    found = lgb.cv(params, data, 10, nfold=3, stratified=True, feval=metric, seed=0)
    assert len(found["valid goal-mean"]) == 10
    assert found["valid goal-mean"][-1] > 0.5


# --- what it is for ------------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["costs", "soft-set"])
@EVERY
def test_the_goal_moves_the_decisions_at_a_half(table, name, method):
    """Trained on dear misses, ½ is a cheaper threshold than that of plain log loss."""
    X, y, _, _ = table
    goal = "minimize cost(fp=1, fn=15)"
    cost = {}
    for way in ("cross-entropy", method):
        clf = estimator(name, goal, way, n_estimators=40).fit(X[:600], y[:600])
        cost[way] = sp.cost(fp=1, fn=15)(y[600:], clf.predict(X[600:]))
    assert cost[method] < 0.9 * cost["cross-entropy"]


@pytest.mark.parametrize("name", ["lightgbm", "xgboost"])
def test_a_goal_on_groups_narrows_the_gap(name):
    rng = np.random.default_rng(1)
    n = 3000
    group = rng.choice(["a", "b"], n)
    X = np.c_[rng.normal(size=(n, 3)), group == "a"]
    y = (X[:, 0] + 1.5 * X[:, 3] + rng.normal(size=n) > 1).astype(int)
    goal = 'maximize accuracy subject to gap(positive_rate, by="sex") <= 0.1'
    gap = {}
    for text in ("maximize accuracy", goal):
        clf = estimator(name, text, n_estimators=60, early_stopping=60)
        decided = clf.fit(X, y, group={"sex": group}).predict(X)
        gap[text] = abs(decided[group == "a"].mean() - decided[group == "b"].mean())
    assert gap["maximize accuracy"] > 0.3
    assert gap[goal] < gap["maximize accuracy"] - 0.1


def test_catboost_knows_no_groups():
    with pytest.raises(KindError, match="take LightGBM or XGBoost"):
        BOOSTERS["catboost"].objective('maximize recall.on(g="x")')


# --- estimators ----------------------------------------------------------------------------------

WEIGHTS = (
    "LightGBM counts rows where it bins columns and limits leaves: a row of weight 2 is not the "
    "row given twice"
)


@parametrize_with_checks(
    [
        GoalLGBMClassifier(n_estimators=30, n_jobs=1, params={"min_data_in_leaf": 5}),
    ],
    expected_failed_checks=lambda e: {"check_sample_weight_equivalence_on_dense_data": WEIGHTS},
)
def test_scikit_learns_checks(estimator, check):
    check(estimator)


@parametrize_with_checks(
    [
        GoalLGBMClassifier(
            "maximize accuracy",
            "soft-set",
            n_estimators=30,
            n_jobs=1,
            early_stopping=10,
            params={"min_data_in_leaf": 5},
        ),
    ],
    expected_failed_checks=lambda e: {"check_sample_weight_equivalence_on_dense_data": WEIGHTS},
)
@pytest.mark.slow
def test_scikit_learns_checks_with_early_stopping(estimator, check):
    check(estimator)


@EVERY
def test_an_estimator_is_one_of_scikit_learns(table, name):
    X, y, several, _ = table
    clf = estimator(name, "maximize f1", params={"random_seed": 3} if name == "catboost" else None)
    copied = clone(clf)
    assert copied.get_params() == clf.get_params()
    copied.set_params(n_estimators=7, learning_rate=0.3)
    assert copied.fit(X, y).n_iter_ == 7
    p = copied.predict_proba(X)
    np.testing.assert_allclose(p.sum(1), 1)
    np.testing.assert_array_equal(copied.predict(X), (copied.decision_function(X) >= 0).astype(int))
    words = np.array(["d", "c", "b", "a"])[several]
    many = estimator(name, "maximize macro(f1)", n_estimators=4).fit(X, words)
    assert many.classes_.tolist() == ["a", "b", "c", "d"]
    np.testing.assert_allclose(many.predict_proba(X).sum(1), 1)
    assert (many.predict(X) == words).mean() > 0.4
    rule = sp.tune("maximize macro(f1)", words, many.predict_proba(X), task=many.task_)
    assert rule.value > 0.3


@EVERY
def test_the_positive_class_may_come_first(table, name):
    X, y, _, _ = table
    words = np.where(y == 1, "bad", "good")
    clf = estimator(name, FLOOR, positive="bad").fit(X, words)
    plain = estimator(name, FLOOR).fit(X, y)
    np.testing.assert_allclose(clf.predict_proba(X)[:, 0], plain.predict_proba(X)[:, 1])
    np.testing.assert_array_equal(clf.predict(X) == "bad", plain.predict(X) == 1)
    with pytest.raises(DataError, match="positive="):
        estimator(name, FLOOR).fit(X, words)


@EVERY
def test_scores_feed_the_goal_classifier(table, name):
    X, y, _, _ = table
    clf = sp.GoalClassifier(FLOOR, model=estimator(name, FLOOR), method="cross-entropy").fit(X, y)
    assert clf.rule_.feasible
    assert set(np.unique(clf.predict(X))) <= {0, 1}


@EVERY
def test_a_classifier_is_a_text(table, name):
    X, y, several, _ = table
    frame = pd.DataFrame(X, columns=list("uvwxyz"))
    for target, goal in ((y, FLOOR), (several, "maximize macro(f1)")):
        clf = estimator(name, goal, SoftSet() if target is y else "costs", n_estimators=3)
        clf.fit(frame, target)
        text = clf.to_text()
        again = type(clf).from_text(text)
        np.testing.assert_allclose(again.predict_proba(frame), clf.predict_proba(frame), rtol=1e-12)
        assert again.predict(frame).dtype == clf.predict(frame).dtype
        assert name == "catboost" or again.to_text() == text  # CatBoost rounds what it reads
        assert str(Goal.of(again.goal)) == goal
    about = json.loads(text)
    damaged = [
        "",
        "[]",
        text[: len(text) // 2],
        json.dumps({**about, "library": "other"}),
        json.dumps({**about, "model": about["model"][:40]}),
        json.dumps({key: value for key, value in about.items() if key != "start"}),
    ]
    for wrong in damaged:
        with pytest.raises(FileError):
            type(clf).from_text(wrong)


def test_pickles_and_searches(table):
    X, y, _, _ = table
    clf = GoalXGBClassifier("maximize f1", n_estimators=5, n_jobs=1)
    search = GridSearchCV(clf, {"params": [{"max_depth": 2}, {"max_depth": 4}]}, cv=2).fit(X, y)
    again = pickle.loads(pickle.dumps(search.best_estimator_))
    np.testing.assert_array_equal(again.predict_proba(X), search.best_estimator_.predict_proba(X))


def test_too_few_rows_stop_nothing_early():
    X, y = np.arange(8.0)[:, None], np.array([0, 0, 0, 0, 0, 0, 0, 1])
    clf = GoalLGBMClassifier("maximize f1", early_stopping=5, n_estimators=3).fit(X, y)
    assert clf.notes_
    assert clf.history_ == []


@pytest.mark.parametrize("name", ["xgboost", "catboost"])
def test_a_missing_library_is_named(monkeypatch, table, name):
    X, y, _, _ = table
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(KindError, match=rf'pip install "setpoint\[{name}\]"'):
        estimator(name).fit(X, y)


@pytest.mark.parametrize(
    ("settings", "error", "words"),
    [
        ({"n_estimators": 0}, KindError, "n_estimators=0"),
        ({"n_estimators": 2.5}, KindError, "n_estimators=2.5"),
        ({"learning_rate": -1}, KindError, "learning_rate=-1"),
        ({"early_stopping": True}, KindError, "early_stopping=True"),
        ({"early_stopping": 5, "validation_fraction": 2}, KindError, "tune_size=2"),
        ({"params": [1]}, KindError, "params"),
        ({"params": {"objective": "binary"}}, KindError, "objective"),
        ({"random_state": -1}, KindError, "random_state=-1"),
        ({"method": "pairwise"}, KindError, "costs"),
        ({"goal": "maximize auroc"}, GoalError, "pairwise"),
        ({"goal": 'maximize recall.on(g="x")'}, GoalError, '"g"'),
    ],
)
def test_settings_that_nothing_can_be_done_with(table, settings, error, words):
    X, y, _, _ = table
    with pytest.raises(error, match=words):
        GoalLGBMClassifier("maximize f1").set_params(**settings).fit(X, y)


def test_labels_for_a_library_are_codes():
    objective = BOOSTERS["lightgbm"].objective("maximize f1", task=Task.binary())
    with pytest.raises(DataError, match=r"codes 0…1"):
        objective.start([1, 2, 2])


def test_nothing_is_said_that_nobody_asked(table, capfd):
    X, y, _, _ = table
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in BOOSTERS:
            estimator(name, n_estimators=3, early_stopping=2).fit(X, y)
    assert capfd.readouterr() == ("", "")
