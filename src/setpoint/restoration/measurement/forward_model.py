"""The operator as the methods see it: y ≈ A(x), or A(x, u) with unknowns u of its own.

    residual(x, y, u) = ‖A(x, u) − y‖² / m   over the m observed entries, one number an image.

The unknowns of a blind operator are one row for each image where the operator says so
(``operator.unknowns(batch, like)``), and the trainable parameters of a module otherwise, shared by
the whole batch. A module is never written to: it is called with other parameters in place of its
own.

A complex measurement is two real ones (:mod:`.parts`).
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

from setpoint._core.errors import DataError
from setpoint.restoration.operators.external_operator import Physics
from setpoint.restoration.operators.image_tensors import as_real, mask_of_parts
from setpoint.restoration.operators.observed_entries import observed_entries


class Forward:
    """An operator with its mask and its unknowns.

    Parameters
    ----------
    operator : callable
        A(x), (B, *shape) -> (B, …).
    y : torch.Tensor
        The measurement, for the number of entries observed in each image.
    shape, range : tuple
        Of an image and of its values. Where they are given, an operator that does not say what it
        hides is tried (:func:`.observed_entries`).
    """

    def __init__(
        self,
        operator: Callable[..., Tensor],
        y: Tensor,
        shape: tuple[int, ...] | None = None,
        range: tuple[float, float] = (0.0, 1.0),
    ) -> None:
        self.operator = operator
        self.parts = y.is_complex()
        self.observed = _mask(operator, y)
        if self.observed is None and shape is not None:
            with torch.no_grad():
                entries = observed_entries(operator, y, shape, range)
            self.observed = None if entries is None else entries.to(y.real.dtype)
        y = as_real(y)
        self.own = _parameters(operator)
        self._rows: _Rows | None = None
        self.per_image = hasattr(operator, "unknowns")
        # an operator of ours, which takes any rows of a batch
        self.ours = hasattr(operator, "output") and not isinstance(operator, Physics)
        if self.observed is None:
            self.count: Tensor = y.new_full((1,), y[0].numel())
        else:
            self.count = self.observed.flatten(1).sum(1)
            empty = (self.count == 0).nonzero()
            if len(empty):
                raise DataError(
                    f"nothing of image {int(empty[0])} is seen: the operator hides all of it; "
                    "leave the image out"
                )

    @property
    def blind(self) -> bool:
        """Whether there are unknowns to be found with the image."""
        return self.per_image or bool(self.own)

    def start(self, batch: int, like: Tensor) -> Tensor | None:
        """Where the unknowns start, (B, n), or (1, n) where the batch shares them."""
        if self.per_image:
            return self.operator.unknowns(batch, like)  # type: ignore[attr-defined]
        if not self.own:
            return None
        flat = torch.cat([value.detach().reshape(-1) for value in self.own.values()])
        return flat.to(like)[None].clone()

    def __call__(self, x: Tensor, unknowns: Tensor | None = None) -> Tensor:
        """A(x), or A(x, u), in real numbers."""
        if unknowns is None or not self.blind:
            return as_real(self.operator(x))
        if self.per_image:
            return as_real(self.operator(x, unknowns))
        module: Any = self.operator
        buffers = {name: value.clone() for name, value in module.named_buffers()}
        return as_real(functional_call(module, {**buffers, **self._named(unknowns)}, (x,)))

    def residual(self, x: Tensor, y: Tensor, unknowns: Tensor | None = None) -> Tensor:
        """Mean squared residual of each image, (B,)."""
        return _mean_square(self(x, unknowns) - y, self.observed, self.count)

    def residual_of(
        self,
        x: Tensor,
        y: Tensor,
        rows: Tensor,
        unknowns: Tensor | None,
        bend: float | None = None,
    ) -> Tensor:
        """Mean squared residual of some rows of several copies of the batch, (N,).

        Row r is of image r mod B. An operator of ours is told which images it sees; of any other
        it is not known whether it treats images alike, so they are put at their places in a
        full batch, copy by copy. With ``bend`` b a residual e counts 2 b² (√(1 + (e/b)²) − 1): e²
        where it is small, 2 b |e| where it is large.
        """
        seen = self._seen(rows, y)
        if self.ours and not self.own:
            measured = as_real(seen.operator(*((x,) if unknowns is None else (x, unknowns))))
        else:
            measured = self._placed(x, y, rows, seen.copies, unknowns)
        return _mean_square(measured - seen.y, seen.observed, seen.count, bend)

    def _placed(
        self, x: Tensor, y: Tensor, rows: Tensor, copies: int, unknowns: Tensor | None
    ) -> Tensor:
        """A of some rows, each at its place in a full batch; the other places are left empty."""
        full = x.new_zeros(copies * len(y), *x.shape[1:]).index_copy(0, rows, x)
        own: list[Tensor | None] = [unknowns] * copies
        start = self.start(len(y), y) if self.per_image else None
        if unknowns is not None and start is not None:
            placed = start.to(unknowns).repeat(copies, 1).index_copy(0, rows, unknowns)
            own = list(placed.split(len(y)))
        parts = zip(full.split(len(y)), own, strict=True)
        return torch.cat([self(part, row) for part, row in parts])[rows]

    def _seen(self, rows: Tensor, y: Tensor) -> _Rows:
        """The operator and the measurements of some rows; made once while the rows are the same."""
        if self._rows is None or self._rows.rows is not rows:
            image = rows % len(y)
            take = getattr(self.operator, "take", None)
            self._rows = _Rows(
                rows,
                int(rows.max()) // len(y) + 1,
                take(image) if take is not None else self.operator,
                y[image],
                None if self.observed is None else self.observed[image],
                self.count if self.observed is None else self.count[image],
            )
        return self._rows

    def module(self, unknowns: Tensor | None) -> Any:
        """The operator as found: a copy of the module with its parameters filled in."""
        if unknowns is None or self.per_image or not self.own:
            return self.operator
        operator = copy.deepcopy(self.operator)
        with torch.no_grad():
            for name, value in self._named(unknowns).items():
                operator.get_parameter(name).copy_(value)  # type: ignore[attr-defined]
        return operator

    def _named(self, unknowns: Tensor) -> dict[str, Tensor]:
        parts = unknowns[0].split([value.numel() for value in self.own.values()])
        return {
            name: part.reshape(value.shape)
            for (name, value), part in zip(self.own.items(), parts, strict=True)
        }


@dataclass(frozen=True, eq=False)
class _Rows:
    """Some rows of several copies of the batch: what measures them, and what was measured."""

    rows: Tensor
    copies: int
    operator: Callable[..., Tensor]
    y: Tensor
    observed: Tensor | None
    count: Tensor


def _mean_square(
    apart: Tensor, observed: Tensor | None, count: Tensor, bend: float | None = None
) -> Tensor:
    if observed is not None:
        apart = torch.where(observed > 0, apart, torch.zeros_like(apart))
    squared = apart**2
    if bend is not None:
        squared = 2 * bend**2 * (torch.sqrt(1 + squared / bend**2) - 1)
    return squared.flatten(1).sum(1) / count


def _parameters(operator: Any) -> dict[str, nn.Parameter]:
    if not isinstance(operator, nn.Module) or hasattr(operator, "unknowns"):
        return {}
    return {name: value for name, value in operator.named_parameters() if value.requires_grad}


def _mask(operator: Any, y: Tensor) -> Tensor | None:
    """What of y is observed, in the shape of its parts, or None for all of it."""
    mask = getattr(operator, "observed", None)
    if mask is None:
        return None
    return mask_of_parts(torch.as_tensor(mask, device=y.device).to(y.real.dtype), y)
