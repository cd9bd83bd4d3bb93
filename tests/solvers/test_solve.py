"""Where x starts and how a run ends: kinds of x0, bounds, limits, callbacks, resuming."""

import math

import numpy as np
import pytest
import torch
from tests.solvers.calls import Counted, close, square
from tests.solvers.known import of
from tests.solvers.known_formulas import banana, rosen_suzuki, rosen_suzuki_sides

import setpoint as sp
from setpoint.solvers.solve import solve

# --- x0 and bounds


def test_fixed_variables():
    bounds = (of(0, 2, -math.inf), of(5, 2, math.inf))
    result = solve(lambda x: square(x - 3), of(1, 1, 1), bounds=bounds)
    assert result.success
    close(result.x, [3, 2, 3])
    close(result.multipliers.high - result.multipliers.low, [0, 2, 0])


def test_nothing_is_free():
    result = solve(lambda x: square(x - 3), of(1, 1), bounds=(of(0, 2), of(0, 2)))
    assert result.success
    assert result.x.tolist() == [0, 2]


def test_bounds_are_kept_at_every_call():
    f = Counted(lambda x: torch.sqrt(1 - x[0]) + torch.sqrt(x[1]) + square(x - 3))
    result = solve(f, of(10, -10), bounds=(of(-1, 0.5), of(0.5, 4)))
    points = torch.stack(f.points)
    assert (points >= of(-1, 0.5)).all()
    assert (points <= of(0.5, 4)).all()
    assert result.success


def test_float32():
    target = torch.tensor([3.0, 4.0])
    result = solve(
        lambda x: square(x - target), torch.zeros(2), inequalities=lambda x: square(x) - 1
    )
    assert result.success, result.status
    assert result.x.dtype == torch.float32
    close(result.x, [0.6, 0.8], atol=1e-4)
    assert result.violation <= 1e-5
    close(result.multipliers.inequalities, [4], atol=1e-2)


def test_x0_is_left_alone():
    x0 = of(-2, 1).requires_grad_()
    result = solve(banana, x0)
    assert result.success
    assert x0.tolist() == [-2, 1]
    assert x0.requires_grad
    assert x0.grad is None
    assert not result.x.requires_grad


def test_x_keeps_its_shape():
    wanted = torch.arange(6, dtype=torch.float64).reshape(2, 3)
    result = solve(lambda x: square(x - wanted), torch.zeros(2, 3).double(), bounds=(None, 4.0))
    assert result.x.shape == (2, 3)
    close(result.x, wanted.clamp(max=4))
    single = solve(lambda x: (x - 3) ** 2, torch.tensor(1.0, dtype=torch.float64))
    assert single.x.shape == ()
    close(single.x, 3)


def test_a_dict_is_left_alone_and_bounded_by_name():
    x0 = {"a": of(0, 0), "b": of(0)}
    result = solve(
        lambda x: square(x["a"] - 2) + square(x["b"] - 2), x0, bounds=(None, {"a": of(1, 3)})
    )
    close(result.x["a"], [1, 2])
    close(result.x["b"], [2])
    assert x0["a"].tolist() == [0, 0]


def test_a_module_ends_with_the_solution():
    """Least squares with a bound on the weights' length."""
    data = np.random.default_rng(0).normal(size=(30, 3))
    x, y = torch.tensor(data), torch.tensor(data @ [1.0, -2.0, 0.5] + 0.3)
    model = torch.nn.Linear(3, 1).double()
    frozen = model.bias.requires_grad_(False).clone()
    result = solve(
        lambda m: ((m(x).squeeze(1) - y) ** 2).mean(),
        model,
        inequalities=lambda m: square(m.weight) - 1,
    )
    assert result.success, result.status
    with torch.no_grad():
        assert float(((model(x).squeeze(1) - y) ** 2).mean()) == pytest.approx(result.fun)
    assert float(square(model.weight.detach())) == pytest.approx(1, abs=1e-7)
    assert torch.equal(model.bias, frozen)
    # By hand: (A + λ) w = b on the sphere, A and b of mean squares.
    a, b = data.T @ data / 30, data.T @ (y.numpy() - float(frozen)) / 30
    price = result.multipliers.inequalities[0]
    close(model.weight.detach().numpy()[0], np.linalg.solve(a + price * np.eye(3), b))


# --- limits, callbacks, resuming


