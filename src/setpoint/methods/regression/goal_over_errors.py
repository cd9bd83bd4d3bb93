"""A regression goal over the sums of strata: objective, constraints, and who presses where.

A ground goal of errors is a tree over *atoms*, (Σ w |e| / Σ w)ᵏ, (Σ w e² / Σ w)ᵏ and (Σ w e² /
spread)ᵏ, each over some strata. All atoms are read at once; what is left of the tree are a few
sums, and reductions over bins or groups. A worst of several is not read as a maximum, whose
gradient hops from one bin to another, but as the saddle

    max_b m_b = max over p >= 0, Σ p = 1 of Σ_b p_b m_b,

whose p are multipliers of t >= m_b in "minimise t": they are kept, and moved by multiplicative
weights. That is so wherever a reduction works against the learner (the worst that is minimised,
both ends of a gap that is bounded); one that works with it is read as it is.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from setpoint._core.errors import GoalError
from setpoint.expressions import (
    Constraint,
    Domain,
    Expression,
    Named,
    Number,
    Power,
    Product,
    Ratio,
    Reading,
    Several,
    Spread,
    Sum,
    Total,
)
from setpoint.expressions.node import ATOM
from setpoint.expressions.rows.columns import ABSOLUTE_ERROR
from setpoint.expressions.rows.row_events import BIN
from setpoint.goals import Goal
from setpoint.methods.confusion.goal_over_cells import SignedExpression, signed_expressions
from setpoint.methods.regression.strata import (
    ABSOLUTE,
    FIRST,
    SECOND,
    SQUARED,
    SUMS,
    WEIGHT,
    Strata,
)

# The nodes of a regression goal's tree: atoms, reductions, and which way each part pulls.


PRESS = 5.0  #: weights answer what is worse now by exp(PRESS · how much), which calms the game


def apart(weights: Tensor, items: Tensor) -> Tensor:
    """How far each item lies above the weighed mean, in units of the largest."""
    return (items - (weights * items).sum()) / items.abs().max().clamp(min=1e-30)


class Env:
    """What a tree reads: atoms, where they are defined, and the weights of adversaries."""

    def __init__(self, values: Tensor, defined: Tensor, weights: Tensor) -> None:
        self.values = values
        self.defined = defined
        self.weights = weights
        self.pressed: dict[int, Tensor] = {}  #: place among the weights -> values, weighed mean


@dataclass(frozen=True, eq=False, repr=False)
class Atom(Expression):
    """A mean error, read by its place."""

    index: int

    def read(self, env: Any) -> Reading:
        return Reading(env.values[self.index], env.defined[self.index])

    def text(self) -> tuple[str, int]:
        return f"[{self.index}]", ATOM

    def latex(self) -> str:
        return f"[{self.index}]"


@dataclass(frozen=True, eq=False, repr=False)
class Reduction(Expression):
    """Mean, least, greatest, or weighed mean (``place`` >= 0) of those items that are defined."""

    how: str
    items: tuple[Expression, ...]
    place: int = -1  #: of its weights, where it is an adversary

    def read(self, env: Any) -> Reading:
        if all(isinstance(item, Atom) for item in self.items):
            where = [item.index for item in self.items]  # type: ignore[attr-defined]
            values, defined = env.values[where], env.defined[where]
        else:
            parts = [item.read(env) for item in self.items]
            values = torch.stack([p.value for p in parts])
            defined = torch.stack([torch.as_tensor(p.defined, device=values.device) for p in parts])
        some = defined.any()
        if self.place >= 0:
            share = env.weights[self.place : self.place + len(self.items)] * defined
            weights = share / share.sum().clamp(min=1e-36)
            values_or_zero = torch.where(defined, values, 0.0)
            sign = 1.0 if self.how == "max" else -1.0
            share = weights * (PRESS * sign * apart(weights, values_or_zero.detach())).exp()
            share = share / share.sum().clamp(min=1e-36)
            value = (share * values_or_zero).sum()
            mean = (weights * values_or_zero).sum()
            env.pressed[self.place] = torch.where(defined, values, mean).detach()
        elif self.how == "mean":
            values_or_zero = torch.where(defined, values, 0.0)
            value = values_or_zero.sum() / defined.sum().clamp(min=1)
        else:
            sign = 1.0 if self.how == "max" else -1.0
            values_or_zero = torch.where(defined, sign * values, -math.inf).amax()
            value = sign * torch.where(some, values_or_zero, 0.0)
        return Reading(value, some)

    def text(self) -> tuple[str, int]:
        return f"{self.how}({', '.join(map(str, self.items))})", ATOM

    def latex(self) -> str:
        return self.text()[0]


def affine(node: Expression) -> dict[int, float] | None:
    """A tree as coefficients of atoms, by their places; −1 is that of 1. None where it is none."""
    if isinstance(node, Atom):
        return {node.index: 1.0}
    if isinstance(node, Number):
        return {-1: node.value}
    if isinstance(node, Named):
        return affine(node.body)
    if not isinstance(node, Sum | Product):
        return None
    forms = [affine(child) for child in node.children()]
    whole: dict[int, float] = {} if isinstance(node, Sum) else {-1: 1.0}
    for form in forms:
        if form is None:
            return None
        if isinstance(node, Sum):
            whole = {i: whole.get(i, 0.0) + form.get(i, 0.0) for i in {**whole, **form}}
            continue
        if set(whole) - {-1} and set(form) - {-1}:
            return None
        varying, constant = (whole, form) if set(whole) - {-1} else (form, whole)
        whole = {i: x * constant.get(-1, 0.0) for i, x in varying.items()}
    return whole


def signs(node: Expression, sign: float) -> list[float]:
    """Of each child of a node, whether more of it is worse; 0 where that is open."""
    children = node.children()
    if not sign:
        return [0.0] * len(children)
    if isinstance(node, Sum):
        return [sign] * len(children)
    if isinstance(node, Product):
        return [sign * _sign_of_rest(node.factors, i) for i in range(len(children))]
    if isinstance(node, Ratio):
        up = 1.0 if _never_negative(node.denominator) else 0.0
        down = -1.0 if _never_negative(node.numerator) else 0.0
        return [sign * up, sign * down]
    if isinstance(node, Power) and _never_negative(node.base):
        return [sign * math.copysign(1.0, node.exponent)]
    return [sign if isinstance(node, Named) else 0.0] * len(children)


def _sign_of_rest(factors: tuple[Expression, ...], i: int) -> float:
    whole = 1.0
    for j, factor in enumerate(factors):
        if j == i:
            continue
        if isinstance(factor, Number):
            whole *= math.copysign(1.0, factor.value)
        elif not _never_negative(factor):
            return 0.0
    return whole


def _never_negative(node: Expression) -> bool:
    """Whether a part is an error, or made of such: never below 0."""
    if isinstance(node, Ratio) and isinstance(node.numerator, Total):
        return True
    return node.interval()[0] >= 0 or all(map(_never_negative, node.children() or (Number(-1.0),)))


LEAST = 1e-4  #: share of the rows below which a stratum's price grows no more
FLAT = 1e-10  #: targets spread by less than this share of their square do not vary


class ErrorGoal(nn.Module):
    """The objective F and the constraints v <= 0 of a regression goal, as functions of sums.

    Parameters
    ----------
    goal : Goal
    strata : Strata

    Attributes
    ----------
    wanted : list of SignedExpression
        What is to be made small: the objective, then each constraint.
    slices : list of (start, stop, sign)
        The weights of each adversary, and which end it seeks.
    degrees : list of float
        d of each thing wanted: errors t times as large make it tᵈ times as large.
    """

    spread_: Tensor
    mix_: Tensor
    shift_: Tensor

    def __init__(self, goal: Goal, strata: Strata) -> None:
        super().__init__()
        self.goal = goal
        self.strata = strata
        domain = Domain(strata.columns)
        high = goal.objective.interval()[1]
        self.offset = high if goal.sign > 0 and high < math.inf else 0.0
        self.wanted = [SignedExpression(goal.objective.expand(domain), -float(goal.sign))]
        self.bounds: list[float] = []  #: |bound| of each constraint; 0 where it is no number
        for constraint in goal.constraints:
            left, right = (side.expand(domain) for side in constraint.sides)
            parts = signed_expressions(Constraint(left, constraint.op, right))
            texts = self._texts(constraint, len(parts))
            self.wanted += [replace(w, text=t) for w, t in zip(parts, texts, strict=True)]
            self.bounds += [abs(constraint.number or 0.0)] * len(parts)
        self.slices: list[tuple[int, int, float]] = []
        self._rows: dict[Any, int] = {}
        self.trees = [
            self._tree(w.expression, 0.0 if w.equal else w.sign, str(goal)) for w in self.wanted
        ]
        self._stack()
        self.degrees = self._degrees()

    # --- from the goal to atoms ------------------------------------------------------------------

    def _texts(self, constraint: Constraint, parts: int) -> list[str]:
        """The constraint's text for each part of it, with the bin or group it is about."""
        text = str(constraint)
        if parts == 1:
            return [text]
        if getattr(constraint.left, "by", None) == BIN:
            return [f"{text} ({self.strata.bin_name(j)})" for j in range(parts)]
        column = str(getattr(constraint.left, "by", ""))
        values = self.strata.task.group_values(column) or range(parts)
        names = list(values) if len(values) == parts else list(range(parts))
        return [f"{text} ({name})" for name in names]

    def _tree(self, node: Expression, sign: float, text: str) -> Expression:
        """The tree over atoms; ``sign``: whether more of the node is worse (1), better or open."""
        atom = self._atom(node)
        if atom is not None:
            return atom
        if isinstance(node, Several):
            items = tuple(self._tree(item, sign, text) for item in node.items)
            against = {"max": 1.0, "min": -1.0}.get(node.how, 0.0)
            place = -1
            if against and against == sign and len(items) > 1:
                place = self.slices[-1][1] if self.slices else 0
                self.slices.append((place, place + len(items), against))
            return Reduction(node.how, items, place)
        if isinstance(node, Total | Spread):
            raise GoalError(f'"{text}" is no function of mae, mse, rmse and r2')
        children = node.children()
        pairs = zip(children, signs(node, sign), strict=True)
        return node.rebuild(tuple(self._tree(child, s, text) for child, s in pairs))

    def _atom(self, node: Expression) -> Atom | None:
        power = 1.0
        if isinstance(node, Power) and node.exponent > 0:
            node, power = node.base, node.exponent
            node = getattr(node, "body", node)
        if not isinstance(node, Ratio) or not isinstance(node.numerator, Total):
            return None
        top, bottom = node.numerator, node.denominator
        if top.quantity == "one" or not isinstance(bottom, Total | Spread):
            return None
        if isinstance(bottom, Total) and bottom.quantity != "one":
            return None
        error = ABSOLUTE if top.quantity == ABSOLUTE_ERROR else SQUARED
        key = error, top.event, isinstance(bottom, Spread), bottom.event, power, node.empty
        return Atom(self._rows.setdefault(key, len(self._rows)))

    def _stack(self) -> None:
        """Write the atoms as masks over strata."""
        columns = self.strata.columns
        r = len(self._rows)
        top = np.zeros((r, SUMS, self.strata.size))
        below = np.zeros((r, self.strata.size))
        spread, power, empty = np.zeros(r, bool), np.ones(r), np.zeros(r)
        for i, (error, event, is_spread, rows_event, k, value) in enumerate(self._rows):
            top[i, error] = self.strata.mask(event, columns)
            below[i] = self.strata.mask(rows_event, columns)
            spread[i], power[i], empty[i] = is_spread, k, value
        self.has_spread = bool(spread.any())
        mix, shift = np.zeros((len(self.trees), r)), np.zeros(len(self.trees))
        self.bent = []  #: places of the trees that are not affine in atoms
        for j, tree in enumerate(self.trees):
            form = affine(tree)
            if form is None:
                self.bent.append(j)
                continue
            shift[j] = self.wanted[j].sign * form.pop(-1, 0.0)
            for i, coefficient in form.items():
                mix[j, i] = self.wanted[j].sign * coefficient
        arrays = {"top": top, "below": below, "power": power, "empty": empty}
        self._exact = {**arrays, "mix": mix, "shift": shift}
        for name, array in self._exact.items():
            tensor = torch.tensor(array, dtype=torch.get_default_dtype())
            self.register_buffer(f"{name}_", tensor, persistent=False)
        self.register_buffer("spread_", torch.tensor(spread), persistent=False)

    def _apply(self, fn: Any, recurse: bool = True) -> Any:
        """Follow to another device or type; what is widened is taken from the exact numbers."""
        super()._apply(fn, recurse)
        for name, array in self._exact.items():
            buffer = self.get_buffer(f"{name}_")
            if buffer.dtype == torch.float64:
                self._buffers[f"{name}_"] = torch.tensor(array).to(buffer.device)
        return self

    def _degrees(self) -> list[float]:
        """How each thing wanted grows with the errors, from h(t) = a tᵈ + b at t = 1, 2, 4."""
        rng = np.random.default_rng(0)
        c = torch.tensor(rng.uniform(0.5, 1.5, (SUMS, self.strata.size)))
        c[FIRST], c[SECOND] = 0.1 * c[FIRST], 4.0
        start = torch.tensor(rng.uniform(0.5, 1.5, self.start().numel()))
        readings = []
        for t in (1.0, 2.0, 4.0):
            scale = torch.tensor([[1.0], [t], [t * t], [t], [t * t]], dtype=c.dtype)
            readings.append(self.read(c * scale, start)[0])
        one, two, four = readings
        degrees = []
        for j in range(len(self.wanted)):
            first, second = float(two[j] - one[j]), float(four[j] - two[j])
            apart = first and second / first > 0
            degrees.append(min(max(math.log2(second / first), 0.0), 2.0) if apart else 0.0)
        return degrees

    # --- reading ---------------------------------------------------------------------------------

    @property
    def constraints(self) -> list[str]:
        """The constraint that each multiplier belongs to."""
        return [w.text for w in self.wanted[1:]]

    def start(self) -> Tensor:
        """The adversaries' weights to start from: all alike."""
        parts = [torch.full((stop - at,), 1.0 / (stop - at)) for at, stop, _ in self.slices]
        return torch.cat(parts) if parts else torch.zeros(0)

    def read(self, sums: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
        """(1 + m,) what is wanted small, 0 where not defined, and the items that are pressed."""
        atoms, defined = self._atoms(sums)
        mix, shift = self.mix_.to(sums.dtype), self.shift_.to(sums.dtype)
        empty = ((mix != 0) & ~defined).any(1)
        values = torch.where(empty, 0.0, mix @ torch.where(defined, atoms, 0.0) + shift)
        pressed = weights[:0].to(sums.dtype)
        if self.bent:
            env = Env(atoms, defined, weights.to(sums.dtype))
            entries = list(values.unbind())
            for j in self.bent:
                reading = self.trees[j].read(env)
                is_defined = torch.as_tensor(reading.defined, device=sums.device)
                entries[j] = torch.where(is_defined, self.wanted[j].sign * reading.value, 0.0)
            values = torch.stack(entries)
            if self.slices:
                pressed = torch.cat([env.pressed[at] for at, _, _ in self.slices])
        return values, pressed

    def stated(self, sums: Tensor) -> list[float]:
        """Objective and excess of each constraint as the goal states them."""
        # all weight on the worst item reads the maximum itself; inner ones come first
        weights = self.start().to(sums)
        for at, stop, sign in self.slices:
            items = self.read(sums, weights)[1][at:stop]
            weights[at:stop] = 1e-30  # and not 0: the item may be one that is not defined
            weights[at + int((sign * items).argmax())] = 1.0
        values = self.read(sums, weights)[0].tolist()
        return [-self.goal.sign * values[0], *values[1:]]

    def _atoms(self, sums: Tensor) -> tuple[Tensor, Tensor]:
        """(r,) the atoms, and where they are defined."""
        top, below, power, empty = (
            getattr(self, name).to(sums.dtype) for name in ("top_", "below_", "power_", "empty_")
        )
        tops = (top * sums).sum((1, 2))
        mass = below @ sums[WEIGHT].detach()
        bottom, filled = mass, mass > 0
        if self.has_spread:
            first, second = below @ sums[FIRST].detach(), below @ sums[SECOND].detach()
            spread = second - first * first / torch.where(filled, mass, 1.0)
            varies = spread > FLAT * second
            bottom = torch.where(self.spread_, spread, mass)
            filled = torch.where(self.spread_, varies, filled)
        bottom = torch.where(filled, bottom, 1.0)
        least = torch.where(self.spread_, bottom, bottom.clamp(min=LEAST))
        # the value is the error itself; its price is bounded where next to no rows are
        share = tops / least
        share = share + (tops / bottom - share).detach()
        positive = share > 0
        raised = torch.where(positive, torch.where(positive, share, 1.0) ** power, 0.0)
        return torch.where(filled, raised, empty), filled
