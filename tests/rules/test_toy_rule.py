"""A new kind of rule is one class and one row of a table."""

import json
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pandas as pd
import pytest
from tests.cli.tables import CLEAN
from typer.testing import CliRunner

import setpoint as sp
from setpoint._core.json_codec import number_from, number_to
from setpoint.cli.app import app
from setpoint.expressions import Sweep
from setpoint.rules.goal_on_rows import GoalOnRows
from setpoint.rules.one_threshold import judged
from setpoint.rules.rule import Rule, is_cut
from setpoint.rules.table import RULES

GOAL = "maximize recall subject to precision >= 0.7"


@dataclass(frozen=True, kw_only=True)
class TwoSided(Rule):
    """Decide positive what lies far out on either side: |score| >= width."""

    width: float

    kind: ClassVar[str] = "two-sided"
    tasks: ClassVar[tuple[str, ...]] = ("binary",)

    @classmethod
    def search(cls, goal, columns, options):
        problem = GoalOnRows.meet(goal, replace(columns, scores=abs(np.asarray(columns.scores))))
        sweep = Sweep(problem.columns)
        best = judged(problem, sweep)
        rule = cls(task=columns.task, width=float(sweep.thresholds[best.index]))
        return problem.best(rule, best.point, best.held)

    def is_sound(self):
        return is_cut(self.width) and self.width >= 0

    def decisions(self, s, group, query):
        return abs(s) >= self.width

    def describe(self):
        return f"|score| >= {self.width:.6g}"

    def numbers(self):
        return {"width": number_to(self.width)}

    @classmethod
    def from_numbers(cls, task, data):
        return cls(task=task, width=number_from(data["width"]))


@pytest.fixture(autouse=True)
def row(monkeypatch):
    """The one row of the table."""
    monkeypatch.setitem(RULES, "two-sided", TwoSided)


def drawn(seed, n=600):
    """Positives lie far out on both sides, where one threshold finds half of them."""
    random = np.random.default_rng(seed)
    y = random.random(n) < 0.4
    side = random.choice([-1, 1], n)
    return y.astype(int), np.where(y, 2.5 * side, 0) + random.normal(size=n)


def test_it_is_tuned_to_the_best_width():
    y, s = drawn(0)
    rule = sp.tune(GOAL, y, s, kind="two-sided")
    values = [sp.recall(y, abs(s) >= w) for w in abs(s) if sp.precision(y, abs(s) >= w) >= 0.7]
    assert rule.value == pytest.approx(max(values), abs=1e-12)
    assert rule.feasible
    assert (rule.kind, rule.threshold, rule.by) == ("two-sided", None, None)
    assert rule.value > sp.tune(GOAL, y, s).value


def test_it_decides_and_describes_itself():
    y, s = drawn(0)
    rule = sp.tune(GOAL, y, s, kind="two-sided")
    width = rule.point.width
    assert rule.decide([-width, 0.0, width]).tolist() == [True, False, True]
    assert rule.operating_point() == f"|score| >= {width:.6g}"
    assert not rule.abstains(s).any()
    with pytest.raises(sp.KindError, match="takes no group"):
        rule.decide(s, group=["a"] * len(s))


def test_it_is_evaluated_and_diagnosed():
    y, s = drawn(0)
    rule = sp.tune(GOAL, y, s, kind="two-sided")
    fresh, scores = drawn(1)
    assert sp.evaluate(rule, fresh, scores).value == sp.recall(fresh, rule.decide(scores))
    assert sp.diagnose(GOAL, y, s, kind="two-sided").point == rule.operating_point()


def test_it_is_certified_and_watched():
    y, s = drawn(0)
    rule = sp.tune("maximize recall subject to precision >= 0.8", y, s, kind="two-sided")
    fresh, scores = drawn(1)
    certificate = sp.certify(GOAL, rule, fresh, scores)
    assert certificate.verdict == "PROVEN"
    assert certificate.point == rule.point
    assert sp.Monitor(certificate).update(*drawn(2)).status != "BROKEN"


def test_it_is_chosen_with_proof():
    rule = sp.tune(GOAL, *drawn(1), kind="two-sided", prove=0.95, reference=drawn(0))
    assert rule.proven
    assert rule.kind == "two-sided"


def test_it_is_not_certified_where_it_says_so(monkeypatch):
    monkeypatch.setattr(TwoSided, "no_proof", "its width is a matter of taste")
    with pytest.raises(sp.GoalError, match="matter of taste, so a two-sided rule proves nothing"):
        sp.tune(GOAL, *drawn(1), kind="two-sided", prove=0.95, reference=drawn(0))
    with pytest.raises(sp.GoalError, match="matter of taste"):
        sp.plan(GOAL, *drawn(0), kind="two-sided")


def test_it_is_saved_and_loaded(tmp_path):
    rule = sp.tune(GOAL, *drawn(0), kind="two-sided")
    assert sp.DecisionRule.load(rule.save(tmp_path / "rule.json")) == rule
    certificate = sp.certify(GOAL, rule, *drawn(1))
    assert sp.Certificate.load(certificate.save(tmp_path / "c.json")) == certificate
    damaged = {**rule.to_json(), "width": "nobody knows"}
    with pytest.raises(sp.FileError, match='"two-sided" lacks its numbers'):
        sp.DecisionRule.from_json(damaged)


def test_an_unknown_kind_is_answered_with_it():
    with pytest.raises(sp.KindError, match="did you mean two-sided"):
        sp.tune(GOAL, *drawn(0), kind="two-side")


def test_the_commands_take_it(tmp_path):
    y, s = drawn(0)
    scores, rule_file, out = (tmp_path / n for n in ("s.csv", "rule.json", "out.csv"))
    pd.DataFrame({"label": y, "score": s}).to_csv(scores, index=False)

    def run(*args):
        result = CliRunner().invoke(app, [*map(str, args), "--json"], env=CLEAN)
        assert result.exit_code == 0, result.output
        return json.loads(result.stdout)

    tuned = run("tune", scores, "-g", GOAL, "--kind", "two-sided", "--out", rule_file)
    rule = sp.tune(GOAL, y, s, kind="two-sided")
    assert tuned["operating_point"] == rule.operating_point()
    decided = run("decide", rule_file, scores, "--out", out)
    assert decided["operating_point"] == rule.operating_point()
    assert pd.read_csv(out)["decided"].tolist() == rule.decide(s).astype(int).tolist()
