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
from setpoint.methods.guard.price_control import OUTWEIGHS, SURE, ObservedConstraints
from setpoint.methods.guard.recent_rows import ObservedRows

BELOW = 3.0  #: standard errors by which the ranking is worse than chance
LATE = 0.25  #: of the window, by which the ranking is judged: older rows had scores of the start
SCARCE = 1.6  #: rows of a class in a batch: with fewer, one batch in five holds none
WAIT = 100  #: calls before batches are judged
ENOUGH_ROWS = 40  #: of a class in the window, of which some should be decided so


def window_alarms(
    judge: Lowered,
    rows: ObservedRows,
    threshold: float,
    share: float,
    prices: Sequence[float],
) -> tuple[Note, ...]:
    """What the recent rows show to be wrong where a threshold decides.

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
        names = listing(list(dict.fromkeys(judge.constraints))) or "the constraints"
        words = (
            f"no threshold meets {names} on the recent rows yet: keep training; if this lasts, "
            "use a larger model or better features, or relax the bound"
        )
        alarms.append(Note(NoteCode.CONSTRAINT_BROKEN, words))
    alarms += price_alarms(judge, prices)
    if decided.all() or not decided.any():
        who = "every row" if decided.all() else "no row"
        words = (
            f"{who} is decided positive at the loss's own threshold ({threshold:.3g}): check the "
            "labels, lower the learning rate, or relax the bound"
        )
        alarms.append(Note(NoteCode.EXTREME_RULE, words, {"share": float(decided.mean())}))
    return (*alarms, *_below_chance(rows))


def price_alarms(judge: Lowered, prices: Sequence[float]) -> list[Note]:
    """The constraints that take all the weight."""
    alarms = []
    for name, price in zip(judge.constraints, prices, strict=True):
        if price >= LIMIT:
            words = (
                f"the price of {name} is at its limit ({LIMIT:g}): the constraint takes all the "
                "weight and the objective none; relax the bound, or check that it can be met"
            )
            alarms.append(Note(NoteCode.PRICE_AT_LIMIT, words, {"price": price}))
    return alarms


def control_alarms(
    judge: Lowered, observed: ObservedConstraints, prices: Sequence[float]
) -> list[Note]:
    """The constraints that stay broken however dear they are, and those whose rate is empty.

    Parameters
    ----------
    judge : Lowered
    observed : ObservedConstraints
    prices : sequence of float
        Of the constraints, in units of the objective.
    """
    alarms = []
    rows = zip(judge.constraints, *observed, prices, strict=True)
    for name, violation, error, unit, empty, equal, price in rows:
        by = abs(violation) if equal else violation
        pulls = abs(price) / unit
        if empty:
            words = (
                f"{name} is broken on the recent rows: its rate is empty, nobody is decided; "
                "train longer, or relax the bound"
            )
            alarms.append(Note(NoteCode.CONSTRAINT_BROKEN, words))
        elif by > SURE * error and pulls >= OUTWEIGHS:
            words = (
                f"{name} is broken on the recent rows although it weighs {pulls:.0f} times as "
                "much as the objective: train longer, use a larger model or better features, or "
                "relax the bound"
            )
            alarms.append(Note(NoteCode.CONSTRAINT_BROKEN, words, {"price": float(price)}))
    return alarms


def undecided(shares: Sequence[tuple[str, float, float]], count: float) -> list[Note]:
    """The classes or labels that no recent row is decided as, though enough rows are of them.

    Parameters
    ----------
    shares : sequence of (str, float, float)
        Name, share of the rows that is of it, share that is decided as it.
    count : float
        Rows in the window.
    """
    alarms = []
    for name, of, decided in shares:
        if not decided and of * count >= ENOUGH_ROWS:
            words = (
                f"no row is decided as {name!r} although {of * count:,.0f} recent rows are: check "
                "the labels, train longer, or say in the goal what it is worth (macro(f1), or a "
                "floor on its recall)"
            )
            alarms.append(Note(NoteCode.EXTREME_RULE, words, {"share": 0.0}))
    return alarms


def _below_chance(rows: ObservedRows) -> tuple[Note, ...]:
    """Whether positive rows of late score lower than negative ones, beyond chance."""
    late = slice(-max(1, round(len(rows.y) * LATE)), None)
    scores, positive = rows.scores[late], rows.y[late] > 0
    n, m = int(positive.sum()), int((~positive).sum())
    if not n or not m:
        return ()
    area = (rankdata(scores)[positive].sum() - n * (n + 1) / 2) / (n * m)
    if area >= 0.5 - BELOW * math.sqrt((n + m + 1) / (12 * n * m)):
        return ()
    words = (
        f"the ranking is worse than chance (AUROC {area:.2f} on the recent rows): check that 1 is "
        "the positive class, and lower the learning rate"
    )
    return (Note(NoteCode.RANKING_BELOW_CHANCE, words, {"auroc": float(area)}),)


def like_probabilities(rows: ObservedRows, calls: int) -> tuple[Note, ...]:
    """Whether what should be logits lies in [0, 1]."""
    if calls < WAIT or rows.scores.min() < 0 or rows.scores.max() > 1:
        return ()
    words = (
        "all outputs lie in [0, 1], as probabilities do: pass logits, without a sigmoid at the end "
        "of the model"
    )
    return (Note(NoteCode.LIKE_PROBABILITIES, words),)


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
        "none: shuffle the rows if they are sorted, or use larger batches for the same number of "
        "steps"
    )
    return (Note(NoteCode.FEW_IN_BATCH, words, {"mean": mean}),)
