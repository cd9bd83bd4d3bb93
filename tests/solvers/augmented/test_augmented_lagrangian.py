"""The augmented Lagrangian over batches: against SLSQP on all rows, limits, resuming, sentences."""

import math

import numpy as np
import pytest
import torch
from scipy.optimize import minimize
from torch.utils.data import DataLoader, TensorDataset

from setpoint._core.errors import DataError, KindError
from setpoint.solvers.augmented import AugmentedLagrangian

F = torch.nn.functional
NONE = torch.zeros(0, dtype=torch.float64)


def drawn(seed, *shape):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def cut(rows, *tensors):
    return list(zip(*(t.split(rows) for t in tensors), strict=True))


def least_squares(seed):
    """Rows with noise in the constraint as well, and an equation; c costs about as much as e."""
    a, x = drawn(seed, 1200, 6), drawn(seed + 1, 6)
    b = a @ x + 0.5 * drawn(seed + 2, 1200)
    g = drawn(seed + 3, 6) + 0.5 * drawn(seed + 4, 1200, 6)
    cap, total = float(g.mean(0) @ x) - 1, float(x.sum()) - 0.5

    def values(parts, batch):
        (a, b, g), (x,) = batch, parts
        return 0.5 * (a @ x - b).square().mean(), (g @ x).mean()[None] - cap, x.sum()[None] - total

    return values, cut(40, a, b, g), torch.zeros(6, dtype=torch.float64), None


def fair_logistic(seed):
    """Logistic regression with a cap on the covariance with a group, and weights in [-0.6, 0.6]."""
    x = drawn(seed, 1200, 5)
    slope = torch.linspace(2, -1, 5, dtype=torch.float64)
    y = (x @ slope + drawn(seed + 1, 1200) > 0).double()
    s = (x[:, 0] + drawn(seed + 2, 1200) > 0).double()
    s = s - s.mean()

    def values(parts, batch):
        x, y, s = batch
        z = x @ parts[0]
        covariance = (s * z).mean()
        loss = F.binary_cross_entropy_with_logits(z, y)
        return loss, torch.stack([covariance, -covariance]) - 0.02, NONE

    return values, cut(40, x, y, s), torch.zeros(5, dtype=torch.float64), 0.6


def neyman_pearson(seed):
    """The least loss on negatives with a mean loss of 0.3 at most on positives: a curved c."""
    x = torch.cat([drawn(seed, 1000, 3), torch.ones(1000, 1, dtype=torch.float64)], 1)
    y = (2 * x[:, 0] - 1 + drawn(seed + 1, 1000) > 0).double()
    share = y.mean()

    def values(parts, batch):
        x, y = batch
        z = x @ parts[0]
        c = (F.softplus(-z) * y).mean() / share - 0.3
        return (F.softplus(z) * (1 - y)).mean() / (1 - share), c[None], NONE

    return values, cut(40, x, y), torch.zeros(4, dtype=torch.float64), None


def leading(seed):
    """The leading direction of rows, on the sphere: not convex."""
    a = drawn(seed, 800, 6) * torch.linspace(1, 2, 6, dtype=torch.float64)

    def values(parts, batch):
        (x,) = parts
        return -(batch[0] @ x).square().mean(), NONE, (x @ x - 1)[None]

    return values, cut(40, a), torch.full((6,), 0.5, dtype=torch.float64), None


PROBLEMS = {
    "least squares": least_squares,
    "a fair logistic": fair_logistic,
    "Neyman and Pearson": neyman_pearson,
    "a leading direction": leading,
}


def whole(values, batches):
    """The functions over all batches, of equal size here, as one."""
    rows = tuple(torch.cat(parts) for parts in zip(*batches, strict=True))
    return lambda parts, _: values(parts, rows)


def truth(values, batches, start, bound):
    """SLSQP on all rows, by gradients of autograd: f, x."""
    full = whole(values, batches)

    def part(k):
        def value(x):
            return float(torch.cat([t.reshape(-1) for t in full([torch.tensor(x)], None)])[k])

        def slope(x):
            x = torch.tensor(x, requires_grad=True)
            y = torch.cat([t.reshape(-1) for t in full([x], None)])[k]
            return torch.autograd.grad(y, x)[0].numpy()

        return value, slope

    _, c, e = full([start], None)
    held = [("ineq", -1, k + 1) for k in range(len(c))]
    held += [("eq", 1, k + 1 + len(c)) for k in range(len(e))]
    constraints = [
        {
            "type": kind,
            "fun": lambda x, s=sign, k=k: s * part(k)[0](x),
            "jac": lambda x, s=sign, k=k: s * part(k)[1](x),
        }
        for kind, sign, k in held
    ]
    value, slope = part(0)
    bounds = None if bound is None else [(-bound, bound)] * len(start)
    found = minimize(
        value, start.numpy(), jac=slope, method="SLSQP", bounds=bounds, constraints=constraints,
        options={"ftol": 1e-13, "maxiter": 300},
    )  # fmt: skip
    assert found.success, found.message
    return found


