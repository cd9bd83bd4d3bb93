"""The model as an attack sees it: rows of pixels in, scores and their gradients out.

    score = ± f(z, label),    f one of  margin, soft margin, z_rival − z_label

with + where the label is to be left and − where it is to be reached, so that a score of at least 0
with f the margin is always what the attack wants. Gradients are taken for the pixels alone: nothing
is added to the gradients of the model's parameters, and its state is left as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from setpoint._core.errors import DataError, KindError
from setpoint.robustness.attacks.attack_losses import margin, of_class, soft_margin

Model = Callable[[Tensor], Tensor]
#: Rows that are put through the model at once, unless the caller says otherwise.
BATCH = 2048


@dataclass(frozen=True)
class Seen:
    """What the model says at some rows.

    Attributes
    ----------
    score : Tensor (R,)
        What the gradient is of.
    margin : Tensor (R,)
        ± margin: at least 0 where the attack has what it wants.
    gradient : Tensor (R, n)
        Of the score, in the pixels; not finite entries are 0.
    """

    score: Tensor
    margin: Tensor
    gradient: Tensor


class Probe:
    """Scores and gradients of a model at flat rows of pixels, counted.

    Parameters
    ----------
    model : callable
        (R, *shape) -> logits (R, K), each row on its own (evaluation mode).
    shape : tuple of int
        The shape of one image.
    targeted : bool
        Whether labels are to be reached rather than left.
    soft : bool
        Whether the score is the soft margin where no rival is named (cross-entropy).
    batch : int
        Rows put through the model at once.
    """

    def __init__(
        self,
        model: Model,
        shape: tuple[int, ...],
        *,
        targeted: bool = False,
        soft: bool = False,
        batch: int = BATCH,
    ) -> None:
        self._model, self._shape, self._batch = model, tuple(shape), batch
        self.sign = -1.0 if targeted else 1.0
        self._soft = soft
        self.forwards = 0

    def logits(self, rows: Tensor) -> Tensor:
        """Logits of flat rows, without gradients: (R, n) -> (R, K)."""
        with torch.no_grad():
            return torch.cat([self._logits(part) for part in rows.split(self._batch)])

    def margins(self, rows: Tensor, labels: Tensor) -> Tensor:
        """± margin of flat rows: at least 0 where the attack has what it wants."""
        return self.sign * margin(self.logits(rows), labels)

    def scores(
        self, rows: Tensor, labels: Tensor, rivals: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Score and ± margin of flat rows, without gradients."""
        return self._scored(self.logits(rows), labels, rivals)

    def look(self, rows: Tensor, labels: Tensor, rivals: Tensor | None = None) -> Seen:
        """Score, margin and gradient at flat rows.

        Parameters
        ----------
        rows : Tensor (R, n)
            Pixels.
        labels : Tensor (R,)
            The class to leave, or to reach.
        rivals : Tensor (R,) or None
            The class whose logit is set against the label's; None for the loss itself.
        """
        parts = range(0, len(rows), self._batch)
        found = [
            self._look(
                rows[at : at + self._batch],
                labels[at : at + self._batch],
                None if rivals is None else rivals[at : at + self._batch],
            )
            for at in parts
        ]
        if len(found) == 1:
            return found[0]
        return Seen(
            torch.cat([part.score for part in found]),
            torch.cat([part.margin for part in found]),
            torch.cat([part.gradient for part in found]),
        )

    def _look(self, rows: Tensor, labels: Tensor, rivals: Tensor | None) -> Seen:
        with torch.enable_grad():
            leaf = rows.detach().requires_grad_()
            logits = self._logits(leaf)
            score, wanted = self._scored(logits, labels, rivals)
            (gradient,) = torch.autograd.grad(score.sum(), leaf)
        gradient = torch.nan_to_num(gradient, nan=0.0, posinf=0.0, neginf=0.0)
        return Seen(score.detach(), wanted.detach(), gradient)

    def _scored(
        self, logits: Tensor, labels: Tensor, rivals: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        wanted = self.sign * margin(logits, labels)
        if rivals is not None:
            return self.sign * (of_class(logits, rivals) - of_class(logits, labels)), wanted
        return (self.sign * soft_margin(logits, labels) if self._soft else wanted), wanted

    def _logits(self, rows: Tensor) -> Tensor:
        self.forwards += len(rows)
        logits = self._model(rows.view(-1, *self._shape))
        if not isinstance(logits, Tensor) or logits.ndim != 2 or len(logits) != len(rows):
            shape = tuple(logits.shape) if isinstance(logits, Tensor) else type(logits).__name__
            raise KindError(
                f"the model gave {shape} for {len(rows)} images: it has to give logits (B, K)"
            )
        if logits.shape[1] < 2:
            raise DataError("the model gives one logit: an attack needs two classes or more")
        return logits.to(rows.dtype)  # autocast, or a head in double precision
