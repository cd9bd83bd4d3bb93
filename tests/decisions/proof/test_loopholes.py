"""Ways to a proof that is none: each was open once."""

from dataclasses import replace

import numpy as np
import pytest

import setpoint as sp
from setpoint.decisions import DecisionRule, Fingerprint
from setpoint.expressions import Number, take_in
from setpoint.rules.one_threshold import OneThreshold
from setpoint.statistics import betting_test as betting

GOAL = "maximize recall subject to precision >= 0.9"


def rows(n, seed=0, apart=1.5, share=0.4):
    random = np.random.default_rng(seed)
    y = (random.random(n) < share).astype(int)
    return y, apart * y + random.normal(size=n)


def rule(goal=GOAL, threshold=0.5, task=None):
    return DecisionRule(
        point=OneThreshold(task=task or sp.Task(), threshold=threshold),
        goal=sp.Goal.parse(goal),
        feasible=True,
        value=None,
        rows=1,
    )


def certified(constraint, y, scores, at=0.5, **more):
    goal = f"maximize accuracy subject to {constraint}"
    return sp.certify(goal, rule(goal, at), y, scores, **more)


def test_weights_beyond_their_bound_are_refused_everywhere():
    y, s = rows(300)
    w = np.linspace(0, 2, 300)
    for bound in (0.001, -1, "x"):
        with pytest.raises(sp.DataError):
            sp.tune(
                GOAL, y, s, sample_weight=w, prove=0.9, reference=rows(300, 1), weight_bound=bound
            )
    bets = betting.BoundedRows.single(np.array([[0.0, 5.0], [0.0, 5.0]]))
    with pytest.raises(sp.DataError, match="weight"):
        betting.wins(bets, np.array([0.5]), 1, np.array([0.1]), 0.1)


def test_a_group_that_fresh_rows_happen_to_lack_stays_in_the_promise():
    y, s = rows(900)
    group = np.array(["a", "b", "c"])[np.arange(900) % 3]
    goal = 'maximize accuracy subject to worst(recall, by="group") >= 0.1'
    made = sp.tune(goal, y, s, group=group)
    fresh, scores = rows(600, 1)
    some = np.array(["a", "b"])[np.arange(600) % 2]
    proof = sp.certify(goal, made, fresh, scores, group=some)
    assert proof.verdict == "NOT PROVEN"
    assert "a, b, c" in proof.assumption
    loaded = DecisionRule.from_json(made.to_json())
    assert sp.certify(goal, loaded, *rows(600, 2), group=some).verdict == "NOT PROVEN"
    chosen = sp.tune(goal, fresh, scores, group=some, prove=0.9, reference=(y, s, group))
    assert not chosen.proven
    everyone = sp.certify(goal, made, *rows(900, 3), group=group)
    assert everyone.verdict == "PROVEN"


def test_the_order_of_a_file_does_not_move_a_certificate():
    y, s = rows(400)
    order = np.lexsort((s, y))
    for constraint in ("f_beta(2) >= 0.5", "cost(fp=1, fn=3) <= 1"):
        assert certified(constraint, y, s) == certified(constraint, y[order], s[order])
    w = np.linspace(0.1, 1, 400)
    more = [{"sample_weight": x, "weight_bound": 1.0} for x in (w, w[order])]
    assert certified("precision >= 0.5", y, s, **more[0]).findings == (
        certified("precision >= 0.5", y[order], s[order], **more[1]).findings
    )


@pytest.mark.parametrize(
    "constraint",
    [
        'gap(recall, by="group") <= 0',
        'gap(recall, by="group") == 0',
        'ratio(recall, by="group") >= 1',
    ],
)
def test_parity_that_holds_is_not_refuted(constraint):
    refuted = 0
    for seed in range(40):
        y, s = rows(400, seed)
        group = np.array(["a", "b"])[np.arange(400) % 2]
        refuted += certified(constraint, y, s, group=group).verdict == "REFUTED"
    assert refuted <= 6  # at 5 %: more with a probability of 1 in 300


def test_a_ratio_of_gains_is_what_the_metric_says():
    y, s = rows(1000, apart=2)
    group = np.array(["a", "b"])[(np.arange(1000) % 3 == 0).astype(int)]
    metric = sp.ratio(sp.cost(fp=1, tp=-1), by="group")
    found = certified(f"{metric} <= 0.5", y, s, group=group).findings[0]
    assert found.value == pytest.approx(metric(y, s >= 0.5, group=group))
    assert found.verdict != "PROVEN" or found.value <= 0.5


def test_rows_of_a_query_prove_nothing():
    y, s = rows(40, apart=3)
    many = np.repeat(np.arange(40), 10)
    made = certified("precision >= 0.5", y[many], s[many], query=many)
    assert made.verdict == "NOT PROVEN"
    assert not made.findings[0].exact


def test_reference_rows_are_used_up():
    reference, fresh = rows(800, 1), rows(800, 2)
    made = sp.tune(
        "maximize recall subject to precision >= 0.6", *fresh, prove=0.9, reference=reference
    )
    for used in (reference, fresh):
        with pytest.raises(sp.DataError, match="already used"):
            sp.certify(made.goal, made, *used)
    assert sp.certify(made.goal, made, *rows(800, 3)).rows == 800


def test_what_is_touched_is_the_rules_own():
    made = sp.tune("maximize recall subject to precision >= 0.6", *rows(400))
    twin = replace(made, value=0.0)
    sp.certify(made.goal, made, *rows(400, 1))
    assert len(made.touched) == 1
    assert twin.touched == []