def box(bound):
    side = torch.tensor(bound, dtype=torch.float64) if bound is not None else None
    return [(None if side is None else -side, side)]


@pytest.mark.parametrize("name", PROBLEMS)
def test_noise_level_accuracy_on_minibatches(name):
    accurate(name, 0)


def accurate(name, seed, epochs=25):
    values, batches, start, bound = PROBLEMS[name](seed)
    true = truth(values, batches, start, bound)
    found = AugmentedLagrangian(epochs=epochs).solve(
        values, [start], box=box(bound), batches=batches
    )
    assert found.success, found.status
    assert found.violation <= 1e-3
    assert found.fun == pytest.approx(true.fun, rel=0.01)
    # what is told of the point is true of it: over all rows, at once
    f, c, e = whole(values, batches)(found.x, None)
    assert found.fun == pytest.approx(float(f), abs=1e-12)
    broken = torch.cat([c.clamp(min=0), e.abs()])
    assert found.violation == pytest.approx(float(broken.max()), abs=1e-12)
    (x,) = (part.clone().requires_grad_() for part in found.x)
    f, c, e = whole(values, batches)([x], None)
    paid = torch.tensor(np.r_[found.inequalities, found.equalities])
    (slope,) = torch.autograd.grad(f + (paid * torch.cat([c, e])).sum(), x)
    left = slope - torch.tensor(found.low) + torch.tensor(found.high)
    assert found.kkt == pytest.approx(float(left.norm()), abs=1e-10)
    assert (found.inequalities >= 0).all()
    if bound is not None:
        assert float(x.detach().abs().max()) <= bound
        at = np.abs(np.abs(found.x[0].numpy()) - bound) <= 1e-3
        assert not (found.low + found.high)[~at].any()  # only what rests on a bound has a price


@pytest.mark.parametrize("name", PROBLEMS)
def test_exact_values_without_batches(name):
    values, batches, start, bound = PROBLEMS[name](7)
    true = truth(values, batches, start, bound)
    full = whole(values, batches)
    found = AugmentedLagrangian().solve(full, [start], box=box(bound))
    assert found.success, found.status
    assert found.violation <= 1e-8
    assert found.fun == pytest.approx(true.fun, rel=1e-6)
    assert found.x[0].numpy() == pytest.approx(true.x, abs=1e-4)


@pytest.mark.parametrize(("f", "c"), [(1e-3, 10.0)])
def test_units_do_not_matter(f, c):
    values, batches, start, _ = least_squares(0)
    true = truth(values, batches, start, None)

    def scaled(parts, batch):
        a, b, e = values(parts, batch)
        return f * a, c * b, c * e

    solver = AugmentedLagrangian(epochs=25)
    found = solver.solve(scaled, [start], batches=batches, feasibility=1e-3 * c)
    assert found.fun == pytest.approx(f * true.fun, rel=0.01)
    assert found.violation <= 1e-3 * c


def test_more_variables_and_constraints_than_a_matrix_is_wanted_for():
    """The nearest point to y in the simplex, 2,000 entries: by sorting."""
    y = drawn(0, 2000)
    falling = y.sort(descending=True).values
    shift = (falling.cumsum(0) - 1) / torch.arange(1, len(y) + 1)
    cut = float(shift[(falling > shift).sum() - 1])
    values = lambda parts, _: (  # noqa: E731
        0.5 * (parts[0] - y).square().sum(), NONE, parts[0].sum()[None] - 1
    )  # fmt: skip
    low = torch.zeros((), dtype=torch.float64)
    found = AugmentedLagrangian().solve(values, [torch.zeros_like(y)], box=[(low, None)])
    assert found.success, found.status
    assert torch.allclose(found.x[0], (y - cut).clamp(min=0), atol=1e-6)
    assert found.equalities[0] == pytest.approx(cut, abs=1e-6)


