"""Exact: the goal on hard decisions, with memberships as variables of their own.

    minimise F(C(s))  subject to  v(C(s)) <= 0,   s = 1{score > threshold} for every row,

where the last line is kept by an exact penalty on the tie H (``tie``) instead of being smoothed.
Three forms of the same problem:

    whole        all rows at once: weights, memberships and threshold together (``exact_whole``),
                 then exact line searches of the last layer (``walk``)
    table        batches, with a table of s by row number: 4 bytes a row (``exact_table``)
    eliminated   batches, s minimised out: prices at hard totals on a truncated loss
                 (``eliminated``; for curves ``anchors``); nothing is kept per row

A membership is best at 0 or 1, so what is exact here is the truncation: a row is either worth being
decided right or given up. After it scores are no probabilities, and hardly good at another
threshold.

References
----------
Peng, Travadi, He, Cui, Sun, Exact Reformulation and Optimization for Direct Metric Optimization in
Binary Imbalanced Classification, arXiv 2507.15240, 2025.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor

from setpoint._core.errors import KindError
from setpoint._core.options import choice, number, whole
from setpoint.goals import Goal, Task
from setpoint.methods.confusion.confusion_cells import Cells
from setpoint.methods.confusion.goal_over_cells import Lowered
from setpoint.methods.costs import Costs, hard_reader, settled_multipliers
from setpoint.methods.exact.curve_anchors import AnchorsProgram, anchors_objection
from setpoint.methods.exact.elimination import EliminatedProgram
from setpoint.methods.exact.membership_table import Tabled, TableProgram, table_program
from setpoint.methods.exact.whole_problem import REGULARISERS, RELATIONS
from setpoint.methods.method import LabelledOutputs, Method, Recovered, not_totals, ready
from setpoint.methods.rate_targets import curve_of
from setpoint.methods.soft_set import recovered
from setpoint.methods.training_hints import (
    MEMORY,
    FitSize,
    Phase,
    PortfolioPlace,
    Start,
    TrainingHints,
)
from setpoint.programs import StreamProgram
from setpoint.surrogates import Annealed, Schedule

FORMS = ("auto", "whole", "table", "eliminated")
THRESHOLDS = ("trained", "fixed")
INNER = ("penalty", "sqp")
START, END, SEVERAL = 8.0, 1.5, 1.0  #: κ at first, and in the end of two and of several classes
FALLING = 0.8  #: the share of the steps in which it falls
HARDENED = 0.8  #: share of the epochs in which the forms for batches harden: as κ falls
WHOLE = 200_000  #: rows up to which the problem is solved over all of them at once
RAREST = 400  #: rows of the rarest class that totals remember: hard counts of fewer are too coarse
FEATURES = 64  #: so many columns of numbers alone look like the features of a frozen network


@dataclass(frozen=True)
class Exact(Method):
    """The goal on hard decisions, by memberships that an exact penalty ties to them.

    Parameters
    ----------
    form : {"auto", "whole", "table", "eliminated"}
        Auto is the whole form where a fit holds all rows, the eliminated one as a loss.
    regulariser : {"trim", "relabel", "none"}
        What keeps scores away from the threshold. Trim leaves rows alone that were given up;
        relabel, the paper's, teaches them the other class, which spoils the ranking; without one
        scores gather at the threshold, where they are tied to nothing.
    relation : {"auto", "inequality", "equality"}
        How memberships are tied to decisions. Auto: by inequalities where the goal is monotone.
    threshold : {"trained", "fixed"}
        Of the whole form: trained with the weights and in the end the best one on the rows it was
        trained on, or kept where it starts.
    power : {1, 2}
        Of the penalty: 1 is exact at a finite weight, 2 the quadratic one for comparison.
    solver : {"penalty", "sqp"}
        Of the whole form: gradient steps on the penalty, or after them rounds of BFGS-SQP, which
        solve the ties to rounding with a quadratic program in all rows at each step: for linear
        models and other small ones of two classes, up to 2,000 rows.
    rounds, steps : int
        Of the whole form: rounds of the penalty and steps in each.
    rate : float, optional
        Its learning rate for the weights; 0.01 for a linear model, 0.003 otherwise.
    rate_s : float, optional
        And for the memberships: 0.05 in the whole form, 0.3 a visit in the table.
    tie, price, growth : float
        Penalty weights to start from, of the ties (over the mass of the rarest class) and of the
        goal's constraints, and their growth by round where they are broken.
    confidence, confidence_cap : float
        Weight of the regulariser (over the mass of the rarest class), at first and in the end.
    walks : int
        Exact line searches of the last layer after the penalty, on the hard goal itself.
    starts : int
        Random last layers that walk as well, beside the trained one.
    anneal : int
        Steps in which the table and the eliminated form harden; a fit takes its own number.
    truncate : None, float or Schedule
        Of the eliminated form: κ, the loss at which a row is given up; from 8 to 1.5 by default,
        to 1 of several classes.
    dual : float
        Of the table and the eliminated form: how fast a broken constraint gets dearer, as in
        ``Costs``.
    floor : float
        Of the eliminated form: least worth of a right decision, relative to the mean.
    multipliers : sequence of float, optional
        Of the table and the eliminated form: where to start, one per constraint; 1 by default.
    anchors : int
        Of a curve: thresholds along it that it is trained at.
    rows : int, optional
        Of the table: the rows of the data. Batches come with their numbers, ``row=``.
    table : path, optional
        A file that holds the table; in memory otherwise.

    Examples
    --------
    >>> import torch, setpoint as sp
    >>> loss = sp.GoalLoss("maximize recall subject to precision >= 0.9", Exact(anneal=100))
    >>> logits = torch.zeros(4, requires_grad=True)
    >>> loss(logits, torch.tensor([1, 0, 0, 1])).backward()
    >>> logits.grad
    tensor([-0.1250,  0.1250,  0.1250, -0.1250])
    """

    form: str = "auto"
    regulariser: str = "trim"
    relation: str = "auto"
    # of the whole form
    threshold: str = "trained"
    power: int = 1
    solver: str = "penalty"
    rounds: int = 40
    steps: int = 40
    rate: float | None = None
    rate_s: float | None = None
    tie: float = 0.1
    price: float = 1.0
    growth: float = 1.2
    confidence: float = 0.2
    confidence_cap: float = 2.0
    walks: int = 600
    starts: int = 0
    # of the forms for batches: eliminated and table
    anneal: int = 1000
    truncate: float | Schedule | None = None
    dual: float = 4.0
    floor: float = 0.02
    multipliers: Sequence[float] | None = None
    anchors: int = 20
    # of the table
    rows: int | None = None
    table: str | os.PathLike[str] | None = None

    name = "exact"
    summary = "memberships as variables, tied to hard decisions by an exact penalty; no smoothing"
    hints = TrainingHints(
        start=Start.CROSS_ENTROPY,
        half_threshold=True,
        learning_rate=3e-3,  # of the forms for batches
        hardening=HARDENED,
    )

    def __post_init__(self) -> None:
        for name, known in (
            ("form", FORMS),
            ("regulariser", REGULARISERS),
            ("relation", RELATIONS),
            ("threshold", THRESHOLDS),
            ("solver", INNER),
        ):
            choice(name, getattr(self, name), known)
        choice("power", self.power, (1, 2))
        counts = {"rounds": 1, "steps": 1, "walks": 0, "starts": 0, "anneal": 1, "anchors": 1}
        for name, least in {**counts, **({} if self.rows is None else {"rows": 1})}.items():
            count = whole(name, getattr(self, name), least, floats=True, error=KindError)
            object.__setattr__(self, name, count)
        for name in ("rate", "rate_s", "tie", "price"):
            if name in ("tie", "price") or getattr(self, name) is not None:
                number(name, getattr(self, name), 0, open_low=True, error=KindError)
        number("growth", self.growth, 1, error=KindError)
        for name in ("confidence", "confidence_cap", "dual"):
            number(name, getattr(self, name), 0, error=KindError)
        settled = self._costs(END)  # refuses what costs refuse
        object.__setattr__(self, "multipliers", settled.multipliers)

    def _costs(self, end: float) -> Costs:
        """The costs that the eliminated form puts on a loss cut off at κ, which falls to an end."""
        kappa = self.truncate
        if kappa is None:
            kappa = Annealed(START, end, max(1, round(FALLING * self.anneal)))
        return Costs(kappa, self.dual, self.floor, self.multipliers)

    @property
    def _tabled(self) -> Tabled:
        """The options of the table."""
        if self.rows is None:
            raise KindError(
                'form="table" keeps a number for each row: say how many there are, rows=len(y), '
                "and pass row= with the number of each row of a batch"
            )
        return Tabled(
            rows=int(self.rows),
            steps=self.anneal,
            rate_s=0.3 if self.rate_s is None else self.rate_s,
            regulariser=self.regulariser,
            relation=self.relation,
            table=self.table,
            rate=self.dual / 2,  # its counts are of one moment, and answer sooner
            multipliers=self.multipliers,
        )

    def state_options(self) -> dict[str, Any]:
        form = "eliminated" if self.form == "auto" else self.form  # what auto is, as a loss
        return {"form": form, "anchors": self.anchors}

    def objection(self, goal: Goal, task: Task) -> str | None:
        if curve_of(goal) is None:
            return not_totals(goal, task)
        if self.form in ("whole", "table"):
            return f'"{goal}" is trained at thresholds along a curve, form="eliminated"'
        return anchors_objection(goal, task)

    def lower(self, goal: Goal, task: Task) -> StreamProgram:
        if curve_of(goal) is not None:
            ready(self, goal, task)
            return AnchorsProgram(goal, task, replace(self, truncate=self._costs(END).truncate))
        goal = ready(self, goal, task)
        if self.form == "table":
            return table_program(goal, task, self._tabled)
        lowered = Lowered(goal, Cells(task))
        if self.form == "whole":
            raise KindError(
                'form="whole" takes all rows at once, which a loss never has: fit a GoalClassifier '
                'with method="exact", or train batches with form="table" or form="eliminated"'
            )
        costs = self._costs(SEVERAL if task.kind == "multiclass" else END)
        reader = hard_reader(lowered.cells)
        return EliminatedProgram(lowered, reader, costs.started(lowered), costs)

    def schedule(self, goal: Goal, task: Task, size: FitSize) -> tuple[Phase, ...]:
        """All rows at once where they are few vectors of numbers, else batches that harden."""
        form = self.form
        if form == "auto":
            few = size.rows <= WHOLE and size.tabular and size.processes == 1
            form = "whole" if few and curve_of(goal) is None else "eliminated"
        rows = size.rows if form == "table" else self.rows
        method = replace(self, form=form, anneal=size.steps, rows=rows)
        hints = self.hints
        if curve_of(goal) is not None:  # thresholds along it follow the scores
            hints = replace(hints, half_threshold=False)
        if task.kind != "multilabel":
            memory = max(MEMORY, int(RAREST * size.rows / size.rarest))
            hints = replace(hints, memory=memory)
        return (Phase(method=method, name=self.name, hints=hints, on_all_rows=form == "whole"),)

    def at_threshold(
        self, goal: Goal, task: Task, rows: LabelledOutputs, threshold: float
    ) -> Method:
        if self.multipliers is not None:
            return self
        settled = settled_multipliers(goal, task, rows, threshold)
        return replace(self, multipliers=settled) if settled else self

    def portfolio_place(self, goal: Goal, numbers: int) -> PortfolioPlace:
        light = replace(self, rounds=20, steps=30, walks=200)  # it is fitted on every fold
        reason = f"{numbers} columns of numbers look like features of another model"
        return PortfolioPlace(method=light, reason=reason if numbers >= FEATURES else "")

    def recover(self, program: StreamProgram, totals: Tensor, multipliers: Tensor) -> Recovered:
        if isinstance(program, AnchorsProgram):
            return program.recovered(totals.double().cpu().numpy())
        if isinstance(program, TableProgram):
            return program.recovered(totals, multipliers)
        return recovered(program, totals, multipliers)


def whole_form(x: Method | None) -> Exact:
    """An exact method in its form for all rows at once; the defaults for None."""
    method = Exact() if x is None else x
    if not isinstance(method, Exact):
        raise KindError(f"method={x!r}: an Exact with its options, or None")
    return replace(method, form="whole")
