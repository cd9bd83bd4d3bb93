"""Implicit: thresholds as functions of the scores, by the implicit function theorem.

    minimise  f(s, h(s)),     h(s): the thresholds λ at which g(s, λ) = 0,

f and g read on soft decisions σ(κ (s − λ)). The gradient needs no h: with the prices F = ∂f/∂C and
G = ∂g/∂C of cells, and μ from :mod:`setpoint.methods.balance`,

    d f(s, h(s)) / ds_i = Σ_t (F + μ G)_t[class of i] · κ m (1 − m) at s_i − λ_t .

It sums to zero over rows: moving every score alike changes nothing, since the thresholds follow.
Four sums a threshold (two cells, two densities) and the two classes' masses determine it, and they
add up over batches and processes. λ itself is corrected on unrelaxed rates
(:mod:`setpoint.methods.implicit.level_thresholds`), so that it is the operating point the goal speaks of.

References
----------
Kumar, Narasimhan, Cotter, Implicit Rate-Constrained Optimization of Non-decomposable Objectives,
ICML 2021. Its inequalities (§6.1) have a slack that is stepped; here the slack is solved for: the
threshold is the best that keeps every constraint, and only the one that stops it has a multiplier.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields, replace
from typing import Any

from setpoint._core.errors import KindError
from setpoint._core.reals import is_real
from setpoint._core.words import did_you_mean, listing
from setpoint.expressions import AtK
from setpoint.goals import Goal, Task, check, lower
from setpoint.methods.confusion.confusion_cells import Cells
from setpoint.methods.confusion.goal_over_cells import Lowered
from setpoint.methods.implicit.moving_thresholds import Moving, Shifts, Thresholds
from setpoint.methods.implicit.query_ranking import query_objection, query_program, query_recovered
from setpoint.methods.implicit_program import ImplicitProgram
from setpoint.methods.method import Method, Recovered, not_totals, ready
from setpoint.methods.rate_targets import aim_objection, aim_of, curve_of
from setpoint.programs import StreamProgram

#: options that thresholds by query have
QUERIED = ("sharpness", "correction", "cross_entropy")


@dataclass(frozen=True)
class Implicit(Method):
    """Train at the operating point itself: its threshold follows the scores.

    Parameters
    ----------
    sharpness : float
        κ of the soft step, per unit of a logit. Too low a κ is the main way to lose.
    points : int
        Thresholds along a curve (auroc, auprc), at the midpoints of as many bins.
    correction : {"exact", "soft"}
        "exact": thresholds from unrelaxed rates on pooled scores. "soft": from the soft rates of
        the batch itself, where the gradient is exactly that of f(s, h(s)).
    every : int
        Steps from one correction to the next.
    pool : int, optional
        Newest rows that thresholds are taken from; 0 for those of the batch alone. By default
        8,192, more for extreme levels.
    smooth : float
        Share of the old threshold kept at a correction, in [0, 1).
    follow : bool
        Whether thresholds of levels also move between corrections, by ⟨∇h, Δs⟩: whoever trains
        calls ``loss.follow(outputs)`` with the last batch's outputs after the optimiser's step.
    cross_entropy : float
        Share of cross-entropy mixed in, in [0, 1].
    regulariser : float
        ρ of ρ (∂g/∂λ)², λ held, which keeps scores away from the thresholds of levels, or from the
        one threshold of one constraint. The value of the loss leaves it out.
    by : str, optional
        A group column: one threshold for each of its groups, which then have to be known when a
        decision is made. Without, one threshold for all.
    share : float, optional
        k/n of goals on the first k of n rows.

    Notes
    -----
    Excess in ``loss.recover()`` is that of the soft rates; thresholds keep the exact ones.

    Examples
    --------
    >>> import torch
    >>> from setpoint import GoalLoss
    >>> loss = GoalLoss("minimize fnr_at_fpr(0.25)", Implicit(), memory=0, warmup=0)
    >>> scores = torch.tensor([0.0, 1.0, 2.0, 3.0, 2.5], requires_grad=True)
    >>> loss(scores, torch.tensor([0, 0, 0, 0, 1])).backward()
    >>> loss.recover().thresholds  # one of four negatives lies above
    (2.5,)
    """

    sharpness: float = 5.0
    points: int = 10
    correction: str = "exact"
    every: int = 10
    pool: int | None = None
    smooth: float = 0.0
    follow: bool = False
    cross_entropy: float = 0.0
    regulariser: float = 0.0
    by: str | None = None
    share: float | None = None

    name = "implicit"
    summary = "operating points and curves at thresholds that follow the scores"

    def __post_init__(self) -> None:
        if not is_real(self.sharpness) or not 0 < self.sharpness < math.inf:
            raise KindError(f"sharpness={self.sharpness!r}: a positive number")
        for name, least in (("points", 1), ("every", 1)):
            _check_whole(name, getattr(self, name), least)
        if self.pool is not None:
            _check_whole("pool", self.pool, 0)
        for name in ("cross_entropy", "smooth"):
            x = getattr(self, name)
            if not is_real(x) or not 0 <= x <= 1 or (x == 1 and name == "smooth"):
                raise KindError(f"{name}={x!r}: a share between 0 and 1")
        if not is_real(self.regulariser) or not 0 <= self.regulariser < math.inf:
            raise KindError(f"regulariser={self.regulariser!r}: a number, 0 or more")
        if self.correction not in ("exact", "soft"):
            hint = did_you_mean(str(self.correction), ("exact", "soft"), "exact or soft")
            raise KindError(f"correction={self.correction!r}: {hint}")
        if self.share is not None and (not is_real(self.share) or not 0 < self.share < 1):
            raise KindError(f"share={self.share!r}: k/n, a number between 0 and 1")
        if self.by is not None and not isinstance(self.by, str):
            raise KindError(f"by={self.by!r}: the name of a group column")

    def objection(self, goal: Goal, task: Task) -> str | None:
        if _by_query(goal, task):
            return query_objection(goal, task) or self._idle("by query", QUERIED)
        if self.by is not None and task.group_values(self.by) is None:
            declared = f'Task.{task.kind}(groups={{"{self.by}": …}})'
            return f'by="{self.by}": declare its values, {declared}'
        if self.by is not None and (task.kind != "binary" or curve_of(goal) is not None):
            return f'by="{self.by}": thresholds by group are for goals of decisions of binary tasks'
        why = aim_objection(goal, task, self.share)
        if why is None and curve_of(goal) is None:
            why = not_totals(goal, task)
            plain = task.kind == "binary" and self.by is None and len(lower(goal).constraints) == 1
            if why is None and self.regulariser and not plain:
                why = "regulariser is for one threshold and one constraint; leave it at 0"
        return why

    def _idle(self, what: str, used: tuple[str, ...]) -> str | None:
        """A sentence about options that would do nothing."""
        given = [f.name for f in fields(self) if getattr(self, f.name) != f.default]
        idle = [name for name in given if name not in used]
        return f"{listing(idle)}: thresholds {what} do not have it" if idle else None

    def lower(self, goal: Goal, task: Task) -> StreamProgram:
        if _by_query(goal, task):
            check(goal, task)
            return query_program(
                goal,
                task,
                sharpness=self.sharpness,
                correction=self.correction,
                cross_entropy=float(self.cross_entropy),
            )
        ready(self, goal, task)
        aim = aim_of(goal, task, int(self.points), self.share, several=self.by is not None)
        counted = {*aim.goal.columns, self.by}
        task = replace(task, groups=tuple(pair for pair in task.groups if pair[0] in counted))
        lowered = Lowered(aim.goal, Cells(task))
        tables, side, _ = lowered.cells.shape
        if task.kind == "multiclass":
            moving: Moving = Shifts(tables, side, self.sharpness)
        else:
            moving = Thresholds(_slots(lowered.cells, self.by), aim.count, self.sharpness)
        return ImplicitProgram(goal, lowered, moving, aim, self)

    def sized(self, goal: Goal, rows: int) -> Implicit:
        """The same with ``share`` of k in so many rows, where the goal is about the first k."""
        leaf = curve_of(goal)
        if not isinstance(leaf, AtK) or self.share is not None:
            return self
        return replace(self, share=min(leaf.k, rows - 0.5) / rows)

    def recover(self, program: StreamProgram, totals: Any, multipliers: Any) -> Recovered:
        if not isinstance(program, ImplicitProgram):
            return query_recovered(totals)
        return program.recovered(totals.double().cpu().numpy())


def _by_query(goal: Goal, task: Task) -> bool:
    return task.kind == "ranking" or getattr(curve_of(goal), "by", None) == "query"


def _slots(cells: Cells, by: str | None) -> tuple[int, ...]:
    """Of each table, its threshold: its group's, its label's, or the one there is."""
    if by is None:
        return tuple(t % cells.labels for t in range(cells.shape[0]))
    at = [name for name, _ in cells.task.groups].index(by)
    values = dict(cells.task.groups)[by]
    return tuple(values.index(group[at]) for group in cells.groups)


def _check_whole(name: str, x: Any, least: int) -> None:
    if not is_real(x) or not least <= x < math.inf or x % 1:
        raise KindError(f"{name}={x!r}: a whole number, {least} or more")
