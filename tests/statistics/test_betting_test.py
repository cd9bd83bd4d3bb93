"""Bets equal a plain loop, and no law of mean 0 is beaten: every sequence is counted."""

import math
from itertools import pairwise, product

import mpmath
import numpy as np
import pytest

from setpoint.statistics import betting_process as wealth
from setpoint.statistics import betting_test as betting
from setpoint.statistics.betting_test import BOLD, BoundedRows, wins

RANDOM = np.random.default_rng(0)

# laws of (N, D) and a bound c at which N - c D has mean 0: name -> pairs, probabilities, c, rows
LAWS = {
    "a coin": ([(1, 1), (0, 1)], (0.5, 0.5), 0.5, 8),
    "a rare loss": ([(1, 1), (0, 1)], (0.9, 0.1), 0.9, 8),
    "a rare gain": ([(1, 1), (0, 1)], (0.1, 0.9), 0.1, 8),
    "f1": ([(2, 2), (0, 1)], (0.5, 0.5), 2 / 3, 8),
    "f_beta(2)": ([(5, 5), (0, 1), (0, 4)], (0.4, 0.4, 0.2), 5 / 8, 6),
    "a cost": ([(0, 1), (1, 1), (10, 1)], (0.7, 0.2, 0.1), 1.2, 6),
}


def z_of(pairs, c, sign):
    pairs = np.asarray(pairs, float)
    return sign * (pairs[:, 0] - c * pairs[:, 1])


def test_the_laws_have_mean_zero():
    for pairs, probabilities, c, _ in LAWS.values():
        assert math.fsum(probabilities) == pytest.approx(1, abs=1e-15)
        assert np.dot(probabilities, z_of(pairs, c, 1)) == pytest.approx(0, abs=1e-15)


# --- one horizon ---------------------------------------------------------------------------------


def plain(z, loss, delta):
    """The wealth after each row, by the formula of the module, one row at a time."""
    w, squares, out = 1.0, 0.25 * loss**2, []
    for t, x in enumerate(z):
        lacking = max(math.log(1 / delta) - math.log(w), 0.0)
        second_moment = squares / (t + 1)
        stake = min(math.sqrt(2 * lacking / (second_moment * (len(z) - t))), BOLD / loss)
        assert stake * loss < 1
        w *= 1 + stake * x
        squares += x * x
        out.append(w)
    return out


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("sign", [1, -1])
def test_wins_equal_a_plain_loop(name, sign):
    pairs, probabilities, c, _ = LAWS[name]
    pairs = np.asarray(pairs, float)
    points = c + sign * np.linspace(-0.3, 0.1, 41) * c  # easy to prove, down to false
    points = points[(z_of(pairs, 1, 1).max() > 0) | (points < 1)]  # a rate has no bound beyond 1
    agreed = {True: 0, False: 0}
    for seed in range(4):
        random = np.random.default_rng(seed)
        which = random.choice(len(pairs), 120, p=probabilities)
        for delta in (0.05, 0.3):
            loss = np.array([max(-z_of(pairs, x, sign).min(), 0.0) for x in points])
            said = wins(BoundedRows.counted(pairs, which), points, sign, loss, delta)
            for x, most, won in zip(points, loss, said, strict=True):
                reached = max(plain(z_of(pairs, x, sign)[which], most, delta))
                if abs(reached * delta - 1) > 1e-9:
                    assert won == (reached >= 1 / delta)
                    agreed[bool(won)] += 1
    assert min(agreed.values()) > 5


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("name", LAWS)
def test_no_law_of_mean_zero_is_beaten(name, sign):
    """P(wealth ever reaches 1/δ) <= δ, summed over every sequence there is."""
    pairs, probabilities, c, n = LAWS[name]
    pairs = np.asarray(pairs, float)
    loss = np.array([-z_of(pairs, c, sign).min()])
    deltas = (0.05, 0.2, 0.5)
    won = dict.fromkeys(deltas, 0.0)
    final = dict.fromkeys(deltas, 0.0)
    for sequence in product(range(len(pairs)), repeat=n):
        which = np.array(sequence)
        mass = math.prod(probabilities[i] for i in sequence)
        rows = BoundedRows.counted(pairs, which)
        for delta in deltas:
            won[delta] += mass * bool(wins(rows, np.array([c]), sign, loss, delta)[0])
            final[delta] += mass * plain(z_of(pairs, c, sign)[which], loss[0], delta)[-1]
    for delta in deltas:
        assert won[delta] <= delta + 1e-12
        assert final[delta] == pytest.approx(1, abs=1e-12)  # a martingale, by the same formula


def test_weighted_rows_of_mean_zero_are_not_beaten():
    """Weights up to a bound that no row reaches: the most that can be lost is told, not seen."""
    rows = [(0.5, 0.5), (0.0, 0.5), (1.0, 1.0), (0.0, 1.0)]  # half right, weights ½ and 1
    loss, delta, total = np.array([2 * 0.5]), 0.3, 0.0  # weight_bound 2
    for sequence in product(range(4), repeat=6):
        pairs = np.array([rows[i] for i in sequence])
        total += 0.25**6 * bool(wins(BoundedRows.single(pairs), np.array([0.5]), 1, loss, delta)[0])
    assert 0 < total <= delta


