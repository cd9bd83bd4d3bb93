"""The batches of an evaluation one after the other, and what has come of them."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
import torch
from torch import Tensor

from setpoint._core.errors import DataError, SetpointError
from setpoint.robustness.attack_batches import Bench, flat_spots
from setpoint.robustness.attacks.attack import Attack
from setpoint.robustness.events import Listener, Progress
from setpoint.robustness.input_checks import check_classes, logits_of
from setpoint.robustness.worst_case import Standing


class Run:
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
            told = Progress(attack.name, eps, done, len(self.images), right, self.seen)
            self.listener(told)

    def _part(
        self,
        start: int,
        y: Tensor,
        prediction: Tensor,
        right: Tensor,
        margin: Tensor,
        standing: Standing,
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
        made = {name: np.concatenate([part[name] for part in self.parts]) for name in self.parts[0]}
        names = np.array([*(a.name for a in self.bench.attacks), ""], dtype=object)
        return made | {name: names[made[name]] for name in ("by", "radius_by")}

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
