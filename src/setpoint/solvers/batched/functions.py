"""The functions of B problems at once: values, and gradients by one backward pass a function.

Row b of every answer depends on row b of x alone, so that ∇ of the sum over rows holds the gradient
of each row in its row: 1 + p backward passes for f and p constraints, whatever B is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import torch
from torch import Tensor

from setpoint._core.errors import DataError, KindError

MANY = 4  #: more constraints than this are sent through one vectorised backward pass


@dataclass(frozen=True, eq=False)
class Values:
    """f (B,) and the sides v = (c, e) (B, p) at x, with the graph that gives their gradients."""

    x: Tensor  # (B, n), a leaf
    f: Tensor  # (B,)
    v: Tensor  # (B, p)

    @torch.enable_grad()
    def gradients(self) -> tuple[Tensor, Tensor]:
        """∇f (B, n) and the Jacobian of v (B, p, n); what does not depend on x counts as 0."""
        count = self.v.shape[1]
        g = _pull(self.f.sum(), self.x, keep=count > 0)
        if count == 0:
            return g, g.new_zeros(len(g), 0, g.shape[1])
        sums = self.v.sum(dim=0)  # (p,)
        if count > MANY and sums.requires_grad:
            try:
                eye = torch.eye(count, dtype=sums.dtype, device=sums.device)
                (jacobian,) = torch.autograd.grad(
                    sums, self.x, eye, is_grads_batched=True, retain_graph=True, allow_unused=True
                )
            except RuntimeError:  # an operation without a batching rule: one pass a constraint
                jacobian = None
            if jacobian is not None:
                return g, jacobian.transpose(0, 1)
        rows = [_pull(s, self.x, keep=k + 1 < count) for k, s in enumerate(sums)]
        return g, torch.stack(rows, dim=1)


@dataclass(frozen=True, eq=False)
class BatchedFunctions:
    """The objective, the inequalities c <= 0, the equalities e = 0 and the data they are given.

    Attributes
    ----------
    shape : tuple of int
        Of one row's variable; x travels flat, (B, n).
    data : tuple of torch.Tensor
        Cut with the rows.
    counts : tuple of int
        How many inequalities and how many equalities a row has.
    """

    objective: Callable[..., Tensor]
    inequalities: Callable[..., Tensor] | None
    equalities: Callable[..., Tensor] | None
    data: tuple[Tensor, ...]
    shape: tuple[int, ...]
    counts: tuple[int, int] = (0, 0)

    def take(self, index: Tensor) -> BatchedFunctions:
        """The same functions for some of the rows."""
        return replace(self, data=tuple(d.index_select(0, index.to(d.device)) for d in self.data))

    def at(self, x: Tensor) -> Values:
        """Values at x (B, n), ready for their gradients."""
        leaf = x.detach().requires_grad_(True)
        with torch.enable_grad():
            shaped = leaf.reshape(len(x), *self.shape)
            f = _column(self.objective(shaped, *self.data), x, "objective", (len(x),))
            sides = [
                _column(side(shaped, *self.data), x, name, (len(x), -1))
                for side, name in self._sides()
            ]
            v = torch.cat(sides, dim=1) if sides else leaf.new_zeros(len(x), 0)
        return Values(leaf, f, v)

    def counted(self, x: Tensor) -> BatchedFunctions:
        """The same functions, with how many constraints there are, seen by calling them at x."""
        shaped = x.reshape(len(x), *self.shape)
        counts = [0, 0]
        with torch.no_grad():
            for k, side in enumerate((self.inequalities, self.equalities)):
                if side is not None:
                    name = ("inequalities", "equalities")[k]
                    column = _column(side(shaped, *self.data), x, name, (len(x), -1))
                    counts[k] = column.shape[1]
        return replace(self, counts=(counts[0], counts[1]))

    def equal(self, like: Tensor) -> Tensor:
        """(p,) which of the sides are equalities."""
        marks = [False] * self.counts[0] + [True] * self.counts[1]
        return torch.tensor(marks, dtype=torch.bool, device=like.device)

    def _sides(self) -> Sequence[tuple[Callable[..., Tensor], str]]:
        sides = ((self.inequalities, "inequalities"), (self.equalities, "equalities"))
        return [(side, name) for side, name in sides if side is not None]


def _pull(total: Tensor, x: Tensor, *, keep: bool) -> Tensor:
    if not total.requires_grad:  # a constant
        return torch.zeros_like(x, requires_grad=False)
    (slope,) = torch.autograd.grad(
        total, x, retain_graph=keep, allow_unused=True, materialize_grads=True
    )
    return slope


def _column(value: object, x: Tensor, name: str, shape: tuple[int, ...]) -> Tensor:
    if not isinstance(value, Tensor):
        raise KindError(f"{name} returned {type(value).__name__}: return a tensor, a row a problem")
    if value.ndim == 0 or len(value) != len(x) or (len(shape) == 1 and value.numel() != len(x)):
        want = f"({len(x)},)" + (f" or ({len(x)}, p)" if len(shape) == 2 else "")
        raise DataError(
            f"{name} returned shape {tuple(value.shape)} for {len(x)} problems: return {want}, "
            "one row for each"
        )
    return value.reshape(shape).to(x.dtype)


# Many constraints as one: ‖(c)₊‖₂ <= 0 asks for the same as c₁ <= 0, …, c_k <= 0.
#
# The folded constraint is 0 wherever all hold and has no interior, so it gives no multipliers and
# is hard to meet exactly: fold only what is too much for the solver's dual and what can neither be
# projected onto nor bounded.


def folded(constraints: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """A function (B, k) of constraints c <= 0 as one (B,): ‖(c)₊‖₂ / √k.

    Examples
    --------
    >>> import torch
    >>> folded(lambda x: x - 1)(torch.tensor([[0.0, 1.0], [4.0, 5.0]]))
    tensor([0.0000, 3.5355])
    """

    def one(*arguments: Tensor) -> Tensor:
        sides = constraints(*arguments).flatten(1)
        return torch.linalg.vector_norm(sides.clamp_min(0), dim=1) / math.sqrt(sides.shape[1])

    return one
