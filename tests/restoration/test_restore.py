"""What every run of `restore` owes: batches, seeds, trails, interrupts, bad operators."""

import itertools

import numpy as np
import pytest
import torch
from tests.restoration import oracles
from tests.restoration.linear_cases import Mixture, Plain, Separate, measured, operator_of
from torch import nn

import setpoint as sp
from setpoint.restoration import restore

CASE = oracles.problem(images=4)
SHORT = {"iterations": 25}
METHODS = ["dmplug", "constrained", "constrained-seed"]


def solved(y=None, *, operator=None, prior=None, dtype=torch.float64, **options):
    if options.get("method") == "constrained-seed":
        options |= {"method": "constrained", "regulariser": "seed"}
    return restore(
        measured(CASE, dtype) if y is None else y,
        operator_of(CASE, dtype) if operator is None else operator,
        Plain(CASE, dtype) if prior is None else prior,
        **({"noise": CASE.sigma} | options),
    )


WAYS = {
    "adam": {"regulariser": "seed", "iterations": 400, "stopping": False},
    "lbfgs": {"regulariser": "seed", "iterations": 80, "optimiser": "lbfgs"},
    "constrained": {"regulariser": "seed", "method": "constrained"},
}


@pytest.mark.parametrize("way", WAYS)
def test_a_batch_is_its_images_one_by_one(way):
    """Problems of one answer: it does not know of its neighbours, wherever it starts."""
    whole = solved(**WAYS[way])
    for i in range(4) if way != "adam" else [2]:
        alone = solved(measured(CASE)[i : i + 1], **WAYS[way])
        np.testing.assert_allclose(whole.image[i], alone.image[0], atol=2e-4)
        np.testing.assert_allclose(whole.residual[i], alone.residual[0], atol=2e-4)


@pytest.mark.parametrize("method", METHODS)
def test_the_first_images_of_a_batch_are_what_they_are_without_the_others(method):
    """The same starts and anchors for them, whatever the size of the batch."""
    options = SHORT if method == "dmplug" else {}
    whole = solved(method=method, **options)
    part = solved(measured(CASE)[:2], method=method, **options)
    np.testing.assert_allclose(whole.image[:2], part.image, atol=1e-6)


def test_scaling_one_image_does_not_move_another():
    y = measured(CASE)
    other = y.clone()
    other[0] = other[0] * 50
    a = solved(y, optimiser="lbfgs", regulariser="seed", iterations=10, stopping=False)
    b = solved(other, optimiser="lbfgs", regulariser="seed", iterations=10, stopping=False)
    np.testing.assert_allclose(a.image[1:], b.image[1:], atol=1e-8)


@pytest.mark.parametrize("method", METHODS)
def test_a_seed_is_a_run(method):
    options = SHORT if method == "dmplug" else {}
    first = solved(method=method, seed=3, **options)
    again = solved(method=method, seed=3, **options)
    assert torch.equal(first.image, again.image)
    for name, values in first.history.items():
        assert torch.equal(values, again.history[name]), name
    if method == "dmplug":
        assert not torch.equal(first.image, solved(method=method, seed=4, **options).image)


def test_the_global_generator_is_left_alone():
    torch.manual_seed(5)
    before = torch.random.get_rng_state()
    solved(**SHORT)
    assert torch.equal(before, torch.random.get_rng_state())
    expected = solved(**SHORT).image
    torch.manual_seed(6)
    assert torch.equal(expected, solved(**SHORT).image)


class Slow:
    """x = z: Adam from z ~ N(0, I) to y of different sizes takes different times."""

    shape = seed_shape = (1, 2, 2)
    range = (-100.0, 100.0)

    def __call__(self, z):
        return z


