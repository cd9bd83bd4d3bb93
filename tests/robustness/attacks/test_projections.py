import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog, minimize

from setpoint.robustness.attacks.distances import norms
from setpoint.robustness.attacks.projections import fill, project, reach, root

POWERS = [1.0, 1.5, 2.0, 3.0, math.inf]


def row(values):
    """One row, in double precision from the start."""
    return torch.tensor(np.asarray(values)[None], dtype=torch.float64)


def drawn(seed, size=6):
    """A point, a box around 0 with some sides at 0, a radius."""
    draw = np.random.default_rng(seed)
    v = draw.normal(size=size) * 10.0 ** draw.uniform(-1, 1)
    low = -draw.uniform(0, 1, size) * (draw.random(size) > 0.2)
    high = draw.uniform(0, 1, size) * (draw.random(size) > 0.2)
    return v, low, high, 10.0 ** draw.uniform(-1, 0.5)


@pytest.mark.parametrize("p", POWERS)
@pytest.mark.parametrize("seed", range(4))
def test_a_projection_is_what_a_solver_of_programs_finds(p, seed):
    v, low, high, eps = drawn(seed)
    found = project(row(v), row(low), row(high), row(eps), p)[0].numpy()
    # u = up − down keeps the norms smooth for the solver; both parts are at least 0
    size = len(v)

    def ball(parts):
        t = parts[:size] + parts[size:]
        return eps - t.max() if math.isinf(p) else eps**p - (t**p).sum()

    limits = (
        [{"type": "ineq", "fun": lambda q, i=i: eps - q[i] - q[size + i]} for i in range(size)]
        if math.isinf(p)
        else [{"type": "ineq", "fun": ball}]
    )
    truth = minimize(
        lambda q: 0.5 * ((q[:size] - q[size:] - v) ** 2).sum(),
        np.full(2 * size, 1e-3),
        bounds=[(0, h) for h in high] + [(0, -b) for b in low],
        constraints=limits,
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 500},
    ).x
    assert np.allclose(found, truth[:size] - truth[size:], atol=2e-5)
    # and no worse than it: the projection is exact
    reached = 0.5 * ((found - v) ** 2).sum()
    assert reached <= 0.5 * ((truth[:size] - truth[size:] - v) ** 2).sum() + 1e-7


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from(POWERS), st.integers(1, 40))
def test_a_projection_meets_the_inequality_that_defines_it(seed, p, size):
    """(v − u)·(w − u) ≤ 0 for every w of the set, and u is in the set."""
    v, low, high, eps = drawn(seed, size)
    draw = np.random.default_rng(seed + 1)
    radius = row(eps)
    u = project(row(v), row(low), row(high), radius, p)
    assert float(norms(u, p)) <= eps * (1 + 1e-12)
    assert bool(((u >= row(low)) & (u <= row(high))).all())
    others = torch.tensor(draw.normal(size=(30, size)))
    others = others.maximum(row(low)).minimum(row(high))
    others = others * (eps / norms(others, p).clamp(min=1e-300)).clamp(max=1.0)[:, None]
    gain = ((row(v) - u) * (others - u)).sum(1)
    assert float(gain.max()) <= 1e-9 * (1 + float((row(v) - u).norm()))
    again = project(u, row(low), row(high), radius, p)
    assert torch.allclose(again, u, atol=1e-12)


@pytest.mark.parametrize("p", [1.0, 2.0, 1.5])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_many_pixels_with_breaks_on_every_scale(p, dtype):
    """A bisection of two hundred passes is the truth; breaks 10⁻⁶ to 1 slow Newton down most."""
    draw = torch.Generator().manual_seed(0)
    size = 400
    v = torch.randn(3, size, generator=draw, dtype=torch.float64) * torch.logspace(-6, 0, size)
    high = torch.rand(3, size, generator=draw, dtype=torch.float64) * torch.logspace(-6, 0, size)
    eps = torch.tensor([0.01, 0.5, 3.0], dtype=torch.float64)
    found = project(v.to(dtype), -high.to(dtype), high.to(dtype), eps.to(dtype), p)
    a, least, most = v.abs(), torch.zeros(3).double(), torch.full((3,), 1e4).double()

    def sizes(price):
        if p == 1.0:
            t = (a - price[:, None]).clamp(min=0)
        elif p == 2.0:
            t = a / (1 + price[:, None])
        else:  # t + 1.5 λ √t = a, a quadratic in √t
            half = 0.75 * price[:, None]
            t = ((half.square() + a).sqrt() - half).square()
        return t.minimum(high)

    for _ in range(200):
        middle = 0.5 * (least + most)
        over = norms(sizes(middle), p) > eps
        least, most = torch.where(over, middle, least), torch.where(over, most, middle)
    truth = sizes(torch.where(norms(sizes(0 * most), p) > eps, most, 0.0)) * v.sign()
    assert torch.allclose(found.double(), truth, atol=1e-11 if dtype == torch.float64 else 2e-6)


