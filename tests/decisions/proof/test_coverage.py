"""Simulated coverage, the short version: few draws of what tests/slow/test_coverage.py draws."""

from dataclasses import replace

import numpy as np
import pytest
from tests.oracles.coverage import (
    ALL_AT_THE_EDGE,
    BLIND,
    FLAT,
    NAMED,
    PROOFS,
    SCENARIOS,
    WATCHED,
    WITHIN,
    binary,
    certify_tuned_rows,
    compatible,
    generator,
    grouped,
    rule_for,
    simulate,
    simulate_proofs,
    watch,
)

import setpoint as sp

LONG = (
    "gap of three groups",
    "ratio of three groups",
    "ratio of two groups",
    "a gap where there is none",
    "f1 at another prevalence",
    "npv at other prevalences",
    "cost of rare misses",
    "recall against specificity",
    "weighted f1",
    "precision 0.999",
    "precision, 10000 rows",
)
SHORT = [scenario for scenario in SCENARIOS if scenario.name not in LONG]
PURE = [scenario for scenario in SCENARIOS if scenario.pure and scenario.n <= 300]
EDGES = [
    *(NAMED[n] for n in ("recall", "fpr", "f_beta(2), 30 rows", "worst of four equal groups")),
    replace(ALL_AT_THE_EDGE, confidence=0.8),
]
GOOD = [
    NAMED[n]
    for n in (
        "precision, 30 rows",
        "f1 of five scores",
        "f_beta(2), 400 rows",
        "cost",
        "weighted precision",
        "worst of four groups",
        "macro(f1) of three classes",
        "precision at other prevalences",
        "selective_risk",
    )
]


def by_name(scenarios):
    return pytest.mark.parametrize("scenario", scenarios, ids=[s.name for s in scenarios])


# --- the simulation itself -------------------------------------------------------------------


@by_name(SCENARIOS)
def test_the_truth_is_what_the_metric_is_on_many_rows(scenario):
    law = scenario.wide or scenario.law
    rows = law.draw(generator(scenario.name, "truth"), 40_000)
    rule = replace(rule_for(law), goal=scenario.goal())
    found = sp.evaluate(rule, rows.y, rows.scores, **rows.options)
    assert found.kept[0].value == pytest.approx(scenario.truth, rel=0.03, abs=0.03)


@pytest.mark.parametrize(("count", "fits"), [(0, True), (50, True), (65, True), (80, False)])
def test_a_count_fits_where_chance_could_reach_it(count, fits):
    assert compatible(count, 1000, 0.05) == fits


def test_certifying_a_rule_on_the_rows_it_was_tuned_on_is_false_far_too_often():
    """The same simulation, failing as it should: so it can fail."""
    same, fresh = certify_tuned_rows(30)
    assert same > 3 * 0.05 * 30
    assert not compatible(same, 30, 0.05)
    assert compatible(fresh, 30, 0.05)


def test_certifying_a_rule_on_the_rows_it_was_tuned_on_raises():
    y, scores = FLAT.draw(generator("raises"), 300)
    rule = sp.tune("maximize f1", y, scores)
    with pytest.raises(sp.DataError, match="already used"):
        sp.certify("maximize f1 subject to precision >= 0.1", rule, y, scores)


# --- certificates ----------------------------------------------------------------------------


@by_name(SHORT)
def test_a_promise_just_broken_is_seldom_proven(scenario):
    found = simulate(scenario, scenario.quick, scenario.goal())
    assert compatible(found.proven, found.draws, scenario.delta), found
    assert compatible(found.wrong, found.draws, scenario.delta), found
    assert compatible(found.outside, found.draws, scenario.delta), found


@by_name(PURE)
def test_the_bound_of_a_rate_seldom_lies_beyond_the_truth(scenario):
    found = simulate(scenario, 200, scenario.hopeless)
    assert found.proven == 0
    assert compatible(found.wrong, found.draws, scenario.delta), found


@by_name(EDGES)
def test_a_promise_that_just_holds_is_seldom_refuted(scenario):
    found = simulate(scenario, 25, scenario.goal(-WITHIN))
    assert compatible(found.refuted, found.draws, scenario.delta), found


@by_name(GOOD)
def test_a_promise_that_holds_with_room_is_proven(scenario):
    larger = replace(scenario, n=2000)
    assert simulate(larger, 4, larger.goal(-0.15)).proven == 4


