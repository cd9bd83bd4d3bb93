"""Problems with known answers: value, violation and the conditions of an optimum, by either QP."""

from functools import cache

import numpy as np
import pytest
from scipy.optimize import Bounds
from scipy.optimize import minimize as scipy_minimize
from tests.solvers.known_kinks import KINKS
from tests.solvers.known_problems import PROBLEMS
from tests.solvers.optimality import (
    away,
    bundled,
    conditions,
    differences,
    flat,
    jacobian,
    sides,
    values,
)

from setpoint.solvers.solve import solve

SOLVERS = ("daqp", "piqp")
BY_NAME = {problem.name: problem for problem in (*PROBLEMS, *KINKS)}
#: hundreds of steps, by degenerate minima, bad scales or many kinks; they are run by themselves
LENGTHY = {"hs46", "hs72", "hs75", "hs111", "hs117", "wong1", "wong2", "rosen-suzuki", "mad6"}
LENGTHY |= {"fused lasso", "robust pca"}


def named(problems, *solvers):
    """Names, or names with solvers; every other problem meets its second solver in the slow run."""
    found = []
    for place, problem in enumerate(problems):
        for k, qp in enumerate(solvers or (None,)):
            slow = problem.name in LENGTHY or (k > 0 and place % 2 > 0)
            case = (problem.name,) if qp is None else (problem.name, qp)
            found.append(pytest.param(*case, marks=pytest.mark.slow if slow else ()))
    return found


KINK = 1e-5  #: what a combination of gradients may leave, relative to their lengths


@cache
def solved(name, qp):
    problem = BY_NAME[name]
    return solve(problem.f, problem.start, **problem.constraints, qp=qp)


def close(value, target):
    return abs(value - target) <= 1e-6 * max(1, abs(target))


def held(problem, result):
    """The value, the constraints, and what the result says of itself."""
    assert result.success, result.status
    assert any(close(result.fun, value) for value in (problem.best, *problem.others))
    assert result.fun == pytest.approx(float(problem.f(result.x)), rel=1e-12, abs=1e-14)
    assert away(problem, flat(result)) <= 1e-8
    assert result.violation <= 1e-8


def multiplied(found):
    """Signs and slackness, which hold with kinks and without."""
    assert found.wrong_sign == 0
    assert found.complementarity <= 1e-6 * found.scale


def test_there_are_as_many_as_promised():
    assert len({p.name for p in PROBLEMS}) == len(PROBLEMS) >= 36
    assert len({p.name for p in KINKS}) == len(KINKS) >= 14


@pytest.mark.parametrize(("name", "qp"), named(PROBLEMS, *SOLVERS))
def test_smooth(name, qp):
    problem, result = BY_NAME[name], solved(name, qp)
    held(problem, result)
    at_x, said = conditions(problem, result), bundled(problem, result)
    multiplied(at_x)
    assert at_x.stationarity <= 1e-6 * at_x.scale
    assert said.stationarity == pytest.approx(result.kkt, abs=1e-9 * said.scale)


@pytest.mark.parametrize(("name", "qp"), named(KINKS, *SOLVERS))
def test_kinked(name, qp):
    problem, result = BY_NAME[name], solved(name, qp)
    held(problem, result)
    found = bundled(problem, result)
    multiplied(found)
    assert found.stationarity <= KINK * found.scale
    assert found.stationarity == pytest.approx(result.kkt, abs=1e-9 * found.scale)
    assert found.radius <= 1e-3 * max(1, np.linalg.norm(flat(result)))


@pytest.mark.parametrize(
    ("name", "qp"), [*named(PROBLEMS, *SOLVERS)[1::2], *named(KINKS, *SOLVERS)[1::2]]
)
def test_either_quadratic_solver_gives_the_same(name, qp):
    one, other = solved(name, SOLVERS[0]), solved(name, qp)
    assert close(one.fun, other.fun)


@pytest.mark.parametrize("unit", [1e-6, 1e6])
@pytest.mark.parametrize("name", ["hs7", "hs12", "mad1", "cb3 on a line"])
def test_the_unit_of_x_does_not_matter(name, unit):
    problem = BY_NAME[name]
    scaled = {side: lambda x, g=g: g(x / unit) for side, g in problem.constraints.items()}
    result = solve(lambda x: problem.f(x / unit), unit * problem.start, **scaled)
    assert result.success, result.status
    assert close(result.fun, problem.best)
    assert away(problem, flat(result) / unit) <= 1e-8


@pytest.mark.parametrize("name", named(PROBLEMS))
def test_slopes_are_those_of_differences(name):
    """Autograd against differences at the start, so that the check itself stands on something."""
    problem = BY_NAME[name]
    low, high = sides(problem)
    x = np.clip(np.array(problem.x0, float), low, high)
    with np.errstate(all="ignore"):
        for function in (problem.f, problem.c, problem.e):
            exact = jacobian(function, x)
            sizes = (np.abs(array).max(initial=0) for array in (exact, values(function, x)))
            size = 1e-6 * (1 + sum(sizes))
            near = differences(function, x)
            assert np.abs(near - exact)[np.isfinite(near)].max(initial=0) <= 10 * size


def test_problem_55_along_its_segment():
    """Dependent equations, which SLSQP cannot do; they leave a segment, t in [0, 1]."""
    problem = BY_NAME["hs55"]
    t = np.linspace(0, 1, 1001)
    points = np.stack([t, (4 + t) / 3, (5 - 4 * t) / 3, 1 - t, (2 - t) / 3, (1 + 4 * t) / 3], 1)
    assert max(away(problem, x) for x in points) <= 1e-12
    heights = np.array([values(problem.f, x)[0] for x in points])
    assert heights.min() == heights[0] == pytest.approx(problem.best)
    assert heights[-1] == pytest.approx(problem.others[0])
    assert heights[-1] < heights[-2]


@pytest.mark.slow
@pytest.mark.parametrize("name", [p.name for p in PROBLEMS if p.name != "hs55"])
def test_the_table_by_another_solver(name):
    """No start of scipy's SLSQP comes below the table, and one of them comes to it."""
    problem = BY_NAME[name]
    low, high = sides(problem)
    rng = np.random.default_rng(0)
    limits = [
        {
            "type": kind,
            "fun": lambda x, g=g, sign=sign: sign * values(g, x),
            "jac": lambda x, g=g, sign=sign: sign * jacobian(g, x),
        }
        for kind, g, sign in (("ineq", problem.c, -1), ("eq", problem.e, 1))
        if g is not None
    ]
    found = []
    for spread in (0, 0.1, 0.5, 0.5, 1, 1, 2, 2):
        start = np.array(problem.x0) + spread * rng.normal(size=len(problem.x0))
        with np.errstate(all="ignore"):
            end = scipy_minimize(
                lambda x: values(problem.f, x)[0],
                np.clip(start, low, high),
                jac=lambda x: jacobian(problem.f, x)[0],
                bounds=Bounds(low, high),
                constraints=limits,
                method="SLSQP",
                options={"ftol": 1e-15, "maxiter": 400},
            )
        if np.isfinite(end.fun) and away(problem, end.x) <= 1e-6:  # SLSQP is no finer on hs37
            found.append(end.fun)
    tops = (problem.best, *problem.others)
    assert any(close(value, top) for value in found for top in tops)
    assert min(found) >= problem.best - 1e-5 * max(1, abs(problem.best))
