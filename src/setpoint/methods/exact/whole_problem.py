"""The exact reformulation of a goal over all rows at once.

    minimise   F(C(s)) + λ R(θ, s)
    subject to v(C(s)) <= 0,   0 <= s <= 1,
               H(σ(z_θ(xᵢ) − τ), sᵢ) <= 0 or >= 0 or = 0 for every row i

over the weights θ, one membership sᵢ per row (one per class, on the simplex, of several classes)
and the threshold τ. C(s) are the confusion cells with s in place of decisions; they are exact where
every tie H is zero, and no step of a decision is ever replaced by a slope. F and v are the goal's,
constraints cleared of their divisors. R keeps scores away from the threshold, where s is free:

    relabel   Σ wᵢ [s·CE₁ + (1 − s)·CE₀] / P          each row is taught its own s
    trim      Σ wᵢ [y s·CE₁ + (1 − y)(1 − s)·CE₀] / P  rows that are given up are not taught at all

with CE_d the cross-entropy of deciding d, and P the mass of the rarest class. Of several classes a
class's score is its margin z_c − max z_other, and CE_c = softplus(−margin_c).

References
----------
Peng, Travadi, He, Cui, Sun, arXiv 2507.15240 (2025): the reformulation, its inequality form, the
regulariser (relabel). Trim, several classes and general goals are our own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from setpoint.goals import Goal, Task
from setpoint.methods.confusion.batch import take_batch
from setpoint.methods.confusion.confusion_cells import Cells
from setpoint.methods.confusion.goal_over_cells import Lowered
from setpoint.methods.exact.step_tie import apart, directions, exceeds, falls_short
from setpoint.programs import ConstrainedProblem

REGULARISERS = ("trim", "relabel", "none")
RELATIONS = ("auto", "inequality", "equality")


class WholeProblem:
    """All rows of a goal, as a problem over weights, memberships and a threshold.

    Parameters
    ----------
    goal : Goal
        With operating points lowered to constraints.
    task : Task
    outputs : callable
        From weights (a tuple of tensors) to the model's outputs on all rows.
    count : int
        Number of those tensors.
    first : torch.Tensor
        The outputs to start from; they give shape, type and device.
    target, weight, group
        As for a loss.
    regulariser : {"trim", "relabel", "none"}
    relation : {"auto", "inequality", "equality"}
        Auto: inequalities where the goal is monotone in a row's membership, equalities elsewhere.
    trained : bool
        Whether the threshold moves with the weights.
    """

    def __init__(
        self,
        goal: Goal,
        task: Task,
        outputs: Callable[[tuple[Tensor, ...]], Tensor],
        count: int,
        first: Tensor,
        target: Tensor,
        weight: Tensor | None = None,
        group: Any = None,
        *,
        regulariser: str = "trim",
        relation: str = "auto",
        trained: bool = True,
    ) -> None:
        self.goal = goal
        self.outputs = outputs
        self.count = count
        self.regulariser = regulariser
        self.trained = trained
        self.cells = Cells(task)
        self.lowered = Lowered(goal, self.cells).to(device=first.device)
        self.lowered.double()  # sums over all rows, not over a batch
        batch = take_batch(self.cells, first, target, weight, group)
        self.several = batch.logits.ndim == 2
        place = torch.as_tensor(batch.place, device=first.device).long()
        self.place = place
        self.side = self.cells.side
        n = len(place)
        kind = batch.logits.dtype
        self.weight = batch.logits.new_ones(n) if batch.weight is None else batch.weight
        self.places = self.cells.shape[0] * self.side
        wide = self.weight.double()
        self.mass = wide.new_zeros(self.places).index_add_(0, place, wide)
        self.whole = self.mass.sum() / self.cells.labels
        actual = place % self.side
        self.right = F.one_hot(actual, self.side).to(kind) if self.several else actual.to(kind)
        by_class = wide.new_zeros(self.side).index_add_(0, actual, wide)
        # what a row weighs in ties and regulariser: 1/P, of several classes 1 over the mean of P
        per = by_class.mean() if self.several else by_class[by_class > 0].min()
        self.unit = (wide / per).to(kind)
        self.sides = self._sides(relation)
        equal = [w.equal for w in self.lowered.wanted[1:]]
        self.kept = torch.tensor([not e for e in equal], device=place.device, dtype=torch.bool)
        #: by how much each constraint must hold, so that decisions hold it too
        self.margin = torch.zeros(len(equal), dtype=torch.float64, device=place.device)
        self._last: tuple[Any, list[int], Tensor | None] = ((), [], None)

    def _sides(self, relation: str) -> Tensor:
        """For each row 1 where s is at most the step, −1 at least, 0 equal."""
        if relation == "equality":
            return torch.zeros_like(self.place)
        sides = torch.as_tensor(directions(self.lowered), device=self.place.device)
        if relation == "inequality" and bool((sides == 0).any()):
            actual = torch.arange(self.places, device=sides.device) % self.side
            sides = torch.ones_like(sides) if self.several else 2 * (actual > 0).long() - 1
        return sides[self.place]

    # --- the parts of the problem ----------------------------------------------------------------

    def problem(self) -> ConstrainedProblem:
        """The problem over (θ…, s, τ)."""
        free = int(self.several)  # of several classes s is kept on the simplex, not in a box
        return ConstrainedProblem(
            objective=lambda x: self.values(x[-2])[0],
            constraints=self.constraints,
            equations=self.equations if bool((~self.kept).any()) else None,
            regulariser=None if self.regulariser == "none" else self.confidence,
            low=(*(None,) * self.count, None if free else 0.0, None),
            high=(*(None,) * self.count, None if free else 1.0, None),
            project=(lambda x: (*x[:-2], simplex(x[-2]), x[-1])) if free else None,
        )

    def equations(self, x: tuple[Tensor, ...]) -> Tensor:
        """What must be 0."""
        return self.values(x[-2])[1:][~self.kept].to(x[-2])

    def filled(self, s: Tensor) -> Tensor:
        """Cells (1, cells) per unit of mass, of memberships."""
        wide = s.double() * (self.weight[:, None] if self.several else self.weight)
        size = (self.places, self.side) if self.several else (self.places,)
        yes = wide.new_zeros(size).index_add(0, self.place, wide)
        cells = yes if self.several else torch.stack([self.mass - yes, yes], 1)
        return cells.reshape(1, -1) / self.whole

    def values(self, s: Tensor) -> Tensor:
        """F and v at memberships s, (1 + m,)."""
        return self.lowered.read(self.filled(s))[0][0]

    def constraints(self, x: tuple[Tensor, ...]) -> Tensor:
        """What must not be positive: v and the ties, (m + n,)."""
        values, margins = self.values(x[-2])[1:] + self.margin, self.margins(x)
        self._last = x, [part._version for part in x], margins
        ties = self.ties(margins, x[-2])
        return torch.cat([values[self.kept].to(ties), ties])

    def _known(self, x: tuple[Tensor, ...]) -> Tensor:
        """The margins that ``constraints`` has just made of the same x, once; or made anew."""
        variables, versions, margins = self._last
        self._last = (), [], None
        same = len(variables) == len(x) and all(a is b for a, b in zip(variables, x, strict=True))
        same = same and versions == [part._version for part in x]
        if margins is not None and same and margins.requires_grad == torch.is_grad_enabled():
            return margins
        return self.margins(x)

    def margins(self, x: tuple[Tensor, ...]) -> Tensor:
        """Scores that decide where positive: z − τ, or each class's margin over the others."""
        z = self.outputs(x[:-2])
        if not self.several:
            tau = x[-1] if self.trained else x[-1].detach()
            return z.reshape(-1) - tau
        best, second = z.topk(2, 1).values.unbind(1)
        first = z == best[:, None]
        return z - torch.where(first, second[:, None], best[:, None])

    def ties(self, margins: Tensor, s: Tensor) -> Tensor:
        """How far each row's s is from its step, by its side of the relation; (n,) >= 0."""
        a = torch.sigmoid(margins)
        more, less = exceeds(a, s, 0.5), falls_short(a, s, 0.5)
        if self.several:  # at most the step for the right class, at least for the wrong ones
            by_class = torch.where(self.right > 0, more, less).sum(1)
            ties = torch.where(self.sides > 0, by_class, apart(a, s, 0.5).sum(1))
        else:
            ties = more * (self.sides >= 0) + less * (self.sides <= 0)
        return ties

    def weights(self, price: float, tie: float) -> Tensor:
        """Penalty weights to start from, of constraints, ties and equations in turn."""
        inequalities, equations = int(self.kept.sum()), int((~self.kept).sum())
        full = torch.full_like(self.unit, price)
        parts = [full[:1].expand(inequalities), tie * self.unit, full[:1].expand(equations)]
        return torch.cat(parts)

    def confidence(self, x: tuple[Tensor, ...]) -> Tensor:
        """R(θ, s)."""
        m, s, y = self._known(x), x[-2], self.right
        if self.several:
            memberships = s * y if self.regulariser == "trim" else s
            each = (memberships * F.softplus(-m)).sum(1)
        else:
            yes, no = F.softplus(-m), F.softplus(m)
            if self.regulariser == "trim":
                each = y * s * yes + (1 - y) * (1 - s) * no
            else:
                each = s * yes + (1 - s) * no
        return (each * self.unit).sum()

    # --- what a solution looks like --------------------------------------------------------------

    def near(self, margins: Tensor, within: float) -> int:
        """Rows whose score is so near the threshold that s is hardly tied to it."""
        a = torch.sigmoid(margins)
        off = (a - 0.5).abs()
        return int(((off.amin(1) if self.several else off) < within).sum())


def simplex(s: Tensor) -> Tensor:
    """The nearest points with entries >= 0 that sum to 1, row by row."""
    ordered = s.sort(1, descending=True).values
    excess = (ordered.cumsum(1) - 1) / torch.arange(1, s.shape[1] + 1, device=s.device)
    last = (ordered > excess).sum(1, keepdim=True) - 1
    return (s - excess.gather(1, last)).clamp(min=0)