@pytest.mark.parametrize("p", [1.0, math.inf])
@pytest.mark.parametrize("seed", range(6))
def test_reaching_a_half_space_is_what_a_linear_program_finds(p, seed):
    draw = np.random.default_rng(seed)
    g, low, high = draw.normal(size=7), -draw.uniform(0, 1, 7), draw.uniform(0, 1, 7)
    wanted = draw.uniform(0.1, 0.9) * np.maximum(g * low, g * high).sum()
    u = reach(row(g), row(low), row(high), row(wanted), p)
    # unknowns (u, t): |u_i| ≤ t_i; the sum of t, or the greatest
    eye, one = np.eye(7), np.ones((7, 1))
    side = eye if p == 1.0 else one
    limits = np.block([[eye, -side], [-eye, -side], [-g[None], np.zeros((1, side.shape[1]))]])
    truth = linprog(
        np.r_[np.zeros(7), np.ones(side.shape[1])],
        A_ub=limits,
        b_ub=np.r_[np.zeros(14), -wanted],
        bounds=[*zip(low, high, strict=True), *[(0, None)] * side.shape[1]],
    )
    assert float((row(g) * u).sum()) >= wanted - 1e-12
    assert bool(((u >= row(low)) & (u <= row(high))).all())
    assert math.isclose(float(norms(u, p)), truth.fun, rel_tol=1e-9)


@pytest.mark.parametrize("p", [1.5, 2.0, 4.0])
@pytest.mark.parametrize("seed", range(3))
def test_reaching_a_half_space_in_a_curved_norm(p, seed):
    draw = np.random.default_rng(seed)
    g, low, high = draw.normal(size=5), -draw.uniform(0, 1, 5), draw.uniform(0, 1, 5)
    wanted = 0.6 * np.maximum(g * low, g * high).sum()
    u = reach(row(g), row(low), row(high), row(wanted), p)[0].numpy()
    truth = minimize(
        lambda u: (np.abs(u) ** p).sum(),
        np.where(g > 0, high, low) * 0.9,
        bounds=[*zip(low, high, strict=True)],
        constraints=[{"type": "ineq", "fun": lambda u: g @ u - wanted}],
        method="SLSQP",
        options={"ftol": 1e-14, "maxiter": 500},
    )
    assert g @ u >= wanted - 1e-12
    assert (np.abs(u) ** p).sum() <= truth.fun + 1e-8


@pytest.mark.parametrize("p", POWERS)
def test_what_cannot_be_reached_ends_at_the_best_corner_and_no_wish_moves_nothing(p):
    g = row([1.0, -2.0, 0.0])
    low, high = row([-1.0, -0.5, -1.0]), row([0.25, 1.0, 1.0])
    corner = reach(g, low, high, row(99.0), p)
    assert torch.equal(corner, row([0.25, -0.5, 0.0]))
    for wish in (0.0, -3.0):
        assert not reach(g, low, high, row(wish), p).any()
    assert not reach(0 * g, low, high, row(1.0), p).any()


@pytest.mark.parametrize("p", POWERS)
def test_a_radius_of_zero_leaves_only_the_image(p):
    v = row([1.0, -2.0])
    assert not project(v, -v.abs(), v.abs(), torch.zeros(1).double(), p).any()


def test_filling_is_exact_where_caps_bind_one_after_the_other():
    """Σ min(s, b_i) = c with b = 1, 2, …: the root is known by hand."""
    caps = torch.arange(1.0, 101.0, dtype=torch.float64)[None]
    one = torch.ones_like(caps)
    for level in (0.5, 1.0, 37.25, 99.5):
        wanted = torch.minimum(caps, torch.tensor(level)).sum(1)
        assert abs(float(fill(one, one, caps, wanted)) - level) < 1e-9
    assert math.isinf(float(fill(one, one, caps, row(1e4))))


def test_a_root_is_found_where_newton_alone_would_cycle():
    """−sign(s)·√|s| sends Newton from s to −s for ever."""

    def flat(s):
        s = s - 0.3
        return -s.sign() * s.abs().sqrt(), -0.5 / s.abs().sqrt()

    found = root(flat, torch.tensor([-1.0]).double(), row(2.0), passes=200)
    assert abs(float(found) - 0.3) < 1e-9