@pytest.mark.parametrize(
    ("limit", "word"),
    [
        ({"max_iterations": 3}, "max_iterations"),
        ({"max_iterations": 0}, "max_iterations"),
        ({"max_evaluations": 7}, "max_evaluations"),
        ({"max_seconds": 1e-6}, "max_seconds"),
    ],
)
def test_limits(limit, word):
    f = Counted(banana)
    result = solve(f, of(-2, 1), **limit)
    assert not result.success
    assert word in result.status
    assert result.iterations <= limit.get("max_iterations", 1000)
    assert result.evaluations <= limit.get("max_evaluations", 1000)
    assert result.evaluations == len(f.points)
    assert result.fun == min(float(banana(x)) for x in f.points)
    assert result.fun == float(banana(result.x))


def test_a_callback_ends_the_run():
    told = []

    def third(progress):
        told.append(progress)
        return len(told) == 3

    result = solve(banana, of(-2, 1), callback=third)
    assert "callback" in result.status
    assert not result.success
    assert result.iterations == 3 == len(told)
    assert [p.iteration for p in told] == [1, 2, 3]
    assert result.fun == pytest.approx(min(p.fun for p in told))


def test_an_error_of_the_callback_comes_through():
    with pytest.raises(ZeroDivisionError):
        solve(banana, of(-2, 1), callback=lambda progress: 1 / 0)


def kinked(x):
    return rosen_suzuki(x) + 10 * rosen_suzuki_sides(x)[0].clamp(min=0)


CASES = [
    pytest.param(rosen_suzuki, rosen_suzuki_sides, "full", id="smooth"),
    pytest.param(rosen_suzuki, rosen_suzuki_sides, 4, id="limited"),
    pytest.param(kinked, lambda x: rosen_suzuki_sides(x)[1:], "full", id="kinked"),
]


@pytest.mark.parametrize(("f", "c", "hessian"), CASES)
@pytest.mark.parametrize("stop", [1, 6])
def test_resuming_is_as_if_never_stopped(f, c, hessian, stop):
    call = {"inequalities": c, "hessian": hessian, "bounds": (-3.0, 2.0)}
    whole = solve(f, torch.zeros(4).double(), **call)
    part = solve(f, torch.zeros(4).double(), **call, max_iterations=stop)
    assert part.iterations == stop
    rest = solve(f, torch.zeros(4).double(), **call, resume=part.state)
    assert whole.success
    assert torch.equal(rest.x, whole.x)
    assert rest.fun == whole.fun
    assert rest.status == whole.status
    assert rest.iterations == whole.iterations


def test_an_interrupt_gives_the_best_so_far_and_can_be_taken_up():
    def interrupted(x):
        if len(f.points) == 12:
            raise KeyboardInterrupt
        return banana(x)

    f = Counted(interrupted)
    result = solve(f, of(-2, 1))
    assert not result.success
    assert "interrupted" in result.status
    assert result.fun <= 909
    rest = solve(banana, of(-2, 1), resume=result.state)
    assert rest.success
    close(rest.x, [1, 1])


@pytest.mark.parametrize(("f", "c", "hessian"), CASES)
def test_the_same_twice(f, c, hessian):
    one, two = (
        solve(f, torch.zeros(4).double(), inequalities=c, hessian=hessian) for _ in range(2)
    )
    assert torch.equal(one.x, two.x)
    assert one.iterations == two.iterations
    assert one.evaluations == two.evaluations
    np.testing.assert_array_equal(one.multipliers.inequalities, two.multipliers.inequalities)


def test_the_global_generators_are_left_alone():
    torch.manual_seed(3)
    np.random.seed(3)  # noqa: NPY002
    before, old = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    solve(kinked, torch.zeros(4).double(), inequalities=lambda x: rosen_suzuki_sides(x)[1:])
    assert torch.equal(torch.get_rng_state(), before)
    np.testing.assert_array_equal(np.random.get_state()[1], old)  # noqa: NPY002


class Weights(torch.nn.Module):
    def __init__(self, w):
        super().__init__()
        self.w = torch.nn.Parameter(w.clone())


