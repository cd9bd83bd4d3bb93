"""The problem an attack is given, checked at the door and laid out as flat rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from setpoint._core.errors import Argument, DataError, KindError
from setpoint._core.options import is_real
from setpoint.robustness.attacks.attack_losses import margin
from setpoint.robustness.attacks.model_probe import BATCH, Model, Probe

# Rows of pixels an attack works on; several may belong to one image.


@dataclass(frozen=True)
class AttackRows:
    """Rows an attack works on; several may belong to one image.

    Attributes
    ----------
    clean, low, high : Tensor (R, n)
        The image, and the box around it: ``low = least − clean``, ``high = greatest − clean``.
    labels : Tensor (R,)
        The class to leave, or to reach.
    floor : Tensor (R,)
        The margin from which a move has what the attack wants: a little over 0, so that it still
        has it when the same image is put through the model in another batch and rounds otherwise.
    rivals : Tensor (R,) or None
        The class set against the label.
    """

    clean: Tensor
    low: Tensor
    high: Tensor
    labels: Tensor
    floor: Tensor
    rivals: Tensor | None = None

    def take(self, index: Tensor) -> AttackRows:
        """Some of the rows, by number."""
        return AttackRows(
            self.clean[index],
            self.low[index],
            self.high[index],
            self.labels[index],
            self.floor[index],
            None if self.rivals is None else self.rivals[index],
        )

    def inside(self, moves: Tensor) -> Tensor:
        """The moves after clipping to the box and rounding: what the image really changes by."""
        clipped = torch.minimum(torch.maximum(moves, self.low), self.high)
        return (self.clean + clipped) - self.clean

    def against(self, rivals: Tensor) -> AttackRows:
        """Each row once for every rival: (R,) rows and (R, k) rivals -> (R·k,) rows, in order."""
        index = torch.arange(len(rivals), device=rivals.device).repeat_interleave(rivals.shape[1])
        return replace(self.take(index), rivals=rivals.reshape(-1))


#: Roundings of the greatest logit by which a margin has to be over 0 to count for an attack.
_ROUNDINGS = 16.0
#: Layers whose output for one image depends on the others, or on chance, while training.
_UNSTEADY = (
    nn.modules.batchnorm._BatchNorm,
    nn.modules.dropout._DropoutNd,
)


@dataclass(frozen=True)
class Posed:
    """A problem for B images.

    Attributes
    ----------
    rows : AttackRows
        One row an image, no rival named.
    logits : Tensor (B, K)
        Of the clean images.
    margins : Tensor (B,)
        ± margin of the clean images; at least 0 where nothing is left to do.
    probe : Probe
        The model.
    shape : tuple of int
        The shape of one image.
    seeds : list of int
        One for each image.
    """

    rows: AttackRows
    logits: Tensor
    margins: Tensor
    probe: Probe
    shape: tuple[int, ...]
    seeds: list[int]

    def images(self, moves: Tensor) -> Tensor:
        """The moved images: (B, n) -> (B, *shape)."""
        return (self.rows.clean + moves).view(-1, *self.shape)

    def take(self, index: Tensor) -> Posed:
        """The problem for some of the images, by number."""
        return Posed(
            self.rows.take(index),
            self.logits[index],
            self.margins[index],
            self.probe,
            self.shape,
            [self.seeds[number] for number in index.tolist()],
        )


def pose(
    model: Model,
    x: Tensor,
    y: Tensor,
    target: Tensor | int | None,
    low: float | Tensor,
    high: float | Tensor,
    seed: int | Sequence[int] | Tensor,
    *,
    soft: bool = False,
    batch: int = BATCH,
) -> Posed:
    """Check what an attack is given and lay it out as rows."""
    if not callable(model):
        raise KindError(f"the model is a {type(model).__name__}: give a function or a module")
    _steady(model)
    x, y = _images(x), _labels("y", y, x)
    clean, least, greatest = _boxed(x, low, high)
    probe = Probe(model, x.shape[1:], targeted=target is not None, soft=soft, batch=batch)
    labels = y if target is None else _labels("target", target, x)
    logits = probe.logits(clean) if len(clean) else clean.new_zeros(0, 2)
    _within(labels, logits)
    margins = probe.sign * margin(logits, labels)
    # a class at −inf never wins, and does no harm
    steady = torch.isfinite(margins) & ~(logits.isnan() | (logits == torch.inf)).any(1)
    if not bool(steady.all()):
        bad = int((~steady).nonzero()[0])
        raise DataError(
            f"the model's logits for image {bad} are not finite ({logits[bad].tolist()}): "
            "there is no margin to attack"
        )
    size = torch.where(logits.isfinite(), logits.abs(), 0.0).amax(1)
    floor = _ROUNDINGS * torch.finfo(x.dtype).eps * size.to(x.dtype)
    rows = AttackRows(clean, least - clean, greatest - clean, labels, floor)
    return Posed(rows, logits, margins, probe, tuple(x.shape[1:]), _seeds(seed, len(x)))


def _steady(model: Model) -> None:
    parts = model.modules() if isinstance(model, nn.Module) else ()
    for part in parts:
        if isinstance(part, _UNSTEADY) and part.training:
            raise DataError(
                f"the model has a {type(part).__name__} in training mode, where the answer for one "
                "image depends on the others or on chance: call model.eval() first"
            )


def _images(x: Tensor) -> Tensor:
    if not isinstance(x, Tensor) or not x.is_floating_point():
        kind = x.dtype if isinstance(x, Tensor) else type(x).__name__
        raise KindError(f"x is {kind}: give a tensor of floating-point images (B, *shape)")
    if x.ndim < 2:
        raise DataError(f"x has shape {tuple(x.shape)}: give images (B, *shape)")
    if not bool(torch.isfinite(x).all()):
        raise DataError("x has entries that are not finite")
    return x.detach()


def _labels(name: str, labels: Tensor | int, x: Tensor) -> Tensor:
    if isinstance(labels, int) and not isinstance(labels, bool):
        labels = torch.full((len(x),), labels)
    if not isinstance(labels, Tensor) or labels.is_floating_point() or labels.dtype == torch.bool:
        kind = labels.dtype if isinstance(labels, Tensor) else type(labels).__name__
        raise KindError(f"{name} is {kind}: give whole numbers of classes, a tensor (B,)")
    if labels.shape != x.shape[:1]:
        raise DataError(f"{name} has shape {tuple(labels.shape)} for {len(x)} images: give (B,)")
    return labels.to(x.device, torch.long)


def _within(labels: Tensor, logits: Tensor) -> None:
    if len(labels) and not bool(((labels >= 0) & (labels < logits.shape[1])).all()):
        raise DataError(
            f"labels go from {int(labels.min())} to {int(labels.max())}, "
            f"but the model has classes 0 to {logits.shape[1] - 1}"
        )


def _boxed(x: Tensor, low: float | Tensor, high: float | Tensor) -> tuple[Tensor, Tensor, Tensor]:
    clean = x.flatten(1)
    ends = [
        torch.as_tensor(end, dtype=x.dtype, device=x.device).expand_as(x).reshape(clean.shape)
        for end in (low, high)
    ]
    if bool(((clean < ends[0]) | (clean > ends[1])).any()):
        raise DataError(
            f"x goes from {float(x.min()):g} to {float(x.max()):g}, which is outside its box: "
            "scale the images, or give low= and high="
        )
    return clean, ends[0], ends[1]


def _seeds(seed: int | Sequence[int] | Tensor, count: int) -> list[int]:
    if isinstance(seed, int):
        return [seed + number for number in range(count)]
    seeds = [int(number) for number in seed]
    if len(seeds) != count:
        raise DataError(f"seed has {len(seeds)} numbers for {count} images: give one, or one each")
    return seeds


def radii(eps: float | Tensor, count: int, like: Tensor) -> Tensor:
    """One radius for each image from ``eps``, checked: (B,)."""
    radius = torch.as_tensor(eps, dtype=like.dtype, device=like.device)
    if radius.ndim > 1 or (radius.ndim == 1 and len(radius) != count):
        raise DataError(f"eps has shape {tuple(radius.shape)} for {count} images: one, or one each")
    if not bool(((radius >= 0) & (radius < math.inf)).all()):
        raise DataError(f"eps is {eps}: a radius is a finite number, not below 0")
    return radius.expand(count)


def checked(options: dict[str, Any], restarts: int, iterations: int, rivals: int) -> None:
    """Refuse what an attack for norms would pass over in silence."""
    for name in options:
        raise KindError(f"{name}= is not known, or is for a distance that is a function")
    numbers = {"restarts": (restarts, 0), "iterations": (iterations, 1), "rivals": (rivals, 1)}
    for name, (number, least) in numbers.items():
        if not is_real(number) or number < least or number % 1:
            raise KindError(
                "{argument}: a whole number, {least} or more",
                argument=Argument(name, number),
                least=least,
            )