def test_the_worst_of_several_constants_counts():
    metric = sp.maximum(sp.fpr, Number(0.1), Number(0.5))
    y, s = rows(500, apart=4)
    goal = sp.maximize(sp.recall).subject_to(metric <= 0.3)
    assert sp.certify(goal, rule(), y, s).verdict != "PROVEN"


def test_scores_of_single_precision_are_tested_as_they_are_decided():
    for seed in range(20):
        y, s = rows(300, seed)
        s32 = np.round(s, 1).astype(np.float32)
        ry, rs = rows(300, 100 + seed)
        made = sp.tune(
            "maximize recall subject to precision >= 0.5",
            y,
            s32,
            prove=0.9,
            reference=(ry, np.round(rs, 1)),
        )
        proven = not made.search.startswith("fixed sequence: 0 ")
        assert made.proven == proven


def test_ratios_without_an_upper_end_are_bounded_or_not_at_all():
    y, s = rows(400)
    for constraint in ("(2 * tp + fn) / fp <= 10", "(tp - fp) / (tp + fn) >= 0.1"):
        made = certified(constraint, y, s)
        found = made.findings[0]
        assert not np.isnan(found.bound)
        assert not np.isnan(found.other)
        assert sp.Certificate.from_json(made.to_json()) == made


def test_many_classes_are_still_exact():
    random = np.random.default_rng(0)
    y = random.integers(0, 600, 800)
    scores = random.normal(size=(800, 600))
    scores[np.arange(800), y] += 8
    goal = "maximize accuracy subject to accuracy >= 0.5"
    made = sp.tune(goal, y[:600], scores[:600], task=sp.Task.multiclass(range(600)), kind="argmax")
    assert sp.certify(goal, made, y[600:], scores[600:]).verdict == "PROVEN"


def test_a_part_that_occurs_twice_is_one_part():
    y, s = rows(2000)
    found = certified("recall * recall >= 0.3", y, s).findings[0]
    assert found.verdict == "PROVEN"
    mixed = certified("recall * precision + recall * npv >= 0.1", y, s).findings[0]
    assert np.isfinite(mixed.bound)


def test_gaps_between_many_groups_do_not_take_for_ever():
    y, s = rows(3000)
    group = np.arange(3000) % 8
    found = certified('gap(recall, by="group") <= 0.5', y, s, group=group).findings[0]
    assert found.exact
    assert found.bound >= found.value


# --- rows that come again ------------------------------------------------------------------------


@pytest.mark.parametrize("digits", [2, 3, 4, 6, 16])
@pytest.mark.parametrize("n", [30, 300, 3000])
def test_fresh_rows_are_not_taken_for_used_ones(n, digits):
    for seed in range(100):
        one, two = (
            Fingerprint.of(take_in(sp.Task(), y, scores=np.round(s, digits)))
            for y, s in (rows(n, seed), rows(n, 1000 + seed))
        )
        assert not one.shares_rows(two)


@pytest.mark.parametrize("ties", [0.0, 0.02, 0.1])
@pytest.mark.parametrize("n", [200, 2000, 20_000])
def test_used_rows_are_known_again(n, ties):
    y, s = rows(n)
    tied = int(ties * n)
    s[:tied] = np.round(s[:tied], 1)
    made = sp.tune("maximize recall subject to precision >= 0.5", *rows(500, 99))
    first = sp.certify(made.goal, made, y, s)
    more = rows(2 * n, 7)
    shuffled = np.random.default_rng(0).permutation(n)
    for again in (
        (y[shuffled], s[shuffled]),
        (y[1:], s[1:]),
        (y[: n // 2], s[: n // 2]),
        (y[-n // 5 :], s[-n // 5 :]),
        (np.r_[y, more[0]], np.r_[s, more[1]]),
    ):
        with pytest.raises(sp.DataError, match="already used"):
            sp.certify(made.goal, replace(made, touched=[]), *again, seen=first)


def test_scores_of_few_values_say_so():
    y, s = rows(2000)
    coarse = np.round(s)
    made = sp.tune("maximize recall subject to precision >= 0.5", *rows(500, 99))
    proof = sp.certify(made.goal, made, y, coarse)
    assert "few values" in proof.assumption
    with pytest.raises(sp.DataError, match="already used"):
        sp.certify(made.goal, made, y[::-1], coarse[::-1])
    assert "few values" not in sp.certify(made.goal, made, *rows(2000, 5)).assumption


def test_a_stream_of_equal_rows_can_be_watched():
    made = sp.tune("maximize recall subject to precision >= 0.2", *rows(500))
    monitor = sp.Monitor(sp.certify(made.goal, made, *rows(500, 1)))
    for seed in range(60):
        y, s = rows(6, seed)
        monitor.update(y, np.round(np.clip(s, 0, 1)))
    assert monitor.rows == 360


def test_a_quiet_day_without_positives_is_fed_like_any_other():
    y, s = rows(600)
    words = np.where(y == 1, ">50K", "<=50K")
    goal = "maximize recall subject to precision >= 0.4"
    made = sp.tune(goal, words[:300], s[:300], positive=">50K")
    monitor = sp.Monitor(sp.certify(goal, made, words[300:], s[300:]))
    report = monitor.update(["<=50K"] * 5, [0.1, 0.2, 0.3, 3.1, 0.5])
    assert report.rows == 5


def test_flagged_rows_are_no_sample_of_all():
    made = sp.tune("maximize accuracy subject to recall >= 0.3", *rows(600))
    proof = sp.certify(made.goal, made, *rows(600, 1))
    y, s = rows(600, 2)
    flagged = made.decide(s)
    assert 'labels="flagged"' in sp.Monitor(proof).update(y[flagged], s[flagged]).note
    assert sp.Monitor(proof).update(y, s).note == ""