def test_images_stop_at_their_own_iterations_and_keep_their_own_iterate():
    y = torch.tensor([0.5, 4.0, 12.0], dtype=torch.float64).reshape(3, 1, 1, 1).expand(3, 1, 2, 2)
    rule = {"window": 5, "patience": 15}
    found = restore(
        y.clone(),
        lambda x: x,
        Slow(),
        noise=0.1,
        optimiser="adam",
        learning_rate=1.0,
        iterations=200,
        shell=None,
        trail=1,
        **rule,
    )
    assert len(set(found.chosen.tolist())) == 3
    steps = found.trail_steps.tolist()
    for i in range(3):
        at = steps.index(int(found.chosen[i]))
        np.testing.assert_allclose(found.trail[at, i], found.image[i], atol=1e-12)
        expected = oracles.es_wmv(np.asarray(found.trail[:, i]), **rule)
        assert int(found.chosen[i]) == steps[expected.best]
    assert len(found.why) == 3


@pytest.mark.parametrize("every", [1, 4])
def test_the_trail_holds_the_iterates_of_the_history(every):
    found = solved(iterations=21, stopping=False, trail=every, optimiser="adam")
    assert found.trail.shape[1:] == found.image.shape
    assert len(found.trail) == len(found.trail_steps)
    steps = [int(s) for s in found.trail_steps]
    assert steps == sorted(set(steps))
    assert {b - a for a, b in itertools.pairwise(steps[:-1])} <= {every}  # the last may be nearer
    y = np.asarray(found.trail.flatten(2)) @ CASE.operator.T - CASE.y
    squares = (y**2).mean(axis=2)
    history = np.asarray(found.history["residual"])
    # root mean squares or mean squares, but the same at each step of the trail
    at = history[steps]
    assert np.allclose(at, squares) or np.allclose(at, np.sqrt(squares))


def test_without_a_trail_none_is_kept():
    assert solved(**SHORT).trail is None


def test_the_callback_sees_each_step_and_no_truth():
    seen = []
    solved(iterations=7, stopping=False, callback=lambda *a, **k: seen.append((a, k)))
    assert len(seen) in (7, 8)


@pytest.mark.parametrize("method", METHODS)
def test_an_interrupt_gives_back_the_best_so_far(method):
    calls = []

    def stop(*args, **kwargs):
        calls.append(1)
        if len(calls) == 5:
            raise KeyboardInterrupt

    options = {"iterations": 500, "stopping": False} if method == "dmplug" else {}
    found = solved(method=method, callback=stop, **options)
    assert len(calls) == 5
    assert "interrupt" in found.status.lower()
    assert torch.isfinite(found.image).all()
    assert found.image.shape == (4, *Plain(CASE).shape)
    y = CASE.y - np.asarray(found.image.flatten(1)) @ CASE.operator.T
    np.testing.assert_allclose(found.residual, np.sqrt((y**2).mean(axis=1)), rtol=1e-8)


def test_an_interrupt_in_the_operator_gives_back_the_best_so_far():
    inner, calls = operator_of(CASE), []

    def operator(x):
        calls.append(1)
        if len(calls) == 40:
            raise KeyboardInterrupt
        return inner(x)

    found = solved(operator=operator, iterations=500, stopping=False, optimiser="adam")
    assert "interrupt" in found.status.lower()
    assert torch.isfinite(found.image).all()


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("operator", "word"),
    [
        (lambda x: x.flatten(1)[:, :6] * float("nan"), "NaN|nan|finite"),
        (lambda x: x.flatten(1)[:, :4], r"\(4,\).*\(6,\)"),
        (lambda x: x.flatten(1).detach()[:, :6], "differentiable|gradient"),
        (lambda x: x.flatten(1)[:1, :6], "shape|batch|image"),
    ],
)
def test_a_bad_operator_is_told_in_a_sentence(method, operator, word):
    with pytest.raises(sp.SetpointError, match=word):
        solved(method=method, operator=operator)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("optimiser", ["adam", "lbfgs"])
def test_a_nan_on_the_way_is_no_answer(method, optimiser):
    """The operator gives NaN from its 12th call on: what comes back is finite, and it is said."""
    inner, calls = operator_of(CASE), []

    def operator(x):
        calls.append(1)
        out = inner(x)
        return out * float("nan") if len(calls) > 12 else out

    options = {"iterations": 60, "optimiser": optimiser, "stopping": False}
    found = solved(method=method, operator=operator, **(options if method == "dmplug" else {}))
    assert torch.isfinite(found.image).all()
    said = (found.status + " ".join(found.why)).lower()
    assert "nan" in said or "finite" in said


