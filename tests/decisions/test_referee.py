"""The referee, held to a plain bootstrap over rows, to sklearn's figures and to simulation."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import f1_score, roc_auc_score

from setpoint.decisions.comparison import Comparison
from setpoint.decisions.proof.safety_margin import cautious
from setpoint.decisions.referee import Bout, Entrant, _Judge, cross_decided, price_of
from setpoint.expressions import Columns, Task, take_in
from setpoint.goals import Goal
from setpoint.rules.class_offsets import Argmax
from setpoint.rules.decision_rule import choose
from setpoint.rules.goal_on_rows import GoalOnRows
from setpoint.rules.one_threshold import OneThreshold
from setpoint.rules.rule import RuleSearch

ONE = RuleSearch(rule=OneThreshold)
PLAIN = RuleSearch(rule=Argmax)
F1 = Goal.parse("maximize f1")
FLOOR = Goal.parse("maximize recall subject to precision >= 0.7")


def drawn(seed, n=1500, a=1.5, b=1.5):
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.25).astype(int)
    return y, rng.normal(size=n) + a * y, rng.normal(size=n) + b * y, np.arange(n) % 5


def f1_by_hand(y, decided, weight=None):
    """2 TP / (rows that are positive + rows decided so), for loops in which sklearn's is slow."""
    weight = np.ones(len(y)) if weight is None else weight
    both = weight @ ((y == 1) & decided)
    return 2 * both / (weight @ (y == 1) + weight @ decided)


def columns(y, s, task=None, **more):
    return take_in(task or Task.binary(), y, scores=s, **more).on_host()


def entrant(name, goal, y, s, fold, **more):
    made = cross_decided(columns(y, s, **more), fold, lambda c: choose(goal, c, ONE))
    return Entrant(name, made, "tuned")


def bout(goal, y, a, b, fold, **more):
    pair = [entrant("ours", goal, y, a, fold, **more), entrant("theirs", goal, y, b, fold, **more)]
    return Bout.of(goal, pair, fold)


def test_rows_are_decided_by_thresholds_of_other_folds():
    y, a, _, fold = drawn(0)
    made = cross_decided(columns(y, a), fold, lambda c: choose(F1, c, ONE))
    for f in range(5):
        rest = fold != f
        cuts = np.unique(a[rest])
        best = max(cuts[::7], key=lambda t: f1_by_hand(y[rest], a[rest] >= t))
        here = np.asarray(made.decided)[~rest]
        threshold = a[~rest][here].min()
        assert not (a[~rest][~here] >= threshold).any()  # one threshold a fold
        others = f1_score(y[rest], a[rest] >= threshold)
        assert others == pytest.approx(f1_score(y[rest], a[rest] >= best), abs=0.02)


@pytest.mark.parametrize("weighted", [False, True])
def test_intervals_are_those_of_a_bootstrap_over_rows(weighted):
    y, a, b, fold = drawn(1, a=1.8)
    weight = np.random.default_rng(5).uniform(0.5, 2, len(y)) if weighted else None
    found = bout(F1, y, a, b, fold, sample_weight=weight)
    gap = found.difference("ours", "theirs")
    da, db = (np.asarray(e.columns.decided) for e in found.entrants)
    rng = np.random.default_rng(9)
    draws = []
    for _ in range(600):
        rows = np.concatenate(
            [rng.choice(np.flatnonzero(fold == f), (fold == f).sum()) for f in range(5)]
        )
        w = None if weight is None else weight[rows]
        draws.append(f1_by_hand(y[rows], da[rows], w) - f1_by_hand(y[rows], db[rows], w))
    value = f1_score(y, da, sample_weight=weight) - f1_score(y, db, sample_weight=weight)
    assert value == pytest.approx(f1_by_hand(y, da, weight) - f1_by_hand(y, db, weight))
    assert gap.value == pytest.approx(value)
    assert gap.merit == pytest.approx(value)
    low, high = np.quantile(draws, [0.025, 0.975])
    assert gap.low == pytest.approx(low, abs=0.012)
    assert gap.high == pytest.approx(high, abs=0.012)


def test_the_interval_covers_and_the_verdict_is_rarely_wrong():
    covered = wrong = 0
    for seed in range(80):
        y, a, b, fold = drawn(seed, 500)
        gap = bout(F1, y, a, b, fold).difference("ours", "theirs")
        covered += gap.low <= 0 <= gap.high
        wrong += gap.separated != 0
    assert covered >= 68  # 95 % of 80 is 76; thresholds are tuned anew in each draw
    assert wrong <= 12


