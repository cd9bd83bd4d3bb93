"""Entries of y that depend on the image, found by trying the operator.

    hidden(i)  ⟺  A(dark)_i = A(bright)_i = A(drawn)_i      exactly, to the last bit

An operator of ours says what it hides. A function of a user's, or a physics object of another
package, may hide pixels too and not say so; counted as seen, they would make the noise look
smaller than it is: ‖A(x) − y‖² ≈ m σ² holds with m the number of seen entries.
"""

from __future__ import annotations

import math
from typing import Any

import torch
from torch import Tensor

from setpoint._core.random_streams import stream
from setpoint.restoration.operators.image_tensors import as_real, mask_of_parts


def observed_entries(
    operator: Any, y: Tensor, shape: tuple[int, ...], range: tuple[float, float] = (0.0, 1.0)
) -> Tensor | None:
    """Truth values of the shape of y, of its parts where it is complex: which entries are seen.

    None where all are.

    Parameters
    ----------
    operator : callable
        A(x), (B, *shape) -> (B, …).
    y : Tensor (B, …)
        What was measured; only its shape, device and precision are used.
    shape : tuple of int
        Of one image.
    range : (float, float)
        The declared range of the images; where it has no ends, [0, 1] is tried.

    Examples
    --------
    >>> observed_entries(lambda x: x * torch.tensor([1.0, 0.0]), torch.zeros(1, 1, 1, 2), (1, 1, 2))
    tensor([[[[ True, False]]]])
    >>> observed_entries(lambda x: x, torch.zeros(1, 1, 1, 2), (1, 1, 2)) is None
    True
    """
    declared = getattr(operator, "observed", None)
    if isinstance(declared, Tensor):
        return mask_of_parts(declared.to(y.device) != 0, y)
    low, high = range if math.isfinite(range[1] - range[0]) else (0.0, 1.0)
    kind = y.real.dtype
    drawn = torch.rand((len(y), *shape), generator=stream(3, "probe")).to(y.device, kind)
    own = getattr(operator, "unknowns", None)
    with torch.no_grad():
        seen = []
        for share in (torch.zeros_like(drawn), torch.ones_like(drawn), drawn):
            x = low + (high - low) * share
            seen.append(as_real(operator(x, own(len(y), x)) if callable(own) else operator(x)))
    depends = (seen[0] != seen[1]) | (seen[0] != seen[2])
    return None if bool(depends.all()) else depends
