"""The rule with a margin, held to a brute force over thresholds with statsmodels' Wilson bound."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import norm
from statsmodels.stats.proportion import proportion_confint

import setpoint as sp
from setpoint.decisions.proof.safety_margin import cautious, room_with_margin
from setpoint.expressions import Task, take_in
from setpoint.goals import Goal
from setpoint.rules.one_threshold import OneThreshold
from setpoint.rules.rule import RuleSearch
from setpoint.rules.table import RULES

ONE = RuleSearch(rule=OneThreshold)


def columns(y, scores, task=None, **more):
    return take_in(task or Task.binary(), y, scores=scores, **more).on_host()


def drawn(seed, n=400, shift=1.5):
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.3).astype(int)
    return y, np.round(rng.normal(size=n) + shift * y, 2)


def wilson_floor(k, n, z):
    return proportion_confint(k, n, alpha=2 * norm.cdf(-z), method="wilson")[0]


@settings(deadline=None)
@given(st.integers(0, 50), st.integers(1, 200), st.floats(0.1, 3))
def test_the_margin_is_wilsons(k, n, z):
    k = min(k, n)
    floor = wilson_floor(k, n, z)
    ks, ns = np.array([float(k)]), np.array([float(n)])
    assert room_with_margin(ks, ns, ">=", 0.3, z)[0] == pytest.approx(floor - 0.3, abs=1e-9)
    assert room_with_margin(ns - ks, ns, "<=", 0.7, z)[0] == pytest.approx(floor - 0.3, abs=1e-9)
    assert room_with_margin(ks * 0, ns * 0, ">=", 0.3, z)[0] == -np.inf


def brute(y, s, better, rate, z):
    """The best threshold whose rate keeps its bound by the margin; the highest of equals."""
    best = (-np.inf, None)
    for t in np.unique(s)[::-1]:
        k, n, bound, _ = rate(y, s >= t)
        if n > 0 and wilson_floor(k, n, z) >= bound - 1e-12:
            best = max(best, (better(y, s >= t), t), key=lambda b: (b[0], b[1] or -np.inf))
    return best


def recall_of(y, d):
    return (y & d).sum() / y.sum()


def precision_of(y, d):
    return (y & d).sum() / max(d.sum(), 1)


GOALS = {
    "maximize recall subject to precision >= 0.7": (
        recall_of,
        lambda y, d: ((y & d).sum(), d.sum(), 0.7, None),
    ),
    "maximize precision subject to recall >= 0.6": (
        precision_of,
        lambda y, d: ((y & d).sum(), y.sum(), 0.6, None),
    ),
    "minimize fnr subject to fpr <= 0.1": (
        recall_of,
        lambda y, d: ((1 - y).sum() - ((1 - y) & d).sum(), (1 - y).sum(), 0.9, None),
    ),
}


@pytest.mark.parametrize("text", GOALS)
@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_it_is_the_best_of_those_with_the_margin(text, seed):
    y, s = drawn(seed)
    better, rate = GOALS[text]
    value, _ = brute(y, s, better, rate, 2.0)
    rule, share = cautious(Goal.parse(text), columns(y, s), ONE)
    if share == 1:
        decided = s >= rule.threshold
        assert better(y, decided) == pytest.approx(value)
        assert rule.feasible
        assert rule.frontier is not None
    else:
        assert value == -np.inf


def test_breaking_on_new_rows_becomes_rare():
    goal = Goal.parse("maximize recall subject to precision >= 0.75")
    broken = {"tuned": 0, "margin": 0}
    for seed in range(60):
        y, s = drawn(seed, 1500)
        fresh_y, fresh_s = drawn(10_000 + seed, 8000)
        rules = {
            "tuned": sp.tune(goal, y, s),
            "margin": cautious(goal, columns(y, s), ONE)[0],
        }
        for name, rule in rules.items():
            broken[name] += precision_of(fresh_y, fresh_s >= rule.threshold) < 0.75
    assert broken["tuned"] >= 25  # about half
    assert broken["margin"] <= 6


def test_without_constraints_or_margin_it_is_tune():
    y, s = drawn(0)
    for text, margin in (("maximize f1", None), ("maximize recall subject to precision >= 0.7", 0)):
        rule, share = cautious(Goal.parse(text), columns(y, s), ONE, margin=margin)
        assert (rule.threshold, share) == (sp.tune(text, y, s).threshold, 0)


def test_a_margin_nobody_has_is_halved_and_then_given_up():
    y, s = drawn(1, 60)
    goal = Goal.parse("maximize recall subject to precision >= 0.999")
    rule, share = cautious(goal, columns(y, s), ONE, margin=5.0)
    assert (rule.threshold, share) == (sp.tune(goal, y, s).threshold, 0)
    half = Goal.parse("maximize recall subject to precision >= 0.8")
    rule, share = cautious(half, columns(y, s), ONE, margin=3.0)
    value, _ = brute(y, s, recall_of, lambda y, d: ((y & d).sum(), d.sum(), 0.8, None), 3 * share)
    assert 0 < share < 1
    assert recall_of(y, s >= rule.threshold) == pytest.approx(value)


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("maximize recall subject to f1 >= 0.6", "threshold"),
        ('maximize recall subject to worst(precision, by="group") >= 0.6', "per-group"),
        ("maximize recall subject to cost(fp=1, fn=2) <= 0.5", "threshold"),
    ],
)
def test_other_constraints_and_rules_get_a_margin_too(text, kind):
    y, s = drawn(3, 1200)
    group = np.where(np.arange(1200) % 3 == 0, "a", "b")
    goal = Goal.parse(text)
    search = RuleSearch(rule=RULES[kind], by="group" if kind == "per-group" else None)
    rule, share = cautious(goal, columns(y, s, group=group), search)
    plain = sp.tune(goal, y, s, group=group, kind=kind)
    assert share > 0
    assert rule.feasible
    slack = [abs(h.value - g.value) for h, g in zip(rule.held, plain.held, strict=True)]
    assert max(slack) > 0.005
    assert str(rule.goal) == str(goal)
