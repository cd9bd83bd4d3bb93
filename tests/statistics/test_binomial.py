"""Binomial tests and bounds equal scipy, statsmodels, MAPIE and sums of the mass function."""

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, binomtest

from setpoint import DataError
from setpoint.statistics import binomial as bounds
from setpoint.statistics.binomial import (
    interval,
    least_proof,
    lower,
    p_above,
    p_below,
    power,
    upper,
)

COUNTS = [
    *((k, n) for n in (1, 2, 3, 7, 10, 59, 100) for k in range(0, n + 1, max(1, n // 7))),
    *((n, n) for n in (59, 100, 299, 1000)),
    *((k, 1000) for k in (1, 17, 500, 983, 999)),
    *((k, 10**6) for k in (0, 1, 5, 1000, 499_000, 500_000, 900_000, 999_995, 999_999, 10**6)),
]
RATES = [0.0, 1e-12, 1e-6, 1e-3, 0.05, 0.3, 0.5, 0.8, 0.95, 0.999, 1 - 1e-6, 1 - 1e-12, 1.0]
LEVELS = [1e-9, 1e-4, 0.01, 0.05, 0.1, 0.25, 0.5]

counts = st.integers(1, 60).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
rates = st.integers(0, 200).map(lambda i: i / 200)
deltas = st.sampled_from(LEVELS)


def tail(k, n, p):
    """P(Bin(n, p) >= k) in exact fractions."""
    p = Fraction(p)
    return sum(Fraction(math.comb(n, j)) * p**j * (1 - p) ** (n - j) for j in range(k, n + 1))


# --- p-values ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("k", "n"), COUNTS)
def test_p_values_equal_binomtest(k, n):
    for p in RATES:
        above = binomtest(k, n, p, alternative="greater").pvalue
        below = binomtest(k, n, p, alternative="less").pvalue
        assert p_above(k, n, p) == pytest.approx(above, rel=1e-9, abs=1e-10)
        assert p_below(k, n, p) == pytest.approx(below, rel=1e-9, abs=1e-10)


@settings(max_examples=150, deadline=None)
@given(counts, rates)
def test_p_values_equal_exact_fractions(count, p):
    k, n = count
    assert p_above(k, n, p) == pytest.approx(float(tail(k, n, p)), rel=1e-11, abs=1e-300)
    below = 1 - tail(k + 1, n, p)
    assert p_below(k, n, p) == pytest.approx(float(below), rel=1e-11, abs=1e-15)


def test_p_values_equal_those_of_mapie():
    """MAPIE tests "risk > alpha" by P(Bin(n, alpha) <= wrong): p_below of the wrong rows."""
    methods = pytest.importorskip("mapie.risk_control.methods")
    compared = 0
    for n in (1, 5, 20, 59, 100, 299, 1000):
        for wrong in {0, 1, n // 10, n // 3, n // 2, n - 1}:
            risk = wrong / n
            if math.ceil(n * risk) != wrong:
                continue  # MAPIE rounds n * risk up, and the product may exceed the count
            for alpha in (0.01, 0.05, 0.2, 0.5, 0.9):
                theirs = methods.compute_hoeffding_bentkus_p_value(
                    np.array([risk]), n, alpha, binary=True
                )[0, 0]
                assert p_below(wrong, n, alpha) == pytest.approx(theirs, rel=1e-10)
                assert p_above(n - wrong, n, 1 - alpha) == pytest.approx(theirs, rel=1e-9)
                compared += 1
    assert compared > 60


@settings(max_examples=120, deadline=None)
@given(counts, rates)
def test_a_p_value_is_small_where_the_evidence_is_strong(count, p):
    k, n = count
    assert 0 <= p_above(k, n, p) <= 1
    slack = 1e-12
    if k < n:
        assert p_above(k + 1, n, p) <= p_above(k, n, p) + slack  # more rows speak for it
        assert p_below(k + 1, n, p) >= p_below(k, n, p) - slack
    assert p_above(k, n + 1, p) >= p_above(k, n, p) - slack  # one more row that does not
    assert p_above(k + 1, n + 1, p) <= p_above(k, n, p) + slack  # one more that does
    higher = min(1.0, p + 0.1)
    assert p_above(k, n, higher) >= p_above(k, n, p) - slack
    assert p_below(k, n, higher) <= p_below(k, n, p) + slack
    assert p_below(k, n, p) == pytest.approx(p_above(n - k, n, 1 - p), abs=1e-12)
    both = p_above(k, n, p) + p_below(k, n, p)
    assert both == pytest.approx(1 + binom.pmf(k, n, p), abs=1e-11)


# --- bounds --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("k", "n"), COUNTS)
def test_bounds_equal_binomtest_and_statsmodels(k, n):
    proportion = pytest.importorskip("statsmodels.stats.proportion")
    for confidence in (0.5, 0.8, 0.9, 0.95, 0.99, 0.9999):
        delta = 1 - confidence
        two = binomtest(k, n).proportion_ci(confidence, "exact")
        low, high = interval(k, n, confidence)
        assert (low, high) == pytest.approx((two.low, two.high), rel=1e-9, abs=1e-10)
        beta = proportion.proportion_confint(k, n, alpha=delta, method="beta")
        assert (low, high) == pytest.approx(beta, rel=1e-9, abs=1e-10)
        one = binomtest(k, n, alternative="greater").proportion_ci(confidence, "exact")
        assert lower(k, n, delta) == pytest.approx(one.low, rel=1e-9, abs=1e-10)
        one = binomtest(k, n, alternative="less").proportion_ci(confidence, "exact")
        assert upper(k, n, delta) == pytest.approx(one.high, rel=1e-9, abs=1e-10)


def test_closed_forms():
    for n in (1, 10, 59, 299, 2995, 10**6):
        for delta in LEVELS:
            assert lower(n, n, delta) == pytest.approx(delta ** (1 / n), rel=1e-12)
            assert upper(0, n, delta) == pytest.approx(-math.expm1(math.log(delta) / n), rel=1e-9)
            assert lower(0, n, delta) == 0
            assert upper(n, n, delta) == 1
            if delta < 0.5:
                once = -math.expm1(math.log1p(-delta) / n)  # 1 - (1 - p)^n = delta
                assert lower(1, n, delta) == pytest.approx(once, rel=1e-9)


def test_the_smallest_certificates():
    """No error in 59, 299 and 2995 rows prove rates of 5%, 1% and 0.1% at 95%; one row less not."""
    for n, rate in ((59, 0.05), (299, 0.01), (2995, 0.001)):
        assert upper(0, n, 0.05) <= rate < upper(0, n - 1, 0.05)
        assert least_proof(n, 1 - rate, 0.05) == n
        assert least_proof(n - 1, 1 - rate, 0.05) == n  # one more than there are: none


@settings(max_examples=120, deadline=None)
@given(counts, deltas)
def test_bounds_are_dual_to_the_tests(count, delta):
    k, n = count
    low, high = lower(k, n, delta), upper(k, n, delta)
    assert 0 <= low <= high <= 1 or delta >= 0.5
    p = np.linspace(0.005, 0.995, 100)
    apart = (abs(p - low) > 1e-9) & (abs(p - high) > 1e-9)
    assert (((p_above(k, n, p) <= delta) == (low >= p)) | ~apart).all()
    assert (((p_below(k, n, p) <= delta) == (high <= p)) | ~apart).all()
    if k > 0:
        assert p_above(k, n, low) == pytest.approx(delta, rel=1e-7)
    if k < n:
        assert p_below(k, n, high) == pytest.approx(delta, rel=1e-7)


@settings(max_examples=120, deadline=None)
@given(counts, deltas)
def test_bounds_are_monotone(count, delta):
    k, n = count
    slack = 1e-12
    if k < n:
        assert lower(k + 1, n, delta) >= lower(k, n, delta) - slack
        assert upper(k + 1, n, delta) >= upper(k, n, delta) - slack
    assert lower(k, n + 1, delta) <= lower(k, n, delta) + slack
    assert lower(k, n, delta / 2) <= lower(k, n, delta) + slack
    assert upper(k, n, delta / 2) >= upper(k, n, delta) - slack
    assert lower(k, n, delta) == pytest.approx(1 - upper(n - k, n, delta), abs=1e-12)


def test_bounds_hold_as_often_as_they_promise():
    """The exact share of draws in which a bound is wrong, for every n up to 40."""
    for n in range(1, 41):
        k = np.arange(n + 1)
        for delta in (0.01, 0.05, 0.25):
            low, high = lower(k, n, delta), upper(k, n, delta)
            for p in np.linspace(0.01, 0.99, 29):
                mass = binom.pmf(k, n, p)
                assert mass[low > p].sum() <= delta + 1e-12
                assert mass[high < p].sum() <= delta + 1e-12


def test_no_rows_bound_nothing():
    assert lower(0, 0, 0.05) == 0
    assert upper(0, 0, 0.05) == 1
    assert p_above(0, 0, 0.5) == 1
    assert p_below(0, 0, 0.5) == 1


# --- proof and power -----------------------------------------------------------------------------


@settings(max_examples=120, deadline=None)
@given(st.integers(1, 60), rates, deltas)
def test_the_least_proof_is_the_least(n, floor, delta):
    k = np.arange(n + 1)
    proof = p_above(k, n, floor) <= delta
    least = int(k[proof][0]) if proof.any() else n + 1
    assert least_proof(n, floor, delta) == least
    if least <= n:
        assert lower(least, n, delta) >= floor - 1e-12
    if 0 < least <= n + 1:
        assert lower(least - 1, n, delta) < floor + 1e-12


@settings(max_examples=100, deadline=None)
@given(st.integers(1, 60), rates, rates, deltas)
def test_power_equals_a_sum_of_the_mass_function(n, rate, floor, delta):
    low, above, proves = Fraction(floor), Fraction(0), []
    for k in range(n, -1, -1):
        above += math.comb(n, k) * low**k * (1 - low) ** (n - k)
        if above > Fraction(delta):
            break
        proves.append(k)
    brute = math.fsum(math.comb(n, k) * rate**k * (1 - rate) ** (n - k) for k in proves)
    assert power(n, rate, floor, delta) == pytest.approx(brute, abs=1e-10)
    if rate <= floor and 0 < floor:
        assert power(n, rate, floor, delta) <= delta + 1e-12


def test_power_of_many_rows():
    for n, rate, floor in ((10**5, 0.803, 0.8), (10**6, 0.5005, 0.5), (10**6, 1 - 1e-6, 1 - 1e-5)):
        k = int(binom.isf(0.05, n, floor)) + 1  # P(X >= k) = sf(k - 1)
        while binom.sf(k - 1, n, floor) > 0.05:
            k += 1
        while binom.sf(k - 2, n, floor) <= 0.05:
            k -= 1
        assert least_proof(n, floor, 0.05) == k
        assert power(n, rate, floor, 0.05) == pytest.approx(binom.sf(k - 1, n, rate), rel=1e-8)


def test_the_functions_take_arrays():
    n = np.array([10, 20, 59])
    assert np.shape(power(n, 0.9, 0.5, 0.05)) == (3,)
    for i, m in enumerate(n.tolist()):
        assert power(n, 0.9, 0.5, 0.05)[i] == power(m, 0.9, 0.5, 0.05)
        assert least_proof(n, 0.5, 0.05)[i] == least_proof(m, 0.5, 0.05)
        assert p_above(n - 1, n, 0.5)[i] == p_above(m - 1, m, 0.5)
        assert lower(n - 1, n, 0.05)[i] == lower(m - 1, m, 0.05)


@pytest.mark.parametrize("wrong", [1.0, 0.49, 0, -1, 95, float("nan"), "0.95", None, True])
def test_a_confidence_that_is_none_is_refused(wrong):
    with pytest.raises(DataError, match="confidence is a number"):
        bounds.check_confidence(wrong)


def test_a_percentage_is_understood_and_refused():
    with pytest.raises(DataError, match=r"did you mean 0\.95\?"):
        interval(5, 10, 95)
