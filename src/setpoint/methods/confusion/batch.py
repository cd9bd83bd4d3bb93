"""A batch: a model's outputs and what they should have been, checked and in one form."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from setpoint._core.errors import DataError, KindError
from setpoint._core.words import listing
from setpoint.methods.confusion.confusion_cells import Cells
from setpoint.programs.column_rules import (
    BINARY,
    WEIGHT,
    Checked,
    ClassIndex,
    check_columns,
    lies_on_host,
)


class Batch:
    """Rows of a batch; a row of a multilabel task counts once for each label.

    Attributes
    ----------
    logits : torch.Tensor
        (N,), or (N, K) for multiclass; float32 or wider. N = n · L for multilabel.
    actual : torch.Tensor
        (N,): 0. or 1. like the logits, or the index of the class.
    target : torch.Tensor
        The same as given; on a device ``actual`` is moved into its range, and what was wrong is
        told some calls later.
    weight : torch.Tensor or None
        (N,).
    table : torch.Tensor or None
        (N,) which of the tables of ``Cells`` a row belongs to; None where there is one.
    rows : int
        n.
    probability : torch.Tensor
        Sigmoid or softmax of the logits.
    log_probability : torch.Tensor or None
        (N, K), for multiclass.
    host : bool
        Whether small sums and the arithmetic of rows (N,) are numpy's: true for tensors that lie on
        the host, unless a graph is being compiled. A call costs numpy half of what it costs torch,
        and on a dozen numbers a tenth; on a device they stay tensors, and nobody waits for them.
    z, y, p, w : numpy.ndarray or torch.Tensor
        Logits, actual, probability and weight (or None) once more: for (N,) on the host as arrays
        that share their memory, elsewhere the tensors themselves.
    flat : bool
        Whether they are arrays.
    unit, positive : numpy.ndarray
        Where they are: wᵢ, or ones, and wᵢ yᵢ. A product with them is begun sooner than a sum.
    """

    __slots__ = (
        "actual",
        "flat",
        "host",
        "log_probability",
        "logits",
        "p",
        "positive",
        "probability",
        "rows",
        "table",
        "target",
        "unit",
        "w",
        "weight",
        "y",
        "z",
    )
    z: Any
    y: Any
    p: Any
    w: Any

    def __init__(
        self,
        logits: Tensor,
        actual: Tensor,
        weight: Tensor | None,
        table: Tensor | None,
        rows: int,
    ) -> None:
        self.logits = logits
        self.target = self.actual = actual
        self.weight = weight
        self.table = table
        self.rows = rows
        host, compiling = lies_on_host(logits), torch.compiler.is_compiling()
        self.host = host and not compiling
        if not host and not compiling:  # an index beyond the cells would end the device's process
            several = logits.ndim == 2
            actual = actual.clamp(0, logits.shape[1] - 1) if several else actual.gt(0).to(logits)
            self.actual = actual
        self.flat = self.host and logits.ndim == 1
        if logits.ndim == 1:
            self.log_probability = None
            self.probability = p = torch.sigmoid(logits)
        else:
            self.log_probability = F.log_softmax(logits, 1)
            self.probability = p = self.log_probability.exp()
        if not self.flat:
            self.z = logits
            self.y = actual
            self.p = p
            self.w = weight
            return
        self.z = logits.numpy()
        self.y = actual.numpy()
        self.p = p.numpy()
        self.w = None
        if weight is None:
            self.unit = ones(len(self.z), self.z.dtype)
            self.positive = self.y
        else:
            self.w = self.unit = weight.numpy()
            self.positive = (actual * weight).numpy()  # by torch, which is silent about infinity

    def weighed(self, amounts: Any) -> Any:
        """wᵢ · amountᵢ, for (N,) or (N, K)."""
        w = self.w if isinstance(amounts, np.ndarray) else self.weight
        if w is None:
            return amounts
        return amounts * (w if amounts.ndim == 1 else w[:, None])

    def less(self, threshold: Any) -> Batch:
        """The same rows with logits (N,) less a threshold."""
        return Batch(self.logits - threshold, self.actual, self.weight, self.table, self.rows)

    def gradient(self, amounts: Any) -> Tensor:
        """wᵢ · amountᵢ of rows (N,), as a tensor."""
        if self.weight is not None:
            amounts = amounts * self.w
        return torch.from_numpy(amounts) if self.flat else amounts

    def total(self, amounts: Any) -> Any:
        """Σ wᵢ · amountᵢ of amounts (N,), a number."""
        if self.flat:
            return float(amounts @ self.unit)
        return self.small((amounts if self.weight is None else amounts * self.weight).sum())

    @property
    def mass(self) -> Any:
        """Σ wᵢ, a number."""
        return len(self.actual) if self.weight is None else self.small(self.weight.sum())

    @property
    def place(self) -> Any:
        """(N,) index of (table, actual), flattened."""
        if self.logits.ndim == 2:
            actual, side = self.actual, self.logits.shape[1]
        else:
            actual = self.y.astype(np.intp) if self.flat else self.y.to(torch.int32)
            side = 2
        if self.table is None:
            return actual
        return self.of(self.table) * side + actual

    @property
    def checked(self) -> Checked:
        """Labels and weights, each with the rule for it."""
        rule = BINARY if self.logits.ndim == 1 else class_index(self.logits.shape[1])
        target = (rule, self.y if self.flat else self.target)
        return (target,) if self.weight is None else (target, (WEIGHT, self.weight))

    def of(self, x: Tensor) -> Any:
        """A tensor in the form that the arithmetic of rows is done in."""
        return x.numpy() if self.flat else x

    def small(self, x: Any) -> Any:
        """A small tensor in the form that small sums are computed in."""
        if not self.host or not isinstance(x, Tensor):
            return x
        return x.numpy() if x.ndim else x.item()


def take_batch(cells: Cells, outputs: Tensor, target: Any, weight: Any, group: Any) -> Batch:
    """Check the shapes of a batch and bring it into one form. No value is looked at."""
    if not isinstance(outputs, Tensor) or not outputs.is_floating_point():
        kind = outputs.dtype if isinstance(outputs, Tensor) else type(outputs).__name__
        raise KindError(f"logits must be a tensor of floats; got {kind}")
    target = as_tensor(target, "target", outputs)
    form = _several if cells.task.kind == "multiclass" else _flat
    logits, actual = form(cells, outputs, target)
    n = outputs.shape[0]
    if n == 0:
        raise DataError("the batch is empty; leave it out")
    if weight is not None:
        weight = as_tensor(weight, "weight", outputs).to(logits.dtype)
        if weight.shape != (n,):
            raise DataError(f"weight must have shape ({n},); got {tuple(weight.shape)}")
    table = group_codes(cells, group, n, outputs) if cells.task.groups else None
    if cells.several:
        own = torch.arange(cells.labels, device=outputs.device)
        table = own.repeat(n) if table is None else (table[:, None] * cells.labels + own).flatten()
        weight = None if weight is None else weight.repeat_interleave(cells.labels)
    return Batch(logits, actual, weight, table, n)


def cross_entropy(rows: Batch) -> Any:
    """Σ wᵢ CEᵢ."""
    z, y, w = rows.logits, rows.actual, rows.weight
    if rows.log_probability is None and (w is not None or not rows.host):
        each = F.softplus(z) - z * y
        return rows.small((each if w is None else each * w).sum())
    if rows.log_probability is None:  # by torch where a logit may be infinite: numpy would warn
        return float(F.softplus(z).numpy() @ rows.unit) - float(torch.dot(z, y))
    return -rows.total(rows.log_probability.gather(1, rows.actual[:, None])[:, 0])


def cross_entropy_pull(rows: Batch) -> Tensor:
    """∂CEᵢ/∂logits of each row, without its weight."""
    p = rows.probability
    return p - (rows.actual if p.ndim == 1 else F.one_hot(rows.actual, p.shape[1]))


@lru_cache(maxsize=16)
def ones(n: int, dtype: np.dtype) -> np.ndarray:
    """As many ones; a product with them is begun sooner than a sum."""
    return np.ones(n, dtype)


def batch_mass(rows: Batch, cells: Cells) -> tuple[Any, int]:
    """Σ wᵢ over the rows (not over their labels), and the number of rows."""
    return rows.mass / cells.labels, rows.rows


def as_tensor(x: Any, name: str, like: Tensor) -> Tensor:
    """A tensor on the device of ``like``, without its gradient."""
    if not isinstance(x, Tensor):
        raise KindError(f"{name} must be a tensor; got {type(x).__name__}")
    if x.device != like.device:
        raise KindError(f"{name} is on {x.device}, the logits on {like.device}; move one of them")
    return x.detach() if x.requires_grad else x


def _wide(x: Tensor) -> Tensor:
    return x.detach() if x.dtype in (torch.float32, torch.float64) else x.detach().float()


def _flat(cells: Cells, outputs: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    if outputs.ndim == 1 and target.shape == outputs.shape and not cells.several:
        logits = _wide(outputs)
        return logits, target if target.dtype == logits.dtype else target.to(logits.dtype)
    if cells.several:
        if outputs.ndim != 2 or outputs.shape[1] != cells.width:
            raise DataError(
                f"logits must have shape (n, {cells.width}), one column per label; "
                f"got {tuple(outputs.shape)}"
            )
    elif not (outputs.ndim == 1 or (outputs.ndim == 2 and outputs.shape[1] == 1)):
        more = ""
        if outputs.ndim == 2:
            more = "; for one of several classes say task=Task.multiclass(classes)"
        raise DataError(
            f"logits of a binary goal have shape (n,) or (n, 1); got {tuple(outputs.shape)}{more}"
        )
    if target.numel() != outputs.numel() or target.shape[:1] != outputs.shape[:1]:
        raise DataError(
            f"logits have shape {tuple(outputs.shape)} and target {tuple(target.shape)}; "
            "they must agree"
        )
    logits = _wide(outputs).reshape(-1)
    return logits, target.reshape(-1).to(logits.dtype)


def _several(cells: Cells, outputs: Tensor, target: Tensor) -> tuple[Tensor, Tensor]:
    if outputs.ndim != 2 or outputs.shape[1] != cells.width:
        raise DataError(
            f"logits must have shape (n, {cells.width}), one column per class; "
            f"got {tuple(outputs.shape)}"
        )
    if target.ndim == 2 and target.shape[1] == 1:
        target = target[:, 0]
    if target.shape != outputs.shape[:1]:
        raise DataError(
            f"target must hold one class index per row, shape ({outputs.shape[0]},); "
            f"got {tuple(target.shape)}"
        )
    if target.is_floating_point() and bool((target != target.round()).any()):
        odd = target[target != target.round()][0].item()
        raise DataError(f"target must hold class indices 0…{cells.width - 1}; got {odd:g}")
    return _wide(outputs), target.long()


def group_codes(cells: Cells, group: Any, n: int, like: Tensor) -> Tensor:
    """One code per row from the codes of each declared group column."""
    names = [name for name, _ in cells.task.groups]
    if group is None:
        raise DataError(f"the goal speaks of {listing(names)}: pass group=, the code of each row")
    columns = group if isinstance(group, Mapping) else {names[0]: group}
    if len(names) > 1 and not isinstance(group, Mapping):
        raise DataError(f"there are {len(names)} group columns: pass group={{name: codes}}")
    code = torch.zeros(n, dtype=torch.long, device=like.device)
    for name, values in cells.task.groups:
        if name not in columns:
            raise DataError(f'the goal speaks of the column "{name}": pass group={{"{name}": …}}')
        column = as_tensor(columns[name], f'group "{name}"', like)
        wrong = f'group "{name}" must hold one code 0…{len(values) - 1} per row, shape ({n},)'
        if column.shape != (n,) or column.is_floating_point():
            raise DataError(wrong)
        if column.is_cpu and not torch.compiler.is_compiling():
            if bool(((column < 0) | (column >= len(values))).any()):
                low, high = column.min().item(), column.max().item()
                raise DataError(f"{wrong}; {low}…{high} holds one that the task does not declare")
        code = code * len(values) + column.long()
    return code


def check_values(batch: Batch, cells: Cells) -> None:
    """Refuse targets, weights, groups and logits that no row can have; waits for the device."""
    check_columns(batch.checked)
    table = batch.table
    if table is not None and bool(((table < 0) | (table >= cells.shape[0])).any()):
        raise DataError("group holds a code that the task does not declare")
    if not bool(batch.logits.isfinite().all()):
        raise DataError("the logits hold NaN or infinity")


@lru_cache(maxsize=16)
def class_index(count: int) -> ClassIndex:
    """The rule for the index of one of so many classes."""
    return ClassIndex(f"target must hold class indices 0…{count - 1}", count)
