"""Operators written for other packages: any object with a method ``A``, such as deepinv's physics.

    physics(x) = A(x) with fresh noise at every call,      physics.A(x): A itself

A search needs the noiseless A, the same at every call, so ``A`` is what is called.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from torch import Tensor

from setpoint._core.errors import KindError


def is_physics(thing: Any) -> bool:
    """Whether an object has a method ``A``, as physics objects do."""
    return not isinstance(thing, type) and callable(getattr(thing, "A", None))


@dataclass(frozen=True, eq=False)
class Physics:
    """The noiseless operator of an object with a method ``A``.

    Parameters
    ----------
    physics : object
        With ``A(x)``, and ``A_adjoint(v)`` where it is linear.
    """

    physics: Any
    output: ClassVar[str] = "unknown"
    range: ClassVar[None] = None

    @property
    def linear(self) -> bool:
        """Whether it says what its adjoint is."""
        return callable(getattr(self.physics, "A_adjoint", None))

    def __call__(self, x: Tensor) -> Tensor:
        """``physics.A(x)``."""
        return self.physics.A(x)

    def adjoint(self, v: Tensor, shape: tuple[int, ...]) -> Tensor:
        """``physics.A_adjoint(v)``."""
        if not self.linear:
            raise KindError(f"{type(self.physics).__name__} has no A_adjoint; it is not linear")
        return self.physics.A_adjoint(v).reshape(len(v), *shape)

    def __repr__(self) -> str:
        return f"Physics({type(self.physics).__name__})"