def test_every_kind_of_batches_gives_the_answer():
    values, batches, start, _ = least_squares(3)
    true = truth(values, batches, start, None).fun
    rows = [torch.cat(parts) for parts in zip(*batches, strict=True)]
    rng = torch.Generator().manual_seed(0)

    def some():
        index = torch.randint(0, len(rows[0]), (40,), generator=rng)
        return tuple(part[index] for part in rows)

    loader = DataLoader(TensorDataset(*rows), 40, shuffle=True, generator=rng)
    solver = AugmentedLagrangian(epochs=15, every=5, steps=30)
    for given in (tuple(batches), loader):
        assert solver.solve(values, [start], batches=given).fun == pytest.approx(true, rel=0.01)
    # drawn without end it is judged by a sample: as near as that is to the rows
    found = solver.solve(values, [start], batches=some)
    f, c, e = values(found.x, tuple(rows))
    assert float(f) == pytest.approx(true, rel=0.05)
    assert max(float(c), float(e.abs())) < 0.05


def test_one_batch_is_the_whole():
    values = lambda parts, batch: (  # noqa: E731
        (parts[0] - batch).square().sum(), parts[0].sum()[None] - 1, NONE
    )  # fmt: skip
    target = torch.tensor([2.0, 1.0], dtype=torch.float64)
    found = AugmentedLagrangian(epochs=300).solve(values, [0 * target], batches=[target])
    assert found.noise == 0
    assert found.success, found.status
    assert found.x[0].tolist() == pytest.approx([1.0, 0.0], abs=2e-3)
    assert found.inequalities[0] == pytest.approx(2.0, abs=1e-2)


def test_a_resumed_run_is_the_same_run():
    for batched in (True, False):
        values, batches, start, bound = fair_logistic(1)
        given = {"box": box(bound)} | ({"batches": batches} if batched else {})
        called = values if batched else whole(values, batches)
        solver = AugmentedLagrangian(epochs=4, rounds=6)
        once = solver.solve(called, [start], **given)
        seen = []

        def stop(told, seen=seen):
            seen.append((told.iteration, told.fun, told.violation))
            return told.iteration == 2

        half = solver.solve(called, [start], callback=stop, **given)
        assert "stopped by the callback" in half.status
        twice = solver.solve(called, [start], resume=half.state, **given)
        assert [n for n, _, _ in seen] == [1, 2]
        assert torch.equal(twice.x[0], once.x[0])
        assert torch.equal(twice.state["x"][0], once.state["x"][0])
        assert twice.fun == once.fun
        with pytest.raises(DataError, match="state of another problem"):
            solver.solve(called, [start], resume=half.state | {"x": [start[:2]]}, **given)


def test_limits_and_interrupts_keep_the_best_point():
    values, batches, start, _ = least_squares(0)
    solver = AugmentedLagrangian(epochs=12)
    count = len(batches)
    found = solver.solve(values, [start], batches=batches, max_evaluations=20 * count)
    assert "the limit of 600 evaluations is reached" in found.status
    assert found.evaluations <= 22 * count
    assert math.isfinite(found.fun)
    found = solver.solve(values, [start], batches=batches, max_seconds=1e-9)
    assert "seconds is reached" in found.status
    assert torch.equal(found.x[0], start)
    calls = []

    def interrupted(parts, batch):
        calls.append(1)
        if len(calls) == 20 * count:
            raise KeyboardInterrupt
        return values(parts, batch)

    found = solver.solve(interrupted, [start], batches=batches)
    assert "interrupted after" in found.status
    assert found.violation < 2
    again = solver.solve(values, [start], batches=batches, resume=found.state)
    assert again.state["number"] == 12


@pytest.mark.parametrize("where", ["objective", "constraint", "gradient"])
def test_a_value_that_is_not_finite_names_its_batch(where):
    values, batches, start, _ = least_squares(0)
    calls = []

    def broken(parts, batch):
        f, c, e = values(parts, batch)
        calls.append(1)
        if batch is not batches[4] or len(calls) < 12 * len(batches):
            return f, c, e
        if where == "objective":
            return f * math.nan, c, e
        if where == "constraint":
            return f, c * math.inf, e
        return f + (0 * parts[0].sum()).sqrt(), c, e  # finite, with a slope that is not

    found = AugmentedLagrangian().solve(broken, [start], batches=tuple(batches))
    assert not found.success
    assert "batch" in found.status
    assert {"objective": "nan", "constraint": "constraint 1 of 2", "gradient": "gradient"}[
        where
    ] in found.status
    assert math.isfinite(found.fun)
    assert bool(torch.isfinite(found.x[0]).all())


