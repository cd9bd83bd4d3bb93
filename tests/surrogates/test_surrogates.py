"""The contract of every surrogate of the step: range, shape, limit, derivative, counts."""

import dataclasses
import importlib
import inspect
import pickle
import pkgutil
from types import SimpleNamespace

import numpy as np
import pytest
import torch

import setpoint as sp
import setpoint.surrogates as room
from setpoint._core.errors import KindError
from setpoint.methods.implicit.moving_thresholds import Thresholds
from setpoint.methods.lagrangian import TwoSteps
from setpoint.surrogates import (
    SURROGATES,
    Annealed,
    Constant,
    Hinge,
    Linear,
    PiecewiseLinear,
    Ramp,
    Schedule,
    Sigmoid,
    Surrogate,
    schedule,
    surrogate,
)
from setpoint.surrogates.sigmoid import logistic, logistic_slope

THRESHOLDS = (0.05, 0.1, 0.3, 0.5, 0.77, 0.95)
#: a hinge's margin must fit below its threshold
MADE = {
    "linear": (Linear(), Linear(delta=0.05), Linear(delta=0.45), Linear(width=0.9)),
    "sigmoid": (Sigmoid(), Sigmoid(sharpness=1.0), Sigmoid(sharpness=200.0)),
    "ramp": (Ramp(), Ramp(width=0.1), Ramp(width=0.99)),
    "hinge": (Hinge(margin=0.04), Hinge(margin=0.01)),
}
CASES = [
    pytest.param(one.at(t), id=f"{one.at(t)}")
    for several in MADE.values()
    for one in several
    for t in THRESHOLDS
]
BETWEEN = [case for case in CASES if case.values[0].side == "between"]
P = torch.linspace(0, 1, 2001, dtype=torch.float64)


def is_sentence(error):
    text = str(error.value)
    return text == text.strip() and len(text.split()) >= 4 and "Traceback" not in text


# --- the table -----------------------------------------------------------------------------------


def test_every_surrogate_of_the_room_is_a_row_of_the_table():
    found = set()
    for module in pkgutil.iter_modules(room.__path__):
        here = importlib.import_module(f"setpoint.surrogates.{module.name}")
        found |= {
            thing
            for thing in vars(here).values()
            if inspect.isclass(thing)
            and issubclass(thing, Surrogate)
            and not inspect.isabstract(thing)
            and thing.__module__ == here.__name__
        }
    assert found == set(SURROGATES.values())
    assert set(MADE) == set(SURROGATES), "every row of the table is held to the contract here"


@pytest.mark.parametrize("name", SURROGATES)
def test_names_make_the_default(name):
    assert surrogate(name) == SURROGATES[name]()
    given = SURROGATES[name]()
    assert surrogate(given) is given


@pytest.mark.parametrize("wrong", ["liner", "", None, 3, Linear, ["linear"]])
def test_no_surrogate_is_a_sentence(wrong):
    with pytest.raises(KindError, match="surrogate=") as error:
        surrogate(wrong)
    assert is_sentence(error)


def test_a_typing_error_names_the_nearest():
    with pytest.raises(KindError, match="sigmoid"):
        surrogate("sigmoyd")


# --- shape ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("h", CASES)
def test_it_never_falls(h):
    assert (h.value(P).diff() >= -1e-12).all()
    assert (h.derivative(P) >= 0).all()


@pytest.mark.parametrize("h", CASES)
def test_side(h):
    value, step = h.value(P), (P >= h.threshold).double()
    if h.side == "between":
        assert (value >= -1e-12).all()
        assert (value <= 1 + 1e-12).all()
        assert h.value(torch.tensor([h.threshold], dtype=torch.float64)).item() == pytest.approx(
            0.5
        )
    else:
        assert h.side == "above"
        assert (value >= step - 1e-12).all()
        assert h.value(torch.tensor([h.threshold], dtype=torch.float64)).item() == pytest.approx(1)


@pytest.mark.parametrize("h", BETWEEN)
def test_it_lies_on_the_side_of_the_step(h):
    below, above = h.value(P[h.threshold > P]), h.value(P[h.threshold < P])
    assert (below <= 0.5 + 1e-12).all()
    assert (above >= 0.5 - 1e-12).all()


