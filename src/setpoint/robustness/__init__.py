"""Robustness: what is left of a model's accuracy when images are moved a little, as attacks tell.

``evaluate`` runs ours and those of others and keeps the worst case; ``max_loss`` and ``min_radius``
are our two attacks by themselves.
"""

from setpoint.robustness.attack_batches import AttackProgress
from setpoint.robustness.attack_outcomes import AttackRun, Level, Promise
from setpoint.robustness.attacks.attack import Attack, AttackResult, Call
from setpoint.robustness.attacks.distances import Distance, as_distance
from setpoint.robustness.attacks.max_loss import max_loss
from setpoint.robustness.attacks.min_radius import min_radius
from setpoint.robustness.evaluate import evaluate
from setpoint.robustness.record import Robustness
from setpoint.robustness.success_criterion import AttackVerdict, Judge

__all__ = [
    "evaluate",
    "max_loss",
    "min_radius",
    "as_distance",
    "Attack",
    "Call",
    "Distance",
    "AttackResult",
    "Judge",
    "AttackVerdict",
    "Level",
    "AttackProgress",
    "Promise",
    "AttackRun",
    "Robustness",
]


def __dir__() -> list[str]:
    return sorted(__all__)
