"""An evaluation in words. An attack can only show that a model is not robust, and so it is said."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from setpoint.robustness.attack_outcomes import BROKEN, REFUTED, AttackRun, Level

if TYPE_CHECKING:
    from setpoint.robustness.record import Robustness

STATIONARY = 0.05  #: our attacks count as at rest up to here, of at most 1 (see AttackResult)


@dataclass(frozen=True)
class EvaluationFacts:
    """What sentences are made of.

    Attributes
    ----------
    images, asked, correct : int
    unbeaten : int
        Images that the model gets right and no attack has beaten at any distance.
    restless : int
        Images unbeaten within the greatest eps whose attack ended without coming to rest.
    known : int
        Images unbeaten within the greatest eps of which that is known.
    moving, measured : int
        Least distances that have not come to rest, and those of which that is known.
    """

    distance: str
    confidence: float
    images: int
    asked: int
    correct: int
    unbeaten: int
    restless: int
    known: int
    moving: int
    measured: int
    levels: tuple[Level, ...]
    quantiles: dict[float, float]
    searched: bool
    attacks: tuple[AttackRun, ...]
    notes: tuple[str, ...]
    targeted: bool

    @classmethod
    def of(cls, record: Robustness) -> EvaluationFacts:
        """The facts of a record."""
        columns = record.columns
        right = columns["correct"]
        left = right & ~columns["attacked"]
        rest = columns["stationarity"][left]
        return cls(
            record.distance,
            record.confidence,
            record.images,
            record.asked,
            int(right.sum()),
            int((right & np.isinf(columns["radius"])).sum()),
            int((rest > STATIONARY).sum()),
            int((~np.isnan(rest)).sum()),
            int((columns["radius_stationarity"] > STATIONARY).sum()),
            int((~np.isnan(columns["radius_stationarity"])).sum()),
            record.levels,
            record.radius_quantiles((0.25, 0.5, 0.75)),
            any(ran.name == "min-radius" for ran in record.attacks),
            record.attacks,
            record.notes,
            bool(record.settings.get("targeted")),
        )


def sentences(facts: EvaluationFacts) -> list[str]:
    """The figures, then what they are not."""
    lines = [f"The model is right on {facts.correct:,} of {facts.images:,} clean images."]
    if facts.asked > facts.images:
        lines[0] += (
            f" Stopped: {facts.asked - facts.images:,} more were asked for, and the figures are "
            "of those that were done."
        )
    lines += [told_level(level, facts.distance, facts.targeted) for level in facts.levels]
    lines.append(
        "An attack can only show that a model is not robust: what it left may fall to another one."
    )
    lines.append(_radii(facts))
    if facts.restless:
        lines.append(
            f"On {facts.restless:,} of {facts.known:,} images that were not beaten the attack "
            f"ended without coming to rest (stationarity above {STATIONARY:g}); more iterations "
            "may beat some of them."
        )
    if facts.moving:
        lines.append(
            f"{facts.moving:,} of {facts.measured:,} least distances have not come to rest; more "
            "iterations may shorten them."
        )
    lines += [sentence for ran in facts.attacks for sentence in _failed(ran)]
    return lines + [f"{note[0].upper()}{note[1:]}." for note in facts.notes]


def told_level(level: Level, distance: str, targeted: bool = False) -> str:
    """One radius in words."""
    share = f"robust accuracy <= {level.accuracy:.4g} on these images"
    many = "not led to its target" if targeted else "not beaten"
    sure = f"{100 * level.confidence:g}% confidence, exact binomial"
    return (
        f"{distance} <= {level.eps:g}: {level.right:,} of {level.images:,} images right and "
        f"{many}: {share}, <= {level.at_most:.4g} on images like these ({sure})."
    )


def told_promise(verdict: str, distance: str, level: Level, floor: float) -> str:
    """A promise and what attacks say of it, without the verdict."""
    asked = f"robust accuracy >= {floor:g} at {distance} <= {level.eps:g}"
    seen = f"{level.right:,} of {level.images:,} images left, {level.accuracy:.4g}"
    if verdict == REFUTED:
        sure = f"at most {level.at_most:.4g} with {100 * level.confidence:g}% confidence"
        return f"{asked} ({seen}; on images like these {sure})."
    if verdict == BROKEN:
        return (
            f"{asked} does not hold on these images ({seen}); they are too few to say so "
            f"of others, which may be as high as {level.at_most:.4g}."
        )
    return f"{asked} ({seen}); that is no proof of it, a stronger attack may leave less."


def _radii(facts: EvaluationFacts) -> str:
    low, middle, high = (f"{facts.quantiles[q]:.4g}" for q in (0.25, 0.5, 0.75))
    how = "" if facts.searched else " (not searched for; attacks within eps found these)"
    wrong = facts.images - facts.correct
    counted = [
        *([f"{_images(wrong)} wrong from the start as 0"] if wrong else []),
        *([f"{_images(facts.unbeaten)} without a success as infinite"] if facts.unbeaten else []),
    ]
    also = f", with {' and '.join(counted)}" if counted else ""
    return (
        f"Least distance found{how}: median {middle}, quartiles {low} and {high}{also}. The true "
        "distances are these or less."
    )


def _failed(ran: AttackRun) -> list[str]:
    lines = [
        f"{ran.name} raised {what}; {_images(count)} had to do without it."
        for what, count in ran.failures
    ]
    if ran.broken:
        points = "1 point" if ran.broken == 1 else f"{ran.broken:,} points"
        lines.append(
            f"At {points} of {ran.name} the model gave no numbers; that is never a success."
        )
    return lines


def _images(count: int) -> str:
    return "1 image" if count == 1 else f"{count:,} images"
