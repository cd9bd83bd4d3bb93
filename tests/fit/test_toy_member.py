"""A new member of the portfolio is one class with its model, and one row of a table."""

import json
from dataclasses import dataclass

import numpy as np
import pytest
from tests.cli.tables import CLEAN
from typer.testing import CliRunner

import setpoint as sp
from setpoint._core.files import read_json, write_text
from setpoint.cli.app import app
from setpoint.fit import portfolio_members
from setpoint.fit.fold_models import Model
from setpoint.fit.members import FoldFit, Member
from setpoint.fit.portfolio_members import PortfolioMember

GOAL = "maximize recall subject to precision >= 0.6"


class CentroidModel(Model):
    """How much nearer a row lies to the mean of the positives."""

    kind = "toy-centroids"
    form = "numbers"
    ending = "json"

    def __init__(self, centroids):
        self.centroids = np.asarray(centroids)  # (2, d)

    @property
    def own(self):
        return self.centroids

    def outputs(self, rows):
        apart = np.asarray(rows, np.float64)[:, None, :] - self.centroids
        far = (apart**2).sum(2)
        return (far[:, 0] - far[:, 1]) / 2

    def write(self, path):
        write_text(path, json.dumps(self.centroids.tolist()))
        return {"columns": self.centroids.shape[1]}

    @classmethod
    def read(cls, path, about, sources):
        model = cls(read_json(path))
        assert model.centroids.shape == (2, about["columns"])
        assert sources.task.kind == "binary"
        return model


@dataclass(frozen=True)
class CentroidMember(Member):
    form = "numbers"

    @property
    def name(self):
        return "centroids"

    def fit(self, job, fit, held, fold):
        X, y = job.rows.rows("numbers", fit), job.target[fit]
        return FoldFit(CentroidModel([X[y == 0].mean(0), X[y == 1].mean(0)]), [])


@pytest.fixture
def table():
    """Two round clouds: centroids tell them apart as well as anything does."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 300)
    return rng.normal(size=(300, 6)) + 0.6 * y[:, None], y


def test_it_is_stacked_saved_loaded_and_explained(table, tmp_path, monkeypatch):
    row = PortfolioMember(("quick",), CentroidMember)
    monkeypatch.setitem(portfolio_members.PORTFOLIO_MEMBERS, "centroids", row)
    X, y = table
    clf = sp.GoalClassifier(GOAL, effort="quick", compare=False, checkpoint=tmp_path / "parts")
    clf.fit(X, y)
    assert [name for name, _ in clf.plan_.members] == ["linear", "trees", "centroids"]
    weights = dict(zip(clf.stack_.names, clf.stack_.weights, strict=True))
    assert weights["centroids"] > 0
    assert all(isinstance(m, CentroidModel) for m in clf.members_["centroids"])
    assert len(clf.members_["centroids"]) == 3

    again = sp.GoalClassifier(**clf.get_params()).fit(X, y)  # its finished parts are taken up
    assert np.array_equal(again.predict_proba(X), clf.predict_proba(X))

    clf.save(tmp_path / "run")
    assert np.array_equal(sp.load(tmp_path / "run").predict_proba(X), clf.predict_proba(X))

    result = CliRunner().invoke(app, ["explain", str(tmp_path / "run"), "--json"], env=CLEAN)
    assert result.exit_code == 0, result.output
    member = next(m for m in json.loads(result.stdout)["members"] if m["name"] == "centroids")
    assert member["weight"] == weights["centroids"]


def test_other_efforts_do_without_it(table, monkeypatch):
    row = PortfolioMember(("thorough",), CentroidMember)
    monkeypatch.setitem(portfolio_members.PORTFOLIO_MEMBERS, "centroids", row)
    assert "centroids" not in portfolio_members.members_at("quick")
    assert portfolio_members.members_at("thorough")[-1] == "centroids"


def test_a_kind_that_nothing_reads_is_refused(table, tmp_path, monkeypatch):
    row = PortfolioMember(("quick",), CentroidMember)
    monkeypatch.setitem(portfolio_members.PORTFOLIO_MEMBERS, "centroids", row)
    X, y = table
    sp.GoalClassifier(GOAL, effort="quick", compare=False).fit(X, y).save(tmp_path / "run")
    monkeypatch.delitem(Model.kinds, "toy-centroids")
    with pytest.raises(sp.FileError, match='of the kind "toy-centroids" is not known'):
        sp.load(tmp_path / "run")
