"""Eliminated: the exact reformulation with its auxiliary variables minimised out.

A row of class a that is decided d is worth u[a, d] = −∂L/∂C[a, d] at hard running totals, shifted
so that its worst decision is worth 0. For a fixed model the penalised problem is concave in each
sᵢ, so the best sᵢ is 0 or 1: the row either pays for its distance from the decision or gives the
decision up and pays what it is worth. What is left of both is a loss that is cut off,

    Σᵢ wᵢ Σ_d u[yᵢ, d] · min(−log p_d(xᵢ), κ),

for binary and multilabel tasks, p₁ being the probability of the logit. Among several classes the
worth of a decision is a sum over the *levels* u₁ >= u₂ >= … of the decisions of a row, best first:
it is u_l − u_{l+1} better to decide one of the first l than one of the rest. So each level has a
margin, and the loss of a row is

    Σ_l (u_l − u_{l+1}) · min(log(1 + exp(−m_l)), κ),   m_l = max first l z − max other z.

Where right is all that counts there is one level, the margin of the right class over the best
other; with two classes that is the cross-entropy of the logit z₁ − z₀. (A margin for each decision,
weighed by its u, was tried first: it pulls a row towards all decisions that are worth something at
once, and wrecks macro averages.) κ falls with the steps, from where nothing is given up; below
log 2 no row on the wrong side would be pulled at all. The costs are those of ``Costs``, up to a
common factor

    recall subject to precision >= α    u₊ : u₋ = 1 + λ (1 − α) : λ α
    precision subject to recall >= r    u₊ : u₋ = 1 − P + λ R / P : P    (P, R: now)
    F_β                                 u₊ : u₋ = 1 + β² − F : F

and the multipliers λ climb as there, on hard counts. A row that was given up answers no price, so
climbing alone overshoots; what is priced is therefore λ · exp(firmness · v), ahead of the climb by
as much as the constraint is broken now.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch
from torch import Tensor

from setpoint._core.arrays import exponential, is_tensor, where
from setpoint.methods.confusion.batch import Batch, cross_entropy_pull
from setpoint.methods.confusion.goal_over_cells import Few, Lowered
from setpoint.methods.costs import CHEAPEST, DEAREST, RIGHT, CostsProgram
from setpoint.programs import Priced

FIRMNESS = 16.0  #: by exp of so much per unit broken a constraint is dearer than its multiplier
FIRMEST = 2.0  #: but by no more than exp of this


class EliminatedProgram(CostsProgram):
    """Prices at hard totals, as costs on a loss that is cut off at κ.

    Parameters
    ----------
    lowered : Lowered
    reader : HardSteps or HardClasses
    start : list of float
        Multipliers to start from, one per constraint.
    method : Any
        With ``truncate`` (a Schedule, or None: nothing is given up), ``rate`` and ``floor`` as in
        ``Costs``.
    firmness : float
        How far prices run ahead of the multipliers, per unit broken; 0 for not at all.
    """

    def __init__(
        self,
        lowered: Lowered,
        reader: Any,
        start: list[float],
        method: Any,
        *,
        firmness: float = FIRMNESS,
    ) -> None:
        super().__init__(lowered, reader, start, method)
        self.firmness = float(firmness)
        self._margins = self.cells.task.kind == "multiclass"
        self._firm = self.firmness > 0 and len(start) > 0

    def price(self, totals: Any, multipliers: Any) -> Priced:
        if self._few is not None and isinstance(totals, np.ndarray):
            return self.priced(self._few, totals[0].tolist(), multipliers)
        if self._firm:
            violations = self.lowered.read(totals)[0][0, 1:]
            ahead = (self.firmness * violations).clip(-FIRMEST, FIRMEST)
            equal = self.lowered.equal_of(violations) > 0
            multipliers = where(equal, multipliers + ahead, multipliers * exponential(ahead))
        return super().price(totals, multipliers)

    def priced(self, few: Few, cells: list[float], multipliers: np.ndarray) -> Priced:
        """The same of one table, in plain numbers."""
        firm = multipliers.tolist()
        if self._firm:
            ahead = [_within(self.firmness * v, FIRMEST) for v in few.read(cells)[0][1:]]
            rows = zip(firm, ahead, few.equal, strict=True)
            firm = [x + a if equal else x * math.exp(a) for x, a, equal in rows]
        return self._price_few(few, cells, firm)

    def ascend(self, multipliers: Any, violations: Any, share: Any) -> Any:
        if self._few is None or is_tensor(multipliers):
            return super().ascend(multipliers, violations, share)
        pace, moved = self.method.rate * share, []  # the same in plain numbers
        rows = zip(multipliers.tolist(), violations.tolist(), self._few.equal, strict=True)
        for x, v, equal in rows:
            push = _within(pace * v, 1.0)
            dearer = min(max(x * math.exp(push), CHEAPEST), DEAREST)
            moved.append(_within(x + push, DEAREST) if equal else dearer)
        return np.array(moved)

    def pull(
        self, rows: Batch, memory: Any, prices: Any, on: Any, step: Tensor, scale: Any
    ) -> Tensor:
        truncate = self.truncate
        if not self._margins and (truncate is None or self._few is None or not rows.flat):
            return super().pull(rows, memory, prices, on, step, scale)
        least = 0.0 if truncate is None else on * exponential(-truncate.at(rows.small(step)))
        if not self._margins:
            return self._pull_cut(rows, prices[0].tolist() if on else RIGHT, scale, least)
        if isinstance(on, float) and not on:
            return rows.weighed(cross_entropy_pull(rows) * scale)
        worth = torch.as_tensor(prices.reshape(-1, self.cells.side) * scale).to(rows.logits)
        slope = by_margin(rows, worth, least)
        if isinstance(on, Tensor):  # whether it is on is known to the device alone
            slope = torch.where(on > 0, slope, cross_entropy_pull(rows) * scale)
        return rows.weighed(slope)

    def _pull_cut(self, rows: Batch, worth: Any, scale: float, least: float) -> Tensor:
        """One table on the host: u (p − y) while the right decision has a probability >= least."""
        tn, fp, fn, tp = (scale * x for x in worth)
        p, y = rows.p, rows.y
        gap = p - y
        slope = y * (tp - tn)
        slope += tn
        slope *= gap
        slope *= np.abs(gap) <= 1 - least
        if fp or fn:  # a mistake is worth something: y (1 − p) fn and so on, likewise cut off
            wrong = y * (fn - fp)
            wrong += fp
            gap += 2 * y
            gap -= 1  # p − (1 − y)
            wrong *= gap
            wrong *= np.abs(gap) <= 1 - least
            slope += wrong
        return rows.gradient(slope)


def _within(x: float, most: float) -> float:
    return min(max(x, -most), most)


def by_margin(rows: Batch, worth: Tensor, least: Any) -> Tensor:
    """Gradient of Σ_l (u_l − u_{l+1}) min(log(1 + exp(−m_l)), κ) in the logits, not weighed.

    Parameters
    ----------
    rows : Batch
        Of a multiclass task.
    worth : torch.Tensor
        (tables · K, K): u.
    least : float or torch.Tensor
        exp(−κ): decisions whose σ(m_l) is less are given up.

    Returns
    -------
    torch.Tensor
        (N, K).
    """
    level, order = worth.sort(dim=1, descending=True, stable=True)
    step, order = level[:, :-1] - level[:, 1:], order.index_select(0, rows.place)
    z = rows.logits.gather(1, order)  # (N, K) from the best decision to the worst
    best, inside = z[:, :-1].cummax(1)
    rest, outside = z[:, 1:].flip(1).cummax(1)
    outside = z.shape[1] - 1 - outside.flip(1)
    right = torch.sigmoid(best - rest.flip(1))  # (N, K − 1)
    pulled = step.index_select(0, rows.place) * (1 - right) * (right >= least)
    slope = torch.zeros_like(z).scatter_add_(1, order.gather(1, inside), -pulled)
    return slope.scatter_add_(1, order.gather(1, outside), pulled)
