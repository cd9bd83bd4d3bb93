"""Regression goals as losses: metrics, gradients, closed forms, linear programs, units, shards."""

import copy

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog, minimize_scalar
from sklearn.metrics import mean_absolute_error, mean_squared_error, r2_score

import setpoint as sp
from setpoint._core.errors import DataError, GoalError, KindError, SetpointError
from setpoint.goals import Goal, Task
from setpoint.losses import GoalLoss
from setpoint.methods import Errors

EDGES = (2.0, 4.0, 6.0, 30.0)  # the last bin is empty
TASK = Task.regression(EDGES, {"group": ["a", "b"]})
WORST = 'worst(mae, by="bin")'
SMOOTH = [  # goals without an adversary, whose loss is the goal itself
    "minimize mae",
    "minimize mse",
    "minimize rmse",
    "maximize r2",
    "minimize balanced(mae)",
    "minimize balanced(rmse)",
    "minimize mae + 0.5 * mse",
    'minimize mae.on(group="a")',
    'minimize least(mae, by="bin")',
    f"minimize rmse subject to {WORST} <= 1",
    "minimize mae subject to r2 >= 0.9, rmse <= 1",
    'minimize mae subject to mae.on(group="a") == 1',
]
SADDLES = [
    f"minimize {WORST}",
    'minimize gap(mae, by="group")',
    'maximize worst(r2, by="group")',
    f"minimize rmse + 0.5 * {WORST}",
    'minimize worst(balanced(mae), by="group")',
    'maximize ratio(mae, by="group")',
    'minimize mae subject to gap(mae, by="group") <= 0.01',
]


def rows(seed=0, n=200):
    rng = np.random.default_rng(seed)
    y = rng.gamma(2, 2, n)
    p = y + rng.normal(0, 1, n) * (1 + y / 4)
    return y, p, rng.uniform(0.2, 2, n), rng.integers(0, 2, n)


def tensors(y, w, g):
    return torch.tensor(y), {"weight": torch.tensor(w), "group": torch.tensor(g)}


def loss_of(goal, task=TASK, **options):
    options = {"memory": 0, "warmup": 0, **options}
    return GoalLoss(goal, options.pop("method", "errors"), task=task, **options).double()


# --- value and gradient --------------------------------------------------------------------------


@pytest.mark.parametrize("goal", SMOOTH + SADDLES)
def test_what_is_recovered_is_the_metric(goal):
    y, p, w, g = rows()
    loss = loss_of(goal)
    target, more = tensors(y, w, g)
    loss.observe(torch.tensor(p), target, **more)
    found, names = loss.recover(), {"group": np.array(["a", "b"])[g]}
    wanted = Goal.of(goal)
    assert found.value == pytest.approx(wanted.objective(y, p, w, names, task=TASK), rel=1e-9)
    for constraint in wanted.constraints:
        held = [s.excess for s in found.constraints if s.constraint.startswith(str(constraint))]
        value = constraint.left(y, p, w, names, task=TASK)
        bound = float(str(constraint.right))
        excess = bound - value if constraint.op == ">=" else value - bound
        assert max(held) == pytest.approx(excess, abs=1e-9)


def test_the_loss_is_scikit_learns_metric():
    y, p, w, _ = rows()
    task = Task.regression()
    more = {"weight": torch.tensor(w)}
    for goal, truth in {
        "minimize mae": mean_absolute_error(y, p, sample_weight=w),
        "minimize mse": mean_squared_error(y, p, sample_weight=w),
        "minimize rmse": mean_squared_error(y, p, sample_weight=w) ** 0.5,
        "maximize r2": 1 - r2_score(y, p, sample_weight=w),
    }.items():
        value = loss_of(goal, task)(torch.tensor(p), torch.tensor(y), **more)
        assert value.item() == pytest.approx(truth, rel=1e-12)


