"""Prices by control: they end where the known multiplier is, and nothing winds up."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import setpoint as sp
from setpoint.methods.confusion.confusion_cells import Cells
from setpoint.methods.confusion.goal_over_cells import Lowered
from setpoint.methods.guard.operating_point import LIMIT
from setpoint.methods.guard.price_control import (
    KAPPA,
    MARGIN,
    MOST,
    TAU,
    ObservedConstraints,
    controlled,
    observed_constraints,
)

GROUPS = sp.Task.binary(groups={"g": ["a", "b"]})


def seen(violation, *, error=0.0, unit=1.0, empty=False, equal=False):
    return ObservedConstraints(*(np.array([x]) for x in (violation, error, unit, empty, equal)))


@pytest.mark.parametrize(("bound", "unit"), [(0.4, 1.0), (0.7, 1.0), (0.4, 0.2), (0.2, 1.5)])
@pytest.mark.parametrize("pace", [0.05, 0.1, 0.2])
def test_it_ends_at_the_multiplier_of_a_known_trade_off(bound, unit, pace):
    """Minimise (x − 1)² / 2 with x <= b: x(λ) = 1 − λ, so λ = 1 − b; the model lags behind."""
    x, integral, price = 1.0, np.ones(1), 0.0
    for _ in range(1_500):
        x += pace * (1 - price - x)
        integral, prices = controlled(integral, seen(x - bound, unit=unit), 0.1)
        price = float(prices[0])
    assert price == pytest.approx(1 - bound, abs=0.02)
    assert x == pytest.approx(bound, abs=0.02)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_an_equation_has_a_price_of_either_sign(sign):
    """Minimise (x − s)² / 2 with x = 0: λ = s."""
    x, integral, price = sign, np.zeros(1), 0.0
    for _ in range(1_500):
        x += 0.1 * (sign - price - x)
        integral, prices = controlled(integral, seen(x, equal=True), 0.1)
        price = float(prices[0])
    assert price == pytest.approx(sign, abs=0.02)


def test_a_slack_constraint_costs_nothing():
    integral = np.ones(1)
    for _ in range(40):
        integral, prices = controlled(integral, seen(-0.3), 1 / 16)
    assert integral == 0
    assert prices == 0


def test_nothing_winds_up_while_a_constraint_cannot_hold():
    """After a phase of any length the price is back within a few renewals of the window."""
    times = []
    for phase in (200, 5_000):
        integral, count = np.ones(1), 0
        for _ in range(phase):
            integral, prices = controlled(integral, seen(0.5), 1 / 16)
        assert prices == MOST
        while prices > 0.5:
            integral, prices = controlled(integral, seen(-0.2), 1 / 16)
            count += 1
        times.append(count)
    assert times[0] == times[1] <= 4 * 16


def test_an_empty_rate_gets_cheaper():
    integral, first = controlled(np.array([5.0]), seen(0.3), 0.1)
    integral, later = controlled(integral, seen(0.3, empty=True), 0.1)
    assert later < first
    assert integral < 5 + 0.1 * 6


def test_a_constraint_is_asked_to_hold_with_a_margin():
    assert seen(-0.01, error=0.02).signals == pytest.approx((0.02 * MARGIN - 0.01) / (TAU + 0.02))
    assert seen(-0.05, error=0.02).signals < 0


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.tuples(st.floats(-1, 1), st.floats(0, 0.3), st.booleans()), min_size=1),
    st.floats(1e-3, 1e3),
    st.booleans(),
)
def test_prices_stay_in_their_range(moments, unit, equal):
    integral = np.ones(1)
    for violation, error, empty in moments:
        now = seen(violation, error=error, unit=unit, empty=empty, equal=equal)
        integral, price = controlled(integral, now, 1.0)
        most = min(MOST * unit, LIMIT) * (1 + 1e-9)
        assert (0 if not equal else -most) <= price <= most
        assert abs(price - unit * integral) <= unit * KAPPA * (1 + 1e-9) + 1e-12


def test_the_error_of_a_gap_is_that_of_two_shares():
    """√(p q / n) of each group, added in squares; of a gap of positive rates."""
    goal = sp.Goal.parse('maximize accuracy subject to gap(positive_rate, by="g") <= 0.05')
    rng = np.random.default_rng(0)
    counts = rng.integers(20, 400, (2, 2, 2)).astype(float)
    n = counts.sum()
    judge = Lowered(goal.lowered, Cells(GROUPS))
    now = observed_constraints(judge, counts.ravel() / n, n)
    sizes = counts.sum((1, 2))
    p = counts[:, :, 1].sum(1) / sizes
    assert now.violations[0] == pytest.approx(abs(p[0] - p[1]) - 0.05)
    assert now.errors[0] == pytest.approx(np.sqrt((p * (1 - p) / sizes).sum()), rel=1e-6)
    a = (counts[:, 0, 0] + counts[:, 1, 1]).sum() / n
    assert now.units[0] == pytest.approx(np.sqrt(a * (1 - a) / n) / now.errors[0], rel=1e-6)
    assert not now.empty[0]


def test_a_rate_without_rows_is_empty():
    task = sp.Task.multiclass(["a", "b", "c"])
    goal = sp.Goal.parse('maximize accuracy subject to precision.of("c") >= 0.8')
    judge = Lowered(goal.lowered, Cells(task))
    table = np.array([[0.3, 0.1, 0.0], [0.1, 0.3, 0.0], [0.1, 0.1, 0.0]])
    now = observed_constraints(judge, table.ravel(), 100)
    assert now.empty[0]
    assert now.signals == -1
