"""What an attack is to an evaluation: a name, and a call that gives points for some images."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from setpoint._core.errors import DataError
from setpoint.robustness.found import Found


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
        :class:`Call` -> points (B, *shape), a :class:`Found`, or a list of such, each of which is
        judged.
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


def points_of(answer: Any, images: int) -> list[Found | Tensor]:
    """What an attack answered as a list of points, each to be judged; a sentence where it is none.

    Parameters
    ----------
    answer : Tensor, Found, or a list or tuple of them
    images : int
        How many there were.
    """
    many = list(answer) if isinstance(answer, list | tuple) else [answer]
    for one in many:
        if not isinstance(one, Found | Tensor):
            raise DataError(
                f"it gave a {type(one).__name__} for {images} images; an attack gives a tensor of "
                "points, one for each"
            )
    if not many:
        raise DataError(f"it gave nothing for {images} images")
    return many