@pytest.mark.parametrize("n", [1, 2, 50, 399, 400])
def test_counted_rows_equal_single_rows(n):
    pairs = np.asarray(LAWS["f_beta(2)"][0], float)
    points = np.linspace(0.05, 0.95, 60)
    for sign in (1, -1):
        loss = np.array([max(-z_of(pairs, x, sign).min(), 0.0) for x in points])
        for _ in range(5):
            which = RANDOM.choice(3, n, p=(0.6, 0.3, 0.1))
            counted, single = BoundedRows.counted(pairs, which), BoundedRows.single(pairs[which])
            assert counted.size == single.size == n
            assert counted.edges.tolist() == list(range(n + 1))  # as many blocks as rows
            for delta in (0.05, 0.25):
                a = wins(counted, points, sign, loss, delta)
                assert a.tolist() == wins(single, points, sign, loss, delta).tolist()


def test_within_a_block_the_order_does_not_matter():
    n = 3000
    pairs = np.asarray(LAWS["f_beta(2)"][0], float)
    which = RANDOM.choice(3, n, p=(0.6, 0.3, 0.1))
    rows = BoundedRows.counted(pairs, which)
    assert rows.edges[0] == 0
    assert rows.edges[-1] == n
    assert len(rows.edges) == betting.BLOCKS + 1
    mixed = which.copy()
    for start, stop in pairwise(rows.edges):
        mixed[start:stop] = RANDOM.permutation(mixed[start:stop])
    points = np.linspace(0.5, 0.95, 200)
    loss = np.array([-z_of(pairs, x, 1).min() for x in points])
    told = wins(rows, points, 1, loss, 0.05)
    assert 0 < told.sum() < 200
    for other in (
        BoundedRows.counted(pairs, mixed),
        BoundedRows.single(pairs[which]),
        BoundedRows.single(pairs[mixed]),
    ):
        assert wins(other, points, 1, loss, 0.05).tolist() == told.tolist()


def test_many_rows_prove_what_is_true_and_nothing_else():
    random = np.random.default_rng(5)
    pairs = np.array([(1.0, 1.0), (0.0, 1.0)])
    rows = BoundedRows.counted(pairs, (random.random(20_000) > 0.7).astype(int))
    points = np.array([0.5, 0.65, 0.68, 0.7, 0.72, 0.9])
    assert wins(rows, points, 1, points, 0.05).tolist() == [True, True, True, False, False, False]
    told = wins(rows, points, -1, 1 - points, 0.05).tolist()
    assert told == [False, False, False, False, True, True]


def test_a_bound_that_cannot_be_lost():
    """B = 0: every row is at or above the bound."""
    pairs = np.array([(1.0, 1.0), (2.0, 1.0)])
    rows = BoundedRows.counted(pairs, np.array([1] * 30))
    assert wins(rows, np.array([1.0]), 1, np.array([0.0]), 0.05)[0]
    none = BoundedRows.counted(pairs, np.array([0] * 30))  # all rows at the bound: no evidence
    assert not wins(none, np.array([1.0]), 1, np.array([0.0]), 0.05)[0]


def test_no_rows_prove_nothing():
    none = np.zeros(0, int)
    for rows in (
        BoundedRows.counted(np.array([(1.0, 1.0)]), none),
        BoundedRows.single(np.zeros((0, 2))),
    ):
        assert rows.size == 0
        assert not wins(rows, np.array([0.5]), 1, np.array([0.5]), 0.05)[0]


# --- for ever ------------------------------------------------------------------------------------


def test_start_weights_follow_their_formula():
    with mpmath.workdps(30):
        for s in (1, 2, 3, 10, 1000, 10**6):
            n = mpmath.mpf(s + 1)
            inner = (1 - wealth.FIRST) / (mpmath.mpf("2.1097428") * n * mpmath.log(n) ** 2)
            expected = float(inner + (wealth.FIRST if s == 1 else 0))
            assert wealth.start_weights(s - 1, 1)[0] == pytest.approx(expected, rel=1e-6)
    whole = wealth.start_weights(0, 1000)
    parts = [
        wealth.start_weights(0, 1),
        wealth.start_weights(1, 499),
        wealth.start_weights(500, 500),
    ]
    assert np.concatenate(parts).tolist() == whole.tolist()
    assert (whole > 0).all()
    assert (np.diff(whole) < 0).all()
    assert wealth.start_weights(0, 0).size == 0


def test_start_weights_sum_to_at_most_one():
    """With f(x) = 1 / (x ln² x), convex: ∫_{N+1} f + f(N+1)/2 <= Σ_{n>N} f(n) <= ∫_{N+½} f."""
    count = 10**6
    weights = wealth.start_weights(0, count)
    n = count + 1.0  # the last weight is that of f(n)
    scale = weights[-1] * n * math.log(n) ** 2
    rest = scale / math.log(n + 0.5)
    least = scale * (1 / math.log(n + 1) + 0.5 / ((n + 1) * math.log(n + 1) ** 2))
    assert rest - least < 1e-12
    total = math.fsum(weights.tolist()) + rest
    assert total == pytest.approx(1, abs=1e-6)  # nothing is wasted either
    assert total <= 1


