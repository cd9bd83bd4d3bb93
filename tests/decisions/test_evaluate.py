"""A rule on other rows: the same figures as the metrics of its decisions."""

import numpy as np
import pytest
from tests.rules.test_decision_rule import LS, RULES, C, G, L, M, Q, S, Y

import setpoint as sp

ROWS = {
    "threshold": (Y, S, {}),
    "infeasible": (Y, S, {}),
    "nothing": (Y, S, {}),
    "per-group": (Y, S, {"group": G}),
    "per-label": (L, LS, {}),
    "offsets": (np.array(list("xyz"))[C], M, {}),
    "argmax": (C, M, {}),
    "top-k": (Y, S, {}),
    "queries": (Y, S, {"query": Q}),
}


@pytest.mark.parametrize("name", RULES)
def test_on_its_own_rows_a_rule_reads_as_when_it_was_tuned(name):
    y, scores, more = ROWS[name]
    found = sp.evaluate(RULES[name], y, scores, **more)
    assert found.value == pytest.approx(RULES[name].value)
    assert found.holds == (RULES[name].feasible or not RULES[name].held)
    for kept, held in zip(found.kept, RULES[name].held, strict=True):
        assert kept.value == pytest.approx(held.value)
        assert kept.holds == held.holds


def test_on_other_rows():
    rule = sp.tune("maximize recall subject to precision >= 0.7", Y[:150], S[:150])
    found = sp.evaluate(rule, Y[150:], S[150:], sample_weight=np.arange(1, 151))
    decided = rule.decide(S[150:])
    assert found.value == pytest.approx(sp.recall(Y[150:], decided, np.arange(1, 151)))
    assert found.kept[0].value == pytest.approx(sp.precision(Y[150:], decided, np.arange(1, 151)))
    assert found.kept[0].holds == (found.kept[0].value >= 0.7)
    assert ("BROKEN" in str(found)) == (not found.holds)


def test_a_group_that_the_goal_speaks_of_is_passed_and_the_rule_does_not_look_at_it():
    goal = 'maximize recall subject to gap(recall, by="group") <= 0.5'
    rule = sp.tune(goal, Y, S, group=G)
    assert sp.evaluate(rule, Y, S, group=G).kept[0].value == pytest.approx(rule.held[0].value)
    with pytest.raises(sp.DataError, match="group"):
        sp.evaluate(rule, Y, S)
