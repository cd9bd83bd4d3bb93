"""What the figures come to: means, paired differences, who is best, whether the goals are met.

A way is above another where the mean of the paired differences, image by image, exceeds two
standard errors of it. Which of ours is compared is chosen by its mean on the same images, and so is
the best baseline; the verdict asks for a lead over *every* baseline.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.restoration.tasks import GOAL
from benchmarks.restoration.ways import WAYS

SURE = 2.0  #: standard errors
NEAR = 0.3  #: dB that a selected iterate may be below the oracle's
Line = Mapping[str, Any]


@dataclass(frozen=True)
class Pair:
    """Ours less a baseline, in dB, over the same images."""

    other: str
    mean: float
    error: float

    @property
    def above(self) -> bool:
        """By more than two standard errors."""
        return self.mean > SURE * self.error


@dataclass(frozen=True)
class Judged:
    """One task of one set."""

    data: str
    task: str
    best: str
    ours: str | None
    pairs: tuple[Pair, ...]
    gap: float | None
    missing: tuple[str, ...] = ()

    @property
    def ahead(self) -> bool | None:
        """Whether the best of ours is above every baseline; None where that is not known yet."""
        return self._over(self.pairs, self.missing)

    @property
    def ahead_of_published(self) -> bool | None:
        """The same without baselines that were strengthened here."""
        pairs = [x for x in self.pairs if WAYS[x.other].published]
        return self._over(pairs, [x for x in self.missing if WAYS[x].published])

    def _over(self, pairs: Sequence[Pair], missing: Sequence[str]) -> bool | None:
        if self.ours is None:
            return None
        if not all(x.above for x in pairs):
            return False
        # a baseline that was not run is not beaten
        return None if missing else True

    @property
    def not_beaten(self) -> list[str]:
        """Baselines that it is not above."""
        return [x.other for x in self.pairs if not x.above]

    @property
    def near(self) -> bool | None:
        """Whether its selected iterates are within 0.3 dB of the oracle's, on average."""
        return None if self.gap is None else self.gap <= NEAR


def judged(lines: Iterable[Line], data: str, task: str) -> Judged:
    """Compare the ways on one task; lines have ``psnr`` and ``oracle_psnr`` image by image."""
    found = {x["way"]: x for x in lines if x["data"] == data and x["task"] == task}
    if not found:
        raise ValueError(f"no line is about {task} on {data}")
    means = {name: float(np.mean(x["psnr"])) for name, x in found.items()}
    order = sorted(means, key=lambda name: -means[name])
    ours = next((name for name in order if WAYS[name].ours), None)
    if ours is None:
        return Judged(data, task, order[0], None, (), None)
    a = np.array(found[ours]["psnr"], float)
    pairs = [
        Pair(name, *mean_and_error(a - np.array(found[name]["psnr"], float)))
        for name in order
        if not WAYS[name].ours
    ]
    oracle = found[ours].get("oracle_psnr")
    gap = None if oracle is None else float(np.mean(np.array(oracle, float) - a))
    missing = tuple(name for name, way in WAYS.items() if not way.ours and name not in found)
    return Judged(data, task, order[0], ours, tuple(pairs), gap, missing)


def with_verdicts(lines: Sequence[Line]) -> list[dict[str, Any]]:
    """The lines; the best of ours on a task that has a goal carries whether it is met."""
    made = [dict(x) for x in lines]
    for data, task in dict.fromkeys((x["data"], x["task"]) for x in lines):
        if task not in GOAL:
            continue
        result = judged(lines, data, task)
        if result.ahead is None:
            continue
        for x in made:
            if (x["data"], x["task"], x["way"]) == (data, task, result.ours):
                met = result.ahead and result.near is not False
                x["verdict"] = "ok" if met else "MISSED"
    return made


def difference(mean: float, error: float) -> str:
    """A difference and its error, with a sign."""
    return f"{'+' if mean > 0 else '−'}{abs(mean):.2f} ± {error:.2f}"


def mean_and_error(x: Any) -> tuple[float, float]:
    """Mean and its standard error; that of one value is not known."""
    x = np.asarray(x, float)
    error = float(x.std(ddof=1) / np.sqrt(x.size)) if x.size > 1 else float("nan")
    return float(x.mean()), error
