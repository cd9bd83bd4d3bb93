"""The stack, held to scikit-learn, to its optimality conditions and to what a stack must do."""

import numpy as np
import pytest
from scipy.special import expit
from sklearn.linear_model import LogisticRegression

from setpoint.fit.conclusion.stack import Stack, fit_stack
from setpoint.goals import Task

BINARY = Task.binary()


def drawn(seed, n=2000):
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.3).astype(int)
    a = 1.2 * y + rng.normal(size=n)
    b = 0.8 * y + rng.normal(size=n)
    return y, {"a": a, "b": b, "noise": rng.normal(size=n)}


def test_weights_are_those_of_logistic_regression_where_all_are_positive():
    y, z = drawn(0)
    found = fit_stack(["a", "b"], z, y, None, BINARY)
    X = np.stack([z["a"], z["b"]], 1)
    free = LogisticRegression(C=np.inf, tol=1e-8).fit(X, y)
    assert found.weights == pytest.approx(free.coef_[0], abs=0.01)
    assert found.bias[0] == pytest.approx(free.intercept_[0], abs=0.01)


def test_no_weight_is_negative_and_a_harmful_member_is_left_out():
    y, z = drawn(1)
    found = fit_stack(["a", "against"], z | {"against": -z["b"]}, y, None, BINARY)
    free = LogisticRegression(C=np.inf).fit(np.stack([z["a"], -z["b"]], 1), y)
    assert free.coef_[0, 1] < -0.5
    assert found.weights[1] == 0
    assert found.used == ("a",)


def test_it_is_no_worse_than_the_best_member_in_log_loss():
    y, z = drawn(2)
    found = fit_stack(["a", "b", "noise"], z, y, None, BINARY)

    def loss(p):
        return -np.mean(np.log(np.where(y == 1, p, 1 - p)))

    alone = [loss(fit_alone(z[n], y)) for n in z]
    assert loss(found.scores(z, BINARY)) <= min(alone) + 1e-6


def fit_alone(x, y):
    return LogisticRegression(C=np.inf).fit(x[:, None], y).predict_proba(x[:, None])[:, 1]


def test_weighted_rows_count_as_often():
    y, z = drawn(3, 400)
    weight = np.random.default_rng(0).integers(1, 4, 400)
    rows = np.repeat(np.arange(400), weight)
    once = fit_stack(["a", "b"], z, y, weight.astype(float), BINARY)
    often = fit_stack(["a", "b"], {k: v[rows] for k, v in z.items()}, y[rows], None, BINARY)
    assert once.weights == pytest.approx(often.weights, abs=0.03)


def test_several_classes_share_weights():
    rng = np.random.default_rng(4)
    y = rng.integers(0, 3, 900)
    z = {k: s * np.eye(3)[y] + rng.normal(size=(900, 3)) for k, s in (("a", 2.0), ("b", 1.0))}
    z["noise"] = rng.normal(size=(900, 3))
    task = Task.multiclass([0, 1, 2])
    found = fit_stack(["a", "b", "noise"], z, y, None, task)
    p = found.scores(z, task)
    assert p.sum(1) == pytest.approx(np.ones(900))
    assert found.weights[0] > found.weights[1] > found.weights[2]
    assert (p.argmax(1) == y).mean() >= (z["a"].argmax(1) == y).mean()


def test_labels_are_stacked_together():
    rng = np.random.default_rng(5)
    y = (rng.random((500, 4)) < 0.4).astype(int)
    z = {"a": 2.0 * y + rng.normal(size=y.shape), "b": rng.normal(size=y.shape)}
    found = fit_stack(["a", "b"], z, y, None, Task.multilabel(list("wxyz")))
    assert len(found.bias) == 4
    assert found.weights[0] > 5 * found.weights[1]


def test_one_member_is_left_as_it_is():
    z = {"a": np.array([-40.0, 0.3, 40.0])}
    assert Stack.alone("a").scores(z, BINARY) == pytest.approx(expit(z["a"]))
    assert Stack.alone("a", raw=True).scores(z, BINARY).tolist() == [-40.0, 0.3, 40.0]


def test_a_few_rows_give_about_the_mean():
    y, z = drawn(6, 6)
    y[:2] = [0, 1]
    found = fit_stack(["a", "b"], z, y, None, BINARY)
    assert np.isfinite(found.weights).all()
    assert max(found.weights) < 3


def test_json():
    made = Stack(("a", "b"), (0.5, 0.0), (0.1,))
    assert Stack.from_json(made.to_json()) == made