def test_what_cannot_be_met_or_has_no_least_value_is_said():
    x = torch.zeros(2, dtype=torch.float64)
    apart = lambda parts, _: (  # noqa: E731
        parts[0].square().sum(), torch.stack([parts[0][0] - 1, 2 - parts[0][0]]), NONE
    )  # fmt: skip
    found = AugmentedLagrangian().solve(apart, [x])
    assert not found.success
    assert "may exclude each other" in found.status
    assert found.violation == pytest.approx(0.5, abs=1e-3)
    found = AugmentedLagrangian().solve(lambda parts, _: (-parts[0].sum(), NONE, NONE), [x])
    assert not found.success
    assert "unbounded" in found.status
    found = AugmentedLagrangian().solve(
        lambda parts, _: (parts[0].log().sum(), NONE, NONE), [x - 1]
    )
    assert not found.success
    assert "nan at the start" in found.status
    assert torch.equal(found.x[0], x - 1)


def test_what_is_refused():
    values, batches, start, _ = least_squares(0)
    solve = AugmentedLagrangian().solve
    with pytest.raises(DataError, match="only once"):
        solve(values, [start], batches=iter(batches))
    with pytest.raises(DataError, match="holds no batch"):
        solve(values, [start], batches=[])
    with pytest.raises(KindError, match="an iterable of batches"):
        solve(values, [start], batches=3)
    ragged = lambda parts, batch: (parts[0].sum(), batch, NONE)  # noqa: E731
    with pytest.raises(DataError, match="every batch needs as many"):
        solve(ragged, [start], batches=[start[:1], start[:2]])
    for wrong in ({"epochs": 0}, {"rho": -1.0}, {"rate": math.nan}, {"optimiser": "momentum"}):
        with pytest.raises(KindError):
            AugmentedLagrangian(**wrong)


def test_single_precision_and_several_parts():
    values, batches, start, _ = neyman_pearson(0)
    true = truth(values, batches, start, None).fun
    halves = [start[:3].float(), start[3:].float()]
    single = [tuple(t.float() for t in batch) for batch in batches]
    joined = lambda parts, batch: values([torch.cat(list(parts))], batch)  # noqa: E731
    found = AugmentedLagrangian(epochs=25).solve(joined, halves, batches=single)
    assert [part.dtype for part in found.x] == [torch.float32] * 2
    assert found.success, found.status
    assert found.fun == pytest.approx(true, rel=0.01)
    full = whole(values, single)
    found = AugmentedLagrangian().solve(
        lambda parts, _: full([torch.cat(list(parts))], None), halves
    )
    assert found.success, found.status
    assert found.fun == pytest.approx(true, rel=1e-4)


def towards_three(parts, batch):
    """The least square distance from 3 where x <= 1: the multiplier is 4."""
    (x,) = parts
    return (x - 3).square().sum(), x - 1, NONE


@pytest.mark.parametrize(("growth", "factor"), [(None, 10.0), (3.0, 3.0)])
def test_with_exact_values_a_weak_penalty_grows_by_its_factor(growth, factor):
    solver = AugmentedLagrangian(rho=1e-4, growth=growth)
    found = solver.solve(towards_three, [torch.zeros(1, dtype=torch.float64)])
    times = float(found.state["rho"] / found.state["first"])
    rounds = math.log(times, factor)
    assert rounds == pytest.approx(round(rounds), abs=1e-9)
    assert round(rounds) >= 2
    assert found.success
    assert found.inequalities == pytest.approx([4.0], abs=1e-6)


@pytest.mark.parametrize(("growth", "factor", "most"), [(None, 2.0, 128.0), (5.0, 5.0, 125.0)])
def test_over_batches_a_weak_penalty_grows_by_less_and_not_far(growth, factor, most):
    solver = AugmentedLagrangian(rho=1e-4, growth=growth, epochs=30, rate=1e-3)
    start = [torch.full((1,), 2.9, dtype=torch.float64)]
    found = solver.solve(towards_three, start, batches=[None] * 10)
    times = math.log(found.state["grown"], factor)
    assert times == pytest.approx(round(times), abs=1e-9)
    assert found.state["grown"] == most  # at the last step it passes the cap, then it rests