@pytest.mark.parametrize("seed", range(4))
def test_a_module_is_the_same_problem_as_a_tensor(seed):
    """More constraints than are taken one by one, and weights that enter by more than products."""
    rng = torch.Generator().manual_seed(seed)
    w = torch.randn(4, generator=rng, dtype=torch.float64)
    A = torch.randn(6, 4, generator=rng, dtype=torch.float64)

    def f(w):
        return (w.tanh() * torch.arange(1.0, 5.0, dtype=torch.float64)).sum() + w.square().sum()

    def c(w):
        return A @ w**2 - 1

    one = solve(f, w, inequalities=c)
    module = Weights(w)
    other = solve(lambda m: f(m.w), module, inequalities=lambda m: c(m.w))
    assert torch.equal(one.x, other.x["w"])
    assert torch.equal(one.x, module.w.data)
    assert isinstance(module.w, torch.nn.Parameter)


@pytest.mark.parametrize("start", [(0.0, 0.6), (1.0, -5.0)])
@pytest.mark.parametrize("held", ["by a bound", "by a constraint"])
def test_a_steep_slope_that_is_held_does_not_hide_the_others(start, held):
    x0 = torch.tensor(start, dtype=torch.float64)
    low = torch.tensor([0.0, -10.0], dtype=torch.float64)
    how = {"bounds": (low, None)} if "bound" in held else {"inequalities": lambda x: -x[0]}
    result = solve(lambda x: 1e8 * x[0] + (x[1] - 1) ** 2, x0, **how)
    if "bound" in held:
        assert result.success
    if result.success:  # a constraint a hundred million times steeper than the rest is hard
        assert result.x.numpy() == pytest.approx([0, 1], abs=1e-6)


@pytest.mark.parametrize(
    "bounds", [[(0, 1), (0, 1)], ((0, 1), (0, 1)), (0, "a"), [(0, None), (0, None)], 3.0]
)
def test_bounds_in_another_spelling_are_refused(bounds):
    with pytest.raises(sp.KindError, match="tensor"):
        solve(lambda x: x.sum(), torch.zeros(2), bounds=bounds)


@pytest.mark.parametrize("kind", [torch.float16, torch.bfloat16, torch.int64, torch.complex64])
def test_a_start_without_enough_digits_is_refused(kind):
    with pytest.raises(sp.KindError, match=r"\.double\(\)"):
        solve(lambda x: x.sum(), torch.zeros(2, dtype=kind))


def test_a_state_of_something_else_is_refused(tmp_path):
    f, x0 = square, of(1, 2)
    result = solve(f, x0, inequalities=lambda x: 1 - x[0], max_iterations=1)
    for state in ({}, result, {"kind": "epochs"}):
        with pytest.raises(sp.DataError, match=r"result\.state"):
            solve(f, x0, inequalities=lambda x: 1 - x[0], resume=state)
    with pytest.raises(sp.DataError, match="1 inequalities"):
        solve(f, x0, resume=result.state)
    with pytest.raises(sp.DataError, match="5 pairs"):
        solve(f, x0, inequalities=lambda x: 1 - x[0], hessian=5, resume=result.state)
    torch.save(result.state, tmp_path / "state.pt")
    state = torch.load(tmp_path / "state.pt", weights_only=True)
    assert solve(f, x0, inequalities=lambda x: 1 - x[0], resume=state).success


@pytest.mark.parametrize("limit", range(3, 40, 6))
def test_a_run_that_a_limit_cut_goes_on_as_if_never_stopped(limit):
    sides = {"inequalities": rosen_suzuki_sides}
    once = solve(rosen_suzuki, torch.zeros(4, dtype=torch.float64), **sides)
    half = solve(rosen_suzuki, torch.zeros(4, dtype=torch.float64), max_evaluations=limit, **sides)
    assert half.evaluations <= max(limit, 2) + 1
    rest = solve(rosen_suzuki, torch.zeros(4, dtype=torch.float64), resume=half.state, **sides)
    assert torch.equal(rest.x, once.x)


def test_a_function_may_do_to_x_what_it_likes():
    """X is a copy: what a function does to it stays with it."""

    def f(x):
        value = (x + 1).square().sum()
        with torch.no_grad():
            x.data.clamp_(0)
        return value

    result = solve(f, of(1, 2))
    assert result.success
    assert result.x.numpy() == pytest.approx([-1, -1], abs=1e-6)


def test_bounds_hold_in_the_numbers_of_x():
    high, x0 = 0.1, torch.zeros(3)
    result = solve(lambda x: -x.sum(), x0, bounds=(None, high))
    assert bool((result.x.double() <= high).all())
    assert result.x.numpy() == pytest.approx(0.1, abs=1e-7)
