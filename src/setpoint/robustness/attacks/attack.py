"""Attack of an evaluation: a name, and a call that gives points for some images."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from setpoint._core.errors import DataError

# What an attack found: one point for each image, and how good it is by its own measures.


@dataclass(frozen=True)
class AttackResult:
    """The points an attack ends with. It says nothing about success: that is the judge's.

    Attributes
    ----------
    x : Tensor (B, *shape)
        The points, inside the box.
    stationarity : Tensor (B,)
        How far each point is from a stationary one of its problem; 0 is stationary. Max-loss:
        ‖x − Π(x + τ ∇ℓ/‖∇ℓ‖)‖₂ / τ, between 0 and 1. Min-radius: the same for a least distance on
        the linearised decision surface, so it is 0 where the point is the nearest one of it.
    violation : Tensor (B,)
        By how much the problem's constraint is missed after clipping to the box: max-loss the
        excess of the distance over eps, min-radius the margin that is missing. 0 is none.
    iterations : Tensor (B,) of int64
        Gradients taken for each image.
    forwards : int
        Images put through the model, over all of them.
    """

    x: Tensor
    stationarity: Tensor
    violation: Tensor
    iterations: Tensor
    forwards: int


@dataclass(frozen=True, eq=False)
class Call:
    """One call of an attack.

    Attributes
    ----------
    model : callable
    x, y : Tensor
        Images (B, *shape) and labels (B,); copies, which the attack may change.
    eps : float
        The radius it is after.
    target : Tensor or None
        The classes (B,) to lead the model to.
    low, high : float
        The box.
    seed : int
    seeds : list of int
        One for each image, whatever batch it comes in.
    progress : callable or None
        Told how much of the call is done, from 0 to 1, by attacks that know.
    """

    model: Any
    x: Tensor
    y: Tensor
    eps: float
    target: Tensor | None
    low: float
    high: float
    seed: int
    seeds: Sequence[int] = ()
    progress: Callable[[float], None] | None = None


@dataclass(frozen=True, eq=False)
class Attack:
    """An attack by its name.

    Attributes
    ----------
    name : str
    call : callable
        :class:`Call` -> points (B, *shape), a :class:`AttackResult`, or a list of such, each
        of which is judged.
    each_eps : bool
        Whether it is run again for every eps.
    nearest : bool
        Whether it looks for the least distance, and so is of use where an image is beaten already.
    ours : bool
    """

    name: str
    call: Callable[[Call], Any]
    each_eps: bool = False
    nearest: bool = False
    ours: bool = False


def points_of(answer: Any, images: int) -> list[AttackResult | Tensor]:
    """What an attack answered as a list of points, each to be judged; a sentence where it is none.

    Parameters
    ----------
    answer : Tensor, AttackResult, or a list or tuple of them
    images : int
        How many there were.
    """
    many = list(answer) if isinstance(answer, list | tuple) else [answer]
    for one in many:
        if not isinstance(one, AttackResult | Tensor):
            raise DataError(
                f"it gave a {type(one).__name__} for {images} images; an attack gives a tensor of "
                "points, one for each"
            )
    if not many:
        raise DataError(f"it gave nothing for {images} images")
    return many


# How far a run has come, told as a share from 0 to 1.


class Pace:
    """Counts steps of a run whose length is known at most.

    Parameters
    ----------
    steps : int
        At most so many.
    progress : callable or None
        Told the share done after each step.

    Examples
    --------
    >>> shares = []
    >>> pace = Pace(4, shares.append)
    >>> pace.tick(), pace.skip(2), pace.end()
    (None, None, None)
    >>> shares
    [0.25, 0.75, 1.0]
    """

    def __init__(self, steps: int, progress: Callable[[float], object] | None) -> None:
        self._steps, self._progress, self._done = max(steps, 1), progress, 0

    def tick(self) -> None:
        """One step is done."""
        self.skip(1)

    def skip(self, steps: int) -> None:
        """Some steps are done, or need not be."""
        self._done += steps
        if self._progress is not None and steps:
            self._progress(min(self._done / self._steps, 1.0))

    def end(self) -> None:
        """All is done."""
        if self._done < self._steps:
            self.skip(self._steps - self._done)
