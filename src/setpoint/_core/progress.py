"""Progress: the one event by which long work says how far it is. The library never prints."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Progress:
    """How far a piece of work is; rooms add what they know in subclasses.

    Attributes
    ----------
    what : str
        What is going on, in a few words.
    done : float
        How much is done, out of ``total``.
    total : float or None
        None where the end is not known.
    """

    what: str
    done: float
    total: float | None = None

    def words(self) -> str:
        """What is going on, with the figures that belong to it."""
        return self.what

    @property
    def share(self) -> float | None:
        """What part is done, in [0, 1].

        >>> Progress(what="fold 2", done=1, total=4).share
        0.25
        """
        return None if not self.total else min(self.done / self.total, 1.0)


ProgressListener = Callable[[Progress], object]
