"""Ω: what is asked of an image, or of its seed, beside explaining y.

"seed"     ½ ‖z‖²                the negative log density of the seed: the posterior mode
"anchor"   ½ ‖z − z_k‖²          the nearest seed to one drawn at random
callable   Ω(x), one number an image
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor

from setpoint._core.errors import DataError, KindError


def seed_energy(z: Tensor) -> Tensor:
    """½ ‖z‖², (N,)."""
    return 0.5 * z.flatten(1).square().sum(1)


def image_term(regulariser: Any) -> Callable[[Tensor], Tensor]:
    """A callable of images, with what it gives looked at."""
    if not callable(regulariser):
        raise KindError(
            f"regulariser={regulariser!r} is not known: say None, 'seed', 'anchor' (constrained "
            "form) or give a function of the images that returns one number for each."
        )

    def term(image: Tensor) -> Tensor:
        value = regulariser(image)
        if not isinstance(value, Tensor) or value.shape != (len(image),):
            got = tuple(value.shape) if isinstance(value, Tensor) else type(value).__name__
            raise DataError(
                f"the regulariser gave {got} for {len(image)} images: return a tensor of shape "
                f"({len(image)},), one number for each image."
            )
        return value

    return term