@pytest.mark.parametrize("t", [0.001, *THRESHOLDS, 0.999])
@pytest.mark.parametrize("delta", [0.01, 0.2, 0.49])
def test_linear_starts_at_0_ends_at_1_and_is_flat_nowhere(t, delta):
    h = Linear(t, delta=delta)
    ends = h.value(torch.tensor([0.0, t, 1.0], dtype=torch.float64))
    assert ends.tolist() == pytest.approx([0, 0.5, 1], abs=1e-12)
    assert h.derivative(P).min() > 0


@pytest.mark.parametrize("t", THRESHOLDS)
def test_linear_passes_through_its_knots(t):
    h = Linear(t, delta=0.2, width=0.5)
    w = 0.5 * min(t, 1 - t)
    at = torch.tensor([t - w, t + w], dtype=torch.float64)
    assert h.value(at).tolist() == pytest.approx([0.2, 0.8])


@pytest.mark.parametrize("t", THRESHOLDS)
def test_closed_forms(t):
    p = P.numpy()
    w = 0.3 * min(t, 1 - t)
    ramp = np.clip(0.5 + (p - t) / (2 * w), 0, 1)
    np.testing.assert_allclose(Ramp(t, width=0.3).value(P).numpy(), ramp, atol=1e-9)
    sigmoid = 1 / (1 + np.exp(-7 * (p - t)))
    np.testing.assert_allclose(Sigmoid(t, sharpness=7).value(P).numpy(), sigmoid, atol=1e-12)
    hinge = np.maximum(0, 1 + (p - t) / 0.04)
    np.testing.assert_allclose(Hinge(t, margin=0.04).value(P).numpy(), hinge, atol=1e-9)


