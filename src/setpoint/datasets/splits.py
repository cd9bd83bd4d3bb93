"""Splits with a job each: train fits weights, tune chooses."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from setpoint._core.errors import KindError
from setpoint._core.reals import is_real


class Split(NamedTuple):
    """Indices of the rows of each job; ``shared`` where the rows were too few to be parted."""

    train: np.ndarray
    tune: np.ndarray
    shared: bool


def split(y: np.ndarray, tune_size: float, seed: int, least: int = 2) -> Split:
    """Part rows by class, so that each job has its share of each.

    Parameters
    ----------
    y : numpy.ndarray
        (n,) classes, or (n, L) of 0 and 1, parted by the rarest label that has rows enough.
    tune_size : float
        Share of the rows for tuning, in (0, 1).
    seed : int
    least : int
        Rows that either job needs of at least two classes; with fewer, both jobs get all rows. A
        rarer class is halved, and one row of its own goes to train.

    Examples
    --------
    >>> parts = split(np.array([0] * 8 + [1] * 4), 0.25, seed=0, least=1)
    >>> len(parts.train), len(parts.tune), parts.shared
    (9, 3, False)
    """
    if not is_real(tune_size) or not 0 < tune_size < 1:
        raise KindError(f"tune_size={tune_size!r}: a share of the rows, between 0 and 1")
    labels = y if y.ndim == 1 else _rarest(y, 2 * least)
    rng = np.random.default_rng(seed)
    tune, enough = [], 0
    for label in np.unique(labels):
        rows = rng.permutation(np.flatnonzero(labels == label))
        k = round(tune_size * len(rows))
        if k < least:
            k = min(least, len(rows) // 2)
        enough += k >= least and len(rows) - k >= least
        tune.append(rows[:k])
    if enough < min(2, len(tune)):
        everything = np.arange(len(y))
        return Split(everything, everything, True)
    chosen = np.sort(np.concatenate(tune))
    return Split(np.setdiff1d(np.arange(len(y)), chosen), chosen, False)


def _rarest(y: np.ndarray, least: int) -> np.ndarray:
    """The rarest label with so many rows of either value; without one, all rows alike."""
    fewer = np.minimum(y.sum(0), len(y) - y.sum(0))
    able = np.flatnonzero(fewer >= least)
    return y[:, able[np.argmin(fewer[able])]] if len(able) else np.zeros(len(y), int)
