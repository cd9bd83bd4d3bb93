"""The user's functions over one flat vector: values first, gradients when they are asked for.

    f(x),   v(x) = (e(x), c(x)),        ∇f (n,),   J = ∂v/∂x (m, n)

x is a tensor, a dict of tensors or a module, whose parameters are the variables; the functions are
called with it as it is. J is one batched product with the identity, and a variable that a function
does not use has the gradient 0 there.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from setpoint._core.errors import DataError, KindError
from setpoint.solvers.sqp.merit import broken

ONE_BY_ONE = 4  #: constraints up to which a backward pass for each is quicker than one for all
ROWS = 256  #: of J that are made at once, and held in memory


@dataclass(eq=False)
class Evaluated:
    """Values at a point, and the graph that gradients come from until they are taken.

    Attributes
    ----------
    x : torch.Tensor
        (n,) the point, rounded as the functions saw it.
    f : float
    v : torch.Tensor
        (m,) equations first.
    total, worst : float
        What is broken of all constraints together, and of the most broken one.
    finite : bool
        Whether all of them are numbers.
    """

    x: Tensor
    f: float
    v: Tensor
    total: float
    worst: float
    finite: bool
    leaves: list[Tensor] = field(repr=False)
    top: Tensor | None = field(repr=False)
    rows: Tensor | None = field(repr=False)
    g: Tensor | None = None
    J: Tensor | None = None
    steep: float = -1.0

    def merit(self, mu: float) -> float:
        """φ = μ f + what is broken."""
        return mu * self.f + self.total

    def pull(self, mu: float, paid: Tensor) -> Tensor:
        """μ ∇f + Jᵀ paid (n,): one backward pass where J is not known."""
        if self.J is not None or len(paid) <= ONE_BY_ONE:
            J = self.jacobian()  # asked for anyway, where the step is taken
            return mu * self.gradient() + paid @ J
        out = mu * self.gradient()
        if self.rows is not None and self.rows.requires_grad:
            slopes = torch.autograd.grad(
                self.rows, self.leaves, paid.to(self.rows), retain_graph=True, allow_unused=True
            )
            out = out + _flat(slopes, self.leaves).to(out)
        return out

    def gradient(self) -> Tensor:
        """∇f (n,)."""
        if self.g is None:
            slopes: Sequence[Tensor | None] = [None] * len(self.leaves)
            if self.top is not None and self.top.requires_grad:
                slopes = torch.autograd.grad(
                    self.top, self.leaves, retain_graph=self.rows is not None, allow_unused=True
                )
            self.g = _flat(slopes, self.leaves).to(self.x)
        return self.g

    def steepness(self) -> float:
        """‖∇f‖."""
        if self.steep < 0:
            g = self.gradient()
            self.steep = math.sqrt(float(g @ g))
        return self.steep

    def jacobian(self) -> Tensor:
        """J (m, n)."""
        if self.J is None:
            self.gradient()
            self.J = _jacobian(self.rows, self.leaves, len(self.v)).to(self.x)
            self.top = self.rows = None  # the graph is not needed any more
        return self.J

    def slopes_finite(self) -> bool:
        """Whether ∇f and J are numbers."""
        if not math.isfinite(self.steepness()):
            return bool(torch.isfinite(self.gradient()).all())
        J = self.jacobian()
        return not len(J) or math.isfinite(float(J.sum())) or bool(torch.isfinite(J).all())


class Functions:
    """f, e and c over a flat vector.

    Parameters
    ----------
    objective : callable
        x -> scalar tensor.
    x0 : torch.Tensor, dict or torch.nn.Module
    inequalities, equalities : callable or sequence of callables
    """

    def __init__(
        self,
        objective: Callable[..., Tensor],
        x0: Any,
        inequalities: Any = (),
        equalities: Any = (),
    ) -> None:
        if not callable(objective):
            raise KindError(f"objective={objective!r}: a function of x that gives a scalar tensor")
        self.objective = objective
        sides = {"equalities": equalities, "inequalities": inequalities}
        self.sides = {name: _callables(side, name) for name, side in sides.items()}
        self.module = x0 if isinstance(x0, nn.Module) else None
        self.names, parts = _parts(x0)
        self.single = not self.names
        self.shapes = [p.shape for p in parts]
        self.sizes = [p.numel() for p in parts]
        self.kinds = [p.dtype for p in parts]
        self.device = parts[0].device
        self.parameters = parts if self.module is not None else []
        self.places = _places(self.module, self.parameters)
        self.first = torch.cat([p.detach().reshape(-1).double() for p in parts])
        coarse = max(torch.finfo(kind).eps for kind in self.kinds)
        self.eps = coarse  #: of the values that the functions give
        self.rounded = any(kind != torch.float64 for kind in self.kinds)
        self.calls = 0
        self.depends = True  #: whether autograd sees that the objective depends on x
        self.count = (0, 0)  #: equations and inequalities, known after the first call
        if not len(self.first):
            raise DataError("x0 is empty: there is nothing to choose")
        if not bool(torch.isfinite(self.first).all()):
            raise DataError("x0 holds a value that is no number; start from finite ones")

    def split(self, x: Tensor) -> list[Tensor]:
        """The tensors of x, each in its own shape and type."""
        if self.single:
            return [x.to(self.kinds[0]).reshape(self.shapes[0])]
        pieces = zip(x.split(self.sizes), self.shapes, self.kinds, strict=True)
        return [piece.to(kind).reshape(shape) for piece, shape, kind in pieces]

    def given(self, x: Tensor) -> Any:
        """X as the user gave it, for good: a module is left with it."""
        for parameter, part in zip(self.parameters, self.split(x), strict=False):
            parameter.data = part.detach().clone()
        return self.copied(x)

    def copied(self, x: Tensor) -> Any:
        """X as the user gave it; of a module its parameters by name, without touching it."""
        parts = [part.detach().clone() for part in self.split(x)]
        return parts[0] if self.single else dict(zip(self.names, parts, strict=True))

    def rounding(self, x: Tensor) -> Tensor:
        """X as the functions will see it."""
        if not self.rounded:
            return x
        return torch.cat([part.reshape(-1).double() for part in self.split(x)])

    def __call__(self, x: Tensor) -> Evaluated:
        """Values at x (n,)."""
        x = self.rounding(x)
        leaves = [part.detach().clone().requires_grad_() for part in self.split(x)]
        self.calls += 1
        with torch.enable_grad():
            top, *sides = self.read(leaves)
        pieces = [piece for side in sides for piece in side]
        self._counted(sides)
        self.depends = top.requires_grad
        f = float(top.detach())
        if not pieces:
            v, rows = x.new_zeros(0), None
        else:
            rows = pieces[0] if len(pieces) == 1 else torch.cat([p.double() for p in pieces])
            v = rows.detach().to(x)
        total = worst = 0.0
        if pieces:
            each = broken(v.cpu().numpy(), self.count[0])
            total, worst = float(each.sum()), float(each.max(initial=0.0))
        finite = math.isfinite(f) and math.isfinite(total)
        return Evaluated(
            x=x,
            f=f,
            v=v,
            total=total,
            worst=worst,
            finite=finite,
            leaves=leaves,
            top=top,
            rows=rows,
        )

    def read(
        self, parts: Sequence[Tensor], *more: Any
    ) -> tuple[Tensor, list[Tensor], list[Tensor]]:
        """F, and the pieces of e and c, flat.

        Parameters
        ----------
        parts : sequence of torch.Tensor
            x. A module is called with them in the place of its parameters, wherever it holds
            them, and has its own again afterwards: a graph must not see what comes later.
        *more
            What the functions are called with beside x: a batch.
        """
        argument: Any = self.module
        if argument is None:
            argument = parts[0] if self.single else dict(zip(self.names, parts, strict=True))
        for parameters, name, k in self.places:
            parameters[name] = parts[k]
        try:
            top = self._top(self.objective(argument, *more))
            e, c = (self._side(name, argument, *more) for name in self.sides)
        finally:
            for parameters, name, k in self.places:
                parameters[name] = self.parameters[k]
        return top, e, c

    def _top(self, value: Any) -> Tensor:
        if not isinstance(value, Tensor) or value.numel() != 1:
            shape = tuple(value.shape) if isinstance(value, Tensor) else type(value).__name__
            raise DataError(f"the objective gave {shape}; it must give a tensor with one number")
        if not value.is_floating_point():
            raise DataError(f"the objective gave {value.dtype}; it must give a real number")
        return value.reshape(())

    def _side(self, name: str, *argument: Any) -> list[Tensor]:
        out = []
        for k, function in enumerate(self.sides[name]):
            values = function(*argument)
            if isinstance(values, int | float):
                values = torch.as_tensor(values, dtype=self.kinds[0], device=self.device)
            if not isinstance(values, Tensor) or not values.is_floating_point():
                what = values.dtype if isinstance(values, Tensor) else type(values).__name__
                raise DataError(f"{name}[{k}] gave {what}; it must give a tensor of real numbers")
            out.append(values.reshape(-1))
        return out

    def _counted(self, sides: Sequence[Sequence[Tensor]]) -> None:
        equal, other = (sum(piece.numel() for piece in side) for side in sides)
        if self.calls > 1 and (equal, other) != self.count:
            raise DataError(
                f"the constraints gave {equal} equations and {other} inequalities, "
                f"{self.count[0]} and {self.count[1]} before; their number must stay the same"
            )
        self.count = equal, other


def host(x: Tensor) -> np.ndarray:
    """A tensor as numbers for scipy and the quadratic programs."""
    return x.double().cpu().numpy()


def _jacobian(rows: Tensor | None, leaves: Sequence[Tensor], m: int) -> Tensor:
    n = sum(leaf.numel() for leaf in leaves)
    if rows is None or not rows.requires_grad or not m:
        return leaves[0].new_zeros((m, n))
    if m <= ONE_BY_ONE:
        rows_of_j = [
            torch.autograd.grad(rows[j], leaves, retain_graph=True, allow_unused=True)
            for j in range(m)
        ]
        return torch.stack([_flat(row, leaves) for row in rows_of_j])
    eye = torch.eye(m, dtype=rows.dtype, device=rows.device)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that an operation has no batched rule, and is slow
            blocks = [_block(rows, leaves, part) for part in eye.split(ROWS)]
    except RuntimeError:  # an operation that cannot be batched at all
        blocks = [
            _flat(
                torch.autograd.grad(rows, leaves, row, retain_graph=True, allow_unused=True),
                leaves,
            )[None]
            for row in eye
        ]
    return torch.cat(blocks)


def _block(rows: Tensor, leaves: Sequence[Tensor], weights: Tensor) -> Tensor:
    slopes = torch.autograd.grad(
        rows, leaves, weights, retain_graph=True, allow_unused=True, is_grads_batched=True
    )
    k = len(weights)
    parts = zip(slopes, leaves, strict=True)
    return torch.cat(
        [
            (x.new_zeros((k, x.numel())) if g is None else g.reshape(k, -1)).double()
            for g, x in parts
        ],
        1,
    )


def _flat(parts: Sequence[Tensor | None], leaves: Sequence[Tensor]) -> Tensor:
    if len(leaves) == 1:
        g = parts[0]
        return (torch.zeros_like(leaves[0]) if g is None else g).detach().reshape(-1)
    pairs = zip(parts, leaves, strict=True)
    return torch.cat(
        [(torch.zeros_like(x) if g is None else g).detach().reshape(-1).double() for g, x in pairs]
    )


def _callables(side: Any, name: str) -> tuple[Callable[..., Any], ...]:
    if side is None or callable(side):
        return () if side is None else (side,)
    if not isinstance(side, list | tuple):
        raise KindError(f"{name}={side!r}: a function of x, or a list of them")
    functions = tuple(side)
    for function in functions:
        if not callable(function):
            raise KindError(f"{name} holds {function!r}; give functions of x")
    return functions


def _places(
    module: nn.Module | None, parameters: Sequence[Tensor]
) -> list[tuple[dict[str, Any], str, int]]:
    """Where a module holds its parameters, and which; a tied one is held in several places."""
    numbers = {id(parameter): k for k, parameter in enumerate(parameters)}
    out: list[tuple[dict[str, Any], str, int]] = []
    for part in module.modules() if module is not None else ():
        parameters_here: dict[str, Any] = part._parameters
        out += [
            (parameters_here, name, numbers[id(p)])
            for name, p in parameters_here.items()
            if id(p) in numbers
        ]
    return out


def _parts(x0: Any) -> tuple[list[str], list[Tensor]]:
    if isinstance(x0, nn.Module):
        named = {name: p for name, p in x0.named_parameters() if p.requires_grad}
        if not named:
            raise DataError("the module has no parameters that require gradients")
    elif isinstance(x0, dict):
        named = dict(x0)
    elif isinstance(x0, Tensor):
        named = {"": x0}
    elif isinstance(x0, Iterable) and not isinstance(x0, str):
        raise KindError(
            f"x0 is a {type(x0).__name__}; give a tensor, a dict of tensors or a module: "
            "torch.as_tensor(x0, dtype=torch.float64)"
        )
    else:
        raise KindError(f"x0={x0!r}: a tensor, a dict of tensors or a module")
    for name, part in named.items():
        what = f'x0["{name}"]' if name else "x0"
        if not isinstance(part, Tensor):
            raise KindError(f"{what} is a {type(part).__name__}, and must be a tensor")
        if part.dtype not in (torch.float32, torch.float64):
            raise KindError(f"{what} has the type {part.dtype}; give .double(), or .float()")
    parts = list(named.values())
    if not parts:
        raise DataError("x0 is empty: there is nothing to choose")
    if len({part.device for part in parts}) > 1:
        raise DataError("the tensors of x0 are on several devices; put them on one")
    return ([] if isinstance(x0, Tensor) else list(named)), parts
