"""The tie: its closed forms, where it is zero, its slopes, and what it leaves when s is gone."""

import math

import numpy as np
import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st

from setpoint.methods.exact.step_tie import apart, exceeds, falls_short, tie

GAP = 1e-6  #: of a and t, of s and its ends: far beyond rounding
inner = st.floats(0.001, 0.999)
unit = st.one_of(st.sampled_from([0.0, 0.5, 1.0]), st.floats(0, 1))
score = st.one_of(inner, st.sampled_from([0.0, 1.0]), st.floats(-3, 3))  # probabilities, or logits
level = st.one_of(inner, st.just(0.5), st.floats(-2, 2))
price = st.floats(0.01, 5)


@st.composite
def placed(draw):
    """(a, s, t), with a = t one time in some."""
    t = draw(level)
    return draw(st.one_of(score, st.just(t))), draw(unit), t


def at(function, a, s, t):
    """One value, in double precision."""
    a, s, t = (torch.tensor(x, dtype=torch.float64) for x in (a, s, t))
    return function(a, s, t).item()


def literal(a, s, t):
    """H as a fact of arithmetic, without the library."""
    return s + max(s + a - 1 - t, 0.0) - max(s + a - t, 0.0)


def step(a, t):
    return float(a > t)


# --- the closed forms ------------------------------------------------------------------------


@given(placed())
def test_closed_forms_are_the_parts_of_the_definition(point):
    a, s, t = point
    h = literal(*point)
    assert at(tie, *point) == pytest.approx(h, abs=1e-14)
    assert at(exceeds, *point) == pytest.approx(max(h, 0), abs=1e-14)
    assert at(falls_short, *point) == pytest.approx(max(-h, 0), abs=1e-14)
    assert at(apart, *point) == pytest.approx(abs(h), abs=1e-14)
    if a != t:
        assert at(apart, *point) == min(abs(s - step(a, t)), abs(a - t))


@given(placed())
def test_one_side_at_a_time(point):
    over, under = at(exceeds, *point), at(falls_short, *point)
    assert over >= 0
    assert under >= 0
    assert over * under == 0
    assert at(apart, *point) == over + under


@given(placed())
def test_what_exceeds_falls_short_on_the_other_side_of_the_mirror(point):
    """a ↦ −a, t ↦ −t, s ↦ 1 − s exchanges the two."""
    a, s, t = point
    assert at(exceeds, a, s, t) == pytest.approx(at(falls_short, -a, 1 - s, -t), abs=1e-15)


@given(placed())
def test_only_the_distance_of_score_and_threshold_counts(point):
    a, s, t = point
    for form in (tie, exceeds, falls_short, apart):
        assert at(form, a, s, t) == pytest.approx(at(form, a - t, s, 0.0), abs=1e-14)


def test_a_threshold_may_be_a_number_and_the_rest_any_shape():
    a, s = torch.rand(2, 3, 4, dtype=torch.float64)
    for form in (tie, exceeds, falls_short, apart):
        found = form(a, s, 0.3)
        assert found.shape == (3, 4)
        one_by_one = [
            at(form, x, y, 0.3)
            for x, y in zip(a.flatten().tolist(), s.flatten().tolist(), strict=True)
        ]
        assert found.flatten().tolist() == pytest.approx(one_by_one, abs=1e-15)


# --- where it is zero ------------------------------------------------------------------------


@given(placed())
def test_zero_exactly_at_the_step(point):
    a, s, t = point
    assume(a != t)
    assert (at(apart, a, s, t) == 0) == (s == step(a, t))
    assert (at(exceeds, a, s, t) == 0) == (s <= step(a, t))
    assert (at(falls_short, a, s, t) == 0) == (s >= step(a, t))


@given(placed())
def test_the_definition_is_zero_exactly_at_the_step(point):
    a, s, t = point
    assume(abs(a - t) > GAP)
    assume(min(s, 1 - s) == 0 or min(s, 1 - s) > GAP)
    assert (abs(at(tie, a, s, t)) < GAP / 10) == (s == step(a, t))


@given(unit, level)
def test_nothing_is_tied_at_the_singular_point(s, t):
    for form in (exceeds, falls_short, apart):
        assert at(form, t, s, t) == 0
    assert at(tie, t, s, t) == pytest.approx(0, abs=1e-14)


# --- continuity and slopes -------------------------------------------------------------------


@given(placed(), placed(), st.sampled_from([tie, exceeds, falls_short, apart]))
def test_no_jump_anywhere(one, other, form):
    """|H(one) − H(other)| ≤ |a − a'| + |s − s'| + |t − t'|, though the step itself jumps."""
    moved = sum(abs(x - y) for x, y in zip(one, other, strict=True))
    assert abs(at(form, *one) - at(form, *other)) <= moved + 1e-14


