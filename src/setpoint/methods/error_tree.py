"""The nodes of a regression goal's tree: atoms, reductions, and which way each part pulls."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from setpoint.expressions import (
    Expression,
    Named,
    Number,
    Power,
    Product,
    Ratio,
    Reading,
    Sum,
    Total,
)
from setpoint.expressions.node import ATOM

PRESS = 5.0  #: weights answer what is worse now by exp(PRESS · how much), which calms the game


def apart(weights: Tensor, items: Tensor) -> Tensor:
    """How far each item lies above the weighed mean, in units of the largest."""
    return (items - (weights * items).sum()) / items.abs().max().clamp(min=1e-30)


class Env:
    """What a tree reads: atoms, where they are defined, and the weights of adversaries."""

    def __init__(self, values: Tensor, defined: Tensor, weights: Tensor) -> None:
        self.values, self.defined, self.weights = values, defined, weights
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
            held = torch.where(defined, values, 0.0)
            sign = 1.0 if self.how == "max" else -1.0
            share = weights * (PRESS * sign * apart(weights, held.detach())).exp()
            share = share / share.sum().clamp(min=1e-36)
            value = (share * held).sum()
            mean = (weights * held).sum()
            env.pressed[self.place] = torch.where(defined, values, mean).detach()
        elif self.how == "mean":
            held = torch.where(defined, values, 0.0)
            value = held.sum() / defined.sum().clamp(min=1)
        else:
            sign = 1.0 if self.how == "max" else -1.0
            held = torch.where(defined, sign * values, -math.inf).amax()
            value = sign * torch.where(some, held, 0.0)
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
