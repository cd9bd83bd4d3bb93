"""Strata: the groups and target bins of a regression task, and the sums kept of each.

A stratum is one combination of group values and one target bin. Five sums over its rows,

    Σ w    Σ w |e|    Σ w e²    Σ w u    Σ w u²,      e = ŷ − y,  u = y − centre,

give every error of a regression goal: mae = Σ w |e| / Σ w, mse = Σ w e² / Σ w, and the spread of
the targets that r2 divides by, Σ w u² − (Σ w u)² / Σ w. They add up over batches and processes.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np
import torch
from torch import Tensor

from setpoint._core.errors import DataError, KindError
from setpoint.expressions import Columns, Label, Task
from setpoint.expressions.rows.row_events import Event
from setpoint.methods.confusion.batch import as_tensor, group_codes
from setpoint.programs.column_rules import WEIGHT as WEIGHT_RULE
from setpoint.programs.column_rules import Checked, Finite, check_columns

WEIGHT, ABSOLUTE, SQUARED, FIRST, SECOND = range(5)  #: the rows of the table of sums
SUMS = 5  #: their number
TARGET = Finite("target must hold finite numbers")


@dataclass(frozen=True)
class Strata:
    """The layout of the sums of a regression task.

    Parameters
    ----------
    task : Task
        With the inner edges of its target bins and the values of its group columns.
    """

    task: Task
    bins: int = field(init=False)
    groups: tuple[tuple[Label, ...], ...] = field(init=False)  #: in the order of their codes
    size: int = field(init=False)  #: number of strata

    def __post_init__(self) -> None:
        groups = tuple(product(*(values for _, values in self.task.groups)))
        bins = len(self.task.edges or ()) + 1
        derived = {"bins": bins, "groups": groups, "size": bins * len(groups)}
        for name, value in derived.items():
            object.__setattr__(self, name, value)

    @property
    def columns(self) -> Columns:
        """One row for each stratum, in order; its target lies in its bin."""
        edges = np.array(self.task.edges or (), dtype=np.float64)
        below = edges[:1] - 1 if len(edges) else np.zeros(1)
        targets = np.concatenate([below, edges])
        labels = np.array(self.groups, dtype=object).reshape(len(self.groups), -1)
        groups = {
            name: np.repeat(labels[:, j], self.bins) for j, (name, _) in enumerate(self.task.groups)
        }
        return Columns(self.task, np.tile(targets, len(self.groups)), groups=groups)

    def mask(self, event: Event, columns: Columns) -> np.ndarray:
        """The strata that an event holds, (size,) of 0 and 1; ``columns`` are the strata's own."""
        member = columns.membership(event)
        return np.ones(self.size) if member is None else member.astype(np.float64)

    def bin_name(self, j: int) -> str:
        """A target bin in words."""
        edges = self.task.edges or ()
        low = f"[{edges[j - 1]:g}" if j else "(-inf"
        high = f"{edges[j]:g})" if j < len(edges) else "inf)"
        return f"{low}, {high}"


class ErrorRows:
    """A batch: predictions, targets, and the stratum of each row.

    Attributes
    ----------
    logits : torch.Tensor
        (n,) predictions, float32 or wider; the name is the one that all batches have.
    error, target : torch.Tensor
        (n,) ŷ − y and y.
    weight : torch.Tensor or None
    stratum : torch.Tensor or None
        (n,) None where there is one stratum.
    host : bool
        False: the few sums of a batch stay tensors wherever they lie.
    """

    __slots__ = ("error", "logits", "rows", "stratum", "target", "weight")
    host = False

    def __init__(
        self, outputs: Tensor, target: Tensor, weight: Tensor | None, stratum: Tensor | None
    ) -> None:
        self.logits = outputs
        self.target = target
        self.weight = weight
        self.error = outputs - target
        self.stratum = stratum
        self.rows = len(outputs)

    def small(self, x: Any) -> Any:
        """Small sums are left as they are."""
        return x

    @property
    def checked(self) -> Checked:
        """Targets and weights, each with the rule for it."""
        target = (TARGET, self.target)
        return (target,) if self.weight is None else (target, (WEIGHT_RULE, self.weight))

    def weighed(self, amounts: Tensor) -> Tensor:
        """wᵢ · amountᵢ."""
        return amounts if self.weight is None else amounts * self.weight

    def at(self, per_stratum: Tensor) -> Tensor:
        """The entry of a row's stratum, for each row."""
        per_stratum = per_stratum.to(self.logits.dtype)
        if self.stratum is None:
            return per_stratum[0]
        return per_stratum.index_select(0, self.stratum)


def take_errors(strata: Strata, outputs: Tensor, target: Any, weight: Any, group: Any) -> ErrorRows:
    """Check the shapes of a batch and bring it into one form. No value is looked at."""
    if not isinstance(outputs, Tensor) or not outputs.is_floating_point():
        kind = outputs.dtype if isinstance(outputs, Tensor) else type(outputs).__name__
        raise KindError(f"predictions must be a tensor of floats; got {kind}")
    y = as_tensor(target, "target", outputs)
    flat = outputs.ndim == 1 or (outputs.ndim == 2 and outputs.shape[1] == 1)
    if not flat or y.numel() != outputs.numel() or y.shape[:1] != outputs.shape[:1]:
        raise DataError(
            "predictions of a regression goal have shape (n,) or (n, 1), and target as many "
            f"numbers; got {tuple(outputs.shape)} and {tuple(y.shape)}"
        )
    n = outputs.shape[0]
    if n == 0:
        raise DataError("the batch is empty; leave it out")
    y = y.reshape(-1)
    y = y if y.is_floating_point() else y.double()
    z = outputs.detach().reshape(-1)
    z = z if z.dtype in (torch.float32, torch.float64) else z.float()
    if weight is not None:
        weight = as_tensor(weight, "weight", outputs).to(z.dtype)
        if weight.shape != (n,):
            raise DataError(f"weight must have shape ({n},); got {tuple(weight.shape)}")
    stratum = _stratum(strata, y, group, n, outputs)
    return ErrorRows(z, y.to(z.dtype), weight, stratum)


def _stratum(strata: Strata, y: Tensor, group: Any, n: int, like: Tensor) -> Tensor | None:
    if strata.size == 1:
        return None
    # edges are narrowed as the targets were: 0.7 stays on its side of the edge 0.7
    edges = torch.tensor(strata.task.edges or (), dtype=y.dtype, device=y.device)
    place = torch.bucketize(y, edges, right=True)
    if strata.task.groups:
        place = group_codes(strata, group, n, like) * strata.bins + place  # type: ignore[arg-type]
    return place


def sums(rows: ErrorRows, size: int, centre: float) -> Tensor:
    """The (5, size) sums of a batch, in float64 where the device has it."""
    wide = torch.float32 if rows.logits.device.type == "mps" else torch.float64
    e, u = rows.error.to(wide), rows.target.to(wide) - centre
    amounts = torch.stack([torch.ones_like(e), e.abs(), e * e, u, u * u])
    if rows.weight is not None:
        amounts = amounts * rows.weight.to(wide)
    if rows.stratum is None:
        return amounts.sum(1, keepdim=True)
    return amounts.new_zeros(SUMS, size).index_add_(1, rows.stratum, amounts)


def check_errors(rows: ErrorRows) -> None:
    """Refuse targets, weights and predictions that no row can have; waits for the device."""
    check_columns(rows.checked)
    if not bool(rows.logits.isfinite().all()):
        raise DataError("the predictions of the first batch hold NaN or infinity")