@pytest.mark.parametrize("goal", SMOOTH)
def test_gradient_by_finite_differences(goal):
    y, p, w, g = rows(1, 60)
    loss = loss_of(goal).eval()
    target, more = tensors(y, w, g)
    leaf = torch.tensor(p, requires_grad=True)
    (gradient,) = torch.autograd.grad(loss(leaf, target, **more), leaf)
    assert gradient.abs().max() > 1e-4
    for i in range(0, 60, 7):
        ends = []
        for step in (1e-6, -1e-6):
            moved = torch.tensor(p)
            moved[i] += step
            ends.append(loss(moved, target, **more).item())
        assert gradient[i].item() == pytest.approx((ends[0] - ends[1]) / 2e-6, abs=1e-6)


def test_the_worst_is_pressed_where_it_is_worst():
    """The gradient of a worst is a weighed mean of those of all bins, most of it on the worst."""
    y, p, _, g = rows(2)
    loss = loss_of(f"minimize {WORST}").eval()
    leaf = torch.tensor(p, requires_grad=True)
    value = loss(leaf, torch.tensor(y), group=torch.tensor(g))
    (gradient,) = torch.autograd.grad(value, leaf)
    place = np.digitize(y, EDGES)
    error = np.abs(p - y)
    mae = np.array([error[place == b].mean() for b in range(4)])
    share = np.array([np.abs(gradient.numpy())[place == b].sum() for b in range(4)])
    np.testing.assert_allclose(share.sum(), 1)
    np.testing.assert_allclose(share @ mae, value.item())
    assert share.argmax() == mae.argmax()
    # weights start alike and answer by exp(5 · excess / largest)
    truth = np.exp(5 * (mae - mae.mean()) / mae.max())
    np.testing.assert_allclose(share, truth / truth.sum())


def test_prices_do_not_depend_on_how_the_batch_is_cut():
    """Shards add up: accumulating three parts is the batch at once."""
    y, p, w, g = rows(3, 90)
    goal = f"minimize rmse subject to {WORST} <= 1"
    whole, parts = loss_of(goal, memory=500), loss_of(goal, memory=500, accumulate=3)
    for _ in range(4):
        leaf = torch.tensor(p, requires_grad=True)
        target, more = tensors(y, w, g)
        (once,) = torch.autograd.grad(whole(leaf, target, **more), leaf)
        pieces = []
        for some in np.array_split(np.arange(90), 3):
            piece = torch.tensor(p[some], requires_grad=True)
            target, more = tensors(y[some], w[some], g[some])
            (part,) = torch.autograd.grad(parts(piece, target, **more), piece)
            pieces.append(part * w[some].sum() / w.sum())
        torch.testing.assert_close(torch.cat(pieces), once)
    torch.testing.assert_close(parts.totals, whole.totals)
    torch.testing.assert_close(parts.multipliers, whole.multipliers)


def test_weights_are_repetitions():
    y, p, _, g = rows(4, 50)
    times = np.random.default_rng(0).integers(0, 4, 50)
    goal = f"minimize balanced(mae) subject to {WORST} <= 1, r2 >= 0.8"
    by_weight, by_row = loss_of(goal), loss_of(goal)
    target, more = tensors(y, times.astype(float), g)
    again = np.repeat(np.arange(50), times)
    value = by_weight(torch.tensor(p), target, **more)
    repeated = by_row(torch.tensor(p[again]), torch.tensor(y[again]), group=torch.tensor(g[again]))
    torch.testing.assert_close(value, repeated)


# --- optima --------------------------------------------------------------------------------------


def trained(loss, X, y, steps=300, rate=0.2, start=None):
    """Full-batch Adam with a falling rate; the coefficients."""
    X, y = torch.tensor(X), torch.tensor(y)
    beta = torch.zeros(X.shape[1], dtype=torch.float64) if start is None else torch.tensor(start)
    beta.requires_grad_()
    optimiser = torch.optim.Adam([beta], lr=rate)
    for step in range(steps):
        optimiser.param_groups[0]["lr"] = rate * (1 - step / steps)
        optimiser.zero_grad()
        loss(X @ beta, y).backward()
        optimiser.step()
    return beta.detach().numpy()


