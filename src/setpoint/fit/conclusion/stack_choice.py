"""The stack that decides: members weighed on out-of-fold outputs, or one of them alone.

Metric-driven members stay only if the rows tell the stack with them apart from the one without.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from setpoint._core.notes import Note, NoteCode
from setpoint.decisions import DecisionRule
from setpoint.decisions.proof.safety_margin import cautious
from setpoint.decisions.referee import Bout, Entrant, cross_decided
from setpoint.expressions import Columns
from setpoint.fit.conclusion.out_of_fold import OutOfFold
from setpoint.fit.conclusion.rule_choice import ranks_only
from setpoint.fit.conclusion.stack import Stack
from setpoint.rules.decision_rule import choose
from setpoint.rules.rule import RuleSearch
from setpoint.rules.table import kind_for

PORTFOLIO = "portfolio"
_MANY_CLASSES = 8  #: with more, the referee decides by argmax: offsets of every fold take too long


@dataclass(frozen=True, kw_only=True, eq=False)
class StackChoice:
    """Who decides, and its scores on the out-of-fold rows.

    Attributes
    ----------
    name : str
        As the comparison calls it.
    members : tuple of str
    stack : Stack
    scores : numpy.ndarray
    why : str
        What the comparison says of the choice; may be empty.
    left_out : dict
        Metric-driven members that are not in the stack, and why.
    notes : tuple of Note
    """

    name: str
    members: tuple[str, ...]
    stack: Stack
    scores: np.ndarray
    why: str = ""
    left_out: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()


def choose_stack(held: OutOfFold) -> StackChoice:
    """The stack of the plain members, with metric-driven ones or one member alone if better."""
    choice = held.choice
    names = tuple(n for n in choice.main if n in held.ran)
    driven = tuple(n for n in names if n in choice.driven)
    plain = tuple(n for n in names if n not in driven)
    if len(names) == 1:
        return _stack_choice(held, names[0], names)
    if not plain:
        return _stack_choice(held, PORTFOLIO, names)
    entrants = [entrant(held, PORTFOLIO, plain, choice.margin)]
    if driven:
        entrants.append(entrant(held, "with", names, choice.margin))
    trees = choice.trees
    if trees in plain and len(plain) > 1:
        entrants.append(entrant(held, "single", (trees,), choice.margin))
    bout = Bout.of(held.goal, entrants, held.fold, held.job.seed)
    members = plain
    left_out: dict[str, str] = {}
    notes: tuple[Note, ...] = ()
    if driven:
        gap = bout.difference("with", PORTFOLIO)
        better = gap.merit_low > 0
        members = names if better else plain
        span = f"{gap.merit:+.3f} [{gap.merit_low:+.3f}, {gap.merit_high:+.3f}]"
        code = NoteCode.DRIVEN_KEPT if better else NoteCode.DRIVEN_LEFT_OUT
        what = "kept" if better else "left out"
        words = f"{' and '.join(driven)}: {what}, the stack with it differs by {span}"
        notes = (Note(code, words, {"members": list(driven)}),)
        if not better:
            left_out = dict.fromkeys(driven, f"the stack with it differs by {span}")
    if members == plain and any(e.name == "single" for e in entrants):
        gap = bout.difference("single", PORTFOLIO)
        if gap.merit > bout.error("single", PORTFOLIO):
            why = f"{trees} alone is better than the stack here."
            return _stack_choice(held, trees, (trees,), why=why, left_out=left_out, notes=notes)
    return _stack_choice(held, PORTFOLIO, members, left_out=left_out, notes=notes)


def _stack_choice(
    held: OutOfFold, name: str, members: tuple[str, ...], **details: Any
) -> StackChoice:
    stack = held.stacked(members)
    scores = held.scores(stack)
    return StackChoice(name=name, members=members, stack=stack, scores=scores, **details)


def entrant(held: OutOfFold, name: str, members: Sequence[str], margin: float) -> Entrant:
    """Somebody who decides the held rows by rules of other folds."""
    columns = held.columns(held.rows, held.cross_scores(members), held.task_of(members))
    if ranks_only(held.goal):
        return Entrant(name, columns, "the ranking")
    decided = cross_decided(columns, held.fold, _chooser(held, margin))
    words = "threshold with margin" if margin != 0 and held.goal.constraints else "tuned"
    return Entrant(name, decided, words)


def _chooser(held: OutOfFold, margin: float) -> Callable[[Columns], DecisionRule]:
    goal, job = held.goal, held.job
    kind = kind_for(goal, held.task.kind, held.choice.kind)
    if len(held.task.classes or ()) > _MANY_CLASSES:
        kind = kind.quick_kind()
    by = next(iter(job.groups)) if kind.needs_group and job.groups else None
    search = RuleSearch(rule=kind, by=by, seed=job.seed)

    def rule_of(columns: Columns) -> DecisionRule:
        if margin == 0:
            return choose(goal, columns, search)
        rule, _ = cautious(goal, columns, search, margin=margin)
        return rule

    return rule_of
