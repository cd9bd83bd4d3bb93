"""Any model under a goal: classifiers, pipelines, modules, scores from elsewhere, boosted trees."""

import json

import numpy as np
import pandas as pd
import pytest
import torch
from scipy import stats
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC
from torch import nn

import setpoint as sp
from setpoint.boosting import GoalLGBMClassifier
from setpoint.fit import storage

GOAL = "maximize recall subject to precision >= 0.7"


def rows(n=400, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return X, (1.5 * X[:, 0] - X[:, 1] + 0.7 * rng.normal(size=n) > 0.8).astype(int)


def three(n=240, names=(0, 1, 2)):
    X, _ = rows(n)
    noise = np.random.default_rng(1).normal(size=n)
    return X, np.array(names)[np.digitize(X[:, 0] + 0.3 * noise, [-0.5, 0.6])]


def there_and_back(clf, folder, X, **how):
    """The same classifier from its folder: same scores, same decisions."""
    storage.save(clf.run_, folder, report=False)
    back = sp.load(folder, **how)
    assert np.array_equal(back.predict(X), clf.predict(X))
    assert np.array_equal(back.decision_function(X), clf.decision_function(X))
    assert back.rule_ == clf.rule_
    assert back.certificate_ == clf.certificate_
    return back


# --- classifiers of scikit-learn -----------------------------------------------------------------


@pytest.mark.parametrize(
    "model",
    [
        LogisticRegression(),
        make_pipeline(StandardScaler(), LogisticRegression()),
        RandomForestClassifier(15, random_state=0),
        HistGradientBoostingClassifier(max_iter=15, random_state=0),
        GaussianNB(),
        LinearSVC(),
    ],
    ids=lambda m: type(m).__name__,
)
def test_classifiers(model, tmp_path):
    X, y = rows()
    clf = sp.GoalClassifier(GOAL, model).fit(X, y)
    scores = (
        clf.predict_proba(X)[:, 1]
        if hasattr(model, "predict_proba")
        else clf.model_.decision_function(X)
    )
    assert np.array_equal(clf.predict(X) == 1, scores >= clf.rule_.threshold)
    assert hasattr(clf, "predict_proba") == hasattr(model, "predict_proba")
    assert len(clf.comparison_.contenders) == 3
    assert clf.comparison_.chosen == type(model).__name__
    assert not hasattr(model, "classes_")  # the user's own stays as it was
    there_and_back(clf, tmp_path, X)
    fresh, truth = rows(20_000, 9)
    assert truth[clf.predict(fresh) == 1].mean() > 0.65


def test_a_classifier_is_fitted_on_the_train_rows_alone():
    X, y = rows()
    part = np.array(["train", "tune", "certify", "train"])[np.arange(400) % 4]
    clf = sp.GoalClassifier(GOAL, LogisticRegression(), compare=False).fit(X, y, split=part)
    own = LogisticRegression().fit(X[part == "train"], y[part == "train"])
    assert np.array_equal(clf.model_.coef_, own.coef_)
    assert np.allclose(clf.predict_proba(X), own.predict_proba(X), atol=1e-14)


def test_a_pipeline_takes_the_table_as_it_is(tmp_path):
    X, y = rows()
    frame = pd.DataFrame({"town": np.where(X[:, 0] > 0.3, "Ulm", "Rom"), "plan": y % 2 * 0 + 1})
    clf = sp.GoalClassifier(
        "maximize f1", make_pipeline(OneHotEncoder(handle_unknown="ignore"), LogisticRegression())
    ).fit(frame, y)
    assert sp.f1(y, clf.predict(frame)) > 0.6
    there_and_back(clf, tmp_path, frame)


@pytest.mark.parametrize("model", [LogisticRegression(), LinearSVC()], ids=str)
def test_classifiers_of_several_classes(model, tmp_path):
    X, y = three(names=("cow", "ant", "bee"))
    clf = sp.GoalClassifier("maximize macro(recall)", model, compare=False).fit(X, y)
    assert clf.classes_.tolist() == ["ant", "bee", "cow"]
    own = (
        clf.model_.predict_proba(X)
        if hasattr(model, "predict_proba")
        else clf.model_.decision_function(X)
    )
    expected = clf.classes_[(own + np.array(clf.rule_.offsets)).argmax(1)]
    assert (clf.predict(X) == expected).mean() > 0.995  # a tie may round otherwise
    there_and_back(clf, tmp_path, X)


@pytest.mark.parametrize("kind", ["time", "split"])
def test_a_class_that_comes_late(kind):
    """Trees and linear models of ours know a class that no row of their fold has."""
    X, y = three()
    when = np.arange(240)
    y = np.where((when < 80) & (y == 2), 0, y)
    part = np.array(["train", "tune", "certify"])[when // 80]
    fit = {"time": when} if kind == "time" else {"split": part}
    model = LogisticRegression()
    clf = sp.GoalClassifier("maximize accuracy", model, folds=2, compare=False).fit(X, y, **fit)
    assert clf.predict_proba(X).shape == (240, 3)


def test_models_that_are_none():
    X, y = rows(100)
    for model in (nn.Linear, object(), StandardScaler(), np.zeros(3)):
        with pytest.raises(sp.KindError, match="model="):
            sp.GoalClassifier(GOAL, model).fit(X, y)


def test_the_users_sample_weight_is_not_lost():
    X, y = rows(300)
    weight = np.where(X[:, 2] > 0, 10.0, 0.1)
    part = np.array(["train", "tune", "certify"])[np.arange(300) % 3]
    clf = sp.GoalClassifier(GOAL, LogisticRegression(), compare=False)
    clf.fit(X, y, sample_weight=weight, split=part)
    train = part == "train"
    own = LogisticRegression().fit(X[train], y[train], sample_weight=weight[train])
    assert np.array_equal(clf.model_.coef_, own.coef_)
    with pytest.raises(sp.KindError, match="takes no sample_weight"):
        sp.GoalClassifier(GOAL, make_pipeline(StandardScaler(), GaussianNB())).fit(X, y, weight)


# --- texts ---------------------------------------------------------------------------------------


def texts(n=240):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, n)
    words = np.array([["bad", "awful", "day"], ["good", "fine", "day"]])
    return [" ".join(rng.choice(words[i if rng.random() < 0.9 else 1 - i], 4)) for i in y], y


PIPELINE = make_pipeline(TfidfVectorizer(), LogisticRegression())


@pytest.mark.parametrize(
    "form",
    [np.array, lambda t: pd.Series(t, index=np.arange(len(t)) * 2 + 3)],
    ids=["array", "series"],
)
def test_texts(form, tmp_path):
    told, y = texts()
    X = form(told)
    clf = sp.GoalClassifier(GOAL, PIPELINE).fit(X, y)
    assert sp.f1(y, clf.predict(X)) > 0.8
    assert clf.comparison_ is not None
    there_and_back(clf, tmp_path, X)
    assert np.array_equal(clf.predict(np.array(told)), clf.predict(X))


@pytest.mark.xfail(strict=True, reason="a list has no shape, and is taken for a table: the "
                   "comparison is left out")  # fmt: skip
def test_a_list_of_texts():
    told, y = texts()
    clf = sp.GoalClassifier(GOAL, PIPELINE).fit(told, y)
    assert clf.comparison_ is not None
    assert sp.f1(y, clf.predict(told)) > 0.8


# --- modules -------------------------------------------------------------------------------------


class OnTable(nn.Module):
    def __init__(self, inputs=4, outputs=1):
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(0)
            self.layers = nn.Sequential(nn.Linear(inputs, 8), nn.ReLU(), nn.Linear(8, outputs))

    def forward(self, x):
        return self.layers(x)


class OnImages(nn.Module):
    def __init__(self):
        super().__init__()
        with torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(0)
            self.layers = nn.Sequential(
                nn.Conv2d(1, 3, 3), nn.ReLU(), nn.Flatten(), nn.Linear(48, 1)
            )

    def forward(self, x):
        return self.layers(x)


def test_a_module_on_a_table(tmp_path):
    X, y = rows()
    module = OnTable()
    before = [p.clone() for p in module.parameters()]
    clf = sp.GoalClassifier(GOAL, module, epochs=15, learning_rate=0.02).fit(X, y)
    assert all(torch.equal(a, b) for a, b in zip(before, module.parameters(), strict=True))
    assert sp.auroc(y, clf.predict_proba(X)[:, 1]) > 0.9
    assert clf.comparison_.contenders[0].name == "OnTable"
    assert len(clf.comparison_.contenders) == 3
    there_and_back(clf, tmp_path, X, model=OnTable())
    with pytest.raises(sp.KindError, match="a module of your own, OnTable"):
        sp.load(tmp_path)
    with pytest.raises(sp.FileError, match="do not fit"):
        sp.load(tmp_path, model=OnTable(5))


def test_a_module_of_several_outputs(tmp_path):
    X, y = three()
    module = OnTable(4, 3)
    clf = sp.GoalClassifier("maximize accuracy", module, epochs=10, compare=False).fit(X, y)
    assert clf.predict_proba(X).shape == (240, 3)
    assert np.allclose(clf.predict_proba(X).sum(1), 1)
    there_and_back(clf, tmp_path, X, model=OnTable(4, 3))


def test_a_module_on_arrays_of_four_dimensions(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(240, 1, 6, 6)).astype(np.float32)
    y = (X[:, 0, :3].mean((1, 2)) > 0.1).astype(int)
    clf = sp.GoalClassifier(GOAL, OnImages(), epochs=15, learning_rate=0.01).fit(X, y)
    assert sp.f1(y, clf.predict(X)) > 0.7
    assert clf.n_features_in_ == 1
    assert clf.comparison_ is not None
    assert any("no table" in note for note in clf.notes_)
    there_and_back(clf, tmp_path, X, model=OnImages())
    alone = [clf.predict_proba(X[i : i + 1])[0, 1] for i in range(20)]
    assert np.allclose(alone, clf.predict_proba(X[:20])[:, 1], atol=1e-6)


# --- scores from elsewhere -----------------------------------------------------------------------


def scored(n=800):
    rng = np.random.default_rng(5)
    y = rng.integers(0, 2, n)
    return y, rng.normal(size=n) + 1.6 * y


@pytest.mark.parametrize("score", ["raw", "probability", "logit"])
def test_scores_of_two_classes(score, tmp_path):
    y, z = scored()
    given = 1 / (1 + np.exp(-z)) if score == "probability" else z
    task = None if score == "raw" else sp.Task.binary(score=score)
    clf = sp.GoalClassifier.from_scores(GOAL, y, given, task=task)
    assert clf.certificate_.verdict == "PROVEN"
    assert clf.comparison_ is None
    proof = clf.run_.parts.certify
    assert len(proof) == 200
    decided = clf.predict(given) == 1
    (found,) = clf.certificate_.findings
    k, n = int(y[proof][decided[proof]].sum()), int(decided[proof].sum())
    assert [(e.k, e.n) for e in found.evidence] == [(k, n)]
    assert stats.binomtest(k, n, 0.7, alternative="greater").pvalue <= 0.05
    assert given[decided].min() > given[~decided].max()
    assert np.array_equal(clf.predict(given[:, None]), clf.predict(given))
    there_and_back(clf, tmp_path, given)
    raw = score == "raw"
    assert hasattr(clf, "predict_proba") != raw
    if raw:
        assert np.array_equal(decided, given >= clf.rule_.threshold)
    else:
        p = 1 / (1 + np.exp(-z))
        assert np.allclose(clf.predict_proba(given)[:, 1], p)
        assert ((p >= clf.rule_.threshold) == decided).mean() > 0.998


@pytest.mark.parametrize("score", ["raw", "probability"])
def test_scores_of_several_classes(score, tmp_path):
    rng = np.random.default_rng(6)
    y = rng.choice(["ant", "bee", "cow"], 300, p=[0.6, 0.3, 0.1])
    z = rng.normal(size=(300, 3)) + 2.0 * (y[:, None] == np.array(["ant", "bee", "cow"]))
    p = np.exp(z) / np.exp(z).sum(1, keepdims=True)
    given = p if score == "probability" else z
    task = sp.Task.multiclass(["ant", "bee", "cow"], score=score)
    clf = sp.GoalClassifier.from_scores("maximize macro(recall)", y, given, task=task)
    told = clf.classes_[(given + np.array(clf.rule_.offsets)).argmax(1)]
    assert (clf.predict(given) == told).mean() > 0.99
    best = sp.macro(sp.recall)(y, told, task="multiclass")
    plain = clf.classes_[given.argmax(1)]
    assert best >= sp.macro(sp.recall)(y, plain, task="multiclass")
    there_and_back(clf, tmp_path, given)


def test_scores_that_are_none():
    y, z = scored(100)
    for given, words in (
        (np.where(np.arange(100) == 3, np.nan, z), "nan"),
        (z[:50], "100"),
        (np.stack([z, z, z], 1), r"\(75, 3\)"),
    ):
        with pytest.raises(sp.SetpointError, match=words):
            sp.GoalClassifier.from_scores(GOAL, y, given)


def test_what_is_no_probability_is_refused():
    y, z = scored()
    with pytest.raises(sp.SetpointError, match="probabilit"):
        sp.GoalClassifier.from_scores(GOAL, y, z, task=sp.Task.binary(score="probability"))


def test_scores_as_a_list():
    y, z = scored()
    clf = sp.GoalClassifier.from_scores(GOAL, y.tolist(), z.tolist())
    assert np.array_equal(clf.predict(z.tolist()), clf.predict(z))


def test_options_of_scores():
    y, z = scored()
    groups = np.where(np.arange(800) % 3 == 0, "a", "b")
    goal = 'maximize f1 subject to gap(recall, by="g") <= 0.3'
    clf = sp.GoalClassifier.from_scores(goal, y, z, group={"g": groups}, kind="per-group")
    cuts = dict(clf.rule_.thresholds)
    expected = z >= np.array([cuts[g] for g in groups])
    assert np.array_equal(clf.predict(z, group={"g": groups}) == 1, expected)
    part = np.where(np.arange(800) < 500, "train", "certify")
    clf = sp.GoalClassifier.from_scores(GOAL, y, z, split=part)
    assert np.array_equal(clf.run_.parts.certify, np.arange(500, 800))
    assert clf.rule_.rows == (300 if clf.rule_.proven else 500)


# --- boosted trees under a goal ------------------------------------------------------------------


def test_boosted_trees_under_a_goal():
    X, y = rows()
    model = GoalLGBMClassifier(GOAL, n_estimators=15)
    clf = sp.GoalClassifier(GOAL, model).fit(X, y)
    assert np.array_equal(clf.predict(X) == 1, clf.predict_proba(X)[:, 1] >= clf.rule_.threshold)
    assert sp.auroc(y, clf.predict_proba(X)[:, 1]) > 0.9
    assert len(clf.comparison_.contenders) == 3
    assert not hasattr(model, "booster_")


def test_boosted_trees_under_a_goal_come_back(tmp_path):
    X, y = rows()
    model = GoalLGBMClassifier("maximize f1", n_estimators=10)
    clf = sp.GoalClassifier("maximize f1", model, compare=False).fit(X, y)
    there_and_back(clf, tmp_path, X)


# --- rows as lists -------------------------------------------------------------------------------


def listed(n=300):
    X, y = rows(n)
    town = np.random.default_rng(0).choice(["Ulm", "Rom", "gap"], n)
    cells = [float("nan") if t == "gap" else t for t in town]
    return [[t, x] for t, x in zip(cells, X[:, 0].tolist(), strict=True)], np.where(
        town == "gap", 1, y
    )


@pytest.mark.xfail(strict=True, reason='numpy makes the text "nan" of a missing cell in a list, '
                   "and leaves it missing in an array")  # fmt: skip
def test_a_list_and_an_array_of_the_same_cells_are_scored_alike():
    told, y = listed()
    clf = sp.GoalClassifier("maximize f1", "trees", compare=False, folds=3).fit(told, y)
    array = np.array(told, dtype=object)
    assert np.array_equal(clf.predict_proba(told), clf.predict_proba(array))


def test_decisions_agree_through_every_door():
    """A rule is JSON that decides alike in the classifier, alone, and read back."""
    X, y = rows()
    clf = sp.GoalClassifier(GOAL, LogisticRegression(), compare=False).fit(X, y)
    p = clf.predict_proba(X)[:, 1]
    rule = sp.DecisionRule.from_json(json.loads(json.dumps(clf.rule_.to_json())))
    assert np.array_equal(rule.decide(p), clf.predict(X) == 1)
    assert np.array_equal(clf.decide(p), clf.predict(X))