def grown_plainly(z, loss):
    """M_t = (M_{t-1} + w_t)(1 + λ z_t / B) for each stake, one row at a time."""
    out, m = [], [0.0] * wealth.STAKES.size
    for t, x in enumerate(z):
        w = wealth.start_weights(t, 1)[0]
        m = [(a + w) * (1 + s * x / loss) for a, s in zip(m, wealth.STAKES, strict=True)]
        out.append(m)
    return np.array(out)


def held_plainly(z, loss):
    out, m = [], [1.0] * wealth.STAKES.size
    for x in z:
        m = [a * (1 + s * x / loss) for a, s in zip(m, wealth.STAKES, strict=True)]
        out.append(m)
    return np.array(out)


NEVER = np.full(wealth.STAKES.size, -np.inf)
ONE = np.zeros(wealth.STAKES.size)


def test_wealth_equals_a_plain_loop():
    for seed in range(5):
        random = np.random.default_rng(seed)
        z = random.choice([-0.5, 0.0, 0.2, 1.3], 200, p=(0.3, 0.2, 0.3, 0.2))
        found = wealth.anytime_wealth(NEVER, z, 0.5, 0)
        np.testing.assert_allclose(np.exp(found), grown_plainly(z, 0.5), rtol=1e-9)
        mean = np.log(grown_plainly(z, 0.5).mean(1))
        np.testing.assert_allclose(wealth.mean_wealth(found), mean, atol=1e-9)
        found = wealth.wealth_of_one_bet(ONE, z, 0.5)
        np.testing.assert_allclose(np.exp(found), held_plainly(z, 0.5), rtol=1e-9)


def test_several_updates_equal_one():
    random = np.random.default_rng(1)
    z = random.choice([-1.0, 0.4], 5000, p=(0.2, 0.8))
    z[3000:] *= -1
    z = np.maximum(z, -1.0)
    for bets, before in ((wealth.anytime_wealth, NEVER), (wealth.wealth_of_one_bet, ONE)):
        more = (0,) if bets is wealth.anytime_wealth else ()
        whole = bets(before, z, 1.0, *more)
        for cuts in ([1], [1, 2, 3], [2500], [10, 3000, 4999]):
            state, rows = before, []
            for start, stop in pairwise([0, *cuts, z.size]):
                more = (start,) if bets is wealth.anytime_wealth else ()
                part = bets(state, z[start:stop], 1.0, *more)
                state = part[-1]
                rows.append(part)
            np.testing.assert_allclose(np.concatenate(rows), whole, rtol=1e-9, atol=1e-9)


def test_a_long_decay_and_a_flood_stay_finite():
    z = np.r_[np.full(200_000, -1.0), np.full(100_000, 1.0)]
    found = wealth.anytime_wealth(NEVER, z, 1.0, 0)
    assert np.isfinite(found).all()
    assert np.isfinite(wealth.mean_wealth(found)).all()
    # the money that starts with row 200,001 alone would grow like this
    start = math.log(wealth.start_weights(200_000, 1)[0]) + 10 * math.log1p(wealth.STAKES[-1])
    assert found[200_009, -1] >= start - 1e-6


FOREVER = {
    "a coin": ((1.0, -1.0), (0.5, 0.5), 10),
    "a rare gain": ((0.9, -0.1), (0.1, 0.9), 10),
    "a rare loss": ((0.1, -0.9), (0.9, 0.1), 10),
    "three": ((2.0, 0.0, -1.0), (0.25, 0.25, 0.5), 7),
}


@pytest.mark.parametrize("name", FOREVER)
def test_wealth_for_ever_is_a_martingale_that_seldom_rises(name):
    values, probabilities, n = FOREVER[name]
    values = np.array(values)
    assert np.dot(values, probabilities) == pytest.approx(0, abs=1e-15)
    loss = -values.min()
    levels = np.array([1.2, 1.5, 2.0, 5.0, 20.0])
    expected, held = np.zeros(n), np.zeros(n)
    reached = np.zeros((2, levels.size))
    for sequence in product(range(values.size), repeat=n):
        mass = math.prod(probabilities[i] for i in sequence)
        z = values[np.array(sequence)]
        e = np.exp(wealth.mean_wealth(wealth.anytime_wealth(NEVER, z, loss, 0)))
        h = np.exp(wealth.mean_wealth(wealth.wealth_of_one_bet(ONE, z, loss)))
        expected += mass * e
        held += mass * h
        reached += mass * np.array([e.max() >= levels, h.max() >= levels])
    started = np.cumsum(wealth.start_weights(0, n))
    assert expected == pytest.approx(started, abs=1e-10)
    assert held == pytest.approx(np.ones(n), abs=1e-10)
    assert (reached <= 1 / levels + 1e-9).all()
    assert reached[1].max() > 0
