"""What an evaluation tells whoever listens. The library never prints."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Progress:
    """How far an evaluation is.

    Attributes
    ----------
    attack : str
        The one that is going on.
    eps : float or None
        What it is after; None where it looks for the least distance.
    done : float
        Images that all attacks are through with, and a part of the batch that is under attack.
    total : int
        Images.
    right, seen : int
        Of the images that are done, how many no attack has beaten, and how many they are.
    """

    attack: str
    eps: float | None
    done: float
    total: int
    right: int
    seen: int


Listener = Callable[[Progress], None]
