"""A network with one logit gives a column (n, 1); it is taken as it is everywhere."""

import numpy as np
import pytest
import torch

import setpoint as sp

GOAL = "maximize recall subject to precision >= 0.6"
Y = np.array([0, 0, 1, 1, 0, 1])
Z = np.array([-2.0, 0.5, 0.4, 3.0, -1.0, 2.0])


@pytest.mark.parametrize("form", [np.asarray, torch.as_tensor])
def test_a_column_is_taken_like_a_vector(form):
    flat, column = form(Z), form(Z)[:, None]
    rule, same = sp.tune(GOAL, Y, flat), sp.tune(GOAL, Y, column)
    assert rule.threshold == same.threshold
    assert np.array_equal(rule.decide(flat), same.decide(column))
    assert sp.precision(Y, column >= 0) == sp.precision(Y, flat >= 0)
    assert sp.auroc(Y[:, None], column) == sp.auroc(Y, flat)
    loss = sp.GoalLoss(GOAL)
    assert loss.rule(Y, column).threshold == rule.threshold


def test_two_columns_are_still_refused():
    with pytest.raises(sp.DataError, match=r"one-dimensional.*pass"):
        sp.precision(Y, np.zeros((6, 2)))
