"""The one criterion that every attack is judged by, ours and those of others.

    x' ← clip(x', low, high)
    wrong    margin(z(x'), y) ≥ 0                        a tie counts as wrong
    within   d(x, x') ≤ ε (1 + 10⁻⁶) + r                 r: one rounding of every pixel

An attack succeeds where the clipped point is wrong and within. Norms are measured in float64 on the
images as they are stored. r = u·s·‖1‖_p, with u the unit in the last place of the images' precision
at 1 and s the greatest size in the box, is what storing a point of the sphere may cost: without it
a projection that is right to the last bit would fail in float32 at small ε. A distance that is a
function has r = 0 and is measured in the precision of the images, as its weights may want it.
Logits that are not a number never count as a success.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from setpoint._core.errors import DataError
from setpoint.robustness.attacks.attack_losses import margin, target_margin
from setpoint.robustness.attacks.distances import Distance

RELATIVE = 1e-6  #: of eps: what a distance may exceed it by
Model = Callable[[Tensor], Tensor]


@dataclass(frozen=True, eq=False)
class AttackVerdict:
    """Points after clipping, and what the model says of them.

    Attributes
    ----------
    x : Tensor (B, *shape)
        The clipped points.
    prediction : Tensor (B,) of int64
        The class of the greatest logit; where a tie counts as wrong, the class that ties. −1 where
        the logits are no numbers.
    margin : Tensor (B,)
        ≥ 0: misclassified, or classified as the target where there is one.
    wrong : Tensor (B,) of bool
        Whether the point does what the attack wants, at whatever distance.
    distance : Tensor (B,) of float64
        From the clean image.
    broken : Tensor (B,) of bool
        Whether logits or distance are not numbers.
    """

    x: Tensor
    prediction: Tensor
    margin: Tensor
    wrong: Tensor
    distance: Tensor
    broken: Tensor


@dataclass(frozen=True, eq=False)
class Judge:
    """Judges points by the model, a distance and the box.

    Parameters
    ----------
    model : callable
        Images (B, *shape) -> logits (B, K).
    distance : Distance
    low, high : float
        The box of the images.
    strict : bool
        Whether a tie counts as right, so that only a margin above 0 is a success.
    """

    model: Model
    distance: Distance
    low: float = 0.0
    high: float = 1.0
    strict: bool = False

    def rounding(self, x: Tensor) -> float:
        """R for images of this shape and precision."""
        p = self.distance.p
        if p is None:
            return 0.0
        pixels = x[0].numel()
        size = max(abs(self.low), abs(self.high))
        ones = 1.0 if math.isinf(p) else pixels ** (1.0 / p)
        return torch.finfo(x.dtype).eps * size * ones

    def allowed(self, eps: float, x: Tensor) -> float:
        """The greatest distance that counts as within eps."""
        return eps * (1.0 + RELATIVE) + self.rounding(x)

    @torch.no_grad()
    def measure(self, x: Tensor, moved: Tensor) -> Tensor:
        """d(x, x') of each row, in float64: (B, *shape) twice -> (B,)."""
        if self.distance.p is None:
            return self.distance(x, moved).double()
        return self.distance(x.double(), moved.double())

    @torch.no_grad()
    def __call__(
        self, x: Tensor, y: Tensor, moved: Tensor, target: Tensor | None = None
    ) -> AttackVerdict:
        """Clip, ask the model, measure.

        Parameters
        ----------
        x : Tensor (B, *shape)
            The clean images.
        y : Tensor (B,) of int64
            Their labels.
        moved : Tensor (B, *shape)
            What an attack gave for them.
        target : Tensor (B,) of int64, optional
            The classes the model is to be led to.
        """
        if moved.shape != x.shape:
            raise DataError(
                f"an attack gave points of shape {tuple(moved.shape)} for images of shape "
                f"{tuple(x.shape)}; it has to give one for each"
            )
        point = moved.detach().to(x).clamp(self.low, self.high)
        logits = self.model(point).detach()
        margins = margin(logits, y) if target is None else target_margin(logits, target)
        distance = self.measure(x, point)
        broken = logits.isnan().any(1) | distance.isnan() | margins.isnan()
        wrong = (margins > 0 if self.strict else margins >= 0) & ~broken
        decided = _said(logits, y, target, self.strict)
        decided = torch.where(broken, torch.full_like(decided, -1), decided)
        return AttackVerdict(point, decided, margins, wrong, distance, broken)

    def succeeds(self, judged: AttackVerdict, eps: float) -> Tensor:
        """Whether each point is wrong and within eps: (B,) of bool."""
        return judged.wrong & (judged.distance <= self.allowed(eps, judged.x))


def _said(logits: Tensor, y: Tensor, target: Tensor | None, strict: bool) -> Tensor:
    """The class of the greatest logit; a tie goes against the label, or to the target."""
    first = logits.argmax(1)
    if strict:
        return first
    top = logits.amax(1)
    if target is not None:
        at = logits.gather(1, target[:, None]).squeeze(1)
        return torch.where(at >= top, target, first)
    other = logits.scatter(1, y[:, None], -math.inf)
    return torch.where(other.amax(1) >= top, other.argmax(1), first)
