"""Problems that go wrong: each ends with the right sentence and the best point so far."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog, nnls
from tests.solvers.calls import Counted, close, square
from tests.solvers.known import Known, of, rows
from tests.solvers.known_formulas import banana
from tests.solvers.optimality import conditions

from setpoint._core.errors import DataError, KindError, SetpointError
from setpoint.solvers.solve import solve

# --- what a function does not depend on


@pytest.mark.parametrize("order", ["ab", "ba"])
def test_a_variable_missing_from_a_constraint_and_from_all(order):
    """c is of b alone, f of b alone: b = (1, 1) with price 1, and a stays where it was."""
    x0 = {"a": of(5, 7), "b": of(3, 3)}
    result = solve(
        lambda x: ((x["b"] - 2) ** 2).sum(),
        {name: x0[name] for name in order},
        inequalities=lambda x: square(x["b"]) - 2,
    )
    assert result.success
    close(result.x["b"], [1, 1])
    assert result.x["a"].tolist() == [5, 7]
    close(result.multipliers.inequalities, [1])
    assert list(result.x) == list(order)


def test_every_function_has_a_variable_of_its_own():
    """Three variables of different shapes, each constraint of one, in an order of their own."""
    result = solve(
        lambda x: square(x["c"] - 3) + x["a"].sum() + x["b"].sum(),
        {"a": of(1, 2), "b": of(4.0), "c": torch.ones(2, 2, dtype=torch.float64)},
        inequalities=[lambda x: 2 - x["b"], lambda x: square(x["c"]) - 4, lambda x: -1 - x["a"]],
    )
    assert result.success
    close(result.x["a"], [-1, -1])
    close(result.x["b"], [2])
    close(result.x["c"], np.ones((2, 2)))
    close(result.multipliers.inequalities, [1, 2, 1, 1], atol=1e-5)


def test_a_constant_constraint_that_holds():
    result = solve(
        square, of(4, 2), inequalities=[lambda x: torch.tensor(-1.0), lambda x: 1 - x[0]]
    )
    assert result.success
    close(result.x, [1, 0])
    close(result.multipliers.inequalities, [0, 2])


@pytest.mark.parametrize("side", ["inequalities", "equalities"])
@pytest.mark.parametrize("constant", [lambda x: torch.tensor(0.5), lambda x: 0 * x[0] + 0.5])
def test_a_constant_constraint_that_cannot_hold(side, constant):
    result = solve(lambda x: square(x - 1), of(4, 2), **{side: constant})
    assert not result.success
    assert "infeasible" in result.status
    assert result.violation == 0.5


# --- no solution


@pytest.mark.parametrize(
    ("problem", "least", "where"),
    [
        (Known("c", lambda x: x.sum(), (1, 2), 0, c=lambda x: square(x) + 1), 1, (0, 0)),
        (Known("e", lambda x: x.sum(), (1, 2), 0, e=lambda x: square(x) + 1), 1, (0, 0)),
        (Known("box", square, (0, 0), 0, c=lambda x: 3 - x[0], high=1.0), 2, (1, None)),
        (Known("kink", lambda x: x.sum(), (3, 2), 0, c=lambda x: x.abs().sum() + 2), 2, (0, 0)),
    ],
    ids=lambda p: getattr(p, "name", ""),
)
def test_infeasible_ends_at_the_least_violation(problem, least, where):
    result = solve(problem.f, problem.start, **problem.constraints)
    assert not result.success
    assert "infeasible" in result.status
    assert result.violation == pytest.approx(least, abs=1e-5)
    for found, wanted in zip(result.x.tolist(), where, strict=True):
        assert wanted is None or found == pytest.approx(wanted, abs=1e-4)


def test_infeasible_together_ends_at_the_least_sum():
    """x·x <= 1 and x₁ >= 3: the sum of both is least, 2, at (1, 0)."""
    result = solve(square, of(1, 2), inequalities=lambda x: rows(square(x) - 1, 3 - x[0]))
    assert not result.success
    assert "infeasible" in result.status
    total = max(square(result.x) - 1, 0) + max(3 - result.x[0], 0)
    assert float(total) == pytest.approx(2, abs=5e-3)


@pytest.mark.parametrize(
    "problem",
    [
        Known("plane", lambda x: -x[0], (1, 2), 0),
        Known("cone", lambda x: -x.sum(), (1, 2), 0, c=lambda x: x[0] - x[1]),
        Known("line", lambda x: x.sum(), (1, 2), 0, e=lambda x: x[0] - x[1]),
        Known("cube", lambda x: (x**3).sum(), (1, 2), 0),
        Known("exponential", lambda x: -torch.exp(x).sum(), (1, 2), 0),
        Known("kink", lambda x: -x.abs().sum(), (1, 2), 0, low=0.0),
    ],
    ids=lambda p: p.name,
)
def test_unbounded(problem):
    result = solve(problem.f, problem.start, **problem.constraints)
    assert not result.success
    assert "unbounded" in result.status
    assert result.fun < -1e6
    assert math.isfinite(result.fun)
    assert torch.isfinite(result.x).all()
    assert result.violation <= 1e-8 * (1 + float(result.x.abs().max()))


def test_a_pole_at_a_bound_is_no_solution():
    """log x falls without end at 0."""
    result = solve(lambda x: torch.log(x[0]) + square(x), of(1, 3), bounds=(0.0, None))
    assert not result.success
    assert math.isfinite(result.fun)


# --- not a number


def test_not_a_number_at_the_start():
    result = solve(lambda x: torch.log(x).sum(), of(-1, 2))
    assert not result.success
    assert "x0" in result.status
    assert "nan" in result.status
    close(result.x, [-1, 2])


def test_a_constraint_that_is_not_a_number_at_the_start():
    result = solve(square, of(-1, 2), inequalities=lambda x: torch.sqrt(x) - 3)
    assert not result.success
    assert "constraint" in result.status
    assert "nan" in result.status


def test_infinite_at_the_start():
    result = solve(lambda x: 1 / x[0].abs() + square(x), of(0, 3))
    assert not result.success
    assert "x0" in result.status


def test_not_a_number_in_a_part_of_the_space():
    result = solve(lambda x: (x - torch.log(x)).sum(), of(5, 0.1))
    assert result.success
    close(result.x, [1, 1])


def test_a_constraint_that_is_not_a_number_in_a_part_of_the_space():
    result = solve(
        lambda x: (x - 1).abs().sum(), of(9, 5), inequalities=lambda x: 2 - torch.sqrt(x)
    )
    assert result.success
    close(result.x, [4, 4])


def test_infinite_in_a_part_of_the_space():
    """A wall that the solution lies well away from."""
    wall = torch.tensor(math.inf, dtype=torch.float64)
    result = solve(lambda x: square(x - 1) if x[0] > 0.5 else wall, of(5, -3))
    assert result.success
    close(result.x, [1, 1])


@pytest.mark.parametrize("spoiled", [math.nan, math.inf])
@pytest.mark.parametrize("which", ["objective", "inequalities"])
def test_not_a_number_from_some_call_on(spoiled, which):
    """The best point so far is one of those before, and the sentence says what came."""
    functions = {"objective": banana, "inequalities": lambda x: square(x) - 1.5}
    functions[which] = Counted(functions[which], after=8, with_=spoiled)
    f, c = functions.values()
    result = solve(f, of(-0.6, 0.6), inequalities=c)
    assert not result.success
    assert "number" in result.status
    assert math.isfinite(result.fun)
    assert result.fun <= float(banana(of(-0.6, 0.6)))
    seen = functions[which].points[:8]
    assert any(torch.equal(result.x, point) for point in seen)


def test_a_gradient_that_is_not_a_number_at_the_solution():
    result = solve(lambda x: torch.sqrt(square(x)), of(1, 3))
    assert result.fun <= 1e-6
    assert math.isfinite(result.fun)
    assert torch.isfinite(result.x).all()


def test_a_gradient_that_is_not_a_number_at_the_start():
    result = solve(lambda x: torch.sqrt(square(x)) + 0.5 * x[0], of(0, 0))
    assert not result.success
    assert "gradient" in result.status


# --- no slope


def test_a_start_without_slope():
    result = solve(lambda x: (x**4).sum(), of(0, 0))
    assert result.success
    assert result.iterations == 0


def test_no_slope_anywhere_but_a_constraint():
    result = solve(lambda x: 0 * x.sum() + 3, of(4, 0), inequalities=lambda x: square(x) - 1)
    assert result.success
    assert result.fun == 3
    assert square(result.x) <= 1 + 1e-8


def test_a_constraint_without_slope_where_it_is_broken():
    """1 - x·x <= 0 has no slope at 0: a way out by the objective, or the right sentence."""
    result = solve(
        lambda x: x.sum(), of(0, 0), inequalities=lambda x: 1 - square(x), bounds=(-5.0, 5.0)
    )
    if result.success:
        close(result.x, [-5, -5])
    else:
        assert "infeasible" in result.status
        assert result.violation == 1


def test_a_constraint_without_slope_and_no_way_out():
    result = solve(lambda x: square(x), of(0, 0), inequalities=lambda x: 1 - square(x))
    assert result.success == (result.violation <= 1e-8)
    assert result.success or "infeasible" in result.status


@pytest.mark.parametrize("cut", [lambda x: square(x.detach()), lambda x: torch.tensor(2.0)])
def test_an_objective_that_autograd_cannot_see(cut):
    try:
        result = solve(cut, of(4, 3))
    except SetpointError as error:
        said = str(error)
    else:
        said = result.status
        close(result.x, [4, 3])
    assert any(word in said for word in ("depend", "slope", "constant", "autograd"))


# --- what makes no problem


def shrinking(x):
    return x if x[0] > 0.5 else x[:1]


@pytest.mark.parametrize(
    ("call", "word"),
    [
        (lambda: solve(lambda x: x**2, of(1, 2)), "objective"),
        (lambda: solve(lambda x: None, of(1, 2)), "objective"),
        (lambda: solve(lambda x: 1.0, of(1, 2)), "objective"),
        (lambda: solve(lambda x: square(x) * 1j, of(1, 2)), "objective"),
        (lambda: solve("square", of(1, 2)), "objective"),
        (lambda: solve(square, torch.tensor([1, 2])), "x0"),
        (lambda: solve(square, [1.0, 2.0]), "x0"),
        (lambda: solve(square, np.ones(2)), "x0"),
        (lambda: solve(square, torch.zeros(0)), "x0"),
        (lambda: solve(square, {}), "x0"),
        (lambda: solve(square, of(math.nan, 1)), "x0"),
        (lambda: solve(square, of(1, 1), bounds=(of(0, 0, 0), None)), "shape"),
        (lambda: solve(square, of(1, 1), bounds=(1.0, 0.0)), "bounds"),
        (lambda: solve(square, of(1, 1), bounds=(math.nan, 0.0)), "nan"),
        (lambda: solve(square, of(1, 1), bounds=3.0), "bounds"),
        (lambda: solve(square, of(1, 1), bounds=(0.0, 1.0, 2.0)), "bounds"),
        (lambda: solve(square, of(1, 1), inequalities=3.0), "inequalities"),
        (lambda: solve(square, of(1, 1), equalities=[square, 3.0]), "equalities"),
        (lambda: solve(square, of(1, 1), inequalities=lambda x: None), "inequalities"),
        (lambda: solve(square, of(1, 1), inequalities=shrinking), "number"),
        (lambda: solve(square, of(1, 1), qp="simplex"), "qp"),
        (lambda: solve(square, of(1, 1), hessian="half"), "hessian"),
        (lambda: solve(square, of(1, 1), hessian=0), "hessian"),
        (lambda: solve(square, of(1, 1), method="newton"), "method"),
        (lambda: solve(square, of(1, 1), tolerance=-1.0), "tolerance"),
        (lambda: solve(square, of(1, 1), feasibility=math.nan), "feasibility"),
        (lambda: solve(square, of(1, 1), max_iterations=-1), "max_iterations"),
        (lambda: solve(square, of(1, 1), max_evaluations=0), "max_evaluations"),
        (lambda: solve(square, of(1, 1), max_seconds=-1.0), "max_seconds"),
    ],
)  # fmt: skip
def test_what_makes_no_problem_is_refused(call, word):
    with pytest.raises((DataError, KindError), match=word):
        call()


def test_an_error_of_the_users_function_comes_through():
    def broken(x):
        raise ZeroDivisionError("mine")

    with pytest.raises(ZeroDivisionError, match="mine"):
        solve(broken, of(1, 2))


# --- many constraints, and too many of them


def nearest(point, normals, offsets):
    """The nearest point of {x: A x <= b}: least distance programming by non-negative least squares.

    With y = x - p: min |y| s.t. G y >= h, G = -A, h = A p - b. Lawson and Hanson (1974), ch. 23.
    """
    h = normals @ point - offsets
    stacked = np.vstack([-normals.T, h])
    prices, _ = nnls(stacked, np.r_[np.zeros(len(point)), 1.0])
    left = stacked @ prices - np.r_[np.zeros(len(point)), 1.0]
    return point - left[:-1] / left[-1]


def test_a_thousand_half_spaces():
    rng = np.random.default_rng(0)
    normals = rng.normal(size=(1000, 6))
    offsets = np.abs(rng.normal(size=1000)) + 1
    point = 3 * rng.normal(size=6)
    a, b, p = (torch.tensor(t) for t in (normals, offsets, point))
    result = solve(lambda x: square(x - p), p, inequalities=lambda x: a @ x - b)
    assert result.success, result.status
    assert result.violation <= 1e-8
    close(result.x, nearest(point, normals, offsets))
    known = Known("", lambda x: square(x - p), tuple(point), 0, c=lambda x: a @ x - b)
    found = conditions(known, result)
    assert found.stationarity <= 1e-5 * found.scale
    assert found.complementarity <= 1e-5 * found.scale


def test_a_linear_program_with_a_thousand_constraints():
    rng = np.random.default_rng(1)
    normals, offsets, cost = rng.normal(size=(1000, 4)), 1 + rng.random(1000), rng.normal(size=4)
    truth = linprog(cost, normals, offsets, bounds=[(None, None)] * 4)
    a, b, c = (torch.tensor(t) for t in (normals, offsets, cost))
    result = solve(lambda x: c @ x, torch.zeros(4).double(), inequalities=lambda x: a @ x - b)
    assert result.success, result.status
    assert result.fun == pytest.approx(truth.fun, rel=1e-6)
    assert result.violation <= 1e-8


@given(seed=st.integers(0, 10**6), n=st.integers(1, 4), m=st.integers(1, 7))
@settings(max_examples=15, deadline=None)
def test_the_nearest_point_of_any_polyhedron(seed, n, m):
    """With an inner point, so that there is one; the outside truth is least squares."""
    rng = np.random.default_rng(seed)
    normals, offsets = rng.normal(size=(m, n)), rng.random(m) + 0.1
    point = 3 * rng.normal(size=n)
    a, b, p = (torch.tensor(t) for t in (normals, offsets, point))
    result = solve(lambda x: square(x - p), 0 * p, inequalities=lambda x: a @ x - b)
    assert result.success, result.status
    close(result.x, nearest(point, normals, offsets), atol=1e-5)


@pytest.mark.parametrize("qp", ["daqp", "piqp"])
def test_an_equation_given_three_times(qp):
    line = lambda x: rows(x.sum() - 1, x.sum() - 1, 2 * x.sum() - 2)  # noqa: E731
    result = solve(square, of(10, -10), equalities=line, qp=qp)
    assert result.success, result.status
    close(result.x, [0.5, 0.5])
    assert of(1, 1, 2) @ torch.tensor(result.multipliers.equalities) == pytest.approx(-1, abs=1e-6)


@pytest.mark.parametrize("qp", ["daqp", "piqp"])
def test_the_same_constraint_many_times(qp):
    result = solve(square, of(10, -10), inequalities=[lambda x: 1 - x.sum()] * 20, qp=qp)
    assert result.success, result.status
    close(result.x, [0.5, 0.5])
    assert result.multipliers.inequalities.sum() == pytest.approx(1, abs=1e-6)


def test_more_equations_than_variables_that_agree():
    """Five lines through one point."""
    a = torch.tensor(np.random.default_rng(2).normal(size=(5, 2)))
    result = solve(lambda x: x.sum(), of(3, -2), equalities=lambda x: a @ (x - 1))
    assert result.success, result.status
    close(result.x, [1, 1])
