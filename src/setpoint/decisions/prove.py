"""Choosing with proof: the boldest rule that the certify rows prove, by tests in a fixed order.

Rules r₁, r₂, … are laid out on reference rows. On the certify rows they are tested one after the
other, each at the full level δ, until the first that is not proven; all before it are (fixed
sequence, Maurer, Hothorn & Lehmacher 1995; Angelopoulos et al. 2021). Let rⱼ be the first in the
order that breaks a constraint: to prove it, or anything after it, rⱼ itself must be proven, and
that happens with probability at most δ. Several constraints must each be proven (intersection–
union). So of all rules tested the best may be taken, and nothing is paid for the choice.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from setpoint._core.errors import GoalError
from setpoint.decisions.applied import with_decisions
from setpoint.decisions.certify import examine, proves
from setpoint.decisions.choose import choose
from setpoint.decisions.fingerprint import Fingerprint
from setpoint.decisions.order import threshold_order
from setpoint.decisions.path import joint_power, margin_path
from setpoint.decisions.problem import Problem
from setpoint.decisions.rule import DecisionRule
from setpoint.expressions import Columns
from setpoint.goals import Goal


def prove(
    goal: Goal,
    columns: Columns,
    reference: Columns,
    delta: float,
    kind: str,
    by: str | None = None,
    head: Any = None,
    seed: int = 0,
    weight_bound: float | None = None,
) -> DecisionRule:
    """The best rule that is proven on the columns; without one, the one nearest to a proof.

    Parameters
    ----------
    goal : Goal
        Lowered, with at least one constraint.
    columns : Columns
        The certify rows: labels and scores, on the host.
    reference : Columns
        Rows that the candidates, their order and the first of them come from.
    delta : float
    kind, by, head, seed
        As for :func:`setpoint.decisions.choose.choose`.
    weight_bound : float, optional
    """
    if not goal.constraints:
        raise GoalError(f'"{goal}" has no constraint to prove; add one, or leave prove= out')
    if kind == "top-k":
        raise GoalError(
            "the first k of other rows are another rule, so a top-k rule proves nothing"
        )
    order = candidates(goal, reference, delta, columns.size, kind, by, head, seed)
    passed: list[DecisionRule] = []
    for rule in order:
        if not proves(goal, rule, with_decisions(rule, columns), delta, weight_bound):
            break
        passed.append(rule)
    chosen = _best(goal, columns, passed) if passed else order[0]
    rows = Fingerprint.of(columns)
    decided = with_decisions(chosen, columns)
    tested = min(len(passed) + 1, len(order)) if passed else 0
    proof = examine(goal, chosen, decided, rows, delta, weight_bound, chosen_among=tested)
    problem = Problem.ground(goal, decided)
    point = problem.judge(decided)
    count = len(goal.constraints)
    return replace(
        chosen,
        goal=goal,
        feasible=point.feasible,
        value=point.value,
        rows=columns.size,
        held=problem.held(point, [None] * count, [None] * count, [False] * count),
        search=f"fixed sequence: {len(passed)} of {len(order)} candidates proven",
        frontier=None,
        chosen_on=rows,
        certificate=proof,
    )


def candidates(
    goal: Goal,
    reference: Columns,
    delta: float,
    size: int,
    kind: str,
    by: str | None,
    head: Any,
    seed: int,
) -> list[DecisionRule]:
    """Rules in the order of their tests; from the reference rows and the number of certify rows."""
    if kind == "threshold":
        return threshold_order(goal, reference, delta, size)
    rules = margin_path(goal, reference, kind, by, head, seed)
    if not rules:
        return [choose(goal, reference, kind, by, head, seed)]  # the one that comes nearest
    powers = [joint_power(goal, rule, reference, delta, size) for rule in rules]
    start = max(range(len(rules)), key=powers.__getitem__)
    return rules[start:]


def _best(goal: Goal, columns: Columns, proven: list[DecisionRule]) -> DecisionRule:
    """The proven rule with the best objective on these rows; of equals the boldest."""

    def merit(rule: DecisionRule) -> float:
        decided = with_decisions(rule, columns)
        value = Problem.ground(Goal(goal.sense, goal.objective), decided).judge(decided).value
        return float("-inf") if value is None else goal.sign * value

    return max(reversed(proven), key=merit)
