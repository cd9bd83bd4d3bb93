"""Our two attacks as an evaluation calls them: the greatest loss within eps, the least radius."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from setpoint.robustness.attacks.attack import Attack, Call
from setpoint.robustness.attacks.distances import Distance
from setpoint.robustness.attacks.max_loss import max_loss
from setpoint.robustness.attacks.min_radius import min_radius
from setpoint.robustness.found import Found

MAX_LOSS, MIN_RADIUS = "max-loss", "min-radius"


def largest_loss(distance: Distance, loss: str, settings: Mapping[str, Any]) -> Attack:
    """Max ℓ(z(x'), y) subject to d(x, x') ≤ eps and the box."""

    def call(given: Call) -> Found:
        return max_loss(
            given.model,
            given.x,
            given.y,
            distance,
            given.eps,
            loss=loss,
            target=given.target,
            **_common(given),
            **settings,
        )

    return Attack(MAX_LOSS, call, each_eps=True, ours=True)


def least_radius(distance: Distance, settings: Mapping[str, Any]) -> Attack:
    """Min d(x, x') subject to margin(z(x'), y) ≥ 0 and the box."""

    def call(given: Call) -> Found:
        return min_radius(
            given.model,
            given.x,
            given.y,
            distance,
            target=given.target,
            **_common(given),
            **settings,
        )

    return Attack(MIN_RADIUS, call, nearest=True, ours=True)


def _common(given: Call) -> dict[str, Any]:
    return {
        "seed": given.seeds,  # of each image: what is found does not depend on its batch
        "low": given.low,
        "high": given.high,
        "progress": given.progress,
    }