def test_breaking_a_constraint_costs():
    y, a, _, fold = drawn(2)
    made = cross_decided(columns(y, a), fold, lambda c: cautious(FLOOR, c, ONE, margin=2)[0])
    safe = Entrant("safe", made, "margin")
    bold = Entrant("bold", replace(made, decided=np.ones(len(y), bool)), "all")
    found = Bout.of(FLOOR, [safe, bold], fold)
    gap = found.difference("safe", "bold")
    assert gap.value < 0 < gap.merit_low  # less recall, but the floor
    told = found.comparison("safe", {"safe": "PROVEN", "bold": "REFUTED"})
    assert told.sentence.startswith("safe is better here")
    assert "broken" in str(told)
    assert Comparison.from_json(told.to_json()) == told


def test_the_sentence_says_who_won():
    y, a, b, fold = drawn(3, 3000, a=2.5, b=0.5)
    ahead = bout(F1, y, a, b, fold).comparison("ours")
    behind = bout(F1, y, a, b, fold).comparison("theirs")
    level = bout(F1, y, a, a + 1e-9, fold).comparison("ours")
    assert ahead.sentence.startswith("ours is better here: f1 ")
    assert "ours is better here" in behind.sentence
    assert level.sentence.startswith("Cannot be told apart on this data")
    assert ahead.differences[0].separated == 1
    assert behind.differences[0].separated == -1


def test_a_goal_on_the_ranking_needs_no_threshold():
    y, a, b, fold = drawn(4, 600)
    goal = Goal.parse("maximize auroc")
    found = Bout.of(goal, [Entrant("a", columns(y, a), ""), Entrant("b", columns(y, b), "")], fold)
    gap = found.difference("a", "b")
    assert gap.value == pytest.approx(roc_auc_score(y, a) - roc_auc_score(y, b))
    assert gap.low < gap.value < gap.high


def test_prices_follow_the_room_a_bound_leaves():
    goal = Goal.parse(
        "maximize recall subject to precision >= 0.9, fpr <= 0.001, cost(fp=1, fn=2) <= 3"
    )
    assert [round(price_of(c), 6) for c in goal.constraints] == [10.0, 1000.0, 5.0]


def test_several_classes_are_compared_too():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 600)
    s = np.eye(3)[y] + rng.normal(size=(600, 3))
    worse = np.eye(3)[y] * 0.3 + rng.normal(size=(600, 3))
    fold, goal = np.arange(600) % 5, Goal.parse("maximize macro(f1)")
    task = Task.multiclass([0, 1, 2])
    pair = [
        Entrant(n, cross_decided(columns(y, x, task), fold, lambda c: choose(goal, c, PLAIN)), "")
        for n, x in (("a", s), ("b", worse))
    ]
    gap = Bout.of(goal, pair, fold).difference("a", "b")
    truth = f1_score(y, s.argmax(1), average="macro") - f1_score(
        y, worse.argmax(1), average="macro"
    )
    assert gap.value == pytest.approx(truth)
    assert gap.separated == 1


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("objective", ["f1", "auroc", 'worst(recall, by="sex")'])
def test_counted_rows_read_as_rows_that_stand_several_times(objective, weighted):
    rng = np.random.default_rng(3)
    y = rng.random(60) < 0.4
    rows = Columns(
        Task(),
        y,
        decided=rng.random(60) < 0.3 + 0.4 * y,
        scores=np.round(rng.random(60) + 0.4 * y, 1),
        weight=rng.random(60) if weighted else None,
        groups={"sex": rng.choice(["f", "m"], 60)},
    )
    goal = Goal.parse(f"maximize {objective} subject to precision >= 0.5, cost(fp=1, fn=2) <= 0.3")
    problem = GoalOnRows.ground(goal.lowered, rows)
    count = rng.integers(0, 4, 60)
    counted = _Judge(problem, rows).read(count)
    repeated = problem.judge(rows.take(np.repeat(np.arange(60), count)))
    assert counted.value == pytest.approx(repeated.value, rel=1e-12)
    assert counted.sides == pytest.approx(repeated.sides, rel=1e-12)
    assert counted.excess == pytest.approx(repeated.excess, rel=1e-12, abs=1e-15)