def test_a_nan_of_one_image_does_not_spoil_another():
    inner, calls = operator_of(CASE), []

    def operator(x):
        out = inner(x)
        spoiled = torch.zeros(4, 1, dtype=x.dtype)
        spoiled[0] = float("nan") if len(calls) > 12 else 0.0
        calls.append(1)
        return out + spoiled

    clean = solved(iterations=30, stopping=False, optimiser="adam")
    found = solved(operator=operator, iterations=30, stopping=False, optimiser="adam")
    np.testing.assert_allclose(found.image[1:], clean.image[1:], atol=1e-8)
    assert torch.isfinite(found.image).all()


@pytest.mark.parametrize("value", [0.0, -0.1, float("nan"), float("inf")])
def test_a_noise_level_that_is_none_is_refused(value):
    with pytest.raises(sp.SetpointError, match=r"noise|sigma"):
        solved(noise=value)


def test_a_nan_measurement_is_refused():
    y = measured(CASE)
    y[1, 2] = float("nan")
    with pytest.raises(sp.SetpointError, match=r"NaN|nan|finite"):
        solved(y)


def test_an_unknown_method_or_option_is_refused():
    with pytest.raises(ValueError, match="dmplug"):
        solved(method="dmplugg")
    with pytest.raises((TypeError, ValueError), match="iteratons"):
        solved(iteratons=4)


def test_a_user_s_module_is_left_as_it_was():
    a0, a1 = (torch.tensor(CASE.operator), torch.ones(6, 8, dtype=torch.float64))
    module = Mixture(a0, a1, 0.4)
    module.train()
    found = solved(operator=module, iterations=20, stopping=False)
    assert float(module.u.detach()) == 0.4
    assert module.u.grad is None
    assert module.u.requires_grad
    assert module.training
    assert not np.allclose(np.ravel(found.unknowns), 0.4)


def test_a_user_s_prior_is_left_as_it_was():
    class Learned(nn.Module):
        shape, seed_shape, range = (1, 2, 4), (5,), (-100.0, 100.0)

        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(5, 8).double()

        def forward(self, z):
            return self.layer(z).reshape(-1, 1, 2, 4)

    prior = Learned()
    before = prior.layer.weight.detach().clone()
    solved(prior=prior, **SHORT)
    assert torch.equal(before, prior.layer.weight)
    assert prior.layer.weight.grad is None
    assert prior.layer.weight.requires_grad


def test_measurements_are_not_written_to():
    y = measured(CASE)
    before = y.clone()
    solved(y, **SHORT)
    assert torch.equal(before, y)


def test_what_comes_back_carries_no_graph():
    a0, a1 = (torch.tensor(CASE.operator), torch.ones(6, 8, dtype=torch.float64))
    found = solved(operator=Separate(a0, a1, 0.2), iterations=5, stopping=False, trail=2)
    held = [found.image, found.seed, found.unknowns, found.residual, found.trail]
    for tensor in [*held, *found.history.values()]:
        assert not tensor.requires_grad


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_precision_is_that_of_the_measurement(method, dtype):
    found = solved(dtype=dtype, method=method, **(SHORT if method == "dmplug" else {}))
    assert found.image.dtype == found.seed.dtype == dtype


def test_it_runs_where_gradients_are_off():
    with torch.no_grad():
        off = solved(**SHORT)
    assert torch.equal(off.image, solved(**SHORT).image)


@pytest.mark.parametrize("method", METHODS)
def test_a_batch_of_one(method):
    found = solved(measured(CASE)[:1], method=method, **(SHORT if method == "dmplug" else {}))
    assert found.image.shape == (1, 1, 2, 4)
    assert len(found.why) == 1
    assert found.chosen.shape == found.residual.shape == (1,)
