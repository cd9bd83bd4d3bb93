"""A blind baseline that is interrupted gives back image and kernel of the same step."""

from __future__ import annotations

import pytest
import torch
from tests.restoration.baselines.test_sampling import Known
from torch import Tensor

from setpoint.restoration import restore
from setpoint.restoration.operators import BlindBlur, gaussian_blur

OPTIONS = {
    "tv": {"iterations": 30},
    "dip": {"iterations": 30, "width": 8, "inputs": 4},
    "dps": {"iterations": 30},
    "pnp": {"iterations": 30},
}


@pytest.mark.parametrize("method", OPTIONS)
def test_the_residual_is_that_of_image_and_kernel(method: str) -> None:
    draw = torch.Generator().manual_seed(0)
    images = torch.rand(6, 1, 8, 8, dtype=torch.float64, generator=draw)
    operator, y = BlindBlur(3), gaussian_blur(0.6, size=3)(images[:2])

    def stop(step: int, steps: int | None, residual: Tensor) -> None:
        if step == 7:
            raise KeyboardInterrupt

    found = restore(
        y, operator, Known(images), noise=0.02, method=method, callback=stop, **OPTIONS[method]
    )
    assert found.interrupted
    assert found.unknowns is not None
    assert len(found.history["residual"]) == 8
    torch.testing.assert_close(found.residual, found.history["residual"][-1].sqrt())
    exact = (operator(found.image, found.unknowns) - y).square().mean((1, 2, 3)).sqrt()
    torch.testing.assert_close(found.residual, exact)
