"""The exact penalty: known answers and prices, KKT, exactness at a finite weight, resuming."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq, linprog, lsq_linear, minimize_scalar

from setpoint._core.errors import DataError, KindError
from setpoint.programs import ConstrainedProblem
from setpoint.solvers import ExactPenalty, FirstOrder, kkt
from setpoint.solvers.kkt import Resting, direct, spectral
from setpoint.training.checkpoint import load_state, save_state

DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]
BRISK = FirstOrder(0.05, "adam", weight_decay=0.0, clip=math.inf, final=1e-3)
SOLVER = ExactPenalty(BRISK, rounds=10, steps=60, stationary=1e-5)


def of(*numbers):
    return torch.tensor(numbers, dtype=torch.float64)


def quadratic(center):
    return lambda x: 0.5 * ((x - center) ** 2).sum()


def half_plane(**options):
    """The nearest point to (2, 1) with x + y <= 1: (1, 0), and λ = 1."""
    return ConstrainedProblem(quadratic(of(2.0, 1.0)), lambda x: x.sum().reshape(1) - 1, **options)


def banana(x):
    return (1 - x[0]) ** 2 + 10 * (x[1] - x[0] ** 2) ** 2


def banana_on_the_disc():
    """On the border, by its angle; λ from ∇f + 2 λ x = 0 along x, which has length 1."""
    angle = minimize_scalar(
        lambda a: banana((np.cos(a), np.sin(a))), bounds=(0.2, 1.2), options={"xatol": 1e-12}
    ).x
    x = of(np.cos(angle), np.sin(angle)).requires_grad_()
    (slope,) = torch.autograd.grad(banana(x), x)
    return x.tolist(), [-0.5 * float(slope @ x.detach())]


def linear_program(seed=3):
    """A random program in a box, answered by HiGHS."""
    rng = np.random.default_rng(seed)
    cost, a, b = rng.normal(size=4), rng.normal(size=(3, 4)), rng.uniform(0.2, 0.6, 3)
    found = linprog(cost, a, b, bounds=(-1, 1))
    rows, right, slope = torch.tensor(a), torch.tensor(b), torch.tensor(cost)
    problem = ConstrainedProblem(
        lambda x: slope @ x, lambda x: rows @ x - right, low=-1.0, high=1.0
    )
    return problem, of(0.0, 0.0, 0.0, 0.0), found.x, -found.ineqlin.marginals


#: name -> problem, start, x*, λ*
KNOWN = {
    "a half-plane": (half_plane(), of(0.0, 0.0), [1.0, 0.0], [1.0]),
    "a constraint that does not bind": (
        ConstrainedProblem(quadratic(of(0.2, 0.1)), lambda x: x.sum().reshape(1) - 1),
        of(1.0, -1.0),
        [0.2, 0.1],
        [0.0],
    ),
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
    "a linear program": linear_program(),
    "a circle": (
        ConstrainedProblem(lambda x: x.sum(), lambda x: ((x**2).sum() - 2).reshape(1)),
        of(0.5, 0.0),
        [-1.0, -1.0],
        [0.5],
    ),
    "a box alone": (
        ConstrainedProblem(quadratic(of(3.0, -0.5, -2.0)), low=of(-1.0, -1.0, -1.0), high=1.0),
        of(0.0, 0.0, 0.0),
        [1.0, -0.5, -1.0],
        [],
    ),
    "a banana on the disc": (
        ConstrainedProblem(banana, lambda x: ((x**2).sum() - 1).reshape(1)),
        of(0.2, 0.2),
        *banana_on_the_disc(),
    ),
    # |x| + 2 |y| with x + y >= 1, the absolute values as t >= ±x: the prices of the pieces are the
    # subgradient, 1 = 1 − 0 for x and 1 = 3/2 − 1/2 for y
    "a kink written out": (
        ConstrainedProblem(
            lambda x: x[2] + 2 * x[3],
            lambda x: torch.stack(
                [1 - x[0] - x[1], x[0] - x[2], -x[0] - x[2], x[1] - x[3], -x[1] - x[3]]
            ),
        ),
        of(0.5, 0.2, 0.8, 0.5),
        [1.0, 0.0, 1.0, 0.0],
        [1.0, 1.0, 0.0, 1.5, 0.5],
    ),
}


def residuals(problem, x, multipliers):
    """Stationarity (bounds hold up what they can), feasibility, sign, complementarity: the worst.

    Written from the conditions, without the solver's own reading of them.
    """
    x = x.clone().requires_grad_()
    v, equal = problem.violations(x)
    (slope,) = torch.autograd.grad(problem.objective(x) + (torch.tensor(multipliers) * v).sum(), x)
    slope, v, at = slope.numpy(), v.detach().numpy(), x.detach().numpy()
    low = np.broadcast_to(-np.inf if problem.low is None else np.asarray(problem.low), at.shape)
    high = np.broadcast_to(np.inf if problem.high is None else np.asarray(problem.high), at.shape)
    slope = np.where(at - low <= 1e-3, np.minimum(slope, 0), slope)
    slope = np.where(high - at <= 1e-3, np.maximum(slope, 0), slope)
    equal = np.array(equal, dtype=bool)
    feasible = np.where(equal, np.abs(v), np.maximum(v, 0))
    complementary = np.where(equal, 0, np.abs(multipliers * v))
    negative = np.where(equal, 0, np.maximum(-multipliers, 0))
    outside = np.maximum(np.maximum(low - at, at - high), 0)
    return max(np.abs(slope).max(), outside.max(), *feasible, *complementary, *negative, 0.0)


@pytest.mark.parametrize("name", KNOWN)
def test_known_primal_and_dual_answers(name):
    problem, start, x, multipliers = KNOWN[name]
    found = SOLVER.solve(problem, start)
    np.testing.assert_allclose(found.best, x, atol=2e-3)
    np.testing.assert_allclose(found.multipliers, multipliers, atol=5e-3)
    assert residuals(problem, found.best, found.multipliers) <= 5e-3
    assert residuals(problem, start, 0 * found.multipliers) > 0.1, "the start is no answer"
    assert found.stationarity <= 5e-3
    assert found.complementarity <= 5e-3
    assert found.objective == pytest.approx(float(problem.objective(found.best)))
    assert (np.abs(found.multipliers) <= found.penalty + 1e-12).all()
    assert "keeps every constraint within 0.001" in found.status
    assert found.snapshots.shape == (len(found.objectives), 1)


def test_a_kink_of_the_objective_is_met_and_priced_by_what_was_paid():
    """Min |x| + 2 |y| with x + y >= 1, as it stands: (1, 0), and a unit of the bound costs 1."""
    problem = ConstrainedProblem(
        lambda x: (x * of(1.0, 2.0)).abs().sum(), lambda x: 1 - x.sum().reshape(1)
    )
    found = SOLVER.solve(problem, of(0.5, 0.4))
    np.testing.assert_allclose(found.best, [1, 0], atol=2e-3)
    np.testing.assert_allclose(found.paid, [1.0], atol=0.1)


@pytest.mark.parametrize("weight", [0.5, 1.5, 5.0])
def test_exact_at_a_finite_weight_where_the_square_never_is(weight):
    """λ* = 1. ℓ₁: violation 2 − 2μ below μ = 1, none above. Square: 2/(1 + 2μ), about λ*/μ."""
    fixed = {"weight": weight, "weight_cap": weight, "rounds": 6, "steps": 100, "patience": 100}
    fixed |= {"stationary": 0.0}
    exact = ExactPenalty(BRISK, **fixed).solve(half_plane(), of(2.0, 1.0))
    broken = float(half_plane().constraints(exact.x))
    if weight < 1:
        assert broken == pytest.approx(2 - 2 * weight, abs=1e-3)
        assert "breaks a constraint" in exact.status
        assert "weight_cap=0.5" in exact.status
    else:
        assert broken <= 1e-3
        np.testing.assert_allclose(exact.multipliers, [1.0], atol=5e-3)
    square = ExactPenalty(BRISK, power=2, **fixed).solve(half_plane(), of(2.0, 1.0))
    left = float(half_plane().constraints(square.x))
    assert left == pytest.approx(2 / (1 + 2 * weight), abs=1e-3)
    assert left > 1e-2
    np.testing.assert_allclose(square.paid, [weight * left], rtol=0.1)


# --- the homotopy --------------------------------------------------------------------------------


def test_weights_grow_where_broken_and_up_to_their_cap():
    never = ConstrainedProblem(quadratic(of(0.0)), lambda x: torch.cat([x - 9, x + 1, 2 - x]))
    told = []
    solver = ExactPenalty(
        BRISK, weight=0.5, weight_growth=2.0, weight_cap=3.0, rounds=6, steps=5, tolerance=1e-2
    )
    found = solver.solve(never, of(0.0), listener=told.append)
    assert [r.round for r in told] == [1, 2, 3, 4, 5, 6]
    for index in (1, 2):
        np.testing.assert_allclose([r.weights[index] for r in told], [0.5, 1, 2, 3, 3, 3])
    assert [float(r.weights[0]) for r in told] == [0.5] * 6, "what holds does not pay more"
    np.testing.assert_allclose(found.penalty, [0.5, 3, 3])
    assert "breaks a constraint by" in found.status
    assert "2 of its weights are at weight_cap=3" in found.status
    own = solver.solve(never, of(0.0), weights=of(1.0, 0.1, 10.0))
    np.testing.assert_allclose(own.penalty, [0.5, 0.3, 30])


def test_the_regulariser_grows_to_its_cap():
    """Min ½ (x − 1)² + ω ½ x²: x = 1 / (1 + ω)."""
    problem = ConstrainedProblem(quadratic(of(1.0)), regulariser=quadratic(of(0.0)))
    told = []
    solver = ExactPenalty(
        BRISK, strength=0.25, strength_growth=2.0, strength_cap=1.0, rounds=8, stationary=1e-6
    )
    found = solver.solve(problem, of(3.0), listener=told.append)
    assert [r.strength for r in told[:4]] == [0.25, 0.5, 1.0, 1.0]
    assert found.strength == 1
    assert found.x.item() == pytest.approx(0.5, abs=1e-3)


def test_it_ends_where_nothing_is_left_to_do():
    problem, start, x, _ = KNOWN["a box alone"]
    found = ExactPenalty(BRISK, rounds=40).solve(problem, start)
    assert "where it came to rest" in found.status
    assert len(found.objectives) < 20
    np.testing.assert_allclose(found.x, x, atol=1e-2)
    told = []
    ExactPenalty(BRISK, rounds=2, steps=400, patience=20, stationary=0.0).solve(
        problem, of(1.0, -0.5, -1.0), listener=told.append
    )
    assert max(r.steps for r in told) < 400, "a round without progress ends"


# --- many variables, many constraints ------------------------------------------------------------


@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
def test_fifty_thousand_constraints_at_once(device, kind):
    """Min ½ |x − c|² + 2 t with x <= t: prices [c − t]₊, and t where they sum to 2."""
    count = 50_000
    c = torch.linspace(-1, 1, count, device=device, dtype=kind) ** 3
    unit = 1 / count  # each row is a small part, and a price of 1 a row is 1/n in all

    def problem(weight):
        return ConstrainedProblem(
            lambda x: unit * (0.5 * ((x[0] - c) ** 2).sum()) + weight * x[1],
            lambda x: x[0] - x[1],
            low=(None, -2.0),
            high=(None, 2.0),
        )

    top = torch.tensor(0.3, device=device, dtype=kind)
    prices = unit * (c - top).clamp(min=0)
    answer = (c.minimum(top), top)
    at = kkt(problem(float(prices.sum())), answer, torch.full((count,), 0.1), tolerance=1e-4)
    assert "without the matrix" in at.how
    assert at.stationarity <= 0.02 * at.gradient
    np.testing.assert_allclose(at.multipliers, prices.cpu(), atol=0.02 * unit)
    solver = ExactPenalty(BRISK, weight=2.0, rounds=3, steps=30)
    found = solver.solve(
        problem(float(prices.sum())), (c.clone(), top + 0.5), weights=torch.full((count,), unit)
    )
    assert found.best[0].dtype == kind
    assert found.best[0].device.type == device
    assert float(found.best[1]) == pytest.approx(0.3, abs=0.05)


def test_variables_of_their_own_shapes_and_rates():
    """A line through points, its noise within a budget: (slopes, shift, shares, unused)."""
    rows = torch.tensor([[0.0, 1.0], [1.0, 0.0], [1.0, 1.0]], dtype=torch.float64)
    right = of(1.0, 2.0, 3.5)

    def objective(x):
        slopes, shift, shares, _ = x
        return ((rows @ slopes + shift + shares - right) ** 2).sum()

    problem = ConstrainedProblem(
        objective,
        lambda x: (x[2].abs().sum() - 0.25).reshape(1),
        low=(None, 0.0, (-1.0), None),
        high=(None, 0.0, of(1.0, 1.0, 1.0), None),
    )
    start = (torch.zeros(2).double(), torch.tensor(0.0).double(), of(0.5, 0.0, 0.0), of(7.0))
    kept = [part.clone() for part in start]
    found = ExactPenalty(BRISK, rates=(1, 1, 0, 1), rounds=10, steps=60).solve(problem, start)
    assert torch.equal(found.x[2], start[2]), "a rate of 0 keeps it"
    assert torch.equal(found.x[3], start[3]), "what nothing depends on stays"
    assert torch.equal(found.x[1], start[1]), "a bound from both sides keeps it too"
    assert all(torch.equal(a, b) for a, b in zip(start, kept, strict=True))
    expected = np.linalg.lstsq(rows.numpy(), (right - start[2]).numpy(), rcond=None)[0]
    np.testing.assert_allclose(found.x[0], expected, atol=1e-2)
    assert "breaks a constraint by 0.25" in found.status


def test_a_set_that_is_no_box():
    """A linear program over the simplex: prices by HiGHS."""
    cost, a = of(1.0, 0.2, 0.6), of(0.0, 1.0, 0.1)
    answer = linprog(cost.numpy(), a[None].numpy(), [0.4], np.ones((1, 3)), [1.0])

    def simplex(x):
        shift = brentq(lambda t: float((x - t).clamp(min=0).sum()) - 1, -5, 5, xtol=1e-14)
        return (x - shift).clamp(min=0)

    problem = ConstrainedProblem(
        lambda x: cost @ x, lambda x: (a @ x - 0.4).reshape(1), project=simplex
    )
    at = kkt(problem, torch.tensor(answer.x), of(5.0))
    np.testing.assert_allclose(at.multipliers, -answer.ineqlin.marginals, atol=2e-2)
    assert at.stationarity <= 2e-2
    elsewhere = kkt(problem, of(1.0, 0.0, 0.0), of(5.0))
    assert elsewhere.stationarity > 0.2


# --- the least forces ----------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 6), st.integers(1, 7), st.integers(0, 2**32 - 1))
def test_the_least_forces_against_explicit_ones(count, size, seed):
    """The same least squares with a column for the force of each bound."""
    rng = np.random.default_rng(seed)
    rows, g = rng.normal(size=(count, size)), rng.normal(size=size)
    side = rng.integers(0, 4, size)  # free, at its low, at its high, at both
    low, high = side % 2 == 1, side >= 2
    least = np.where(rng.random(count) < 0.5, 0.0, -1.0)
    most = rng.uniform(0.2, 2.0, count)
    forces = np.hstack([rows.T, -np.eye(size)[:, low], np.eye(size)[:, high]])
    bounds = (
        np.r_[least, np.zeros(low.sum() + high.sum())],
        np.r_[most, np.full(low.sum() + high.sum(), np.inf)],
    )
    expected = np.sqrt(2 * lsq_linear(forces, -g, bounds, method="bvls").cost)
    resting = Resting(torch.tensor(low), torch.tensor(high))
    box = torch.tensor(least), torch.tensor(most)
    matrix, top = torch.tensor(rows), torch.tensor(g)
    found = direct(matrix, top, resting, box)
    quick = spectral(
        lambda y: y @ matrix,
        lambda r: matrix @ r,
        top,
        resting.counted,
        box,
        torch.zeros(count, dtype=torch.float64),
        matrix.norm(dim=1),
    )
    for paid, slip in ((found, 1e-6), (quick, 1e-2)):
        assert (paid >= box[0] - 1e-12).all()
        assert (paid <= box[1] + 1e-12).all()
        reached = float(resting.counted(top + paid @ matrix).norm())
        assert expected - 1e-7 <= reached <= expected + slip


def test_many_constraints_without_second_derivatives_fall_back_to_the_subgradient():
    class Once(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return 2 * x

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, slope):
            return 2 * slope

    problem = ConstrainedProblem(lambda x: x.sum(), lambda x: Once.apply(x))
    at = kkt(problem, torch.full((300,), 0.5), torch.full((300,), 0.25))
    assert at.how == "the subgradient of the penalty"
    np.testing.assert_allclose(at.multipliers, 0.25)
    assert at.stationarity == pytest.approx(1.5 * math.sqrt(300))


# --- the hooks -----------------------------------------------------------------------------------


def test_settle_takes_a_step_of_its_own():
    """Min (x − y)² + (x − 1)²: x = ½ where y stays 0, both 1 where y follows, x = 7/8 at y <= ¾."""
    solver = ExactPenalty(BRISK, rates=(1, 0), rounds=20, steps=15, stationary=0.0)

    def found(settle, **options):
        problem = ConstrainedProblem(
            lambda x: ((x[0] - x[1]) ** 2 + (x[0] - 1) ** 2).sum(), **options
        )
        return solver.solve(problem, (of(0.0), of(0.0)), settle=settle).x

    assert found(None)[0].item() == pytest.approx(0.5, abs=1e-2)
    x, y = found(lambda x: (x[0], x[0]))
    assert torch.equal(x, y)
    assert x.item() == pytest.approx(1, abs=1e-2)
    x, y = found(lambda x: (x[0], x[0]), high=(None, 0.75))
    assert y.item() == 0.75, "what it gives is put into its bounds"
    assert x.item() == pytest.approx(0.875, abs=1e-2)
    with pytest.raises(DataError, match="settle gave variables"):
        found(lambda x: (x[0], torch.zeros(2)))


def test_the_judge_ranks_iterates_and_the_start_is_one():
    problem, start, told = half_plane(), of(0.0, 0.0), []
    solver = ExactPenalty(BRISK, rounds=3, steps=40, every=3, stationary=0.0)
    found = solver.solve(problem, start, judge=lambda x: (True, -float((x - start).abs().sum())))
    assert torch.equal(found.best, start)
    assert "judged best" in found.status
    assert torch.equal(solver.solve(problem, start, judge=lambda x: 0).best, start), "a tie"
    best = of(0.9, 0.05)

    def judge(x):
        told.append(x)
        return (-float((x - best).norm()),)

    found = solver.solve(problem, start, judge=judge)
    distances = [float((x - best).norm()) for x in told]
    assert len(told) > 3 * 13
    assert float((found.best - best).norm()) == min(distances) < distances[0]
    assert found.violations == pytest.approx(problem.constraints(found.best).numpy())
    with pytest.raises(DataError, match="judge gave"):
        solver.solve(problem, start, judge=lambda x: (1.0, math.nan))


# --- resuming ------------------------------------------------------------------------------------


@pytest.mark.parametrize("optimiser", ["adam", "sgd"])
def test_a_run_taken_up_gives_the_same_iterates(optimiser, tmp_path):
    problem = ConstrainedProblem(
        lambda x: 0.5 * ((x[0] - of(2.0, 1.0)) ** 2).sum() + x[1] ** 2,
        lambda x: (x[0].sum() + x[1] - 1).reshape(1),
        lambda x: (x[0][0] - x[0][1] - x[1]).reshape(1),
        low=(0.0, None),
        regulariser=lambda x: x[0].square().sum(),
    )
    solver = ExactPenalty(
        FirstOrder(0.05, optimiser, weight_decay=0.0, final=0.1), rounds=7, steps=8, every=5
    )
    start = (of(0.3, 0.1), torch.tensor(0.2, dtype=torch.float64))
    hooks = {"settle": lambda x: (x[0], 0.9 * x[1]), "judge": lambda x: (-float(x[1]), 0)}
    states = []
    for given_hooks in ({}, hooks):
        states.clear()
        whole = solver.solve(
            problem, start, listener=lambda r: states.append(r.state), **given_hooks
        )
        half = solver.solve(problem, start, until=4, **given_hooks)
        assert "after 4 of 7 rounds" in half.status
        save_state(tmp_path / "state", half.state)
        for taken in (half.state, load_state(tmp_path / "state"), states[3], half.state):
            away = (of(9.0, 9.0), torch.tensor(9.0, dtype=torch.float64))
            rest = solver.solve(problem, away, resume=taken, **given_hooks)
            for a, b in zip((*rest.x, *rest.best), (*whole.x, *whole.best), strict=True):
                assert torch.equal(a, b)
            np.testing.assert_array_equal(rest.penalty, whole.penalty)
            np.testing.assert_array_equal(rest.objectives, whole.objectives)
            np.testing.assert_array_equal(rest.multipliers, whole.multipliers)
            np.testing.assert_array_equal(rest.paid, whole.paid)
            assert rest.strength == whole.strength
        assert len(whole.objectives) == 8


# --- sentences -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "x"),
    [
        ("power", 3),
        ("rounds", 0),
        ("steps", 1.5),
        ("patience", 0),
        ("every", -1),
        ("weight", 0.0),
        ("weight_growth", 0.9),
        ("weight_cap", 0.5),
        ("strength", -1.0),
        ("strength_growth", math.nan),
        ("strength_cap", 0.01),
        ("tolerance", math.inf),
        ("stationary", "0"),
        ("rates", (1.0, -1.0)),
        ("rates", [1.0]),
    ],
)
def test_odd_settings_are_sentences(name, x):
    with pytest.raises(KindError, match=name):
        ExactPenalty(**{name: x})


@pytest.mark.parametrize(
    ("problem", "start", "options", "words"),
    [
        (ConstrainedProblem(lambda x: x.sum().log()), of(-1.0), {}, "at the start .* not finite"),
        (ConstrainedProblem(lambda x: (x - 1).sqrt().sum()), of(1.0), {}, "round 0 .* not finite"),
        (half_plane(low=1.0, high=0.0), of(0.0, 0.0), {}, "low above its high"),
        (half_plane(low=of(1.0, 2.0, 3.0)), of(0.0, 0.0), {}, r"low of shape \(3,\)"),
        (half_plane(high=math.nan), of(0.0, 0.0), {}, "nan"),
        (half_plane(low=(0.0, 0.0)), of(0.0, 0.0), {}, "low holds 2 bounds for 1"),
        (half_plane(), torch.tensor([1, 2]), {}, "real numbers"),
        (half_plane(), (), {}, "one or more"),
        (half_plane(), of(0.0, 0.0), {"weights": of(1.0, 2.0)}, "weights of shape"),
        (half_plane(), of(0.0, 0.0), {"weights": of(-1.0)}, "positive"),
    ],
)
def test_odd_problems_are_sentences(problem, start, options, words):
    with pytest.raises(DataError, match=words):
        ExactPenalty(rounds=2, steps=5).solve(problem, start, **options)


def test_what_does_not_fit_is_said():
    with pytest.raises(DataError, match="rates holds 2 numbers for 1"):
        ExactPenalty(rates=(1.0, 2.0)).solve(half_plane(), of(0.0, 0.0))
    with pytest.raises(KindError, match="low='0'"):
        SOLVER.solve(half_plane(low="0"), of(0.0, 0.0))
    with pytest.raises(DataError, match="one tensor for 2 variables"):
        SOLVER.solve(ConstrainedProblem(lambda x: x[0].sum(), low=of(0.0)), (of(0.0), of(0.0)))
    state = SOLVER.solve(half_plane(), of(0.0, 0.0), until=1).state
    with pytest.raises(DataError, match="resume gave variables of shapes"):
        SOLVER.solve(half_plane(), of(0.0, 0.0, 0.0), resume=state)