def test_a_constant_becomes_the_median_the_mean_or_the_minimax():
    y = np.random.default_rng(5).gamma(2, 2, 301)
    one, task = np.ones((301, 1)), Task.regression((2.0, 5.0, 9.0))
    place = np.digitize(y, task.edges)

    def worst(c):
        return max(np.abs(y[place == b] - c).mean() for b in range(4))

    best = minimize_scalar(worst, (0, 30), method="bounded", bounds=(0, 30)).fun
    assert trained(loss_of("minimize mae", task), one, y)[0] == pytest.approx(
        np.median(y), abs=0.05
    )
    assert trained(loss_of("minimize mse", task), one, y)[0] == pytest.approx(y.mean(), abs=1e-3)
    assert trained(loss_of("maximize r2", task), one, y)[0] == pytest.approx(y.mean(), abs=1e-3)
    found = trained(loss_of(f"minimize {WORST}", task), one, y)[0]
    assert worst(found) <= 1.01 * best
    assert worst(np.median(y)) > 1.3 * best


def line():
    rng = np.random.default_rng(0)
    x = 3 * rng.uniform(0, 1, 120) ** 2
    y = np.exp(x) + rng.normal(0, 1, 120)
    return np.column_stack([np.ones(120), x]), y, Task.regression((2.0, 5.0, 10.0))


def program(X, y, place, bound=None):
    """Least worst-bin mae of a line (bound None), or least mae under a bound on it, by an LP."""
    n, d = X.shape
    mean = np.array([(place == b) / (place == b).sum() for b in range(4)])
    sides = [np.column_stack([s * X, -np.eye(n), np.zeros(n)]) for s in (1, -1)]
    top = -1.0 if bound is None else 0.0
    bins = np.column_stack([np.zeros((4, d)), mean, np.full(4, top)])
    cost = np.concatenate([np.zeros(d), np.zeros(n) if bound is None else np.full(n, 1 / n), [0.0]])
    cost[-1] = 1.0 if bound is None else 0.0
    right = np.concatenate([y, -y, np.full(4, 0.0 if bound is None else bound)])
    free = [(None, None)] * d + [(0, None)] * (n + 1)
    return linprog(cost, A_ub=np.vstack([*sides, bins]), b_ub=right, bounds=free).fun


def test_the_least_worst_bin_is_that_of_the_linear_program():
    X, y, task = line()
    place = np.digitize(y, task.edges)
    plain = np.linalg.lstsq(X, y, rcond=None)[0]
    unaware = max(np.abs(y - X @ plain)[place == b].mean() for b in range(4))
    beta = trained(loss_of(f"minimize {WORST}", task), X, y, start=plain)
    reached = max(np.abs(y - X @ beta)[place == b].mean() for b in range(4))
    best = program(X, y, place)
    assert best <= reached <= 1.02 * best
    assert unaware > 1.1 * best


@pytest.mark.parametrize("slack", [1.02, 1.05])
def test_a_bound_on_the_worst_bin_is_held_at_the_price_of_the_linear_program(slack):
    X, y, task = line()
    place = np.digitize(y, task.edges)
    bound = slack * program(X, y, place)
    best = program(X, y, place, bound)
    loss = loss_of(f"minimize mae subject to {WORST} <= {bound}", task)
    start = np.linalg.lstsq(X, y, rcond=None)[0]
    beta = trained(loss, X, y, start=start)
    error = np.abs(y - X @ beta)
    assert max(error[place == b].mean() for b in range(4)) <= 1.01 * bound
    assert error.mean() <= 1.02 * best


def test_a_bound_that_asks_for_nothing_costs_nothing():
    X, y, task = line()
    loss = loss_of(f"minimize mse subject to {WORST} <= 100", task)
    beta = trained(loss, X, y, 300, 0.5)
    np.testing.assert_allclose(beta, np.linalg.lstsq(X, y, rcond=None)[0], atol=0.02)
    assert all(s.multiplier == 0 for s in loss.recover().constraints)


# --- units, rare bins, hostile rows --------------------------------------------------------------


