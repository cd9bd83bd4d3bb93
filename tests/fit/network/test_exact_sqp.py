"""The exact problem with its last round solved by SQP, and SQP as a penalty's inner solver."""

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from tests.oracles.linear_instances import GOALS, instance

import setpoint as sp
from setpoint.fit.network.exact_run import fit_exact
from setpoint.methods import Exact
from setpoint.programs import ConstrainedProblem
from setpoint.solvers import ExactPenalty, Sqp

FEW = {"rounds": 10, "steps": 20, "walks": 50, "starts": 8}


def linear(width):
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(width, 1), torch.nn.Flatten(0))


def made(n, seed=0):
    """Two clouds that overlap."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % 4 == 0)
    X = rng.normal(size=(n, 3)) + 1.5 * y[:, None]
    return torch.tensor(X, dtype=torch.float32), torch.tensor(y).long()


@pytest.mark.parametrize("goal", GOALS)
def test_as_good_as_brute_force_over_all_labelings(goal):
    case = instance(goal, 50)
    X, y = torch.tensor(case.X, dtype=torch.float32), torch.tensor(case.y)
    weight = None if case.weight is None else torch.tensor(case.weight, dtype=torch.float32)
    model = linear(X.shape[1])
    solved = fit_exact(case.goal, model, X, y, weight=weight, method=Exact(solver="sqp", **FEW))
    with torch.no_grad():
        labels = tuple((model(X) >= solved.threshold).int().tolist())
    found = case.value(labels)
    assert solved.verdict.feasible == (found is not None) == (case.best is not None)
    if found is not None:
        assert float(found) == pytest.approx(case.best, abs=1e-9)


def test_its_round_follows_those_of_the_penalty_and_is_told():
    X, y = made(40)
    told = []
    method = Exact(solver="sqp", rounds=5, steps=20, walks=0)
    goal = "maximize recall subject to precision >= 0.8"
    solved = fit_exact(goal, linear(3), X, y, method=method, listener=told.append)
    assert [row["epoch"] for row in solved.history] == list(range(6))
    assert solved.verdict.train.value >= solved.verdict.start.value
    assert "of 1 rounds" in solved.verdict.status


def test_what_it_does_not_take():
    X, y = made(2001)
    with pytest.raises(sp.DataError, match=r"2,000 rows.*2,001 rows of a binary task"):
        fit_exact("maximize f1", linear(3), X, y, method=Exact(solver="sqp"))
    X, y = made(40)
    task = sp.Task.multiclass(range(2))
    with pytest.raises(sp.DataError, match="two classes"):
        fit_exact(
            "maximize macro(f1)", torch.nn.Linear(3, 2), X, y, task=task, method=Exact(solver="sqp")
        )
    with pytest.raises(sp.KindError, match="power=2"):
        fit_exact("maximize f1", linear(3), X, y, method=Exact(solver="sqp", power=2))
    with pytest.raises(sp.KindError, match="penalty"):
        Exact(solver="penality")


def test_a_penalty_whose_rounds_are_solved_by_sqp():
    """A regulariser, a bound, an equation and a variable that stays, against SLSQP."""
    problem = ConstrainedProblem(
        objective=lambda x: (x[0] - 2).square().sum(),
        constraints=lambda x: x[0].sum().reshape(1) - 1,
        equations=lambda x: (x[0][0] - x[1]).reshape(1),
        regulariser=lambda x: x[0].square().sum(),
        low=(0.0, 0.1),
        high=(None, 0.1),
    )
    start = (torch.zeros(3, dtype=torch.float64), torch.tensor(0.1, dtype=torch.float64))
    solver = ExactPenalty(primal=Sqp(), rounds=3, strength=0.5, strength_cap=0.5, rates=(1.0, 0.0))
    found = solver.solve(problem, start)
    truth = minimize(
        lambda z: ((z - 2) ** 2).sum() + 0.5 * (z**2).sum(),
        np.zeros(3),
        bounds=[(0, None)] * 3,
        constraints=[
            {"type": "ineq", "fun": lambda z: 1 - z.sum()},
            {"type": "eq", "fun": lambda z: z[0] - 0.1},
        ],
        tol=1e-12,
    )
    assert found.x[0].numpy() == pytest.approx(truth.x, abs=1e-6)
    assert float(found.x[1]) == 0.1
    assert found.stationarity <= 1e-5


def test_sqp_refuses_what_it_cannot_keep():
    problem = ConstrainedProblem(lambda x: x.sum(), project=lambda x: x)
    with pytest.raises(sp.DataError, match="no box"):
        Sqp().descend(problem, torch.zeros(2), torch.zeros(0))
    with pytest.raises(sp.DataError, match="2,001 constraints"):
        Sqp().descend(ConstrainedProblem(lambda x: x.sum()), torch.zeros(2), torch.zeros(2001))
    with pytest.raises(sp.KindError, match="qp"):
        Sqp(qp="osqp")
