"""Projected steps: move each variable at a rate of its own, then back into its box.

    x ← Π(x − step),      Π(x) = min(max(x, low), high)

which for a box is the nearest point of it.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from setpoint._core.errors import DataError
from setpoint.programs.constrained_problem import Bounds
from setpoint.solvers.first_order import FirstOrder


def started(
    primal: FirstOrder, leaves: Sequence[Tensor], rates: Sequence[float]
) -> torch.optim.Optimizer:
    """The optimiser over some variables, each with a multiple of the learning rate."""
    if rates and len(rates) != len(leaves):
        raise DataError(
            f"rates holds {len(rates)} numbers for {len(leaves)} variable(s): one for each, or none"
        )
    scales = [float(rate) for rate in rates] or [1.0] * len(leaves)
    optimiser = primal.start([leaves[0]])  # type: ignore[list-item]
    optimiser.param_groups[0]["scale"] = scales[0]
    for leaf, scale in zip(leaves[1:], scales[1:], strict=True):
        optimiser.add_param_group({"params": [leaf], "scale": scale})
    return optimiser


def project(leaves: Sequence[Tensor], box: Sequence[Bounds]) -> None:
    """Put each variable back into its box, in place."""
    with torch.no_grad():
        for leaf, (low, high) in zip(leaves, box, strict=True):
            if low is not None or high is not None:
                leaf.clamp_(low, high)