@settings(max_examples=15, deadline=None)
@given(power=st.floats(-6, 6), seed=st.integers(0, 99), which=st.integers(0, 4))
def test_other_units_are_the_same_problem(power, seed, which):
    """Targets, edges and bounds times s: the same multipliers, the gradient times sᵈ⁻¹."""
    goals = (
        ("minimize mae", 1),
        (f"minimize {WORST}", 1),
        ("minimize mse", 2),
        ("maximize r2", 0),
        (f"minimize rmse subject to {WORST} <= {{}}", 1),
    )
    goal, degree = goals[which]
    s = 10.0**power
    y, p, w, _ = rows(seed, 40)
    found = []
    for unit in (1.0, s):
        task = Task.regression([unit * e for e in EDGES])
        loss = loss_of(goal.format(repr(1.5 * unit)), task, memory=300, squared_error=0.2)
        for _ in range(3):
            leaf = torch.tensor(unit * p, requires_grad=True)
            value = loss(leaf, torch.tensor(unit * y), weight=torch.tensor(w))
        (gradient,) = torch.autograd.grad(value, leaf)
        found.append((value.item() / unit**degree, gradient / unit ** (degree - 1), loss))
    assert found[0][0] == pytest.approx(found[1][0], rel=1e-6)
    torch.testing.assert_close(found[0][1], found[1][1], rtol=1e-6, atol=1e-12)
    torch.testing.assert_close(found[0][2].multipliers, found[1][2].multipliers)


@settings(max_examples=25, deadline=None)
@given(
    n=st.integers(1, 6),
    big=st.sampled_from([0.0, 1e-12, 1.0, 1e12]),
    goal=st.sampled_from(SMOOTH + SADDLES),
    memory=st.sampled_from([0, 50]),
)
def test_finite_whatever_the_batch_holds(n, big, goal, memory):
    rng = np.random.default_rng(n)
    loss = loss_of(goal, memory=memory)
    for _ in range(3):
        leaf = torch.tensor(big * rng.normal(size=n), requires_grad=True)
        y = torch.tensor(rng.choice([0.0, 3.0, 100.0], n))
        value = loss(leaf, y, group=torch.tensor(rng.integers(0, 2, n)))
        (gradient,) = torch.autograd.grad(value, leaf)
        assert value.isfinite()
        assert gradient.isfinite().all()
    assert loss.totals.isfinite().all()


def test_an_empty_bin_has_no_price_and_a_rare_one_a_bounded_price():
    loss = loss_of("minimize balanced(mae)", memory=100)
    y = torch.cat([torch.full((99,), 1.0), torch.tensor([50.0])]).double()
    for rows_ in (y, y[:99], y[:99], y[:99]):
        for _ in range(5):
            loss.observe(
                torch.zeros(len(rows_)).double(), rows_, group=torch.zeros(len(rows_)).long()
            )
    prices = loss.prices[1].reshape(2, -1)
    torch.testing.assert_close(prices[0], prices[1], msg="the goal tells no groups apart")
    assert prices[0, 2] == 0, "no target lies there"
    # of the two bins seen, the one that is nearly forgotten counts at most half over LEAST
    assert 0 < -prices[0, 4] <= 0.5 / 1e-4 * (1 + 1e-9)


def test_the_first_call_looks_and_a_declared_scale_does_not_need_to():
    y, p, w, g = rows(6, 30)
    target, more = tensors(y, w, g)
    for scale, at_once in ((None, False), (2.0, True)):
        loss = GoalLoss("minimize mae", Errors(scale=scale), task=TASK)
        leaf = torch.tensor(p, requires_grad=True)
        (first,) = torch.autograd.grad(loss(leaf, target, **more), leaf)
        assert bool(first.any()) is at_once
        (second,) = torch.autograd.grad(loss(leaf, target, **more), leaf)
        torch.testing.assert_close(second, torch.tensor(w * np.sign(p - y) / w.sum()))


def test_a_run_can_be_taken_up():
    y, p, w, g = rows(7, 40)
    target, more = tensors(y, w, g)
    goal = f"minimize rmse + {WORST} subject to r2 >= 0.95"
    loss = loss_of(goal, memory=200)
    for _ in range(5):
        loss.observe(torch.tensor(p), target, **more)
    other = loss_of(goal, memory=200)
    other.load_state_dict(copy.deepcopy(loss.state_dict()))
    for _ in range(3):
        one, two = (x.observe(torch.tensor(p), target, **more) for x in (loss, other))
        assert one.item() == two.item()
    torch.testing.assert_close(loss.multipliers, other.multipliers)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:.*should not be instantiated:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")
