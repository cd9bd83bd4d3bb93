"""A new method is one class with its program, and one row of METHODS: every door takes it then."""

import json
from dataclasses import dataclass, replace

import numpy as np
import pytest
import torch
from tests.cli.tables import CLEAN
from typer.testing import CliRunner

import setpoint as sp
from setpoint._core.errors import KindError
from setpoint.cli.app import app
from setpoint.methods import METHODS
from setpoint.methods.confusion.confusion_cells import Cells
from setpoint.methods.cross_entropy import CrossEntropyProgram
from setpoint.methods.method import Method, ready
from setpoint.methods.training_hints import TrainingHints

GOAL = "maximize recall subject to precision >= 0.6"


class BrierProgram(CrossEntropyProgram):
    """Mean of |p − y|^power over rows."""

    def __init__(self, cells, goal, power):
        super().__init__(cells, goal, None)
        self.power = power

    def pull(self, rows, memory, prices, on, step, scale):
        error = rows.p - rows.y
        slope = self.power * error * abs(error) ** (self.power - 2) * rows.p * (1 - rows.p)
        return rows.gradient(slope * scale)

    def base(self, rows):
        return rows.total(abs(rows.p - rows.y) ** self.power)


@dataclass(frozen=True)
class Brier(Method):
    power: float = 2.0

    name = "brier"
    summary = "the Brier score; the goal chooses the threshold afterwards"
    hints = TrainingHints(goal_driven=False, learning_rate=1e-2)

    def objection(self, goal, task):
        return None if task.kind == "binary" else "the Brier score is for two classes here"

    def lower(self, goal, task):
        ready(self, goal, task)
        return BrierProgram(Cells(replace(task, groups=())), goal, self.power)

    def recover(self, program, totals, multipliers):
        raise KindError("the Brier score pursues no goal of its own")


@pytest.fixture(autouse=True)
def row(monkeypatch):
    monkeypatch.setitem(METHODS, "brier", Brier)


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    return X, (X[:, 0] - X[:, 1] + 0.5 * rng.normal(size=300) > 0.3).astype(int)


def test_a_loss_takes_it():
    torch.manual_seed(0)
    logits = torch.randn(20, dtype=torch.float64, requires_grad=True)
    target = torch.arange(20) % 2
    loss = sp.GoalLoss(GOAL, "brier", power=3.0)
    value = loss(logits, target)
    value.backward()
    twin = logits.detach().clone().requires_grad_()
    expected = (torch.sigmoid(twin) - target).abs().pow(3).mean()
    expected.backward()
    torch.testing.assert_close(value.double(), expected, rtol=1e-5, atol=0)
    torch.testing.assert_close(logits.grad, twin.grad, rtol=1e-6, atol=1e-12)


def test_what_it_refuses_is_a_sentence_at_every_door(table):
    with pytest.raises(sp.GoalError, match="for two classes here"):
        sp.GoalLoss("maximize macro(f1)", "brier", task=sp.Task.multiclass([0, 1, 2]))
    X, _ = table
    with pytest.raises(sp.GoalError, match="for two classes here"):
        sp.GoalClassifier("maximize macro(f1)", "linear", "brier").fit(X, np.arange(300) % 3)
    with pytest.raises(sp.KindError, match='"brier" has no option "pover"'):
        sp.GoalLoss(GOAL, "brier", pover=3)


@pytest.mark.parametrize("method", ["brier", Brier(power=3.0)])
def test_an_estimator_is_trained_by_it_saved_and_loaded(table, tmp_path, method):
    X, y = table
    clf = sp.GoalClassifier(GOAL, "linear", method, epochs=15, compare=False).fit(X, y)
    assert sp.evaluate(clf.rule_, y, clf.predict_proba(X)[:, 1]).value > 0.7
    plain = sp.GoalClassifier(GOAL, "linear", "cross-entropy", epochs=15, compare=False).fit(X, y)
    assert not np.allclose(plain.predict_proba(X), clf.predict_proba(X))
    clf.save(tmp_path)
    again = sp.load(tmp_path)
    assert again.method == method
    assert np.array_equal(again.predict_proba(X), clf.predict_proba(X))


def test_the_command_line_lists_it():
    result = CliRunner().invoke(app, ["methods", "--json"], env=CLEAN)
    entry = next(m for m in json.loads(result.stdout)["methods"] if m["name"] == "brier")
    assert entry["says"] == Brier.summary
    assert entry["options"] == ["power=2.0"]
    result = CliRunner().invoke(app, ["methods", "minimize mae", "--json"], env=CLEAN)
    entry = next(m for m in json.loads(result.stdout)["methods"] if m["name"] == "brier")
    assert entry["refusal"] == "the Brier score is for two classes here"