NOTHING = binary(0.5, 0.0, 0.0)
NOTHING_IN_B = grouped((0.5, 0.5, 0.9, 0.01), (0.5, 0.5, 0.0, 0.0))
NO_POSITIVE_IN_B = grouped((0.5, 0.5, 0.99, 0.01), (0.5, 0.0, 0.0, 0.0))


@pytest.mark.parametrize(
    ("law", "promise"),
    [
        (NOTHING, "precision >= 0.01"),
        (NOTHING, "precision <= 0.99"),
        (NOTHING, "f_beta(2) >= 0.01"),
        (NOTHING, "precision + npv >= 0.2"),
        (NOTHING, "recall >= 0.01"),
        (NOTHING_IN_B, 'worst(precision, by="group") >= 0.01'),
        (NOTHING_IN_B, 'gap(precision, by="group") <= 0.99'),
        (NO_POSITIVE_IN_B, 'worst(recall, by="group") >= 0.01'),
        (NO_POSITIVE_IN_B, 'ratio(recall, by="group") >= 0.01'),
        (replace(NOTHING, decided=-np.ones(4, int), spans="band"), "selective_risk <= 0.99"),
    ],
)
@pytest.mark.parametrize("n", [30, 1000])
def test_nothing_is_proven_of_an_empty_rate(law, promise, n):
    rows = law.draw(generator(promise, n), n)
    goal = f"maximize accuracy subject to {promise}"
    found = sp.certify(goal, rule_for(law), rows.y, rows.scores, 0.9, **rows.options)
    assert found.verdict != "PROVEN"


@pytest.mark.parametrize("promise", ["auroc >= 0.55", "average_precision >= 0.3", "fn <= 100"])
def test_nothing_is_proven_without_an_exact_bound(promise):
    rows = binary(0.5, 0.9, 0.1).draw(generator(promise), 300)
    goal = f"maximize accuracy subject to {promise}"
    found = sp.certify(goal, rule_for(binary(0.5, 0.9, 0.1)), rows.y, rows.scores)
    assert (found.verdict, found.findings[0].exact) == ("NOT PROVEN", False)


def test_nothing_is_proven_of_all_groups_where_one_that_was_declared_is_missing():
    law = grouped((1.0, 0.5, 0.99, 0.01))
    rule = rule_for(law)
    task = sp.Task.binary(groups={"group": ["a", "b"]})
    rule = replace(rule, point=replace(rule.point, task=task))
    rows = law.draw(generator("missing"), 1000)
    goal = 'maximize accuracy subject to worst(recall, by="group") >= 0.5'
    assert not sp.certify(goal, rule, rows.y, rows.scores, **rows.options).proven


def test_weights_without_a_bound_prove_nothing():
    scenario = replace(NAMED["weighted precision"], options={}, n=1000)
    assert simulate(scenario, 3, scenario.goal(-0.3)).proven == 0


# --- rules chosen with proof -----------------------------------------------------------------

FEW_PROOFS = {
    "two normals": 5,
    "no threshold is right": 15,
    "no threshold, hopeful reference": 10,
    "scores of few values": 25,
    "two constraints, never both": 4,
}


@by_name([proof for proof in PROOFS if proof.name in FEW_PROOFS])
def test_a_rule_chosen_with_proof_is_seldom_false(scenario):
    found = simulate_proofs(scenario, FEW_PROOFS[scenario.name])
    assert compatible(found.false, found.draws, scenario.delta), found


@by_name([blind for blind in BLIND if blind.draws >= 200])
def test_scores_that_know_nothing_prove_nothing(scenario):
    assert compatible(scenario.proven(20), 20, scenario.delta)


def test_a_floor_that_most_thresholds_keep_is_proven():
    proof = replace(PROOFS[0], promises=(("precision", ">=", 0.5),), n=2000)
    assert simulate_proofs(proof, 4).proven == 4


# --- monitors --------------------------------------------------------------------------------

KINDS = ("precision, 100 rows", "f_beta(2), 400 rows", "gap of two groups", "three constraints")


@pytest.mark.parametrize("name", KINDS)
def test_a_monitor_seldom_ever_calls_a_promise_that_just_holds_broken(name):
    scenario, labels = WATCHED[name]
    broken, _ = watch(scenario, 30, -WITHIN, labels)
    assert compatible(broken, 30, scenario.delta), broken


@pytest.mark.parametrize("name", KINDS)
def test_a_monitor_notices_a_promise_clearly_broken(name):
    scenario, labels = WATCHED[name]
    assert watch(scenario, 20, min(0.25, 0.95 * scenario.distance), labels) == (20, 0)
