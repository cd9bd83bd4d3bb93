"""SP104 and SP105: enough positives to say anything, and a threshold that stays where it is."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from setpoint._core.errors import DataError
from setpoint.decisions import DecisionRule
from setpoint.expressions import Columns
from setpoint.reports.checks.check_record import Check, CheckName
from setpoint.reports.checks.column_samples import chance
from setpoint.reports.report_inputs import ScoredRows
from setpoint.rules.goal_on_rows import GoalOnRows
from setpoint.rules.one_threshold import OneThreshold, best_threshold

SP104 = CheckName("SP104", "Enough positives")
SP105 = CheckName("SP105", "A threshold that stays where it is")
FEW = {"certify": 30}  #: rows of the rarer class that a part should have
FEW_ELSEWHERE = 50
DRAWS, WORK = 40, 400_000  #: resamples, and rows sorted in all of them together
MOVES = 0.05  #: standard error of the objective from which a person should look


def few_positives(parts: Mapping[str, tuple[int, int | None]]) -> Check:
    """See that every part holds enough rows of the rarer class.

    Parameters
    ----------
    parts : mapping of str to (rows, positives)
        As in :class:`setpoint.reports.RunFacts`; positives None where the task is not binary.
    """
    counted = {name: (rows, hits) for name, (rows, hits) in parts.items() if hits is not None}
    if not counted:
        return SP104.not_applicable("The task is not binary.")
    rarer = {name: min(hits, rows - hits) for name, (rows, hits) in counted.items()}
    listed = ", ".join(f"{name} {n:,}" for name, n in rarer.items())
    short = [name for name, n in rarer.items() if n < FEW.get(name, FEW_ELSEWHERE)]
    if not short:
        return SP104.passed(f"Rows of the rarer class: {listed}.")
    wanted = " and ".join(f"{name} {FEW.get(name, FEW_ELSEWHERE)}" for name in short)
    return SP104.look(
        f"Rows of the rarer class: {listed}. Below about {wanted} figures and thresholds are "
        "mostly chance; label more of them.",
    )


def unstable_threshold(scored: ScoredRows, rule: DecisionRule, seed: int = 0) -> Check:
    """See how far the threshold, and the objective with it, moves when some rows are others.

    With folds, one is left out at a time (jackknife); without, rows are drawn again with
    replacement. The threshold is chosen anew each time and the objective read on all rows.

    Parameters
    ----------
    scored : ScoredRows
        The rows that the threshold was chosen on, or rows like them.
    rule : DecisionRule
    seed : int
    """
    if not rule.point.along_scores:
        return SP105.not_applicable("The rule is not a single threshold.")
    if rule.goal.lowered.objective.needs() <= {"scores"} and not rule.goal.constraints:
        return SP105.not_applicable("The goal judges the ranking, not a threshold.")
    columns = scored.decided_by(rule)
    problem = GoalOnRows.ground(rule.goal.lowered, columns)
    value = problem.judge(columns).value
    folds = None if scored.fold is None else np.asarray(scored.fold)
    parts = _left_out(folds) if folds is not None else _drawn(columns.size, seed)
    thresholds = [t for t in (_chosen(problem, columns, rows) for rows in parts) if t is not None]
    values = [v for v in (_value(problem, columns, rule, t) for t in thresholds) if v is not None]
    if value is None or len(values) < 3:
        return SP105.not_applicable("Too few rows to choose the threshold again.")
    spread = _spread(np.array(values), folds is not None)
    scale = 1.0 if max(map(abs, [value, *values])) <= 1 else max(abs(value), 1e-12)
    how = "leaving out one fold at a time" if folds is not None else "on rows drawn again"
    finite = [t for t in thresholds if np.isfinite(t)] or [np.inf]
    sentence = (
        f"Chosen anew {how}, the threshold is {min(finite):.4g} to {max(finite):.4g} and "
        f"{problem.goal.objective} {min(values):.4g} to {max(values):.4g} on all rows "
        f"(standard error {spread:.3g})"
    )
    if spread <= MOVES * scale:
        return SP105.passed(f"{sentence}.")
    return SP105.look(
        f"{sentence}. Another sample would give another rule; more rows would help.",
    )


def _left_out(folds: np.ndarray) -> list[np.ndarray]:
    return [np.flatnonzero(folds != f) for f in np.unique(folds)]


def _drawn(size: int, seed: int) -> list[np.ndarray]:
    random = chance(seed)
    draws = int(np.clip(WORK // size, 10, DRAWS))
    return [random.integers(0, size, size) for _ in range(draws)]


def _chosen(problem: GoalOnRows, columns: Columns, rows: np.ndarray) -> float | None:
    """The threshold that these rows would have chosen."""
    try:
        return best_threshold(replace(problem, columns=columns.take(rows)))[1]
    except DataError:  # a class is missing
        return None


def _value(problem: GoalOnRows, columns: Columns, rule: DecisionRule, t: float) -> float | None:
    moved = OneThreshold(task=rule.task, threshold=t)
    return problem.judge(moved.decided_columns(columns)).value


def _spread(values: np.ndarray, jackknife: bool) -> float:
    """The standard error: of leaving out one of K, √((K−1)/K Σ(v − v̄)²); else the deviation."""
    if jackknife:
        k = len(values)
        return float(np.sqrt((k - 1) / k * ((values - values.mean()) ** 2).sum()))
    return float(values.std(ddof=1))
