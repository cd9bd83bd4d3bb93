"""The contract of the solvers of constrained problems: known answers, KKT, resuming, mixtures."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from setpoint._core.errors import DataError, KindError
from setpoint.programs import Additive, External, Swap
from setpoint.solvers import ConstrainedProblem, FirstOrder, PrimalDual, best_feasible, best_mixture
from setpoint.solvers.mixture import excess

FAST = settings(max_examples=50, deadline=None)


def of(*numbers):
    return torch.tensor(numbers, dtype=torch.float64)


def quadratic(center):
    return lambda x: 0.5 * ((x - center) ** 2).sum()


#: name -> problem, start, x*, λ*
KNOWN = {
    # the nearest point of a half-plane: x = c − λ a, λ = (a·c − b)/|a|²
    "a half-plane": (
        ConstrainedProblem(quadratic(of(2.0, 1.0)), lambda x: x.sum().reshape(1) - 1),
        of(0.0, 0.0),
        [1.0, 0.0],
        [1.0],
    ),
    "a constraint that does not bind": (
        ConstrainedProblem(quadratic(of(0.2, 0.1)), lambda x: x.sum().reshape(1) - 1),
        of(1.0, -1.0),
        [0.2, 0.1],
        [0.0],
    ),
    # on a line: the same by an equation, with a multiplier below 0
    "an equation": (
        ConstrainedProblem(quadratic(of(0.0, 0.0)), equations=lambda x: x.sum().reshape(1) - 2),
        of(0.0, 0.5),
        [1.0, 1.0],
        [-1.0],
    ),
    "both": (
        ConstrainedProblem(
            quadratic(of(3.0, 0.0)),
            lambda x: x[:1] - 1,
            lambda x: (x[0] - x[1]).reshape(1),
        ),
        of(0.0, 0.0),
        [1.0, 1.0],
        [1.0, 1.0],
    ),
    # a linear program: max x + 2y over x + y <= 1, x, y >= 0; the corner (0, 1), dual (2, 1, 0)
    "a linear program": (
        ConstrainedProblem(
            lambda x: -x[0] - 2 * x[1],
            lambda x: torch.stack([x.sum() - 1, -x[0], -x[1]]),
        ),
        of(0.3, 0.3),
        [0.0, 1.0],
        [2.0, 1.0, 0.0],
    ),
    # the circle: min x + y over x² + y² <= 2; x = −1, λ = ½
    "a circle": (
        ConstrainedProblem(lambda x: x.sum(), lambda x: ((x**2).sum() - 2).reshape(1)),
        of(0.5, 0.0),
        [-1.0, -1.0],
        [0.5],
    ),
}


def kkt(problem, x, multipliers):
    """Stationarity, feasibility, sign and complementarity, the greatest of them."""
    x = x.clone().requires_grad_()
    v, equal = problem.violations(x)
    held = torch.tensor(multipliers)
    (slope,) = torch.autograd.grad(problem.objective(x) + (held * v).sum(), x)
    v, equal = v.detach().numpy(), np.array(equal, dtype=bool)
    feasible = np.where(equal, np.abs(v), np.maximum(v, 0))
    complementary = np.where(equal, 0, np.abs(multipliers * v))
    negative = np.where(equal, 0, np.maximum(-multipliers, 0))
    return max(float(slope.abs().max()), *feasible, *complementary, *negative)


@pytest.mark.parametrize("name", KNOWN)
def test_known_primal_and_dual_answers(name):
    problem, start, x, multipliers = KNOWN[name]
    found = PrimalDual(steps=1000, augment=3.0, every=50).solve(problem, start)
    np.testing.assert_allclose(found.x, x, atol=5e-3)
    np.testing.assert_allclose(found.multipliers, multipliers, atol=2e-2)
    assert kkt(problem, found.x, found.multipliers) <= 2e-2
    assert "keeps every constraint" in found.status
    assert excess(found.violations[None], problem.violations(start)[1])[0] <= 1e-3
    assert kkt(problem, start, 0 * found.multipliers) > 0.1, "the start is no answer"


@pytest.mark.parametrize("rule", [External(0.1), Swap(0.5)], ids=["external", "swap"])
@pytest.mark.parametrize("name", ["a half-plane", "an equation", "a circle"])
def test_weights_find_the_same(rule, name):
    problem, start, x, multipliers = KNOWN[name]
    found = PrimalDual(dual=rule, steps=1000, every=50).solve(problem, start)
    np.testing.assert_allclose(found.x, x, atol=5e-3)
    np.testing.assert_allclose(found.multipliers, multipliers, atol=2e-2)


def test_random_quadratic_programs_in_closed_form():
    """Min ½|x − c|² subject to A x = b: λ = (A Aᵀ)⁻¹ (A c − b), x = c − Aᵀ λ."""
    for seed in (0, 1):
        rng = np.random.default_rng(seed)
        a, c, b = rng.normal(size=(2, 5)), rng.normal(size=5), rng.normal(size=2)
        held = np.linalg.solve(a @ a.T, a @ c - b)
        matrix, right = torch.tensor(a), torch.tensor(b)
        problem = ConstrainedProblem(
            quadratic(torch.tensor(c)), equations=lambda x, m=matrix, r=right: m @ x - r
        )
        found = PrimalDual(steps=1000, augment=3.0).solve(
            problem, torch.zeros(5, dtype=torch.float64)
        )
        np.testing.assert_allclose(found.multipliers, held, atol=2e-2)
        np.testing.assert_allclose(found.x, c - a.T @ held, atol=1e-2)


def test_proxies_are_descended_and_the_exact_ones_are_held():
    """x >= 1 as a step: the step has no slope, a hinge that asks for more than needed has one."""
    problem = ConstrainedProblem(
        lambda x: (x**2).sum(),
        lambda x: 0.5 - (x >= 1).to(x.dtype),
        proxies=lambda x: 2 - x,
    )
    found = PrimalDual(steps=800).solve(problem, of(0.0))
    assert found.violations.max() <= 0
    assert found.best.item() == pytest.approx(1, abs=0.05)
    soft = PrimalDual(steps=800).solve(
        ConstrainedProblem(problem.objective, problem.proxies), of(0.0)
    )
    assert soft.best.item() == pytest.approx(2, abs=0.02), "held to the proxy it goes too far"


# --- resuming ------------------------------------------------------------------------------------


@pytest.mark.parametrize("rule", [Additive(0.05), External(0.02), Swap(0.02)])
@pytest.mark.parametrize("noisy", [False, True])
def test_a_run_taken_up_gives_the_same_iterates(rule, noisy, tmp_path):
    def objective(x, *rng):
        noise = torch.randn(2, generator=rng[0], dtype=x.dtype) if rng else 0
        return 0.5 * ((x - of(2.0, 1.0) - 0.1 * noise) ** 2).sum()

    problem = ConstrainedProblem(objective, lambda x, *_: x.sum().reshape(1) - 1, noisy=noisy)
    solver = PrimalDual(dual=rule, steps=120, seed=5)
    whole = solver.solve(problem, of(0.0, 0.0))
    half = solver.solve(problem, of(0.0, 0.0), until=83)
    torch.save(half.state, tmp_path / "state")
    state = torch.load(tmp_path / "state", weights_only=False)
    for taken in (half.state, state, half.state):
        rest = solver.solve(problem, of(9.0, 9.0), resume=taken)
        assert torch.equal(rest.x, whole.x)
        assert torch.equal(rest.state["dual"], whole.state["dual"])
        np.testing.assert_array_equal(rest.objectives, whole.objectives)
        np.testing.assert_array_equal(rest.snapshots, whole.snapshots)
    assert "83 of 120" in half.status
    again = PrimalDual(dual=rule, steps=120, seed=6).solve(problem, of(0.0, 0.0))
    assert torch.equal(again.x, whole.x) != noisy


# --- choosing ------------------------------------------------------------------------------------


def test_a_mixture_closes_the_duality_gap():
    """−x² over [−1, 1], x = 0 asked for.

    The only x that keeps the equation has f = 0; half of −1
    and half of 1 keep it in the mean with f = −1, which is the dual's value.
    """
    xs = np.linspace(-1, 1, 41)
    objectives, violations = -(xs**2), xs[:, None]
    single = best_feasible(objectives, violations, 1e-9, (True,))
    assert objectives[single] == pytest.approx(0)
    p = best_mixture(objectives, violations, 0.0, (True,))
    assert np.count_nonzero(p) <= 2
    np.testing.assert_allclose(p[[0, -1]], 0.5)
    assert p @ objectives == pytest.approx(-1)


def test_iterates_of_a_problem_with_a_gap_mix_to_its_dual_value():
    """Min −x² over [−1, 1] subject to x + ½ <= 0 and −x − ½ <= 0: −¼ alone, −1 mixed (¾, ¼)."""
    problem = ConstrainedProblem(
        lambda t: -(torch.tanh(t) ** 2).sum(),
        equations=lambda t: torch.tanh(t) + 0.5,
    )
    solver = PrimalDual(
        FirstOrder(0.3, "sgd", weight_decay=0, momentum=0.0, clip=float("inf")),
        Additive(0.3),
        steps=600,
        augment=0.0,
        every=1,
        tolerance=0.01,
    )
    found = solver.solve(problem, of(0.3))
    alone = found.objectives[best_feasible(found.objectives, found.snapshots, 0.01, (True,))]
    p = best_mixture(found.objectives, found.snapshots, 0.0, (True,))
    assert abs(p @ found.snapshots) <= 1e-9
    assert np.count_nonzero(p) <= 2
    assert p @ found.objectives < alone - 0.5
    assert p @ found.objectives == pytest.approx(-1, abs=0.1)


def corners(f, v, tolerance):
    """The best mixture by brute force: every set of 1 + m candidates, its constraints solved."""
    count, m = v.shape
    best = np.inf
    for size in range(1, m + 2):
        for chosen in itertools.combinations(range(count), size):
            for tight in itertools.combinations(range(m), size - 1):
                rows = np.r_[np.ones((1, size)), v[np.ix_(chosen, tight)].T]
                right = np.r_[1.0, np.full(size - 1, tolerance)]
                if abs(np.linalg.det(rows)) < 1e-10:
                    continue
                p = np.linalg.solve(rows, right)
                if p.min() >= -1e-9 and (p @ v[list(chosen)] <= tolerance + 1e-9).all():
                    best = min(best, p @ f[list(chosen)])
    return best


@FAST
@given(st.integers(1, 6), st.integers(1, 2), st.integers(0, 2**32 - 1))
def test_the_mixture_against_brute_force(count, m, seed):
    rng = np.random.default_rng(seed)
    f, v = rng.normal(size=count), rng.normal(size=(count, m))
    p = best_mixture(f, v, 0.05)
    assert p.min() >= 0
    assert p.sum() == pytest.approx(1)
    assert np.count_nonzero(p) <= m + 1
    best = corners(f, v, 0.05)
    if np.isfinite(best):
        assert (p @ v).max() <= 0.05 + 1e-7
        assert p @ f == pytest.approx(best, abs=1e-6)
        index = best_feasible(f, v, 0.05)
        if (v[index] <= 0.05).all():
            assert p @ f <= f[index] + 1e-9
    else:  # then no mixture is broken less
        others = rng.dirichlet(np.ones(count), 200) @ v
        assert (p @ v).max() <= others.max(1).min() + 1e-6


@FAST
@given(st.integers(1, 8), st.integers(0, 2), st.integers(0, 2**32 - 1))
def test_the_best_that_keeps_the_constraints(count, m, seed):
    rng = np.random.default_rng(seed)
    f, v = rng.normal(size=count), rng.normal(size=(count, m))
    index = best_feasible(f, v, 0.1)
    held = [i for i in range(count) if (v[i] <= 0.1).all()]
    if held:
        assert f[index] == min(f[i] for i in held)
    else:
        assert v[index].max() == v.max(1).min()


# --- sentences -----------------------------------------------------------------------------------


def test_what_cannot_be_solved_is_said():
    never = ConstrainedProblem(quadratic(of(0.0)), lambda x: torch.cat([x - 1, 2 - x]))
    found = PrimalDual(steps=300).solve(never, of(0.0))
    assert "no snapshot keeps the constraints" in found.status
    assert found.violations.max() > 0.1
    with pytest.raises(DataError, match="not finite"):
        PrimalDual(steps=10).solve(ConstrainedProblem(lambda x: x.sum().log()), of(-1.0))


@pytest.mark.parametrize(
    "options", [{"steps": 0}, {"every": 1.5}, {"augment": -1}, {"tolerance": float("nan")}]
)
def test_odd_settings_are_sentences(options):
    with pytest.raises(KindError, match=next(iter(options))):
        PrimalDual(**options)


def test_odd_candidates_are_sentences():
    for f, v in (([], np.zeros((0, 1))), ([1.0], [[1.0], [2.0]]), ([np.nan], [[1.0]])):
        with pytest.raises(DataError):
            best_mixture(f, v)
    with pytest.raises(DataError, match="marks"):
        best_mixture([1.0], [[1.0]], equal=(True, False))
