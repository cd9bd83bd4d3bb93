"""One batch of images under every attack, one attack after the other."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from setpoint._core.errors import DataError, SetpointError
from setpoint._core.progress import Progress
from setpoint.robustness.attacks.attack import Attack, AttackResult, Call, points_of
from setpoint.robustness.attacks.attack_losses import margin
from setpoint.robustness.input_checks import check_classes, logits_of
from setpoint.robustness.success_criterion import AttackVerdict, Judge
from setpoint.robustness.third_party_attacks import put_back
from setpoint.robustness.worst_case import WorstCase

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

    def clean(self, x: Tensor, y: Tensor) -> AttackVerdict:
        """The model's word on the images as they are, a tie counted as wrong."""
        return self.judge(x, y, x)

    def attacked(
        self,
        x: Tensor,
        y: Tensor,
        target: Tensor | None,
        clean: AttackVerdict,
        first: int,
        told: Callable[[Attack, float | None, float], None],
    ) -> WorstCase:
        """All attacks on the images of a batch that the model gets right.

        Parameters
        ----------
        x, y, target : Tensor
            The batch.
        clean : AttackVerdict
            The model's word on it.
        first : int
            The number of its first image.
        told : callable
            Told the attack, its eps and how much of the batch is done, from 0 to 1.
        """
        begin = clean if target is None else self.judge(x, y, x, target)
        standing = WorstCase(self.judge, x, begin, self.eps[-1])
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
            progress = _Said(told, attack, eps, step, len(runs))
            progress(0.0)
            if len(rows):
                call = _Part(
                    bench=self,
                    number=number,
                    attack=attack,
                    eps=eps,
                    first=first,
                    said=progress,
                    batch=(x, y, target),
                )
                tried, won = call(standing, rows)
                marks[2 * number] |= tried
                marks[2 * number + 1] |= won
        for number, tally in enumerate(self.tallies):
            tally.tried += int(marks[2 * number].sum())
            tally.won += int(marks[2 * number + 1].sum())
            tally.first += int((standing.won & (standing.by == number)).sum())
        return standing

    def _rows(
        self, attack: Attack, eps: float | None, right: Tensor, standing: WorstCase, x: Tensor
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

    def __call__(self, standing: WorstCase, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Run it, judge, keep; which images of the batch were tried and which beaten."""
        tally, began = self.bench.tallies[self.number], time.perf_counter()
        tried, won = (torch.zeros_like(standing.won) for _ in range(2))
        again = False
        try:
            for points in points_of(self._answer(rows), len(rows)):
                judged = self._judged(points, rows)
                self._keep(standing, rows, points, judged)
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
        arguments = Call(
            model=self.bench.judge.model,
            x=x[rows].clone(),
            y=y[rows].clone(),
            eps=self.bench.eps[-1] if self.eps is None else self.eps,
            target=None if target is None else target[rows].clone(),
            low=self.bench.judge.low,
            high=self.bench.judge.high,
            seed=self.bench.seed,
            seeds=[_APART * self.bench.seed + self.first + row for row in rows.tolist()],
            progress=self.said,
        )
        call = self.attack.call if self.attack.ours else put_back(self.attack.call)
        return call(arguments)

    def _judged(self, answer: AttackResult | Tensor, rows: Tensor) -> AttackVerdict:
        x, y, target = self.batch
        points = answer.x if isinstance(answer, AttackResult) else answer
        at = None if target is None else target[rows]
        return self.bench.judge(x[rows], y[rows], points, at)

    def _keep(
        self,
        standing: WorstCase,
        rows: Tensor,
        result: AttackResult | Tensor,
        judged: AttackVerdict,
    ) -> None:
        stationarity = torch.full_like(judged.distance, math.nan)
        if isinstance(result, AttackResult):
            stationarity = result.stationarity.to(judged.distance)
            standing.iterations[rows] += result.iterations.to(standing.iterations)
            self.bench.tallies[self.number].forwards += result.forwards
        standing.take(self.number, self.attack.nearest, rows, judged, stationarity)


def flat_spots(model: Any, x: Tensor, y: Tensor) -> Tensor | None:
    """Which images have a gradient of the margin that is exactly 0: (B,) of bool.

    None where the logits carry no gradient at all, or the model refuses one.
    """
    point = x.detach().clone().requires_grad_(True)
    with torch.enable_grad():
        try:
            margins = margin(model(point), y)
            (slope,) = torch.autograd.grad(margins.sum(), point)
        except torch.OutOfMemoryError:
            raise
        except RuntimeError:
            return None
    return (slope == 0).flatten(1).all(1)


# What an evaluation tells whoever listens. The library never prints.


@dataclass(frozen=True, kw_only=True)
class AttackProgress(Progress):
    """How far an evaluation is, counted in images.

    Attributes
    ----------
    what : str
        The attack that is going on.
    done : float
        Images that all attacks are through with, and a part of the batch that is under attack.
    eps : float or None
        What it is after; None where it looks for the least distance.
    right, seen : int
        Of the images that are done, how many no attack has beaten, and how many they are.
    """

    eps: float | None
    right: int
    seen: int

    @property
    def attack(self) -> str:
        """The attack that is going on."""
        return self.what

    def words(self) -> str:
        """The attack, its radius, and the images that no attack has beaten."""
        at = "" if self.eps is None else f", eps {self.eps:g}"
        left = f", {self.right:,} of {self.seen:,} left" if self.seen else ""
        return f"{self.attack}{at}{left}"


Listener = Callable[[AttackProgress], None]


# The batches of an evaluation one after the other, and what has come of them.


class AttackBatches:
    """The batches one after the other, and what has come of them."""

    def __init__(
        self,
        bench: Bench,
        images: Tensor,
        labels: Tensor,
        targets: Tensor | None,
        device: torch.device,
        dtype: torch.dtype,
        size: int,
        listener: Listener | None,
        keep: bool,
    ) -> None:
        self.bench, self.images, self.labels, self.targets = bench, images, labels, targets
        self.device, self.dtype, self.size = device, dtype, size
        self.listener, self.keep = listener, keep
        self.parts: list[dict[str, np.ndarray]] = []
        self.kept: list[np.ndarray] = []
        self.flat, self.blind = 0, False
        self.said: list[str] = []

    def probe(self) -> None:
        """Ask the model once for a few images: shape, classes, and whether it repeats itself."""
        few = self.images[: min(2, len(self.images))].to(self.device, self.dtype)
        with torch.no_grad():
            first, second = (logits_of(self.bench.judge.model, few) for _ in range(2))
        check_classes(self.labels, first.shape[1])
        if self.targets is not None:
            check_classes(self.targets, first.shape[1], "targets")
        self._alike(few)
        apart = float((first - second).abs().nan_to_num().max())
        if apart > 1e-4 * (1.0 + float(first.abs().nan_to_num().max())):
            self.said.append(
                f"the model answers the same images otherwise from call to call (logits differ by "
                f"{apart:.2g}): the figures hold for the answers it happened to give"
            )

    def _alike(self, few: Tensor) -> None:
        """Refuse a distance of another shape, or not 0 between an image and itself."""
        name = self.bench.judge.distance.name
        try:
            own = self.bench.judge.measure(few, few)
        except SetpointError:
            raise
        except Exception as error:
            raise DataError(
                f"the distance {name} raised {type(error).__name__}: {error}"
            ) from error
        if not bool(((own >= 0) & (own <= self.bench.eps[0])).all()):  # a nan is neither
            raise DataError(
                f"the distance {name} is {float(own[0]):g} between an image and itself, where a "
                f"distance is 0 (eps is {self.bench.eps[0]:g})"
            )

    def all(self) -> None:
        """Every batch; Ctrl-C leaves what is done, where something is."""
        try:
            for start in range(0, len(self.images), self.size):
                self._batch(start)
        except KeyboardInterrupt:
            if not self.parts:
                raise

    def _batch(self, start: int) -> None:
        rows = slice(start, min(start + self.size, len(self.images)))
        x = self.images[rows].to(self.device, self.dtype)
        y = self.labels[rows].to(self.device)
        target = None if self.targets is None else self.targets[rows].to(self.device)
        clean = self.bench.clean(x, y)
        right = ~clean.wrong & ~clean.broken
        flat = flat_spots(self.bench.judge.model, x[right], y[right]) if bool(right.any()) else None

        def told(attack: Attack, eps: float | None, part: float) -> None:
            self._tell(attack, eps, start + part * len(x))

        standing = self.bench.attacked(x, y, target, clean, start, told)
        if bool(right.any()):
            self.blind |= flat is None
            self.flat += 0 if flat is None else int(flat.sum())
        part = self._part(start, y, clean.prediction, right, clean.margin, standing)
        if self.keep:
            self.kept.append(standing.point.cpu().numpy())
        self.parts.append(part)  # from here on the batch counts as done
        self._tell(self.bench.attacks[-1], None, self.seen)

    @property
    def seen(self) -> int:
        """Images that are done."""
        return sum(len(part["index"]) for part in self.parts)

    def _tell(self, attack: Attack, eps: float | None, done: float) -> None:
        if self.listener is not None:
            right = sum(int((part["correct"] & ~part["attacked"]).sum()) for part in self.parts)
            self.listener(
                AttackProgress(
                    what=attack.name,
                    done=done,
                    total=len(self.images),
                    eps=eps,
                    right=right,
                    seen=self.seen,
                )
            )

    def _part(
        self,
        start: int,
        y: Tensor,
        prediction: Tensor,
        right: Tensor,
        margin: Tensor,
        standing: WorstCase,
    ) -> dict[str, np.ndarray]:
        """The rows of the table for one batch."""
        radius = torch.where(right, standing.radius, torch.zeros_like(standing.radius))
        over = (standing.distance - self.bench.eps[-1]).clamp(min=0.0)
        none = torch.full_like(standing.by, -1)
        columns = {
            "label": y,
            "clean": prediction,
            "correct": right,
            "clean_margin": margin.double(),
            "attacked": standing.won,
            "by": torch.where(standing.won, standing.by, none),
            "prediction": standing.prediction,
            "margin": standing.margin.double(),
            "distance": standing.distance,
            "radius": radius,
            "radius_by": standing.radius_by,
            "violation": over,
            "stationarity": standing.stationarity,
            "radius_stationarity": standing.radius_stationarity,
            "iterations": standing.iterations,
        }
        plain = {name: column.cpu().numpy() for name, column in columns.items()}
        return {"index": np.arange(start, start + len(y)), **plain}

    def columns(self) -> dict[str, np.ndarray]:
        """The table, column by column; attacks by their names."""
        table = {
            name: np.concatenate([part[name] for part in self.parts]) for name in self.parts[0]
        }
        names = np.array([*(a.name for a in self.bench.attacks), ""], dtype=object)
        return table | {name: names[table[name]] for name in ("by", "radius_by")}

    def points(self) -> np.ndarray | None:
        """The worst point of each image that is done."""
        return np.concatenate(self.kept)[: self.seen] if self.keep else None

    def notes(self) -> Iterable[str]:
        """What whoever reads the figures must know."""
        yield from self.said
        table = self.columns()
        lost = table["index"][table["clean"] < 0]
        if len(lost):
            many = "1 clean image" if len(lost) == 1 else f"{len(lost)} clean images"
            yield (
                f"the model gave logits that are no numbers for {many}, the first is {lost[0]}; "
                "that counts as wrong"
            )
        if self.blind:
            yield (
                "the logits carry no gradient with respect to the images: attacks that follow "
                "gradients are blind to this model, and the figures say little"
            )
        elif self.flat:
            yield (
                f"the gradient is exactly 0 at {self.flat} of {int(table['correct'].sum())} images "
                "(saturated or masked): attacks that follow it may be weak there"
            )
        if math.isinf(float(np.abs(table["clean_margin"]).max(initial=0.0))):
            yield "some logits are infinite; margins there are not finite either"
