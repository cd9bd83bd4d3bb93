"""Limits of a run, and its end as a sentence."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field

UNBOUNDED = -1e20  #: an objective below this falls without end


CONSTANT = (
    "; as far as autograd sees the objective does not depend on x: it is constant, or detached"
)


AT_ONCE = "; x0 is stationary as it is, be it a minimum, a saddle or a maximum: another tells more"


@dataclass
class Limits:
    """What a run may spend.

    Parameters
    ----------
    iterations : int
    evaluations, seconds : number
        Infinite where there is no limit.
    """

    iterations: int
    evaluations: float = math.inf
    seconds: float = math.inf
    began: float = field(default_factory=time.monotonic)

    def spent(self, evaluations: int) -> bool:
        """Whether evaluations or seconds are spent."""
        return evaluations >= self.evaluations or self.elapsed() >= self.seconds

    def elapsed(self) -> float:
        return time.monotonic() - self.began

    def sentence(self, iterations: int, evaluations: int) -> str:
        """Which limit is reached; empty where none is."""
        if evaluations >= self.evaluations:
            return f"stopped at max_evaluations={self.evaluations:.0f}"
        if self.elapsed() >= self.seconds:
            return f"stopped at max_seconds={self.seconds:g}"
        if iterations >= self.iterations:
            return f"stopped at max_iterations={self.iterations}"
        return ""


def solved(kkt: float, kinks: int) -> str:
    """The conditions of an optimum hold."""
    where = f" over gradients at {kinks} points around a kink" if kinks > 1 else ""
    return (
        f"solved: the constraints hold and the conditions of an optimum do (kkt {kkt:.1e}{where})"
    )


def exhausted(kkt: float, kinks: int) -> str:
    """As good as the rounding allows."""
    where = f" over gradients at {kinks} points around a kink" if kinks > 1 else ""
    return (
        "solved to the precision of the functions: no step lowers the objective any further "
        f"(kkt {kkt:.1e}{where})"
    )


def stuck(kkt: float, bad: bool) -> str:
    """No step lowers the merit, and the conditions do not hold."""
    why = "the gradients may be wrong, or the functions jump, or draw numbers as dropout does"
    if bad:
        why = "the functions gave nan or inf at points that were tried, which are no numbers"
    return (
        f"no step lowers the objective from here, and the conditions of an optimum do not hold "
        f"(kkt {kkt:.1e}): {why}"
    )


def overflow() -> str:
    """The numbers leave their range."""
    return (
        "slopes or values grow beyond the range of numbers: the objective may fall without end, "
        "or have a pole; bound x away from it"
    )


def infeasible(total: float) -> str:
    """No point keeps the constraints, near here."""
    return (
        f"infeasible: no point near here breaks the constraints by less than {total:.3g} in all; "
        "the one that breaks them least is returned. Another x0 may do better, if the constraints "
        "can be kept at all"
    )


def unbounded(value: float) -> str:
    """The objective falls without end."""
    return (
        f"unbounded: the objective falls without end ({value:.3g} so far); bound x or add what is "
        "missing from the objective"
    )
