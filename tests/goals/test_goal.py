"""Goals that say the same with the classes exchanged; the group columns a goal speaks of."""

import numpy as np
import pytest

import setpoint as sp
from setpoint.goals import symmetric

SAME = ["accuracy", "mcc", "kappa", "balanced_accuracy", "g_mean", "auroc", "macro(f1)", "youden"]
APART = ["f1", "recall", "precision", "average_precision", "cost(fp=1, fn=2)", "jaccard"]


@pytest.mark.parametrize("text", SAME)
def test_same(text):
    assert symmetric(sp.Goal.of(sp.metric(text)))


@pytest.mark.parametrize("text", APART)
def test_apart(text):
    assert not symmetric(sp.Goal.of(sp.metric(text)))


def test_constraints_and_groups_count():
    assert not symmetric(sp.Goal.parse("maximize accuracy subject to recall >= 0.5"))
    assert not symmetric(sp.Goal.parse('maximize accuracy subject to gap(recall, by="g") <= 0.5'))


def test_columns():
    goal = sp.Goal.parse(
        'maximize worst(recall, by="sex") subject to precision.on(age="old", sex="f") >= 0.5'
    )
    assert set(goal.columns) == {"sex", "age"}
    assert sp.Goal.parse("maximize macro(f1)").columns == ()


def test_the_reading_agrees_with_evaluation():
    """What `symmetric` says is what evaluation on exchanged classes shows."""
    rng = np.random.default_rng(1)
    y, d = rng.random(50) < 0.4, rng.random(50) < 0.5
    for text in SAME[:5] + APART[:3]:
        metric = sp.metric(text)
        equal = metric(y, d) == pytest.approx(metric(~y, ~d))
        assert equal == symmetric(sp.Goal.of(metric))