@given(placed(), st.sampled_from([tie, exceeds, falls_short, apart]))
def test_slopes_are_those_of_differences(point, form):
    a, s, t = point
    kinks = (a - t, s + a - t, s + a - 1 - t, s, 1 - s)
    assume(min(abs(x) for x in kinks) > 1e-3)
    leaves = [torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in point]
    slopes = torch.autograd.grad(form(*leaves), leaves)
    for i, found in enumerate(slopes):
        up, down = list(point), list(point)
        up[i] += 1e-4
        down[i] -= 1e-4
        slope = (at(form, *up) - at(form, *down)) / 2e-4
        assert found.item() == pytest.approx(slope, abs=1e-9)


@given(placed())
def test_slopes_are_subgradients_of_a_step_of_size_one(point):
    """Even at kinks: every slope in [−1, 1], the one in t opposite to the one in a."""
    leaves = [torch.tensor(x, dtype=torch.float64, requires_grad=True) for x in point]
    by_a, by_s, by_t = (x.item() for x in torch.autograd.grad(apart(*leaves), leaves))
    assert max(abs(by_a), abs(by_s)) <= 1
    assert by_t == -by_a


# --- s minimised out -------------------------------------------------------------------------

GRID = np.linspace(0, 1, 501)  #: both ends are in it, where a function concave in s is least


def least(a, t, terms):
    """The least over s ∈ [0, 1] of terms(a, s, t), by a grid."""
    s = torch.tensor(GRID)
    full = [torch.full_like(s, x) for x in (a, t)]
    return terms(full[0], s, full[1]).min().item()


@given(inner, inner, price, price)
def test_positives_lose_a_ramp(a, t, c, rho):
    """min −c s + ρ [H]₊ = −c + min(c, ρ [t − a]₊): what a positive is worth, less a ramp."""
    ramp = -c + min(c, rho * max(t - a, 0))
    assert least(a, t, lambda a, s, t: -c * s + rho * exceeds(a, s, t)) == pytest.approx(ramp)


@given(inner, inner, price, price)
def test_negatives_lose_a_ramp(a, t, c, rho):
    """min c s + ρ [−H]₊ = min(c, ρ [a − t]₊)."""
    ramp = min(c, rho * max(a - t, 0))
    assert least(a, t, lambda a, s, t: c * s + rho * falls_short(a, s, t)) == pytest.approx(ramp)


@given(inner, inner, price, price, st.sampled_from([-1, 1]))
def test_equality_loses_nothing_where_the_objective_pushes(a, t, c, rho, sign):
    """With the right sign both forms leave the same ramp, since the other side costs nothing."""
    side = exceeds if sign < 0 else falls_short
    one = least(a, t, lambda a, s, t: sign * c * s + rho * side(a, s, t))
    both = least(a, t, lambda a, s, t: sign * c * s + rho * apart(a, s, t))
    assert one == pytest.approx(both, abs=1e-12)


@given(inner, inner, price, price)
def test_inequality_ties_nothing_where_the_objective_pulls_back(a, t, c, rho):
    """A row whose worth falls with s: [H]₊ lets s be 0 everywhere, |H| does not."""
    loose = least(a, t, lambda a, s, t: c * s + rho * exceeds(a, s, t))
    tied = least(a, t, lambda a, s, t: c * s + rho * apart(a, s, t))
    assert loose == 0
    assert tied == pytest.approx(min(c, rho * max(a - t, 0)), abs=1e-12)


@given(inner, inner, price, price, price)
def test_trim_leaves_a_truncated_loss(a, t, c, rho, lam):
    """min −c s + ρ [H]₊ + λ s ℓ = −c + min(c, ρ [t − a]₊ + λ ℓ): ℓ is cut off, its row dropped."""
    loss = -math.log(a)
    found = least(a, t, lambda a, s, t: -c * s + rho * exceeds(a, s, t) + lam * s * loss)
    assert found == pytest.approx(-c + min(c, rho * max(t - a, 0) + lam * loss))


@given(inner, inner, price, price, price)
def test_relabel_pays_for_the_other_label(a, t, c, rho, lam):
    """With λ (s ℓ₁ + (1 − s) ℓ₀) a row given up costs λ ℓ₀: it is pushed away, not dropped."""
    yes, no = -math.log(a), -math.log(1 - a)
    found = least(
        a, t, lambda a, s, t: -c * s + rho * exceeds(a, s, t) + lam * (s * yes + (1 - s) * no)
    )
    assert found == pytest.approx(
        min(lam * no, -c + rho * max(t - a, 0) + lam * yes), rel=1e-9, abs=1e-12
    )


@given(inner, inner, price, price)
def test_the_best_s_is_an_end(a, t, c, rho):
    """s = 1 iff ρ [t − a]₊ < c: concave in s, so a whole row is kept or given up."""
    s = torch.tensor(GRID)
    value = -c * s + rho * exceeds(torch.full_like(s, a), s, torch.full_like(s, t))
    kept = rho * max(t - a, 0) < c
    assume(abs(rho * max(t - a, 0) - c) > 1e-9)
    assert GRID[int(value.argmin())] == float(kept)
