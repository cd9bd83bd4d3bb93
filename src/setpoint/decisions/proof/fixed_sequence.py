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

import numpy as np

from setpoint._core.errors import Argument, GoalError
from setpoint.decisions.certify import examine, population_of, proves
from setpoint.decisions.proof.margin_path import (
    claims_before,
    joint_power,
    margin_path,
    unweighted_decisions,
)
from setpoint.decisions.proof.testing_order import threshold_order
from setpoint.decisions.quantities.from_expression import claims_of
from setpoint.expressions import Columns, Population, Sweep
from setpoint.expressions.rows.row_fingerprint import Fingerprint, refuse_seen
from setpoint.goals import Goal
from setpoint.rules.decision_rule import DecisionRule, choose, declared, groups_of
from setpoint.rules.goal_on_rows import GoalOnRows
from setpoint.rules.one_threshold import OneThreshold
from setpoint.rules.rule import Rule, RuleSearch
from setpoint.statistics import binomial as bounds

OTHER_REFERENCE = (
    "as reference; the order of the tests has to come from other rows, such as the training or "
    "the tune rows"
)
STEPS = 64  #: thresholds that are tested where each test takes its time


def prove_columns(
    goal: Goal,
    columns: Columns,
    reference: Columns,
    delta: float,
    search: RuleSearch,
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
        Rows that the candidates, their order and the first of them come from; other rows.
    delta : float
    search : RuleSearch
    weight_bound : float, optional
    """
    if not goal.constraints:
        raise GoalError(
            '"{goal}" has no constraint to prove; add one, or leave {argument} out',
            goal=str(goal),
            argument=Argument("prove"),
        )
    if search.rule.no_proof:
        raise GoalError(f"{search.rule.no_proof}, so a {search.rule.kind} rule proves nothing")
    rows, reference_rows = Fingerprint.of(columns), Fingerprint.of(reference)
    refuse_seen(rows, [reference_rows], "certify rows", OTHER_REFERENCE)
    walk = _walk_thresholds if search.rule.along_scores else _walk_rules
    columns = replace(columns, task=declared(goal, columns, [groups_of(goal, reference)]))
    chosen, passed, total = walk(goal, columns, reference, delta, search, weight_bound)
    decided = chosen.decided_columns(columns)
    tested = min(passed + 1, total) if passed else 0
    proof = examine(
        goal, chosen, decided, rows, delta, weight_bound, chosen_among=tested, candidates=total
    )
    problem = GoalOnRows.ground(goal, decided)
    point = problem.judge(decided)
    count = len(goal.constraints)
    return DecisionRule(
        point=chosen,
        goal=goal,
        feasible=point.feasible,
        value=point.value,
        rows=columns.size,
        held=problem.standings(point, [None] * count, [None] * count, [False] * count),
        search=f"fixed sequence: {passed:,} of {total:,} candidates proven",
        chosen_on=rows,
        certificate=proof,
        groups=groups_of(goal, columns),
        touched=[reference_rows],
    )


def _walk_thresholds(
    goal: Goal,
    columns: Columns,
    reference: Columns,
    delta: float,
    search: RuleSearch,
    weight_bound: float | None,
) -> tuple[Rule, int, int]:
    """The best proven threshold (or the first), how many were proven, of how many."""
    del search
    order = threshold_order(goal, reference, delta, columns.size)
    kind = np.asarray(columns.scores).dtype  # as the rule will compare them
    order = order.astype(kind)[np.r_[True, np.diff(order.astype(kind)) != 0]]
    sweep = Sweep(columns)
    claims = claims_of(goal, Population.of(columns, weight_bound))
    if not all(claim.pure_rates for claim in claims):
        few = np.linspace(0, order.size - 1, min(order.size, STEPS)).round()
        order = order[np.unique(few).astype(np.int64)]
        passed = 0
        for t in order:
            rule = OneThreshold(task=columns.task, threshold=float(t))
            if not proves(claims, rule.decided_columns(columns), delta):
                break
            passed += 1
        places = _places(sweep, order)
    else:
        places = _places(sweep, order)
        proven = np.ones(order.size, bool)
        for claim in claims:
            test = bounds.p_above if claim.op == ">=" else bounds.p_below
            for rate in claim.pure_rates:
                k, n = rate.along(sweep, places)
                p = test(np.round(k), np.round(n), rate.share(claim.asked))
                proven &= (p <= delta) & (n > 0)
        passed = order.size if proven.all() else int(np.argmin(proven))
    merit = GoalOnRows.ground(Goal(goal.sense, goal.objective), columns).scan(sweep).merit[places]
    best = 0 if passed == 0 else passed - 1 - int(np.argmax(merit[:passed][::-1]))
    rule = OneThreshold(task=columns.task, threshold=float(order[best]))
    return rule, passed, order.size


def _places(sweep: Sweep, thresholds: np.ndarray) -> np.ndarray:
    """The candidates of a sweep that decide the same rows as these thresholds."""
    known = sweep.thresholds.astype(np.float64)
    return np.searchsorted(-known, -thresholds.astype(np.float64), side="right") - 1


def _walk_rules(
    goal: Goal,
    columns: Columns,
    reference: Columns,
    delta: float,
    search: RuleSearch,
    weight_bound: float | None,
) -> tuple[Rule, int, int]:
    """The same along the path of margins, begun where a proof is most likely."""
    rules = [r.point for r in margin_path(goal, reference, search, delta, columns.size)]
    if not rules:  # not even the reference rows meet it: try what comes nearest
        rules = [choose(goal, reference, search).point]
    powers = []
    for rule in rules:
        decided = unweighted_decisions(rule, reference)
        claims = claims_before(goal, rule, decided)
        powers.append(joint_power(claims, decided, delta, columns.size))
    order = rules[max(range(len(rules)), key=powers.__getitem__) :]
    passed: list[Rule] = []
    for rule in order:
        decided = rule.decided_columns(columns)
        claims = claims_of(goal, population_of(rule, decided, weight_bound))
        if not proves(claims, decided, delta):
            break
        passed.append(rule)
    best = _best(goal, columns, passed) if passed else order[0]
    return best, len(passed), len(order)


def _best(goal: Goal, columns: Columns, proven: list[Rule]) -> Rule:
    """The proven rule with the best objective on these rows; of equals the boldest."""

    def merit(rule: Rule) -> float:
        decided = rule.decided_columns(columns)
        value = GoalOnRows.ground(Goal(goal.sense, goal.objective), decided).judge(decided).value
        return float("-inf") if value is None else goal.sign * value

    return max(reversed(proven), key=merit)
