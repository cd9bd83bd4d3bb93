"""The box dual against scipy's bounded least squares, and the memories against dense BFGS."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize as scipy_minimize

from setpoint.solvers.batched.box_dual import box_dual
from setpoint.solvers.batched.hessian import FullMemory, LimitedMemory


def drawn(seed, rows, sides, rank, scale):
    rng = np.random.default_rng(seed)
    a = rng.normal(size=(rows, sides, rank))
    q = torch.tensor(a @ a.transpose(0, 2, 1))
    w = torch.tensor(rng.normal(size=(rows, 2, sides)) * scale)
    low = -torch.tensor(rng.random(sides) < 0.4).double()
    return q, w, low, torch.ones(sides, dtype=torch.float64)


def residual(q, w, y, low, high):
    """How far y is from its own projected gradient step: 0 exactly at the minimisers."""
    return (y - (y - (y @ q + w)).clamp(low, high)).abs().max()


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 10**6), st.integers(1, 5), st.integers(1, 5), st.sampled_from([1e-6, 1, 1e3]))
def test_up_to_five_sides_the_dual_is_exact(seed, sides, rank, scale):
    q, w, low, high = drawn(seed, 6, sides, rank, scale)
    y = box_dual(q, w, low, high)
    assert ((y >= low) & (y <= high)).all()
    assert residual(q, w, y, low, high) <= 1e-6 * scale


@pytest.mark.parametrize("sides", [6, 9, 20])
def test_beyond_it_comes_as_near_as_scipy(sides):
    q, w, low, high = drawn(sides, 3, sides, sides, 1.0)
    y = box_dual(q, w, low, high)
    assert ((y >= low) & (y <= high)).all()
    for b in range(3):
        best = scipy_minimize(
            lambda v, b=b: v @ q[b].numpy() @ v / 2 + w[b, 0].numpy() @ v,
            np.zeros(sides),
            jac=lambda v, b=b: q[b].numpy() @ v + w[b, 0].numpy(),
            bounds=list(zip(low.tolist(), high.tolist(), strict=True)),
            options={"ftol": 1e-15, "gtol": 1e-12},
        ).fun
        ours = float(y[b, 0] @ q[b] @ y[b, 0] / 2 + w[b, 0] @ y[b, 0])
        assert ours <= best + 1e-9 * abs(best)


def pairs(seed, rows, count, width):
    """Steps, and gradient differences of a random convex quadratic of each row."""
    rng = np.random.default_rng(seed)
    a = rng.normal(size=(rows, width, width))
    hessian = a @ a.transpose(0, 2, 1) + np.eye(width)
    s = rng.normal(size=(count, rows, width))
    return torch.tensor(s), torch.tensor(np.einsum("bij,cbj->cbi", hessian, s))


def bfgs(h, s, y):
    """One textbook update of one row, Nocedal and Wright (6.17)."""
    rho = 1 / (s @ y)
    left = torch.eye(len(s), dtype=h.dtype) - rho * torch.outer(s, y)
    return left @ h @ left.T + rho * torch.outer(s, s)


def test_full_memory_is_textbook_bfgs_in_the_rows_that_take_part():
    s, y = pairs(0, 3, 4, 5)
    memory = FullMemory.start(s[0])
    wanted = [torch.eye(5, dtype=s.dtype) for _ in range(3)]
    for k in range(4):
        where = torch.tensor([True, k != 2, False])
        memory.update(s[k], y[k], where)
        for b in range(3):
            if where[b]:
                if k == 0:
                    wanted[b] = wanted[b] * (s[k, b] @ y[k, b]) / (y[k, b] @ y[k, b])
                wanted[b] = bfgs(wanted[b], s[k, b], y[k, b])
    torch.testing.assert_close(memory.h, torch.stack(wanted))


@pytest.mark.parametrize("count", [1, 3, 5])  # fewer pairs than slots, and a ring that has turned
def test_limited_memory_is_bfgs_from_the_scaled_identity(count):
    s, y = pairs(1, 2, count, 6)
    memory = LimitedMemory.start(s[0], 3)
    for k in range(count):
        memory.update(s[k], y[k], torch.tensor([True, True]))
    for b in range(2):
        gamma = (s[-1, b] @ y[-1, b]) / (y[-1, b] @ y[-1, b])
        h = gamma * torch.eye(6, dtype=s.dtype)
        for k in range(max(0, count - 3), count):
            h = bfgs(h, s[k, b], y[k, b])
        found = memory.apply(torch.eye(6, dtype=s.dtype).expand(2, 6, 6), None)[b]
        torch.testing.assert_close(found, h)


def test_held_coordinates_leave_the_inverse_of_the_free_block():
    s, y = pairs(2, 2, 4, 5)
    memory = FullMemory.start(s[0])
    for k in range(4):
        memory.update(s[k], y[k], torch.tensor([True, True]))
    free = torch.tensor([[True, False, True, True, False], [True, True, True, True, True]])
    found = memory.apply(torch.eye(5, dtype=s.dtype).expand(2, 5, 5), free)
    for b in range(2):
        block = torch.linalg.inv(memory.h[b])[free[b]][:, free[b]]
        wanted = torch.zeros(5, 5, dtype=s.dtype)
        wanted[free[b].nonzero(), free[b].nonzero().T] = torch.linalg.inv(block)
        torch.testing.assert_close(found[b], wanted, rtol=1e-7, atol=1e-9)


def test_limited_memory_stays_positive_definite_among_the_free():
    s, y = pairs(3, 4, 6, 8)
    memory = LimitedMemory.start(s[0], 4)
    for k in range(6):
        memory.update(s[k], y[k], torch.ones(4, dtype=torch.bool))
    free = torch.rand(4, 8, generator=torch.Generator().manual_seed(0)) < 0.6
    h = memory.apply(torch.eye(8, dtype=s.dtype).expand(4, 8, 8), free)
    for b in range(4):
        inner = h[b][free[b]][:, free[b]]
        assert torch.linalg.eigvalsh((inner + inner.T) / 2).min() > 0
        assert h[b][:, ~free[b]].abs().max() == 0