@pytest.mark.parametrize("h", CASES)
def test_the_derivative_is_the_difference_quotient_away_from_knots(h):
    eps = 1e-6
    p = torch.linspace(0.00137, 0.99871, 997, dtype=torch.float64)
    if isinstance(h, PiecewiseLinear):
        knots = torch.tensor([float(x) for x, _ in h.knots()], dtype=torch.float64)
        p = p[((p[:, None] - knots).abs() > 2 * eps).all(1)]
    assert len(p) > 900
    quotient = (h.value(p + eps) - h.value(p - eps)) / (2 * eps)
    torch.testing.assert_close(h.derivative(p), quotient, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
@pytest.mark.parametrize("sharpness", [0.7, 1.0, 10.0, 300.0])
def test_the_logistic_step_is_the_written_formula_to_the_last_bit(kind, sharpness):
    d = torch.randn(4001, dtype=kind, generator=torch.Generator().manual_seed(0))
    h = torch.sigmoid(d * sharpness)
    assert torch.equal(logistic(d, sharpness), h)
    assert torch.equal(logistic_slope(h, sharpness), sharpness * h * (1 - h))
    exact = d.double().requires_grad_()
    (slope,) = torch.autograd.grad(logistic(exact, sharpness).sum(), exact)
    torch.testing.assert_close(logistic_slope(logistic(exact, sharpness), sharpness), slope)


@pytest.mark.parametrize("kind", [torch.float32, torch.float64])
def test_methods_take_the_logistic_step_to_the_last_bit(kind):
    logits = torch.randn(4001, dtype=kind, generator=torch.Generator().manual_seed(1))
    two = TwoSteps(tables=1, surrogate=None, sharpness=3.0, points=1, moves=False)
    h = logistic(logits, 3.0)
    soft, slope = two._step(logits)
    assert torch.equal(soft, h)
    assert torch.equal(slope, logistic_slope(h, 3.0))
    member, density = Thresholds((0,), 1, 3.0).memberships(SimpleNamespace(logits=logits))[:, 0]
    assert torch.equal(member, h)
    torch.testing.assert_close(3.0 * density, logistic_slope(h, 3.0))  # fused: another rounding


@pytest.mark.parametrize("h", [Linear(0.3), Ramp(0.3), Hinge(0.3, margin=0.1)])
def test_at_a_knot_the_derivative_is_the_slope_to_its_right(h):
    inner = torch.tensor([float(x) for x, _ in h.knots()][1:-1], dtype=torch.float64)
    torch.testing.assert_close(h.derivative(inner), h.derivative(inner + 1e-9))


@pytest.mark.parametrize("h", [Linear(0.3), Sigmoid(0.3), Hinge(0.3, margin=0.1)])
def test_gradcheck_through_a_probability(h):
    """H(sigmoid(z)) with our derivative in place of autograd's."""

    class Step(torch.autograd.Function):
        @staticmethod
        def forward(ctx, p):
            ctx.save_for_backward(p)
            return h.value(p)

        @staticmethod
        def backward(ctx, slope):
            return slope * h.derivative(ctx.saved_tensors[0])

    rng = torch.Generator().manual_seed(0)
    z = torch.randn(20, generator=rng, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: Step.apply(torch.sigmoid(x)), z)


# --- limits --------------------------------------------------------------------------------------


@pytest.mark.parametrize("h", BETWEEN)
def test_towards_temperature_0_it_becomes_the_step(h):
    away = P[(P - h.threshold).abs() > 0.01]
    step = (away >= h.threshold).double()
    off = [(h.limit(t).value(away) - step).abs().max().item() for t in (1.0, 0.1, 0.01, 1e-4)]
    assert off == sorted(off, reverse=True)
    assert off[-1] < 1e-3


@pytest.mark.parametrize("h", BETWEEN)
def test_temperature_1_is_itself_and_the_middle_stays(h):
    torch.testing.assert_close(h.limit(1.0).value(P), h.value(P))
    for t in (0.5, 0.01):
        middle = h.limit(t).value(torch.tensor([h.threshold], dtype=torch.float64))
        assert middle.item() == pytest.approx(0.5)


@pytest.mark.parametrize("t", [1.0, 0.5, 0.1])
@pytest.mark.parametrize("h", [Linear(0.3), Ramp(0.8, width=0.4)])
def test_knots_at_a_temperature_are_those_of_the_sharpened(h, t):
    plain = [(float(a), float(b)) for a, b in h.limit(t).knots()]
    for temperature in (t, torch.tensor(t, dtype=torch.float64)):
        found = [(float(a), float(b)) for a, b in h.knots(temperature)]
        np.testing.assert_allclose(found, plain, rtol=1e-6)


@pytest.mark.parametrize("t", [0.5, 0.0, 2.0])
def test_the_hinge_refuses_to_sharpen(t):
    with pytest.raises(KindError, match="anneal Linear, Ramp or Sigmoid") as error:
        Hinge().limit(t)
    assert is_sentence(error)
    with pytest.raises(KindError):
        Hinge().knots(t)
    assert Hinge().limit(1) == Hinge()


@pytest.mark.parametrize("h", CASES)
def test_at_keeps_everything_but_the_threshold(h):
    moved = h.at(0.42)
    assert moved.threshold == 0.42
    assert moved.at(h.threshold) == h


# --- dtypes --------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("name", SURROGATES)
def test_dtype_and_shape_stay(name, dtype):
    p = torch.rand(3, 4, dtype=dtype)
    h = SURROGATES[name]()
    for found in (h.value(p), h.derivative(p)):
        assert found.dtype == dtype
        assert found.shape == p.shape
    torch.testing.assert_close(h.value(p).double(), h.value(p.double()), rtol=1e-5, atol=1e-5)


# --- what follows for counts ---------------------------------------------------------------------


@pytest.mark.parametrize("h", BETWEEN)
def test_tp_and_fn_are_all_positives(h):
    rng = torch.Generator().manual_seed(1)
    y = (torch.rand(80, generator=rng) < 0.3).long()
    w = torch.rand(80, generator=rng, dtype=torch.float64) + 0.1
    member = h.value(torch.rand(80, generator=rng, dtype=torch.float64))

    def soft(metric):
        return metric.soft(y, member, sample_weight=w).item()

    positive, negative = (w * y).sum().item(), (w * (1 - y)).sum().item()
    tp, fn = (member * w * y).sum().item(), ((1 - member) * w * y).sum().item()
    fp = (member * w * (1 - y)).sum().item()
    assert tp + fn == pytest.approx(positive)
    assert soft(sp.recall) == pytest.approx(tp / positive)
    assert soft(sp.recall) + soft(sp.fnr) == pytest.approx(1)
    assert soft(sp.fpr) == pytest.approx(fp / negative)
    assert soft(sp.fpr) + soft(sp.specificity) == pytest.approx(1)
    assert soft(sp.precision) == pytest.approx(tp / (tp + fp))
    assert soft(sp.f1) == pytest.approx(2 * tp / (2 * tp + fp + fn))


@pytest.mark.parametrize("name", [n for n in SURROGATES if SURROGATES[n].side == "between"])
def test_sharpened_soft_metrics_become_the_hard_ones(name):
    rng = torch.Generator().manual_seed(2)
    y = (torch.rand(200, generator=rng) < 0.3).long()
    p = torch.rand(200, generator=rng, dtype=torch.float64)
    hard = sp.f1(y.numpy(), (p >= 0.5).long().numpy())
    assert sp.f1.soft(y, SURROGATES[name]().limit(1e-6).value(p)).item() == pytest.approx(hard)


def test_the_hinge_bounds_a_count_from_above():
    rng = torch.Generator().manual_seed(3)
    p = torch.rand(500, generator=rng, dtype=torch.float64)
    assert Hinge(0.7).value(p).sum() >= (p >= 0.7).sum()


# --- data ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SURROGATES)
def test_frozen_comparable_and_pickled(name):
    h = SURROGATES[name]()
    with pytest.raises(dataclasses.FrozenInstanceError):
        h.threshold = 0.2
    assert pickle.loads(pickle.dumps(h)) == h
    assert h == SURROGATES[name]()
    assert hash(h) == hash(SURROGATES[name]())
    assert h != h.at(0.4)
    assert eval(repr(h), vars(room)) == h


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        (Linear, {"threshold": 0}),
        (Linear, {"threshold": 1.0}),
        (Linear, {"threshold": True}),
        (Linear, {"threshold": "0.5"}),
        (Linear, {"delta": 0.5}),
        (Linear, {"delta": 0}),
        (Linear, {"delta": float("nan")}),
        (Linear, {"width": 1}),
        (Linear, {"width": None}),
        (Ramp, {"width": 0}),
        (Ramp, {"threshold": -1}),
        (Sigmoid, {"sharpness": 0}),
        (Sigmoid, {"sharpness": float("inf")}),
        (Sigmoid, {"threshold": [0.5]}),
        (Hinge, {"margin": 0.5}),
        (Hinge, {"margin": -0.1}),
        (Hinge, {"threshold": 2}),
    ],
)
def test_odd_options_are_sentences(kind, options):
    with pytest.raises(KindError) as error:
        kind(**options)
    assert is_sentence(error)
    ((option, _),) = options.items()
    assert kind.__name__ in str(error.value)
    assert option in str(error.value)


