"""Alarms of a loss: what goes wrong in training, and what to do about it."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from scipy.stats import rankdata

from setpoint._core.notes import Note, NoteCode
from setpoint._core.words import listing
from setpoint.methods.confusion.goal_over_cells import Lowered
from setpoint.methods.guard.operating_point import LIMIT
from setpoint.methods.guard.recent_rows import ObservedRows

BELOW = 3.0  #: standard errors by which the ranking is worse than chance
SCARCE = 1.6  #: rows of a class in a batch: with fewer, one batch in five holds none
WAIT = 100  #: calls before batches are judged


def window_alarms(
    judge: Lowered,
    rows: ObservedRows,
    threshold: float,
    share: float,
    prices: Sequence[float],
) -> tuple[Note, ...]:
    """What the recent rows show to be wrong.

    Parameters
    ----------
    judge : Lowered
    rows : ObservedRows
    threshold : float
    share : float
        Of the margin that the threshold keeps; −1 where a constraint is broken at every threshold.
    prices : sequence of float
    """
    alarms = []
    decided = rows.scores >= threshold
    if share < 0:
        names = listing(judge.constraints) or "the constraints"
        words = (
            f"no threshold meets {names} on the recent rows: train longer, use a larger model or "
            "better features, or relax the bound"
        )
        alarms.append(Note(NoteCode.CONSTRAINT_BROKEN, words))
    for name, price in zip(judge.constraints, prices, strict=True):
        if price >= LIMIT:
            words = (
                f"the price of {name} is at its limit ({LIMIT:g}): the constraint takes all the "
                "weight and the objective none; relax the bound, or check that it can be met"
            )
            alarms.append(Note(NoteCode.PRICE_AT_LIMIT, words, {"price": price}))
    if decided.all() or not decided.any():
        who = "every row" if decided.all() else "no row"
        words = (
            f"{who} is decided positive at the loss's own threshold ({threshold:.3g}): check the "
            "labels, lower the learning rate, or relax the bound"
        )
        alarms.append(Note(NoteCode.EXTREME_RULE, words, {"share": float(decided.mean())}))
    return (*alarms, *_below_chance(rows))


def _below_chance(rows: ObservedRows) -> tuple[Note, ...]:
    """Whether positive rows score lower than negative ones, beyond chance."""
    positive = rows.y > 0
    n, m = int(positive.sum()), int((~positive).sum())
    if not n or not m:
        return ()
    area = (rankdata(rows.scores)[positive].sum() - n * (n + 1) / 2) / (n * m)
    if area >= 0.5 - BELOW * math.sqrt((n + m + 1) / (12 * n * m)):
        return ()
    words = (
        f"the ranking is worse than chance (AUROC {area:.2f} on the recent rows): check that 1 is "
        "the positive class, and lower the learning rate"
    )
    return (Note(NoteCode.RANKING_BELOW_CHANCE, words, {"auroc": float(area)}),)


def scarce(seen: np.ndarray, calls: int, classes: Sequence[object]) -> tuple[Note, ...]:
    """Whether batches hold too few rows of a class.

    Parameters
    ----------
    seen : numpy.ndarray
        Rows of each class so far.
    calls : int
    classes : sequence
        Their names.
    """
    if calls < WAIT:
        return ()
    rarest = int(np.argmin(seen))
    mean = float(seen[rarest]) / calls
    if mean >= SCARCE:
        return ()
    words = (
        f"a batch holds {mean:.2g} rows of class {classes[rarest]!r} on average, and many hold "
        "none: use larger batches"
    )
    return (Note(NoteCode.FEW_IN_BATCH, words, {"mean": mean}),)
