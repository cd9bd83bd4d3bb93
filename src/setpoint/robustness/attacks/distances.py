"""Distances between images: an ℓ_p norm by name, or any function of two batches.

    ‖x − x'‖_p = (Σ |x_i − x'_i|^p)^{1/p},   1 ≤ p ≤ ∞        "l1", "l2", "linf", "l1.5", …

A norm by name is projected onto exactly; a function only has to be differentiable.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from setpoint._core.errors import DataError, KindError, Name

Measure = Callable[[Tensor, Tensor], Tensor]


def norms(moves: Tensor, p: float) -> Tensor:
    """‖u‖_p of each row: (B, n) -> (B,). The greatest entry is divided out: no power overflows.

    Examples
    --------
    >>> import torch
    >>> norms(torch.tensor([[3.0, 4.0], [0.0, 0.0]]), 2.0)
    tensor([5., 0.])
    """
    size = moves.abs()
    if p == 1.0:
        return size.sum(1)
    if p == 2.0:
        return torch.linalg.vector_norm(moves, dim=1)
    top = size.amax(1)
    if math.isinf(p):
        return top
    scale = torch.where(top > 0, top, torch.ones_like(top))
    return scale * (size / scale[:, None]).pow(p).sum(1).pow(1.0 / p) * (top > 0)


@dataclass(frozen=True)
class Distance:
    """A distance between images of one shape.

    Attributes
    ----------
    name : str
        ``"l1"``, ``"l2"``, ``"linf"``, ``"l1.5"``, or the name of the function.
    p : float or None
        The power of the norm (``math.inf`` for ``"linf"``); None where it is a function.
    function : callable or None
        ``(x, x2) -> (B,)`` where it is a function.
    """

    name: str
    p: float | None
    function: Measure | None = None

    def __call__(self, x: Tensor, x2: Tensor) -> Tensor:
        """The distance of each row of two batches: (B, *shape), (B, *shape) -> (B,)."""
        if self.p is not None:
            return norms((x2 - x).flatten(1), self.p)
        assert self.function is not None
        distance = self.function(x, x2)
        if not isinstance(distance, Tensor) or distance.shape != x.shape[:1]:
            tensor = isinstance(distance, Tensor)
            shape = tuple(distance.shape) if tensor else type(distance).__name__
            raise KindError(
                f"the distance {self.name} gave {shape} for {len(x)} images: "
                "it has to give one number for each, a tensor (B,)"
            )
        return distance


def as_distance(distance: str | Measure | Distance) -> Distance:
    """A distance from its name or from a function of two batches.

    Parameters
    ----------
    distance : str, callable or Distance
        ``"l1"``, ``"l2"``, ``"linf"``, ``"l<p>"`` with any number p ≥ 1, or ``(x, x2) -> (B,)``.

    Examples
    --------
    >>> as_distance("linf").p
    inf
    >>> as_distance("l1.5").p
    1.5
    """
    if isinstance(distance, Distance):
        return distance
    if isinstance(distance, str):
        power = _power(distance)
        return Distance(_named(power), power)
    if callable(distance):
        return Distance(getattr(distance, "__name__", type(distance).__name__), None, distance)
    raise KindError(
        "{argument} is a {kind}: give a name such as 'l2', or a function of two batches of images "
        "that gives one number for each",
        argument=Name("distance"),
        kind=type(distance).__name__,
    )


def _power(name: str) -> float:
    text = name.strip().lower()
    try:
        power = float(text.removeprefix("l").removeprefix("_")) if text.startswith("l") else 0.0
    except ValueError:
        power = 0.0
    if not power >= 1.0:
        raise DataError(
            "{argument} {name!r} is not known: give 'l1', 'l2', 'linf', 'l<p>' with p >= 1, or a "
            "function of two batches of images",
            argument=Name("distance"),
            name=name,
        )
    return power


def _named(power: float) -> str:
    return "linf" if math.isinf(power) else f"l{power:g}"
