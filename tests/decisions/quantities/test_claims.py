"""Claims, read before there are rows: what is pure, and the same figures as on decided rows."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from setpoint.decisions.quantities.from_expression import claims_of
from setpoint.expressions import Columns, Population, Sweep, Task
from setpoint.goals import Goal

SEXES = Task.binary(groups={"sex": ["f", "m"]})
WORST = 'worst(precision, by="sex") >= 0.5'
GAP = 'gap(recall, by="sex") <= 0.2'


def claims(constraints, population=None):
    goal = Goal.parse(f"maximize recall subject to {constraints}").lowered
    return claims_of(goal, population or Population(SEXES))


@pytest.mark.parametrize(
    ("constraint", "pure"),
    [
        ("precision >= 0.5", 1),
        ("f1 >= 0.5", 1),
        ("jaccard >= 0.5", 1),
        ("0.5 * precision <= 0.3", 1),
        (WORST, 2),
        ('worst(recall, by="sex") <= 0.5', 0),  # that some rate is low is another claim
        (GAP, 0),
        ("youden >= 0.2", 0),
        ("cost(fp=1, fn=5) <= 0.2", 0),
        ("mcc >= 0.2", 0),
        ("precision == 0.5", 0),
        ("tp >= 3", 0),
    ],
)
def test_pure_rates_follow_from_the_goal(constraint, pure):
    (claim,) = claims(constraint)
    assert len(claim.pure_rates) == pure
    assert claim.claim.exact is (constraint != "tp >= 3")  # a count says nothing of other rows


@pytest.mark.parametrize(
    "population",
    [
        Population(SEXES, weighted=True),
        Population(SEXES, dependent=True),
    ],
)
def test_what_proves_nothing_is_known_before_rows(population):
    (claim,) = claims("precision >= 0.5", population)
    assert not claim.claim.exact
    assert claim.parts == ()


def test_weights_with_a_bound_are_bets():
    (claim,) = claims("precision >= 0.5", Population(SEXES, weighted=True, weight_bound=2.0))
    assert claim.claim.exact
    assert claim.pure_rates == ()
    assert [part.reach for part in claim.parts] == [2.0]


def test_a_group_nobody_has_declared_is_named():
    with pytest.raises(Exception, match='no values of the column "sex"'):
        claims(WORST, Population(Task.binary()))


@settings(deadline=None)
@given(
    st.lists(st.tuples(st.booleans(), st.integers(0, 5), st.booleans()), min_size=1, max_size=40)
)
def test_along_a_sweep_as_on_decided_rows(rows):
    actual, score, women = (np.array(column) for column in zip(*rows, strict=True))
    groups = {"sex": np.where(women, "f", "m")}
    columns = Columns(SEXES, actual, scores=score / 5, groups=groups)
    sweep = Sweep(columns)
    places = np.arange(sweep.size)
    for claim in claims(f"precision >= 0.5, f1 >= 0.2, recall >= 0.1, fpr <= 0.5, {WORST}"):
        for rate in claim.pure_rates:
            k, n = rate.along(sweep, places)
            for place, threshold in enumerate(sweep.thresholds):
                decided = replace(columns, decided=columns.scores >= threshold)
                on_rows = rate.on(decided)
                assert (on_rows.k, on_rows.n) == pytest.approx((k[place], n[place]), abs=1e-9)
