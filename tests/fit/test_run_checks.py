"""What is measured once a rule stands: a failure there is a note, and saving measures nothing."""

import numpy as np
import pytest

import setpoint as sp
from setpoint._core.notes import NoteCode
from setpoint.fit import run_checks

GOAL = "maximize recall subject to precision >= 0.6"


def fitted():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    y = (X[:, 0] + 0.5 * rng.normal(size=200) > 0).astype(int)
    return sp.GoalClassifier(GOAL, "linear", epochs=2, compare=False).fit(X, y), X


@pytest.mark.parametrize("name", ["diagnose", "plan"])
@pytest.mark.parametrize("error", [sp.DataError("no way"), ZeroDivisionError("no way")])
def test_a_failure_is_a_note_and_loses_no_model(monkeypatch, tmp_path, name, error):
    def fail(*_, **__):
        raise error

    monkeypatch.setattr(run_checks, name, fail)
    clf, X = fitted()
    notes = [n for n in clf.run_.notes if n.code is NoteCode.NOT_DIAGNOSED]
    assert [n.data["error"] for n in notes] == [type(error).__name__]
    assert (clf.run_.diagnosis is None) == (name == "diagnose")
    assert clf.run_.label_plan is None
    clf.save(tmp_path / "run")
    assert np.array_equal(sp.load(tmp_path / "run").predict(X), clf.predict(X))


def test_saving_measures_nothing(monkeypatch, tmp_path):
    clf, X = fitted()
    assert clf.run_.diagnosis is not None
    assert clf.run_.label_plan is not None

    def fail(*_, **__):
        raise AssertionError("measured while it was saved")

    for name in ("diagnose", "plan", "scored_rows", "table_checks"):
        monkeypatch.setattr(run_checks, name, fail)
    clf.save(tmp_path / "run")
    assert np.array_equal(sp.load(tmp_path / "run").predict(X), clf.predict(X))