# --- schedules -----------------------------------------------------------------------------------


def test_constant():
    for step in (0, 7, torch.tensor(3.0)):
        assert Constant(0.3).at(step) == 0.3
    assert not Constant().moves


def test_annealed_is_a_straight_line_in_the_logarithm_and_then_stays():
    cooling = Annealed(2.0, 0.02, 50)
    found = np.log([cooling.at(s) for s in range(51)])
    np.testing.assert_allclose(found, np.linspace(np.log(2), np.log(0.02), 51), atol=1e-12)
    assert cooling.at(51) == cooling.at(10_000) == pytest.approx(0.02)
    assert cooling.at(-5) == pytest.approx(2.0)
    assert cooling.moves
    assert not Annealed(1.0, 1.0, 5).moves
    assert Annealed(0.1, 1.0, 2).at(1) == pytest.approx(np.sqrt(0.1)), "it may warm, too"


@pytest.mark.parametrize("step", [0, 3, 10, 400])
def test_annealed_reads_tensors_alike(step):
    cooling = Annealed(1.0, 0.01, 10)
    found = cooling.at(torch.tensor(float(step), dtype=torch.float64))
    assert isinstance(found, torch.Tensor)
    assert found.item() == pytest.approx(cooling.at(step))


def test_schedules_from_numbers():
    assert schedule(0.5, "temperature") == Constant(0.5)
    assert schedule(2, "temperature").at(0) == 2.0
    given = Annealed(1, 0.1, 5)
    assert schedule(given, "temperature") is given
    assert isinstance(given, Schedule)
    assert pickle.loads(pickle.dumps(given)) == given


@pytest.mark.parametrize(
    "call",
    [
        lambda: Constant(0),
        lambda: Constant(-1),
        lambda: Constant(float("inf")),
        lambda: Constant(True),
        lambda: Annealed(0, 1, 5),
        lambda: Annealed(1, 0, 5),
        lambda: Annealed(1, 0.1, 0),
        lambda: Annealed(1, "0.1", 5),
        lambda: schedule("hot", "temperature"),
        lambda: schedule(None, "temperature"),
        lambda: schedule(-1.0, "temperature"),
    ],
)
def test_odd_schedules_are_sentences(call):
    with pytest.raises(KindError) as error:
        call()
    assert is_sentence(error)