def test_compiled_is_eager():
    y, p, w, g = rows(8, 24)
    target, more = tensors(y, w, g)
    goal = f"minimize {WORST} subject to mae <= 1"
    eager, twin = (loss_of(goal, memory=100) for _ in range(2))
    torch._dynamo.reset()
    compiled = torch.compile(twin, fullgraph=True, backend="aot_eager")
    for _ in range(3):
        found = []
        for loss in (eager, compiled):
            leaf = torch.tensor(p, requires_grad=True)
            value = loss(leaf, target, **more)
            found.append((value.detach(), torch.autograd.grad(value, leaf)[0]))
        for ours, theirs in zip(*found, strict=True):
            torch.testing.assert_close(theirs, ours)
    torch.testing.assert_close(twin.multipliers, eager.multipliers)
    torch._dynamo.reset()


# --- refusals ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("goal", "task", "words"),
    [
        (f"minimize {WORST}", Task.regression(), "declare their inner edges"),
        ("minimize mae subject to balanced(mae) <= 1", Task.regression(), "edges=["),
        ('minimize gap(mae, by="g")', Task.regression(), '"g"'),
        ("maximize f1", Task.binary(), "binary"),
        ("maximize f1", Task.regression(), "mae, mse, rmse, r2"),
        ("minimize mae subject to mae <= -1", Task.regression(), "never hold"),
    ],
)
def test_refused_with_a_sentence(goal, task, words):
    with pytest.raises(GoalError, match=" ") as error:
        GoalLoss(goal, "errors", task=task)
    assert words in str(error.value)


@pytest.mark.parametrize(
    "options",
    [{"rate": -1}, {"squared_error": 2}, {"scale": 0}, {"scale": "a"}, {"centre": float("inf")}],
)
def test_odd_options_are_sentences(options):
    with pytest.raises(KindError, match=next(iter(options))):
        Errors(**options)


@pytest.mark.parametrize(
    ("outputs", "target", "more"),
    [
        (torch.zeros(3, 2), torch.zeros(3), {}),
        (torch.zeros(3), torch.zeros(4), {}),
        (torch.zeros(3).long(), torch.zeros(3), {}),
        (torch.zeros(0), torch.zeros(0), {}),
        (torch.zeros(3), torch.tensor([0.0, float("nan"), 1.0]), {}),
        (torch.tensor([0.0, float("inf"), 1.0]), torch.zeros(3), {}),
        (torch.zeros(3), torch.zeros(3), {"weight": torch.tensor([1.0, -1.0, 1.0])}),
        (torch.zeros(3), torch.zeros(3), {"weight": torch.ones(2)}),
    ],
)
def test_odd_batches_are_sentences(outputs, target, more):
    loss = GoalLoss("minimize mae", "errors", task="regression")
    with pytest.raises(SetpointError, match=" "):
        loss.observe(outputs, target, **more)


def test_a_group_that_is_not_given_is_asked_for():
    loss = loss_of("minimize mae")
    with pytest.raises(DataError, match="pass group="):
        loss(torch.zeros(3), torch.zeros(3))


def test_rare_bins_are_spoken_of():
    program = loss_of("minimize balanced(mae)").program
    totals = torch.ones(5, 10)
    said = program.notices(totals, torch.tensor([0.0, 0.0, 0.9, 0.0, 0.0]))
    assert len(said) == 1
    assert "[4, 6)" in said[0]
    assert program.notices(totals, torch.zeros(5)) == []


def test_a_regression_loss_takes_a_column_of_predictions():
    loss = GoalLoss(sp.mae, "errors", task="regression", memory=0, warmup=0)
    value = loss(torch.tensor([[1.0], [3.0]]), torch.tensor([2.0, 2.0]))
    assert value.item() == 1
