"""How far a run has come, told as a share from 0 to 1."""

from __future__ import annotations

from collections.abc import Callable


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
