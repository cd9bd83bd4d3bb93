"""One class against the rest is the binary metric of that class, for every metric of decisions."""

import numpy as np
import pytest
from sklearn import metrics as sk

import setpoint as sp

RANDOM = np.random.default_rng(0)
CLASSES = ("a", "b", "c")
Y = RANDOM.choice(CLASSES, 200, p=[0.5, 0.3, 0.2])
P = np.where(RANDOM.random(200) < 0.7, Y, RANDOM.choice(CLASSES, 200))
W = RANDOM.uniform(0.2, 3, 200)
G = RANDOM.choice(["x", "y"], 200)
S = RANDOM.random((200, 3)) + (Y[:, None] == np.array(CLASSES))
TASK = sp.Task.multiclass(CLASSES)
METRICS = """accuracy error_rate balanced_accuracy precision recall specificity fpr fnr npv f1
f_beta(2) jaccard mcc kappa g_mean youden positive_rate prevalence cost(fp=1,fn=10)""".split()


@pytest.mark.parametrize("text", METRICS)
def test_of_a_class_is_the_binary_metric(text):
    metric = sp.metric(text)
    for label in CLASSES:
        binary = metric(Y == label, P == label, W)
        assert metric.of(label)(Y, P, W, task=TASK) == pytest.approx(binary, abs=1e-12)
        by_normal = metric.of(label).normal()
        assert by_normal(Y, P, W, task=TASK) == pytest.approx(binary, abs=1e-12)
    values = [metric(Y == label, P == label, W) for label in CLASSES]
    assert sp.macro(metric)(Y, P, W, task=TASK) == pytest.approx(np.mean(values), abs=1e-12)


@pytest.mark.parametrize("text", METRICS)
def test_macro_over_labels_is_the_mean_of_binary_metrics(text):
    y, p = RANDOM.random((80, 3)) < 0.4, RANDOM.random((80, 3)) < 0.4
    metric = sp.metric(text)
    values = [metric(y[:, j], p[:, j]) for j in range(3)]
    found = sp.macro(metric)(y, p, task="multilabel")
    assert found == pytest.approx(np.mean(values), abs=1e-12)


@pytest.mark.parametrize("text", METRICS)
def test_of_the_positive_class_is_the_metric_itself(text):
    y, p = RANDOM.random(60) < 0.4, RANDOM.random(60) < 0.5
    metric = sp.metric(text)
    assert metric.of(1)(y, p) == pytest.approx(metric(y, p), abs=1e-12)
    assert metric.of(0)(y, p) == pytest.approx(metric(~y, ~p), abs=1e-12)
    rule = sp.tune(
        f"maximize {text}.of(1)" if text != "prevalence" else "maximize f1", y, S[:60, 0]
    )
    same = sp.tune(f"maximize {text}" if text != "prevalence" else "maximize f1", y, S[:60, 0])
    assert rule.value == pytest.approx(same.value, abs=1e-12)


@pytest.mark.parametrize("text", ["auroc", "average_precision", "recall_at_precision(0.5)"])
def test_curves_of_a_class(text):
    metric = sp.metric(text)
    values = [metric(Y == c, S[:, j]) for j, c in enumerate(CLASSES)]
    assert sp.macro(metric)(Y, S, task=TASK) == pytest.approx(np.mean(values))
    assert metric.of("b")(Y, S, task=TASK) == pytest.approx(values[1])
    weights = [np.mean(Y == c) for c in CLASSES]
    weighted = sp.weighted(metric)(Y, S, task=TASK)
    assert weighted == pytest.approx(np.average(values, weights=weights))


def test_whole_matrix_metrics_equal_scikit_learn():
    assert sp.mcc(Y, P, W, task=TASK) == pytest.approx(sk.matthews_corrcoef(Y, P, sample_weight=W))
    assert sp.kappa(Y, P, W, task=TASK) == pytest.approx(
        sk.cohen_kappa_score(Y, P, sample_weight=W)
    )
    assert sp.balanced_accuracy(Y, P, W, task=TASK) == pytest.approx(
        sk.balanced_accuracy_score(Y, P, sample_weight=W)
    )


def test_reductions_within_groups_use_the_rows_of_the_group():
    for group in ("x", "y"):
        rows = group == G
        truth = sk.f1_score(Y[rows], P[rows], average="weighted", sample_weight=W[rows])
        found = sp.weighted(sp.f1).on(group=group)(Y, P, W, group=G, task=TASK)
        assert found == pytest.approx(truth)
    per = [sk.f1_score(Y[g == G], P[g == G], average="weighted") for g in ("x", "y")]
    assert sp.worst(sp.weighted(sp.f1), by="group")(Y, P, group=G, task=TASK) == pytest.approx(
        min(per)
    )
    per = [sk.matthews_corrcoef(Y[g == G], P[g == G]) for g in ("x", "y")]
    assert sp.gap(sp.mcc, by="group")(Y, P, group=G, task=TASK) == pytest.approx(
        abs(per[0] - per[1])
    )


def test_a_label_is_filled_in_once():
    assert sp.auroc.of("a").of("b") == sp.auroc.of("a")
    assert sp.recall.of("a").of("b")(Y, P, task=TASK) == sp.recall.of("a")(Y, P, task=TASK)


def test_whole_matrix_metrics_are_refused_where_they_mean_nothing():
    y = RANDOM.random((20, 2)) < 0.5
    for text in ("mcc", "kappa", "balanced_accuracy"):
        with pytest.raises(sp.GoalError, match="speak"):
            sp.metric(text)(y, y, task="multilabel")
        with pytest.raises(sp.GoalError, match="speaks of one label"):
            sp.check(f"maximize {text}", "multilabel")
    with pytest.raises(sp.GoalError, match="abstain"):
        sp.mcc([0, 1], [0, 1], abstained=np.array([True, False]))
