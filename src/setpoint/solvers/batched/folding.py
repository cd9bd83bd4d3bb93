"""Many constraints as one: ‖(c)₊‖₂ <= 0 asks for the same as c₁ <= 0, …, c_k <= 0.

The folded constraint is 0 wherever all hold and has no interior, so it gives no multipliers and is
hard to meet exactly: fold only what is too much for the solver's dual and what can neither be
projected onto nor bounded.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
from torch import Tensor


def folded(constraints: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """A function (B, k) of constraints c <= 0 as one (B,): ‖(c)₊‖₂ / √k.

    Examples
    --------
    >>> import torch
    >>> folded(lambda x: x - 1)(torch.tensor([[0.0, 1.0], [4.0, 5.0]]))
    tensor([0.0000, 3.5355])
    """

    def one(*given: Tensor) -> Tensor:
        sides = constraints(*given).flatten(1)
        return torch.linalg.vector_norm(sides.clamp_min(0), dim=1) / math.sqrt(sides.shape[1])

    return one
