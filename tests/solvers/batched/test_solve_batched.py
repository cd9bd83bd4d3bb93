"""Many problems at once: every row against a published answer, a closed form or scipy."""

import math

import numpy as np
import pytest
import torch
from scipy.optimize import minimize as scipy_minimize
from tests.solvers.known_problems import PROBLEMS

from setpoint import DataError, KindError
from setpoint.solvers.batched import solve_batched

KNOWN = {known.name: known for known in PROBLEMS}
NAMES = "hs1 hs7 hs10 hs14 hs22 hs29 hs30 hs35 hs36 hs40 hs43 hs63 hs65 hs71 hs76".split()
MORE = "hs5 hs6 hs12 hs23 hs24 hs28 hs39 hs45 hs48 hs53 hs60 hs66 hs78 hs80".split()


def each(function):
    """A function of one row as one of many."""
    return None if function is None else lambda x: torch.stack([function(row) for row in x])


def solve(known, hessian, rows=3, **options):
    x0 = known.start.repeat(rows, 1)
    noise = torch.randn(x0.shape, generator=torch.Generator().manual_seed(0), dtype=x0.dtype)
    x0[1:] += 0.02 * noise[1:]
    return solve_batched(
        each(known.f),
        x0,
        inequalities=each(known.c),
        equalities=each(known.e),
        bounds=known.bounds,
        hessian=hessian,
        **options,
    )


def nearest(known, fun):
    """The relative error against the nearest of the known optima."""
    return min(abs(fun - best) / max(1, abs(best)) for best in (known.best, *known.others))


@pytest.mark.parametrize(
    "name", [*NAMES, *(pytest.param(name, marks=pytest.mark.slow) for name in MORE)]
)
def test_published_answers(name):
    known = KNOWN[name]
    found = solve(known, "full")
    assert found.success.all(), found.status
    assert found.violation.max() <= 1e-6
    assert max(nearest(known, fun) for fun in found.fun.tolist()) <= 2e-6
    # the residual is relative to the slope of f, as the docstring says
    assert (found.kkt <= 1e-5 * found.gradient.clamp_min(1)).all()


@pytest.mark.parametrize("name", ["hs7", "hs43", "hs65", "hs71"])
def test_published_answers_with_limited_memory(name):
    found = solve(KNOWN[name], 10)
    assert found.success.all(), found.status
    assert max(nearest(KNOWN[name], fun) for fun in found.fun.tolist()) <= 2e-6


def kinked():
    """Name -> objective, inequalities, bounds, start, least value; all by hand."""
    goal = torch.tensor([2.0, -3.0, 0.5], dtype=torch.float64)
    return {
        "distance to 0": (lambda x: x.abs().sum(1), None, None, [1.3, -0.7, 2.0], 0.0),
        "in a box": (lambda x: (x - goal).abs().sum(1), None, (-1, 1), [0.0, 0.1, 0.2], 3.0),
        "greatest square": (lambda x: (x**2).amax(1), None, None, [1.0, -2.0, 3.0, 4.0], 0.0),
        "greatest of a line": (
            lambda x: x.amax(1),
            lambda x: 3 - x.sum(1),
            None,
            [1.0, 5, -2],
            1.0,
        ),
        "banana with a kink": (
            lambda x: 8 * (x[:, 0] ** 2 - x[:, 1]).abs() + (1 - x[:, 0]) ** 2,
            lambda x: torch.stack([math.sqrt(2) * x[:, 0] - 1, 2 * x[:, 1] - 1], 1),
            None,
            [1.0, 1.0],
            (1 - 1 / math.sqrt(2)) ** 2,
        ),
    }


