"""Simulated coverage: how often certificates, rules chosen with proof and monitors are wrong.

A count fails only where a procedure that is wrong with probability δ would reach it with less than
1e-4. The short version of the same is tests/decisions/proof/test_coverage.py.
"""

from dataclasses import replace

import pytest
from tests.oracles.coverage import (
    ALL_AT_THE_EDGE,
    BATCHES,
    BLIND,
    EDGE,
    NO_GAP,
    PROOFS,
    SCENARIOS,
    WATCHED,
    WITHIN,
    certify_tuned_rows,
    compatible,
    simulate,
    simulate_proofs,
    watch,
)

pytestmark = pytest.mark.slow
NEVER_LESS = "a gap where there is none"  # a gap of 0 or more is no promise
FEW_DECIDED = "precision, hardly anything decided"  # nor are 60 of 2000 rows room enough
BELOW_ZERO = "mcc from above, below 0"  # its bounds end at 0
AT_THE_EDGE = [*(s for s in SCENARIOS if s.draws >= 50), ALL_AT_THE_EDGE, NO_GAP]
GOOD = [s for s in SCENARIOS if s.name not in (NEVER_LESS, FEW_DECIDED, BELOW_ZERO)]
PURE = [scenario for scenario in SCENARIOS if scenario.pure]


def by_name(scenarios):
    return pytest.mark.parametrize("scenario", scenarios, ids=[s.name for s in scenarios])


@by_name(SCENARIOS)
def test_a_promise_just_broken_is_proven_at_most_a_share_delta_of_the_time(scenario):
    found = simulate(scenario, scenario.draws, scenario.goal())
    assert compatible(found.proven, found.draws, scenario.delta), found
    assert compatible(found.wrong, found.draws, scenario.delta), found
    assert compatible(found.outside, found.draws, scenario.delta), found


@by_name(PURE)
def test_the_bound_of_a_rate_lies_beyond_the_truth_at_most_a_share_delta_of_the_time(scenario):
    found = simulate(scenario, 2000 if scenario.n <= 300 else 800, scenario.hopeless)
    assert found.proven == 0
    assert compatible(found.wrong, found.draws, scenario.delta), found
    assert compatible(found.outside, found.draws, scenario.delta), found


@by_name(AT_THE_EDGE)
def test_a_promise_that_just_holds_is_refuted_at_most_a_share_delta_of_the_time(scenario):
    draws = max(15, scenario.draws // 4)
    found = simulate(scenario, draws, scenario.goal(-WITHIN))
    assert compatible(found.refuted, found.draws, scenario.delta), found


@by_name(GOOD)
def test_a_promise_that_holds_with_room_is_proven(scenario):
    larger = replace(scenario, n=max(scenario.n, 2000))
    room = 0.5 if scenario.metric.startswith("cost") else 0.15
    room = min(room, 0.8 * abs(scenario.truth)) if scenario.op == ">=" else room
    draws = 20 if scenario.draws > 150 else 5
    found = simulate(larger, draws, larger.goal(-room))
    assert found.proven >= 0.9 * draws, found


@by_name(PROOFS)
def test_a_rule_chosen_with_proof_is_false_at_most_a_share_delta_of_the_time(scenario):
    found = simulate_proofs(scenario, scenario.draws)
    assert compatible(found.false, found.draws, scenario.delta), found
    assert compatible(found.refuted, found.draws, scenario.delta), found
    assert compatible(found.wrong, found.draws, scenario.delta), found
    assert compatible(found.outside, found.draws, scenario.delta), found


@by_name(BLIND)
def test_scores_that_know_nothing_prove_nothing_for_any_kind_of_rule(scenario):
    assert compatible(scenario.proven(scenario.draws), scenario.draws, scenario.delta)


@pytest.mark.parametrize("name", WATCHED)
def test_a_monitor_seldom_ever_calls_a_promise_that_just_holds_broken(name):
    scenario, labels = WATCHED[name]
    broken, _ = watch(scenario, 250, -WITHIN, labels)
    assert compatible(broken, 250, scenario.delta), broken


@pytest.mark.parametrize("name", WATCHED)
def test_a_monitor_seldom_ever_certifies_a_promise_just_broken_again(name):
    scenario, labels = WATCHED[name]
    _, again = watch(scenario, 250, EDGE, labels)
    assert compatible(again, 250, scenario.delta), again


@pytest.mark.parametrize("name", WATCHED)
def test_a_monitor_notices_a_promise_clearly_broken(name):
    scenario, labels = WATCHED[name]
    beyond = min(0.25, 0.95 * scenario.distance)
    broken, again = watch(scenario, 20, beyond, labels, (*BATCHES, 2560))
    assert (broken, again) == (20, 0)


def test_certifying_a_rule_on_the_rows_it_was_tuned_on_is_false_far_too_often():
    """The same simulation, failing as it should: so it can fail."""
    same, fresh = certify_tuned_rows(150)
    assert same > 3 * 0.05 * 150
    assert not compatible(same, 150, 0.05)
    assert compatible(fresh, 150, 0.05)
