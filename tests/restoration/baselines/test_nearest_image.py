"""The nearest training image against brute force, for operators of every sort."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.restoration.baseline_cases import Shape, noisy, task_of
from torch import Tensor, nn

from setpoint import DataError
from setpoint.restoration.baselines import nearest
from setpoint.restoration.baselines.nearest_image import distances
from setpoint.restoration.operators import BlindBlur, Blur, Downsample, Inpaint, PhaseRetrieval
from setpoint.restoration.operators.blur import gaussian_kernel

PRIOR = Shape((2, 8, 8))


def _bank(count: int = 37, seed: int = 0) -> Tensor:
    draw = torch.Generator().manual_seed(seed)
    return torch.rand(count, 2, 8, 8, dtype=torch.float64, generator=draw)


class Gains:
    """Each image of the batch is measured in its own way; nothing says so."""

    def __init__(self, batch: int) -> None:
        self.gains = torch.linspace(0.5, 2.0, batch, dtype=torch.float64).reshape(-1, 1, 1, 1)

    def __call__(self, x: Tensor) -> Tensor:
        return torch.tanh(self.gains * x)


class HalfSeen:
    """The same for all images; what was not observed is not 0."""

    def __init__(self) -> None:
        self.observed = (torch.arange(64) % 3 > 0).reshape(1, 1, 8, 8)

    def __call__(self, x: Tensor) -> Tensor:
        return x + 3 * (~self.observed)


def _masks(batch: int) -> Inpaint:
    draw = torch.Generator().manual_seed(7)
    return Inpaint(torch.rand(batch, 1, 8, 8, generator=draw) < 0.4)


OPERATORS: dict[str, Callable[[int], Any]] = {
    "block means": lambda batch: Downsample(2),
    "one mask": lambda batch: Inpaint((torch.arange(64) % 3 == 0).reshape(8, 8)),
    "a mask an image": _masks,
    "nonlinear": lambda batch: lambda x: torch.tanh(3 * x),
    "an operator an image": Gains,
    "unobserved and not zero": lambda batch: HalfSeen(),
    "phase": lambda batch: PhaseRetrieval(2),
}


@pytest.mark.parametrize("name", OPERATORS)
@pytest.mark.parametrize("chunk", [5, 1000])
def test_every_distance_is_that_of_the_definition(name: str, chunk: int) -> None:
    bank, truth = _bank(), _bank(3, seed=1)
    operator = OPERATORS[name](3)
    y = noisy(operator(truth), 0.02)
    task = task_of(y, operator, PRIOR)
    seen = getattr(operator, "observed", None)
    brute = torch.empty(3, len(bank), dtype=torch.float64)
    for n, image in enumerate(bank):
        apart = operator(image.expand(3, 2, 8, 8)) - y
        apart = apart if seen is None else apart * seen
        brute[:, n] = apart.square().sum(tuple(range(1, apart.ndim)))
    torch.testing.assert_close(distances(task, bank, chunk), brute, atol=1e-8, rtol=1e-8)
    found = nearest(task, training=bank, chunk=chunk)
    torch.testing.assert_close(found.image, bank[brute.argmin(1)])


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 2**31), st.integers(1, 4), st.integers(2, 30))
def test_an_image_of_the_bank_is_found_again(seed: int, batch: int, count: int) -> None:
    draw = torch.Generator().manual_seed(seed)
    bank = torch.rand(count, 2, 8, 8, dtype=torch.float64, generator=draw)
    which = torch.randint(count, (batch,), generator=draw)
    operator = _masks(batch)
    found = nearest(task_of(operator(bank[which]), operator, PRIOR), training=bank)
    assert torch.equal(found.image, bank[which])


def test_a_blind_operator_finds_image_and_kernel() -> None:
    bank, kernel = _bank(30), gaussian_kernel(0.7, 3).double()
    which = torch.tensor([4, 17])
    y = noisy(Blur(kernel)(bank[which]), 0.005)
    operator = BlindBlur(3, start="flat")
    found = nearest(task_of(y, operator, PRIOR), training=bank, fitted=6, fit_steps=60, rounds=2)
    assert torch.equal(found.image, bank[which])
    assert found.unknowns is not None
    off = (operator.kernel(found.unknowns) - kernel).abs().sum((1, 2))
    assert float(off.max()) < 0.1


def test_a_blind_search_measures_no_more_images_at_a_time_than_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bank, operator, sizes = _bank(30), BlindBlur(3, start="flat"), []
    y = operator(bank[[4, 17]], operator.unknowns(2, bank))
    blurred = BlindBlur.__call__

    def recorded(self: BlindBlur, x: Tensor, unknowns: Tensor) -> Tensor:
        sizes.append(len(x))
        return blurred(self, x, unknowns)

    monkeypatch.setattr(BlindBlur, "__call__", recorded)
    nearest(task_of(y, operator, PRIOR), training=bank, chunk=7, fitted=2, fit_steps=1, rounds=1)
    assert 7 in sizes
    assert max(sizes) == 7


class Gain(nn.Module):
    """A module with a parameter: one for the whole batch."""

    def __init__(self) -> None:
        super().__init__()
        self.gain = nn.Parameter(torch.tensor(1.0, dtype=torch.float64))

    def forward(self, x: Tensor) -> Tensor:
        """The image, stronger."""
        return self.gain * x


def test_unknowns_that_the_batch_shares() -> None:
    bank, which = _bank(30), torch.tensor([4, 17, 20])
    operator = Gain()
    found = nearest(task_of(1.6 * bank[which], operator, PRIOR), training=bank, unknowns_rate=0.02)
    assert torch.equal(found.image, bank[which])
    assert found.unknowns is not None
    assert float(found.unknowns) == pytest.approx(1.6, abs=0.02)
    assert operator.gain.item() == 1.0  # the user's module is not written to


@pytest.mark.parametrize("training", [None, torch.rand(3, 8, 8), torch.rand(0, 2, 8, 8)])
def test_images_that_are_missing_or_of_another_shape(training: Tensor | None) -> None:
    with pytest.raises(DataError, match=r"training=" if training is None else r"training has"):
        nearest(task_of(_bank(1), lambda x: x, PRIOR), training=training)