@pytest.mark.parametrize("hessian", ["full", pytest.param(10, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", list(kinked()))
def test_kinks(name, hessian):
    f, c, bounds, start, best = kinked()[name]
    x0 = torch.tensor([start, start], dtype=torch.float64)
    x0[1] *= 1.1  # off the first: rows must not share a path
    found = solve_batched(f, x0, inequalities=c, bounds=bounds, hessian=hessian)
    assert found.violation.max() <= 1e-6
    assert (found.fun - best).abs().max() <= 1e-6


def quadratics(rows, width, seed, dtype=torch.float64):
    """Random convex quadratics, each with its own ball, half-space and box; f, c and their data."""
    rng = np.random.default_rng(seed)
    a = rng.normal(size=(rows, width, width))
    q = a @ a.transpose(0, 2, 1) / width + 0.3 * np.eye(width)
    data = (q, rng.normal(size=(rows, width)) * 2, rng.normal(size=(rows, width)))
    data = tuple(torch.tensor(d, dtype=dtype) for d in data)

    def f(x, q, b, n):
        return torch.einsum("bi,bij,bj->b", x, q, x) / 2 - (b * x).sum(1)

    def c(x, q, b, n):
        return torch.stack([(x**2).sum(1) - 1, (n * x).sum(1) - 0.2], 1)

    return f, c, data


@pytest.mark.parametrize(("hessian", "width"), [("full", 5), (10, 30)])
def test_every_row_agrees_with_slsqp(hessian, width):
    f, c, data = quadratics(12, width, 0)
    x0 = torch.zeros(12, width, dtype=torch.float64)
    found = solve_batched(f, x0, inequalities=c, bounds=(-0.4, 0.5), data=data, hessian=hessian)
    assert found.success.all()
    assert ((found.x >= -0.4) & (found.x <= 0.5)).all()
    for b, (q, g, n) in enumerate(zip(*(d.numpy() for d in data), strict=True)):
        sides = [
            {"type": "ineq", "fun": lambda x: 1 - x @ x},
            {"type": "ineq", "fun": lambda x, n=n: 0.2 - n @ x},
        ]
        wanted = scipy_minimize(
            lambda x, q=q, g=g: x @ q @ x / 2 - g @ x,
            np.zeros(width),
            jac=lambda x, q=q, g=g: q @ x - g,
            bounds=[(-0.4, 0.5)] * width,
            constraints=sides,
            method="SLSQP",
            options={"ftol": 1e-12, "maxiter": 500},
        )
        assert float(found.fun[b]) == pytest.approx(wanted.fun, abs=2e-6)
        np.testing.assert_allclose(found.x[b], wanted.x, atol=2e-3)


def test_multipliers_are_those_of_the_lagrangian():
    f, c, data = quadratics(8, 4, 1)
    x0 = torch.zeros(8, 4, dtype=torch.float64)
    found = solve_batched(f, x0, inequalities=c, data=data, tolerance=1e-8)
    q, b, n = data
    slopes = torch.stack([2 * found.x, n], 1)
    left = torch.einsum("bij,bj->bi", q, found.x) - b
    left = left + torch.einsum("bp,bpn->bn", found.multipliers, slopes)
    torch.testing.assert_close(left.norm(dim=1), found.kkt, atol=1e-9, rtol=1e-6)
    assert found.kkt.max() <= 1e-6
    assert (found.multipliers >= 0).all()
    assert (found.multipliers * c(found.x, *data)).abs().max() <= 1e-6
    assert found.multipliers.max() > 0.1  # some are held


def test_rows_do_not_know_of_each_other():
    f, c, data = quadratics(32, 4, 2)
    x0 = torch.zeros(32, 4, dtype=torch.float64)
    options = {"inequalities": c, "bounds": (-0.4, None)}
    together = solve_batched(f, x0, data=data, **options)
    assert len(set(together.iterations.tolist())) > 3  # rows end at different times
    order = torch.randperm(32, generator=torch.Generator().manual_seed(0))
    mixed = solve_batched(f, x0, data=tuple(d[order] for d in data), **options)
    torch.testing.assert_close(mixed.x, together.x[order], atol=1e-7, rtol=0)
    assert mixed.status == [together.status[i] for i in order]
    for b in (0, 31):
        alone = solve_batched(f, x0[:1], data=tuple(d[b : b + 1] for d in data), **options)
        torch.testing.assert_close(alone.x[0], together.x[b], atol=1e-6, rtol=0)
        assert alone.success[0] == together.success[b]


def test_single_precision():
    f, c, data = quadratics(16, 5, 3, torch.float32)
    found = solve_batched(f, torch.zeros(16, 5), inequalities=c, bounds=(-0.4, 0.5), data=data)
    exact = solve_batched(
        f,
        torch.zeros(16, 5, dtype=torch.float64),
        inequalities=c,
        bounds=(-0.4, 0.5),
        data=tuple(d.double() for d in data),
    )
    assert found.x.dtype == torch.float32
    assert found.success.all(), found.status
    assert (found.fun - exact.fun).abs().max() <= 1e-4


def test_going_on_is_as_good_as_not_stopping():
    f, c, data = quadratics(6, 8, 4)
    x0 = torch.zeros(6, 8, dtype=torch.float64)
    options = {"inequalities": c, "data": data}
    whole = solve_batched(f, x0, **options)
    part = solve_batched(f, x0, max_evaluations=6, **options)
    assert not part.success.any()
    rest = solve_batched(f, x0, resume=part.state, **options)
    torch.testing.assert_close(rest.x, whole.x, atol=1e-5, rtol=0)
    assert rest.iterations.max() < whole.iterations.max()  # curvature and weight came along
    some = torch.tensor([4, 1])
    few = solve_batched(
        f, x0[some], inequalities=c, data=tuple(d[some] for d in data), resume=part.state.take(some)
    )
    torch.testing.assert_close(few.x, whole.x[some], atol=1e-5, rtol=0)


def test_shapes_are_kept_and_bounds_hold_at_every_call():
    seen = []

    def f(x, low):
        seen.append(bool((x >= low).all() and (x <= 2).all()))
        return ((x - 3) ** 2).flatten(1).sum(1)

    low = torch.rand(5, 2, 3, dtype=torch.float64)
    found = solve_batched(f, torch.zeros_like(low), bounds=(low, 2.0), data=(low,))
    assert found.x.shape == (5, 2, 3)
    assert all(seen)
    assert (found.x == 2).all()


def test_each_row_ends_with_its_own_sentence():
    kind = torch.arange(6)

    def f(x, kind):
        a, b = x.unbind(1)
        choices = [a**2 + b**2, a**2, -a - b, a, a * 0 + 1, (a - 1) ** 2 + b**2]
        chosen = torch.stack(choices, 1).gather(1, kind[:, None])[:, 0]
        return torch.where(kind == 3, torch.nan, chosen)

    def c(x, kind):
        impossible = 1 + (x**2).sum(1)
        return torch.where(kind == 1, impossible, x[:, 0] - 1e12)

    found = solve_batched(
        f, torch.full((6, 2), 0.5, dtype=torch.float64), inequalities=c, data=(kind,)
    )
    assert found.success.tolist() == [True, False, False, False, True, True]
    begins = ["stationary", "infeasible", "the objective falls", "a value or a gradient"]
    begins += ["the start is stationary", "stationary"]
    for status, begin in zip(found.status, begins, strict=True):
        assert status.startswith(begin), found.status
    assert found.violation[1] == pytest.approx(1, abs=1e-4)  # the least that can be had
    assert (found.x[3] == 0.5).all()


def test_not_a_number_away_from_the_start_only_shortens_steps():
    def f(x):
        return (x - torch.log(x)).sum(1)  # nan below 0, least at 1

    found = solve_batched(f, torch.tensor([[0.01, 5.0], [30.0, 1e-3]], dtype=torch.float64))
    assert found.success.all()
    torch.testing.assert_close(found.x, torch.ones_like(found.x), atol=1e-5, rtol=0)


def test_a_constraint_that_does_not_see_a_variable_and_one_that_sees_none():
    def c(x):
        return torch.stack([1 - x[:, 1], torch.full_like(x[:, 0], -1.0).detach()], 1)

    found = solve_batched(
        lambda x: (x**2).sum(1), torch.full((2, 3), 2.0, dtype=torch.float64), inequalities=c
    )
    wanted = torch.tensor([[0.0, 1.0, 0.0]] * 2, dtype=torch.float64)
    torch.testing.assert_close(found.x, wanted, atol=1e-5, rtol=0)
    torch.testing.assert_close(
        found.multipliers[:, 0], torch.full((2,), 2.0).double(), atol=1e-4, rtol=0
    )


def test_five_and_twelve_constraints():
    """The least norm above many half-spaces, against scipy."""
    for count in (5, 12):
        rng = np.random.default_rng(count)
        n = torch.tensor(rng.normal(size=(4, count, 6)))
        n[:, :, 0] = n[:, :, 0].abs() + 0.3  # they have points in common
        found = solve_batched(
            lambda x, n: (x**2).sum(1),
            torch.zeros(4, 6, dtype=torch.float64),
            inequalities=lambda x, n: 1 - torch.einsum("bpn,bn->bp", n, x),
            data=(n,),
        )
        assert found.violation.max() <= 1e-6
        for b in range(4):
            a = n[b].numpy()
            sides = {"type": "ineq", "fun": lambda x, a=a: a @ x - 1, "jac": lambda x, a=a: a}
            start = np.r_[10.0, np.zeros(5)]
            wanted = scipy_minimize(lambda x: x @ x, start, constraints=[sides], method="SLSQP")
            assert float(found.fun[b]) == pytest.approx(wanted.fun, rel=1e-4)


def test_callback_stops_and_is_told_how_many_run():
    told = []

    def stop(progress):
        told.append(progress)
        return progress.evaluations > 15

    found = solve_batched(
        lambda x: (1 - x[:, 0]) ** 2 + 100 * (x[:, 1] - x[:, 0] ** 2) ** 2,
        torch.tensor([[-1.2, 1.0]], dtype=torch.float64),
        callback=stop,
    )
    assert found.status[0].startswith("stopped by the callback")
    assert [p.running for p in told] == [1, 1, 1]
    assert found.fun[0] < 24.2  # the best so far


@pytest.mark.parametrize(
    ("options", "error", "said"),
    [
        ({"hessian": 0}, KindError, "hessian=0"),
        ({"bounds": (1, 0)}, DataError, "low is above its high"),
        ({"bounds": 3}, KindError, "a pair"),
        ({"bounds": (torch.zeros(3), None)}, DataError, "broadcast"),
        ({"mu": -1}, KindError, "mu=-1"),
        ({"tolerance": -1}, KindError, "tolerance=-1"),
        ({"data": (torch.zeros(3),)}, DataError, "2 rows"),
        ({"inequalities": lambda x: x.sum()}, DataError, "inequalities returned shape"),
        ({"inequalities": lambda x: 1.0}, KindError, "inequalities returned float"),
    ],
)
def test_what_cannot_be_meant_is_said(options, error, said):
    with pytest.raises(error, match=said):
        solve_batched(lambda x: (x**2).sum(1), torch.ones(2, 2), **options)
