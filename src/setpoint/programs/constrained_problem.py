"""A problem over tensors: minimise f(x) subject to c(x) <= 0, e(x) = 0 and low <= x <= high.

x is one tensor, or a tuple of tensors where the variables have different shapes or natures (the
weights of a network, a membership for each row, a threshold). Every function takes x as it is, one
argument. Whoever solves the problem says what it can make use of.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from setpoint._core.errors import DataError, KindError
from setpoint._core.options import is_real
from setpoint.programs.duals import Equal

Variables = Tensor | tuple[Tensor, ...]
Bounds = tuple[Tensor | None, Tensor | None]  #: least and greatest values of one variable


@dataclass(frozen=True)
class ConstrainedProblem:
    """Minimise f(x) subject to c(x) <= 0, e(x) = 0 and low <= x <= high.

    Parameters
    ----------
    objective : callable
        f: x -> scalar tensor.
    constraints, equations : callable, optional
        c and e: x -> tensor (m,).
    low, high : number, tensor or tuple, optional
        Bounds of x. Where x is a tuple: one number for all, or a tuple with one of None, a number
        or a tensor for each variable.
    regulariser : callable, optional
        R: x -> scalar tensor, a term that is added with a weight of its own.
    project : callable, optional
        x -> the nearest x of a set that is no box, such as a simplex.
    """

    objective: Callable[..., Tensor]
    constraints: Callable[..., Tensor] | None = None
    equations: Callable[..., Tensor] | None = None
    low: Any = None
    high: Any = None
    regulariser: Callable[..., Tensor] | None = None
    project: Callable[[Any], Any] | None = None

    @property
    def bounded(self) -> bool:
        """Whether x is kept in a set: a box, or what ``project`` knows."""
        sides = [x if isinstance(x, tuple) else (x,) for x in (self.low, self.high)]
        return self.project is not None or any(x is not None for side in sides for x in side)

    def sides(self, *x: Any) -> tuple[Tensor, Tensor]:
        """C (m₁,) and e (m₂,) at x; a side that is not there is empty."""
        empty = variables(x[0])[0].new_zeros(0)
        functions = (self.constraints, self.equations)
        c, e = (f(*x).reshape(-1) if f else empty for f in functions)
        return c, e

    def violations(self, *x: Any) -> tuple[Tensor, Equal]:
        """V at x, and which of them are equations."""
        c, e = self.sides(*x)
        return torch.cat([c, e]), (False,) * len(c) + (True,) * len(e)

    def box(self, x: Variables) -> tuple[Bounds, ...]:
        """The bounds of each variable, as tensors that broadcast to it.

        Raises
        ------
        DataError
            A bound does not fit its variable, or the least is greater than the greatest.
        """
        parts = variables(x)
        sides = [_per_variable(side, x, name) for side, name in self._bounds()]
        bounds = []
        for k, part in enumerate(parts):
            low, high = (
                _bound(side[k], part, name)
                for side, (_, name) in zip(sides, self._bounds(), strict=True)
            )
            if low is not None and high is not None and not bool((low <= high).all()):
                raise DataError(f"variable {k} has a low above its high: no value is between them")
            bounds.append((low, high))
        return tuple(bounds)

    def _bounds(self) -> tuple[tuple[Any, str], ...]:
        return (self.low, "low"), (self.high, "high")


def variables(x: Variables) -> tuple[Tensor, ...]:
    """The tensors of x."""
    return x if isinstance(x, tuple) else (x,)


def alike(x: Variables, parts: Sequence[Tensor]) -> Variables:
    """Tensors put together as x is: a tuple, or the one tensor."""
    return tuple(parts) if isinstance(x, tuple) else parts[0]


def _per_variable(bounds: Any, x: Variables, name: str) -> tuple[Any, ...]:
    count = len(variables(x))
    if not isinstance(bounds, tuple):
        if isinstance(bounds, Tensor) and isinstance(x, tuple):
            raise DataError(f"{name} is one tensor for {count} variables; give a tuple of {count}")
        return (bounds,) * count
    if not isinstance(x, tuple) or len(bounds) != count:
        raise DataError(f"{name} holds {len(bounds)} bounds for {count} variable(s): one for each")
    return bounds


def _bound(value: Any, part: Tensor, name: str) -> Tensor | None:
    if value is None:
        return None
    if not is_real(value) and not isinstance(value, Tensor):
        raise KindError(f"{name}={value!r}: None, a number or a tensor")
    bound = torch.as_tensor(value, dtype=part.dtype, device=part.device).detach()
    try:
        fits = torch.broadcast_shapes(bound.shape, part.shape) == part.shape
    except RuntimeError:
        fits = False
    if not fits or bool(bound.isnan().any()):
        raise DataError(
            f"{name} of shape {tuple(bound.shape)} for a variable of shape {tuple(part.shape)}: "
            "it must broadcast to the variable and hold no nan"
        )
    return bound
