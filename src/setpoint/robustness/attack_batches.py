"""One batch of images under every attack, one attack after the other."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from setpoint.robustness.attacks.attack import Attack, Call, points_of
from setpoint.robustness.attacks.attack_losses import margin
from setpoint.robustness.found import Found
from setpoint.robustness.success_criterion import Judge, Judged
from setpoint.robustness.third_party_attacks import put_back
from setpoint.robustness.worst_case import Standing

_APART = 1_000_003  #: between the seeds of an image for one seed of the evaluation and the next


@dataclass
class Tally:
    """What one attack has come to over all batches.

    Attributes
    ----------
    name : str
    tried, won : int
        Images it was run on, and of those, how many it beat within the greatest eps.
    first : int
        Images that the retained point is its own for.
    broken : int
        Points at which the model gave no numbers.
    seconds : float
    forwards : int
        Images it put through the model, as far as it tells.
    failures : dict
        What it raised -> the images that were judged without it.
    """

    name: str
    tried: int = 0
    won: int = 0
    first: int = 0
    broken: int = 0
    seconds: float = 0.0
    forwards: int = 0
    failures: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Bench:
    """What stays the same from batch to batch.

    Attributes
    ----------
    judge : Judge
    attacks : sequence of Attack
    tallies : sequence of Tally
        One for each attack; they grow.
    eps : tuple of float
        The least first.
    seed : int
    cascade : bool
        Whether an image that is beaten is left alone by the attacks that come after.
    """

    judge: Judge
    attacks: Sequence[Attack]
    tallies: Sequence[Tally]
    eps: tuple[float, ...]
    seed: int
    cascade: bool

    def clean(self, x: Tensor, y: Tensor) -> Judged:
        """The model's word on the images as they are, a tie counted as wrong."""
        return self.judge(x, y, x)

    def attacked(
        self,
        x: Tensor,
        y: Tensor,
        target: Tensor | None,
        clean: Judged,
        first: int,
        told: Callable[[Attack, float | None, float], None],
    ) -> Standing:
        """All attacks on the images of a batch that the model gets right.

        Parameters
        ----------
        x, y, target : Tensor
            The batch.
        clean : Judged
            The model's word on it.
        first : int
            The number of its first image.
        told : callable
            Told the attack, its eps and how much of the batch is done, from 0 to 1.
        """
        begin = clean if target is None else self.judge(x, y, x, target)
        standing = Standing(self.judge, x, begin, self.eps[-1])
        right = ~clean.wrong & ~clean.broken
        runs = [
            (number, eps)
            for number, attack in enumerate(self.attacks)
            for eps in (self.eps if attack.each_eps else (None,))
        ]
        marks = [torch.zeros_like(right) for _ in range(2 * len(self.attacks))]
        for step, (number, eps) in enumerate(runs):
            attack = self.attacks[number]
            rows = self._rows(attack, eps, right, standing, x).nonzero().squeeze(1)
            said = _Said(told, attack, eps, step, len(runs))
            said(0.0)
            if len(rows):
                call = _Part(self, number, attack, eps, first, said, (x, y, target))
                tried, won = call(standing, rows)
                marks[2 * number] |= tried
                marks[2 * number + 1] |= won
        for number, tally in enumerate(self.tallies):
            tally.tried += int(marks[2 * number].sum())
            tally.won += int(marks[2 * number + 1].sum())
            tally.first += int((standing.won & (standing.by == number)).sum())
        return standing

    def _rows(
        self, attack: Attack, eps: float | None, right: Tensor, standing: Standing, x: Tensor
    ) -> Tensor:
        """The images that the attack may still make a difference to: (B,) of bool."""
        if attack.nearest or not self.cascade:
            return right
        return right & (standing.radius > self.judge.allowed(eps or self.eps[0], x))


@dataclass(frozen=True, eq=False)
class _Said:
    """Progress of one call as progress of the batch."""

    told: Callable[[Attack, float | None, float], None]
    attack: Attack
    eps: float | None
    step: int
    steps: int

    def __call__(self, done: float) -> None:
        self.told(self.attack, self.eps, (self.step + min(1.0, float(done))) / self.steps)


@dataclass(frozen=True, eq=False)
class _Part:
    """One attack at one eps on some images of a batch."""

    bench: Bench
    number: int
    attack: Attack
    eps: float | None
    first: int
    said: Callable[[float], None]
    batch: tuple[Tensor, Tensor, Tensor | None]

    def __call__(self, standing: Standing, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Run it, judge, keep; which images of the batch were tried and which beaten."""
        tally, began = self.bench.tallies[self.number], time.perf_counter()
        tried, won = (torch.zeros_like(standing.won) for _ in range(2))
        again = False
        try:
            for found in points_of(self._answer(rows), len(rows)):
                judged = self._judged(found, rows)
                self._keep(standing, rows, found, judged)
                tally.broken += int(judged.broken.sum())
                won[rows] |= self.bench.judge.succeeds(judged, self.bench.eps[-1])
            tried[rows] = True
        except torch.OutOfMemoryError:
            if len(rows) < 2:
                raise
            again = True
        except Exception as error:  # an attack that fails costs the others nothing; it is named
            again = self.attack.ours and len(rows) > 1  # one image must not cost the whole batch
            if not again:
                what = f"{type(error).__name__}: {' '.join(str(error).split())}"
                tally.failures[what] = tally.failures.get(what, 0) + len(rows)
        finally:
            tally.seconds += time.perf_counter() - began
        if again:  # not inside the handler, whose traceback holds all that the call had
            halves = [self(standing, half) for half in rows.chunk(2)]
            return halves[0][0] | halves[1][0], halves[0][1] | halves[1][1]
        return tried, won

    def _answer(self, rows: Tensor) -> Any:
        x, y, target = self.batch
        given = Call(
            self.bench.judge.model,
            x[rows].clone(),
            y[rows].clone(),
            self.bench.eps[-1] if self.eps is None else self.eps,
            None if target is None else target[rows].clone(),
            self.bench.judge.low,
            self.bench.judge.high,
            self.bench.seed,
            [_APART * self.bench.seed + self.first + row for row in rows.tolist()],
            self.said,
        )
        call = self.attack.call if self.attack.ours else put_back(self.attack.call)
        return call(given)

    def _judged(self, found: Found | Tensor, rows: Tensor) -> Judged:
        x, y, target = self.batch
        points = found.x if isinstance(found, Found) else found
        at = None if target is None else target[rows]
        return self.bench.judge(x[rows], y[rows], points, at)

    def _keep(
        self, standing: Standing, rows: Tensor, found: Found | Tensor, judged: Judged
    ) -> None:
        stationarity = torch.full_like(judged.distance, math.nan)
        if isinstance(found, Found):
            stationarity = found.stationarity.to(judged.distance)
            standing.iterations[rows] += found.iterations.to(standing.iterations)
            self.bench.tallies[self.number].forwards += found.forwards
        standing.take(self.number, self.attack.nearest, rows, judged, stationarity)


def flat_spots(model: Any, x: Tensor, y: Tensor) -> Tensor | None:
    """Which images have a gradient of the margin that is exactly 0: (B,) of bool.

    None where the logits carry no gradient at all, or the model refuses one.
    """
    point = x.detach().clone().requires_grad_(True)
    with torch.enable_grad():
        try:
            found = margin(model(point), y)
            (slope,) = torch.autograd.grad(found.sum(), point)
        except torch.OutOfMemoryError:
            raise
        except RuntimeError:
            return None
    return (slope == 0).flatten(1).all(1)
