"""Record of an evaluation: a table of images, and bounds on robust accuracy read from it."""

from __future__ import annotations

import csv
import io
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor

from setpoint._core.errors import DataError, Name
from setpoint._core.json_codec import to_json
from setpoint._core.options import is_real
from setpoint.robustness.attack_outcomes import (
    BROKEN,
    NOT_REFUTED,
    REFUTED,
    AttackRun,
    Level,
    Promise,
)
from setpoint.robustness.plots import plot_accuracy, plot_examples, plot_radii
from setpoint.robustness.storage import write_folder
from setpoint.robustness.success_criterion import RELATIVE
from setpoint.robustness.summary import EvaluationFacts, sentences, told_promise
from setpoint.statistics.binomial import interval, p_below, upper

if TYPE_CHECKING:
    import pandas as pd

QUANTILES = (0.1, 0.25, 0.5, 0.75, 0.9)


@dataclass(frozen=True, eq=False)
class Robustness:
    """What attacks have found out about a model. Robust accuracy is bounded from above only.

    Attributes
    ----------
    distance : str
    eps : tuple of float
        The least first; the table speaks of the greatest.
    confidence : float
    columns : dict of arrays (n,)
        See :attr:`table`.
    attacks : tuple of AttackRun
    asked : int
        Images given; more than the table has where the evaluation was stopped.
    notes : tuple of str
        What whoever reads the figures must know.
    rounding : float
        What a distance may exceed eps (1 + 1e-6) by, for the precision of the images.
    seconds : float
    settings : dict
    clean, points : arrays (n, *shape)
        The images, and the worst point of each within the greatest eps.
    """

    distance: str
    eps: tuple[float, ...]
    confidence: float
    columns: Mapping[str, np.ndarray]
    attacks: tuple[AttackRun, ...]
    asked: int
    notes: tuple[str, ...] = ()
    rounding: float = 0.0
    seconds: float = 0.0
    settings: Mapping[str, Any] = field(default_factory=dict)
    clean: Tensor | None = None
    points: np.ndarray | None = None

    @property
    def images(self) -> int:
        """How many images are in the table."""
        return len(self.columns["index"])

    @property
    def stopped(self) -> bool:
        """Whether it was stopped before the last image."""
        return self.images < self.asked

    @property
    def table(self) -> pd.DataFrame:
        """One row for each image.

        index, label, clean (the prediction), correct, clean_margin; attacked (within the greatest
        eps), by (the attack whose point is the worst), prediction, margin and distance of that
        point, violation (its distance beyond eps), stationarity (of max-loss there; 0 is at rest);
        radius (the least distance of any success, 0 where wrong from the start, inf where none),
        radius_by, radius_stationarity (of min-radius); iterations (of all our attacks together).
        A stationarity is NaN where the point is of an attack that tells none.
        """
        import pandas as pd

        return pd.DataFrame(dict(self.columns))

    @property
    def clean_accuracy(self) -> float:
        """The share of images that the model gets right."""
        return float(self.columns["correct"].mean())

    @property
    def robust_accuracy(self) -> float:
        """The share that no attack has beaten within the greatest eps: a bound from above."""
        return self.at(self.eps[-1]).accuracy

    @property
    def levels(self) -> tuple[Level, ...]:
        """One for each eps."""
        return tuple(self.at(eps) for eps in self.eps)

    def at(self, eps: float) -> Level:
        """What is left at a radius, also one that was not asked for: as the least distances say.

        Where ``eps`` is none of those asked for, nothing was attacked at it, and the bound is
        looser than it could be.
        """
        if not is_real(eps) or not 0 <= eps < np.inf:
            raise DataError(f"eps is a number, 0 or more; got {eps!r}")
        beyond = eps * (1.0 + RELATIVE) + self.rounding
        left = int((self.columns["correct"] & (self.columns["radius"] > beyond)).sum())
        low, high = interval(left, self.images, self.confidence)
        most = float(upper(left, self.images, 1.0 - self.confidence))
        share = left / self.images
        ends = (float(low), float(high))
        return Level(
            eps=float(eps),
            right=left,
            images=self.images,
            accuracy=share,
            interval=ends,
            at_most=most,
            confidence=self.confidence,
        )

    def curve(self, eps: Sequence[float] | None = None) -> tuple[Level, ...]:
        """What is left at many radii: from 0 to where the last image falls, unless given."""
        if eps is not None:
            return tuple(self.at(float(e)) for e in eps)
        finite = self.columns["radius"][np.isfinite(self.columns["radius"])]
        far = max(float(finite.max(initial=0.0)), self.eps[-1])
        steps = np.unique([0.0, *self.eps, *np.linspace(0.0, 1.05 * far, 120)])
        return tuple(self.at(float(e)) for e in steps)

    def radius_quantiles(self, shares: Sequence[float] = QUANTILES) -> dict[float, float]:
        """The radius that so large a share of the images is at or below; a bound from above too.

        Images wrong from the start count as 0, images without a success as +∞.
        """
        radii = np.quantile(self.columns["radius"], list(shares), method="inverted_cdf")
        return {float(q): float(r) for q, r in zip(shares, radii, strict=True)}

    def promise(self, floor: float, eps: float | None = None) -> Promise:
        """What was found of "robust accuracy >= floor" at eps, the greatest unless given.

        REFUTED where P(Bin(n, floor) ≤ right) ≤ 1 − confidence: were the promise true, so few
        images left would be a rare accident. Attacks can refute it; nothing here can prove it.
        """
        if not is_real(floor) or not 0 < floor <= 1:
            raise DataError(
                "{argument} is a share above 0, at most 1; got {floor!r}",
                argument=Name("floor"),
                floor=floor,
            )
        level = self.at(self.eps[-1] if eps is None else eps)
        chance = float(p_below(level.right, level.images, floor))
        if chance <= 1.0 - self.confidence:
            verdict = REFUTED
        else:
            verdict = BROKEN if level.accuracy < floor else NOT_REFUTED
        account = told_promise(verdict, self.distance, level, float(floor))
        return Promise(verdict, account, verdict == NOT_REFUTED)

    def sentences(self) -> list[str]:
        """What was found, in words; the limits with it."""
        return sentences(EvaluationFacts.of(self))

    def __str__(self) -> str:
        return "\n".join(self.sentences())

    def plot_accuracy(self, ax: Any = None) -> Any:
        """Draw accuracy under attack over eps, with its interval; a matplotlib figure."""
        return plot_accuracy(self.curve(), self.levels, self.distance, ax)

    def plot_radii(self, ax: Any = None) -> Any:
        """Draw the least distances found as a histogram; a matplotlib figure."""
        return plot_radii(self.columns["radius"], self.columns["correct"], self.distance, ax)

    def plot_examples(self, count: int = 6, shape: tuple[int, ...] | None = None) -> Any:
        """Draw images, what became of them, and the difference; a matplotlib figure.

        ``shape`` is (height, width) or (channels, height, width) where images are flat vectors.
        """
        box = (float(self.settings.get("low", 0.0)), float(self.settings.get("high", 1.0)))
        return plot_examples(self.clean, self.points, self.columns, box, count, shape)

    def to_json(self) -> dict[str, Any]:
        """Plain data: everything but the table and the images; infinities as strings."""
        record = {
            "distance": self.distance,
            "eps": self.eps,
            "confidence": self.confidence,
            "images": self.images,
            "asked": self.asked,
            "stopped": self.stopped,
            "clean_accuracy": self.clean_accuracy,
            "robust_accuracy_at_most": self.robust_accuracy,
            "levels": self.levels,
            "radius_quantiles": {f"{q:g}": r for q, r in self.radius_quantiles().items()},
            "attacks": self.attacks,
            "notes": self.notes,
            "sentences": self.sentences(),
            "seconds": self.seconds,
            "settings": self.settings,
        }
        return to_json(record)

    def to_csv(self) -> str:
        """The table as text, one row for each image."""
        with io.StringIO(newline="") as text:
            rows = csv.writer(text, lineterminator="\n")
            rows.writerow(self.columns)
            columns = [column.tolist() for column in self.columns.values()]
            rows.writerows(zip(*columns, strict=True))
            return text.getvalue()

    def save(self, folder: str | os.PathLike[str], images: bool = True) -> Path:
        """Write robustness.json, images.csv, plots, and the points to a folder.

        Every file is written under another name first and then renamed: none is ever half there.
        ``images`` says whether the points are written too, to points.npz.
        """
        return write_folder(self, folder, images)
