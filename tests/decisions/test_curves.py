"""Curves equal scikit-learn's; plots draw what the data says."""

import matplotlib as mpl
import numpy as np
import pytest
from sklearn import metrics as sk

import setpoint as sp

mpl.use("Agg")
RANDOM = np.random.default_rng(0)
Y = (RANDOM.random(200) < 0.3).astype(int)
S = np.round(RANDOM.normal(size=200) + Y, 1)
W = RANDOM.uniform(0.5, 2, 200)


@pytest.mark.parametrize("weight", [None, W])
def test_roc_equals_scikit_learn(weight):
    curve = sp.roc_curve(Y, S, sample_weight=weight)
    fpr, tpr, thresholds = sk.roc_curve(Y, S, sample_weight=weight, drop_intermediate=False)
    np.testing.assert_allclose(curve.x, fpr, atol=1e-12)
    np.testing.assert_allclose(curve.y, tpr, atol=1e-12)
    np.testing.assert_array_equal(curve.thresholds, thresholds)


@pytest.mark.parametrize("weight", [None, W])
def test_precision_recall_equals_scikit_learn(weight):
    curve = sp.pr_curve(Y, S, sample_weight=weight)
    precision, recall, thresholds = sk.precision_recall_curve(Y, S, sample_weight=weight)
    np.testing.assert_allclose(curve.x, recall[:-1][::-1], atol=1e-12)
    np.testing.assert_allclose(curve.y, precision[:-1][::-1], atol=1e-12)
    np.testing.assert_array_equal(curve.thresholds, thresholds[::-1])


def test_any_two_metrics():
    curve = sp.metric_curve("positive_rate", "mcc", Y, S)
    for threshold, x, y in zip(curve.thresholds, curve.x, curve.y, strict=True):
        decided = threshold <= S
        assert sp.positive_rate(Y, decided) == pytest.approx(x)
        assert sk.matthews_corrcoef(Y, decided) == pytest.approx(y)


def test_curves_of_scores_are_refused():
    with pytest.raises(sp.GoalError, match="does not follow from a threshold"):
        sp.metric_curve("auroc", "recall", Y, S)


def test_plots_draw_the_data():
    curve = sp.roc_curve(Y, S)
    ax = sp.plot_curve(curve)
    np.testing.assert_array_equal(ax.lines[0].get_xdata(), curve.x)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("fpr", "recall")
    rule = sp.tune("maximize recall subject to precision >= 0.5, fpr <= 0.5", Y, S)
    ax = sp.plot_frontier(rule, constraint=1)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("fpr", "recall")
    texts = [t.get_text() for t in ax.get_legend().get_texts()]
    assert texts == ["feasible", "fpr <= 0.5", "rule"]
    ax = sp.plot_frontier(sp.tune("maximize f1", Y, S))
    assert ax.get_xlabel() == "threshold"


def test_a_rule_without_a_frontier_is_not_drawn():
    rule = sp.tune("maximize precision_at_k(5)", Y, S)
    with pytest.raises(sp.GoalError, match="no trade-off"):
        sp.plot_frontier(rule)
