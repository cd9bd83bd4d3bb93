"""`plan`: how many labelled rows a proof would take, from rows that are already labelled."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from setpoint._core.errors import DataError, GoalError, KindError
from setpoint._core.json_codec import to_json
from setpoint._core.options import is_real
from setpoint.decisions.proof.margin_path import claims_before, margin_path, unweighted_decisions
from setpoint.decisions.proof.power import POWER, bound_at, rows_needed
from setpoint.decisions.quantities.quantity import Quantity
from setpoint.decisions.quantities.rate import Rate
from setpoint.decisions.quantities.row_states import ROWS
from setpoint.expressions import Columns, Expression, Label, Task, take_in
from setpoint.goals import Goal, check
from setpoint.rules.decision_rule import DecisionRule, choose
from setpoint.rules.goal_on_rows import refuse_one_class
from setpoint.rules.rule import Rule, RuleSearch
from setpoint.rules.table import kind_for
from setpoint.statistics.binomial import check_confidence

_SPREAD = np.array([0.1, 1.0, 10.0])  #: sizes of fresh rows that margins are laid out for
SIZES = (100, 200, 500, 1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000, 200_000, 500_000)


@dataclass(frozen=True)
class Need:
    """What one constraint takes.

    Attributes
    ----------
    constraint : str
    value : float or None
        On the rows of the plan.
    rows : int or None
        Fresh labelled rows that prove it with the power of the plan; None where none would.
    of_them : int or None
        How many of those would have a say.
    who : str
        Who has a say: "positives", "rows decided positive", …
    bounds : tuple of (int, float or None)
        The tightest bound that so many rows would prove.
    why : str
        Why no number of rows would do; empty where one does.
    """

    constraint: str
    value: float | None
    rows: int | None
    of_them: int | None
    who: str
    bounds: tuple[tuple[int, float | None], ...]
    why: str = ""

    def __str__(self) -> str:
        value = "empty" if self.value is None else f"{self.value:.4g}"
        if self.rows is None:
            return f"{self.constraint} ({value} here): no number of rows, {self.why}"
        say = "" if self.of_them is None else f", about {self.of_them:,} {self.who} among them"
        return f"{self.constraint} ({value} here): about {self.rows:,} fresh rows{say}"


@dataclass(frozen=True)
class Option:
    """A rule on the way from safe to bold, and the fresh rows that would prove it."""

    point: str
    value: float | None
    rows: int


@dataclass(frozen=True)
class Plan:
    """How many labelled rows a proof would take.

    Attributes
    ----------
    goal : Goal
    confidence, power : float
    size : int
        Labelled rows the plan is made from.
    point : str
        The rule in words.
    needs : tuple of Need
        What the rule takes, constraint by constraint.
    options : tuple of Option
        Other rules, from the soonest proven to the boldest: what could be had for how many rows.
    """

    goal: Goal
    confidence: float
    power: float
    size: int
    point: str
    needs: tuple[Need, ...]
    options: tuple[Option, ...]

    @property
    def needed(self) -> int | None:
        """Fresh rows for every constraint of the rule; None where no number would do."""
        if any(need.rows is None for need in self.needs):
            return None
        return max(need.rows or 0 for need in self.needs)

    def best_with(self, rows: int) -> Option | None:
        """The boldest option that so many fresh rows would prove."""
        within = [option for option in self.options if option.rows <= rows]
        return within[-1] if within else None

    def __str__(self) -> str:
        lines = [
            f"{self.goal}",
            f"To prove it at {100 * self.confidence:g}% with power {self.power:g}, for the rule "
            f"{self.point}, going by {self.size:,} labelled rows:",
            *(f"  {need}." for need in self.needs),
        ]
        lines.append("These rows stand for the truth here, and flatter a rule chosen on them.")
        if self.options:
            lines.append(f"What fresh rows would buy ({self.goal.objective} on these rows):")
            lines += [f"  {_told(option)}" for option in thinned(self.options)]
        return "\n".join(lines)

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "goal": str(self.goal),
            "confidence": self.confidence,
            "power": self.power,
            "size": self.size,
            "operating_point": self.point,
            "needed": self.needed,
            "needs": to_json(self.needs),
            "options": to_json(self.options),
        }


def _told(option: Option) -> str:
    value = "empty" if option.value is None else f"{option.value:.4g}"
    return f"{option.rows:>9,} rows: {value} with {option.point}"


def thinned(options: tuple[Option, ...], most: int = 8) -> list[Option]:
    """Some of the options, the first and the last among them."""
    places = np.unique(np.linspace(0, len(options) - 1, min(most, len(options))).round())
    return [options[int(i)] for i in places]


def plan(
    goal: Goal | Expression | str,
    y_true: Any,
    scores: Any,
    *,
    rule: DecisionRule | None = None,
    confidence: float = 0.95,
    power: float = POWER,
    group: Any = None,
    task: Task | str | None = None,
    positive: Label = None,
    kind: str | None = None,
    by: str | None = None,
    head: Any = None,
    random_state: int = 0,
) -> Plan:
    """Say how many fresh labelled rows would prove a goal, going by rows already labelled.

    The rows of the plan (usually the tune split) stand for the truth. A rule that was tuned on them
    sits on its bounds, where no number of rows is enough: ``options`` shows what a margin buys.

    Parameters
    ----------
    goal : Goal, str or Expression
    y_true, scores : array-like
        As for :func:`tune`.
    rule : DecisionRule, optional
        Without it, the rule that ``tune`` chooses on these rows.
    confidence : float
    power : float
        The probability that the rows will prove it.
    group, task, positive, kind, by, head, random_state
        As for :func:`tune`; where a rule is given, task and kind are its own.

    Examples
    --------
    >>> import numpy as np, setpoint as sp
    >>> random = np.random.default_rng(0)
    >>> y = random.random(2000) < 0.3
    >>> scores = y + random.normal(size=2000) / 2
    >>> made = sp.plan("maximize recall subject to precision >= 0.9", y, scores)
    >>> made.best_with(1000).rows <= 1000
    True
    """
    delta = check_confidence(confidence)
    if not is_real(power) or not 0.5 <= power < 1:
        raise DataError(f"power is a number from 0.5 to below 1; got {power!r}")
    task = Task.make(task, positive) if rule is None else rule.task
    goal = check(Goal.of(goal), task).lowered
    if not goal.constraints:
        raise GoalError(f'"{goal}" has no constraint to prove; add one to plan for')
    if scores is None:
        raise KindError("scores must be an array with one entry per row; got None")
    columns = take_in(task, y_true, scores=scores, group=group).on_host()
    refuse_one_class(columns)
    if rule is None:
        kind_of_rule = kind_for(goal, task.kind, kind)
        search = RuleSearch(rule=kind_of_rule, by=by, head=head, seed=random_state)
    else:
        search = replace(rule.point.search_again(), seed=random_state)
        kind_for(goal, task.kind, search.rule.kind)  # the goal may be another than the rule's own
    return plan_columns(goal, columns, search, rule=rule, delta=delta, power=float(power))


def plan_columns(
    goal: Goal,
    columns: Columns,
    search: RuleSearch,
    *,
    rule: DecisionRule | None = None,
    delta: float,
    power: float = POWER,
) -> Plan:
    """:func:`plan` of rows that are checked and on the host.

    Parameters
    ----------
    goal : Goal
        Lowered, checked against the task, with a constraint.
    columns : Columns
        Labels and scores, of more than one class.
    search : RuleSearch
    rule, power
        As for :func:`plan`.
    delta : float
        1 − confidence.
    """
    if search.rule.no_proof:
        raise GoalError(f"{search.rule.no_proof}, so a {search.rule.kind} rule proves nothing")
    if rule is None:
        rule = choose(goal, columns, search)
    sizes = [columns.size] if search.rule.slow_search else _SPREAD * columns.size
    path = [
        option
        for size in sizes
        for option in margin_path(goal, columns, search, delta, max(int(size), 10))
    ]
    return Plan(
        goal=goal,
        confidence=1 - delta,
        power=power,
        size=columns.size,
        point=rule.operating_point(),
        needs=_needs(goal, rule.point, columns, delta, power),
        options=_options(goal, path, columns, delta, _each(power, goal)),
    )


def _each(power: float, goal: Goal) -> float:
    """The power of each constraint that gives all of them together the one asked for."""
    return 1 - (1 - power) / len(goal.constraints)


def _needs(
    goal: Goal, rule: Rule, columns: Columns, delta: float, power: float
) -> tuple[Need, ...]:
    needs = []
    decided = unweighted_decisions(rule, columns)
    power = _each(power, goal)
    for claim in claims_before(goal, rule, decided):
        found = claim.on(decided)
        op = claim.op
        rows = None
        if provable := op != "==" and found.exact:
            rows = rows_needed(found, op, claim.asked, delta, columns.size, power)
        single = isinstance(found, Rate) and rows is not None
        of_them = round(rows * found.n / columns.size) if single and rows else None  # type: ignore[union-attr]
        needs.append(
            Need(
                constraint=str(claim.constraint),
                value=found.value,
                rows=rows,
                of_them=of_them,
                who=found.claim.who if isinstance(found, Rate) else ROWS,
                bounds=tuple(
                    (n, bound_at(found, op, delta, columns.size, n, power) if provable else None)
                    for n in SIZES
                ),
                why="" if rows is not None else _why(found, op),
            )
        )
    return tuple(needs)


def _why(found: Quantity, op: str) -> str:
    if op == "==":
        return "an equality cannot be proven from a sample; state a range"
    if not found.exact:
        return "this metric has no exact bound"
    return "it does not hold with room to spare on these rows"


def _options(
    goal: Goal, path: list[DecisionRule], columns: Columns, delta: float, power: float
) -> tuple[Option, ...]:
    """The rules of the path that can be proven, without those that cost more and give less."""
    options = []
    for rule in path:
        decided = unweighted_decisions(rule, columns)
        each = [
            None
            if claim.op == "=="
            else rows_needed(claim.on(decided), claim.op, claim.asked, delta, columns.size, power)
            for claim in claims_before(goal, rule.point, decided)
        ]
        if None not in each and rule.value is not None:
            most = max(n for n in each if n is not None)
            options.append(Option(rule.operating_point(), rule.value, most))
    kept: list[Option] = []
    for option in sorted(options, key=lambda o: (o.rows, -goal.sign * (o.value or 0.0))):
        if not kept or goal.sign * (option.value or 0.0) > goal.sign * (kept[-1].value or 0.0):
            kept.append(option)
    return tuple(kept)
