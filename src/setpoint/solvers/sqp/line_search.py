"""A step along a direction that is long enough, and not too long.

    φ(x + t d) <= φ(x) + 10⁻⁴ t s           enough of the decrease s that the model foresees
    ∇φ(x + t d)ᵀd >= ½ s                    far enough that the slope has changed (weak Wolfe)

t is doubled while the second fails, and then the interval is halved: this finds a step of a
function with kinks too, where no smooth model would. Longer steps are taken only as long as they
break the constraints no more than the last one did. Values are asked for first, and gradients only
where the first condition holds. In a box t goes no further than its walls.

References
----------
Lewis, Overton, Nonsmooth optimization via quasi-Newton methods, 2013, algorithm 4.6.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from setpoint.solvers.sqp.functions import Evaluated

DECREASE, CURVATURE = 1e-4, 0.5
DOUBLINGS = 60
SHORTEST = 1e-14  # an interval of less than this part of its end is a step that rounding made


@dataclass(frozen=True, eq=False)
class LineSearchResult:
    """What a line search came to.

    Attributes
    ----------
    t : float
        The step; 0 where none lowers the merit.
    point : Evaluated, optional
        Where it leads.
    endless : bool
        Whether the merit fell as far as the step was doubled.
    bad : bool
        Whether a trial point gave values that are no numbers.
    cut : bool
        Whether a limit ended it.
    """

    t: float
    point: Evaluated | None
    endless: bool = False
    bad: bool = False
    cut: bool = False


def weak_wolfe(
    at: Callable[[float], Evaluated],
    merit: Callable[[Evaluated], float],
    slope_at: Callable[[Evaluated], float],
    start: float,
    slope: float,
    *,
    room: float = math.inf,
    noise: float = 0.0,
    first: Evaluated | None = None,
    further: Callable[[Evaluated, Evaluated], bool] = lambda held, point: True,
    spent: Callable[[], bool] = lambda: False,
) -> LineSearchResult:
    """Search along a direction.

    Parameters
    ----------
    at : callable
        t -> values at x + t d.
    merit, slope_at : callable
        Point -> φ, and ∇φᵀd.
    start, slope : float
        φ at x, and the decrease that a step of 1 promises, negative.
    room : float
        The longest step.
    noise : float
        What φ may be off by, from rounding.
    first : Evaluated, optional
        The values at t = 1, or at the room, where they are known.
    further : callable
        (last point, longer step) -> whether the longer step may be taken; shorter ones always may.
    spent : callable
        Whether a limit is reached.
    """
    low, high, t = 0.0, math.inf, min(1.0, room)
    held: Evaluated | None = None
    bad = False
    for _ in range(DOUBLINGS + 60):
        point = at(t) if first is None else first
        first = None
        bad = bad or not point.finite
        fell = point.finite and merit(point) <= start + DECREASE * t * slope + noise
        if fell and held is not None and math.isinf(high) and not further(held, point):
            return LineSearchResult(low, held, bad=bad)
        now = slope_at(point) if fell else 0.0
        enough = t >= room or now >= CURVATURE * slope
        if fell and (math.isnan(now) or (enough and not point.slopes_finite())):
            fell, bad = False, True
        if not fell:
            high = t
        else:
            held, low = point, t
            if enough:
                return LineSearchResult(t, point, bad=bad)
        if math.isinf(high):
            if t >= 2.0**DOUBLINGS:
                return LineSearchResult(low, held, endless=True, bad=bad)
            t = min(2 * t, room)
        else:
            t = 0.5 * (low + high)
            if high - low <= SHORTEST * high or high < 1e-18:
                break
        if spent():
            return LineSearchResult(low, held, bad=bad, cut=True)
    return LineSearchResult(low, held, bad=bad)
