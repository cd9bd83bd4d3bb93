"""Robustness: what is left of a model's accuracy when images are moved a little, as attacks tell.

``evaluate`` runs ours and those of others and keeps the worst case; ``max_loss`` and ``min_radius``
are our two attacks by themselves.
"""

from setpoint.robustness.calls import Attack, Call
from setpoint.robustness.distances import Distance, as_distance
from setpoint.robustness.evaluate import evaluate
from setpoint.robustness.events import Progress
from setpoint.robustness.found import Found
from setpoint.robustness.judge import Judge, Judged
from setpoint.robustness.max_loss import max_loss
from setpoint.robustness.min_radius import min_radius
from setpoint.robustness.outcome import Level, Promise, Ran
from setpoint.robustness.record import Robustness

__all__ = [
    "evaluate",
    "max_loss",
    "min_radius",
    "as_distance",
    "Attack",
    "Call",
    "Distance",
    "Found",
    "Judge",
    "Judged",
    "Level",
    "Progress",
    "Promise",
    "Ran",
    "Robustness",
]
