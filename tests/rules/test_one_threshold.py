"""The quick reading equals what tuning and evaluating say."""

import numpy as np
import pytest

import setpoint as sp
from setpoint.expressions import Task, take_in
from setpoint.rules.one_threshold import quick_point


@pytest.mark.parametrize(
    "text",
    ["maximize f1", "maximize recall subject to precision >= 0.6", "minimize cost(fn=5, fp=1)"],
)
def test_binary(text):
    rng = np.random.default_rng(0)
    y = rng.random(200) < 0.3
    s = rng.random(200) + 0.4 * y
    goal = sp.Goal.parse(text)
    point = quick_point(goal, take_in(Task(), y, scores=s))
    rule = sp.tune(goal, y, s)
    assert point.value == rule.value
    assert point.feasible == rule.feasible


def test_rankings_classes_and_labels():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 90)
    p = rng.random((90, 3))
    goal = sp.Goal.parse("maximize macro(f1)")
    task = Task.multiclass(range(3))
    point = quick_point(goal, take_in(task, y, scores=p))
    assert point.value == pytest.approx(sp.macro(sp.f1)(y, p.argmax(1), task=task))
    labels = rng.random((90, 3)) < 0.4
    several = Task.multilabel(range(3))
    point = quick_point(goal, take_in(several, labels, scores=p))
    assert point.value == pytest.approx(sp.macro(sp.f1)(labels, p >= 0.5, task=several))
    area = quick_point(sp.Goal.parse("maximize auroc"), take_in(Task(), y == 1, scores=p[:, 1]))
    assert area.value == pytest.approx(sp.auroc(y == 1, p[:, 1]))
