"""Tensors, dicts and modules behind the augmented Lagrangian; streams without an end."""

import itertools

import pytest
import torch

from setpoint._core.errors import DataError
from setpoint.solvers.augmented import AugmentedLagrangian
from setpoint.solvers.augmented.augmented_lagrangian import solved
from setpoint.solvers.sqp.functions import Functions
from setpoint.solvers.sqp.steering import Box

QUICK = AugmentedLagrangian(epochs=60, every=10)


def rows(seed=0, count=200):
    x = torch.randn(count, 3, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return x, (x @ torch.tensor([1.0, -2.0, 0.5], dtype=torch.float64))[:, None]


def ridge(x, y, radius=1.0):
    """The least squares of norm 1: (XᵀX/n + ν) w = Xᵀy/n with the ν of that norm, by bisection."""
    gram, right, low, high = x.T @ x / len(x), (x.T @ y / len(x))[:, 0], 0.0, 1e3
    for _ in range(100):
        nu = (low + high) / 2
        w = torch.linalg.solve(gram + nu * torch.eye(3, dtype=torch.float64), right)
        low, high = (nu, high) if float(w.norm()) > radius else (low, nu)
    return w


def test_a_dict_and_a_tensor_with_bounds():
    x, y = rows()
    batches = list(zip(x.split(20), y.split(20), strict=True))
    functions = Functions(
        lambda p, b: 0.5 * (b[0] @ p["w"] + p["b"] - b[1]).square().mean(),
        {"w": torch.zeros(3, 1, dtype=torch.float64), "b": torch.zeros((), dtype=torch.float64)},
        lambda p, b: p["w"].square().sum() - 1,
    )
    flat = torch.full((4,), 3.0, dtype=torch.float64)
    flat[3] = 0  # the intercept is held at 0
    seen = []
    result = solved(
        QUICK, functions, Box(-flat, flat), "", batches=batches, callback=lambda p: seen.append(p.x)
    )
    assert result.success, result.status
    assert float(result.x["b"]) == 0
    assert result.x["w"][:, 0].tolist() == pytest.approx(ridge(x, y).tolist(), abs=0.01)
    assert set(seen[-1]) == {"w", "b"}
    assert len(seen) == 60
    assert result.multipliers.low.shape == (4,)


class Tied(torch.nn.Module):
    """One weight in two places."""

    def __init__(self):
        super().__init__()
        self.first, self.second = (torch.nn.Linear(3, 1, bias=False).double() for _ in range(2))
        self.second.weight = self.first.weight

    def forward(self, x):
        return (self.first(x) + self.second(x)) / 2


@pytest.mark.parametrize("batched", [True, False])
def test_a_module_is_left_with_the_solution_and_its_own_parameters(batched):
    x, y = rows()
    torch.manual_seed(0)
    module = Tied()
    before = module.first.weight
    batches = list(zip(x.split(20), y.split(20), strict=True)) if batched else None

    def loss(m, batch=(x, y)):
        return 0.5 * (m(batch[0]) - batch[1]).square().mean()

    def norm(m, batch=None):
        return m.second.weight.square().sum() - 1

    result = solved(QUICK, Functions(loss, module, norm), None, "", batches=batches)
    assert result.success, result.status
    assert module.first.weight is before
    assert module.second.weight is before
    assert list(result.x) == ["first.weight"]
    assert torch.equal(result.x["first.weight"], before.detach())
    near = 0.01 if batched else 1e-5
    assert before.detach()[0].tolist() == pytest.approx(ridge(x, y).tolist(), abs=near)


def test_a_function_that_gives_no_number_is_named():
    functions = Functions(lambda x, b: None, torch.zeros(2))
    with pytest.raises(DataError, match="the objective gave NoneType"):
        solved(QUICK, functions, None, "", batches=[1])


class Stream:
    """Batches without an end."""

    def __iter__(self):
        x, y = rows(0, 1200)
        return itertools.cycle(list(zip(x.split(20), y.split(20), strict=True)))


def test_a_stream_without_an_end_is_judged_by_a_sample():
    solver = AugmentedLagrangian(epochs=20, steps=20)
    functions = Functions(
        lambda w, b: 0.5 * (b[0] @ w - b[1][:, 0]).square().mean(),
        torch.zeros(3, dtype=torch.float64),
        lambda w, b: w.square().sum() - 1,
    )
    result = solved(solver, functions, None, "", batches=Stream())
    x, y = rows(0, 1200)
    assert result.violation <= 1e-3
    assert result.x.tolist() == pytest.approx(ridge(x[:400], y[:400]).tolist(), abs=0.02)
