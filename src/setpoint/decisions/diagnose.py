"""`diagnose`: why a goal cannot be met, or what it costs; and what could be had instead."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from setpoint._core.errors import DataError, FileError, KindError, SetpointError
from setpoint._core.json_codec import Record
from setpoint._core.options import is_real
from setpoint._core.words import listing
from setpoint.decisions.proof.power import POWER
from setpoint.decisions.quantities.row_states import ROWS
from setpoint.decisions.sensitivity.provable_goal import (
    LabelsNeeded,
    Outlook,
    Provable,
    outlook,
)
from setpoint.decisions.sensitivity.relaxations import (
    ALONE,
    NearestGoal,
    caps_of,
    nearest_goals,
    said,
)
from setpoint.decisions.sensitivity.shadow_price import Price, prices
from setpoint.decisions.sensitivity.value_function import (
    ENOUGH,
    Along,
    Landscape,
    Searched,
    landscape,
)
from setpoint.expressions import Columns, Expression, Label, Task, take_in
from setpoint.goals import Goal, check
from setpoint.rules.decision_rule import DecisionRule, choose
from setpoint.rules.goal_on_rows import refuse_one_class
from setpoint.rules.rule import RuleSearch
from setpoint.rules.table import kind_for
from setpoint.rules.tradeoff_curve import Frontier
from setpoint.statistics.binomial import check_confidence

# What was found out about a goal: as data, in words, and as JSON.


FEASIBLE, NOT_FEASIBLE = "FEASIBLE", "NOT FEASIBLE"
FORMAT = "setpoint diagnosis 1"
_HEAD, _LABEL = 15, 19  #: columns of the printed block


@dataclass(frozen=True)
class Diagnosis(Record):
    """Whether a goal can be met on some rows, at which price, and what could be had instead.

    Attributes
    ----------
    goal : Goal
    kind : str
        The kind of rule.
    rows, fresh : int
        Rows looked at; fresh rows that a proof would have.
    weighted : bool
    confidence, power : float
        Of a proof.
    feasible : bool
    reason : str
        Why it is not; empty where it is.
    point : str
        The rule that meets it, or comes nearest, in words.
    value : float or None
        The objective there; None where it is an empty rate.
    sides : tuple of float or None
        What each constraint bounds, there.
    behind : int
        Rows under the smallest rate of the goal, there.
    binding : tuple of str
        The constraints that cost something; where the goal is not met, those that stand in its way.
    prices : tuple of Price
        At the bounds asked for; where they are not met, at those of the first of ``nearest``.
    nearest : tuple of NearestGoal
        Goals that are met on these rows; empty where the goal is.
    provable : Provable or None
        The nearest goal that fresh rows would prove.
    labels : tuple of LabelsNeeded
        Rows that would prove the goal (or the first of ``nearest``), and one between that and
        ``provable``.
    unproven : str
        Why nothing is said about proofs; empty where it is.
    frontier : Frontier or None
        The trade-off along one threshold.
    """

    goal: Goal
    kind: str
    rows: int
    fresh: int
    weighted: bool
    confidence: float
    power: float
    feasible: bool
    reason: str
    point: str
    value: float | None
    sides: tuple[float | None, ...]
    behind: int
    binding: tuple[str, ...]
    prices: tuple[Price, ...]
    nearest: tuple[NearestGoal, ...]
    provable: Provable | None
    labels: tuple[LabelsNeeded, ...]
    unproven: str
    frontier: Frontier | None

    def facts(self) -> list[tuple[str, str]]:
        """Pairs of a label and a sentence, the verdict first."""
        return [*_goal_facts(self), *self.proof_facts()]

    def proof_facts(self) -> list[tuple[str, str]]:
        """The nearest goal that can be proven, and the rows that a proof takes."""
        return _proof_facts(self)

    def lines(self) -> list[str]:
        """The same as a block of text."""
        (verdict, first), *rest = self.facts()
        lines, before = [f"{verdict:<{_HEAD}}{first}"], None
        for label, words in rest:
            shown = "" if label == before else label
            lines.append(f"{'':<{_HEAD}}{shown:<{_LABEL}}{words}")
            before = label
        return lines

    def __str__(self) -> str:
        return "\n".join([str(self.goal), *self.lines()])

    # --- files -------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """Plain data that :meth:`from_json` reads back; goals stand as text."""
        return {"format": FORMAT, **super().to_json(), "goal": str(self.goal)}

    @classmethod
    def from_json(cls, data: Any) -> Diagnosis:
        """Read what :meth:`to_json` wrote."""
        if not isinstance(data, Mapping) or data.get("format") != FORMAT:
            raise FileError(f'this is not a diagnosis: it lacks "format": "{FORMAT}"')
        strange = set(data) - {"format", *(field.name for field in fields(cls))}
        try:
            if strange:
                raise FileError(f"it holds {', '.join(sorted(strange))} too")
            return super().from_json(data)
        except SetpointError as error:
            raise FileError(f"this diagnosis is damaged: {error}. Diagnose again") from error


# --- words --------------------------------------------------------------------------------------


def _goal_facts(found: Diagnosis) -> list[tuple[str, str]]:
    """Whether the goal is met, what is near, what binds, and what it costs."""
    rows = [_verdict(found)]
    if found.feasible and found.behind < ENOUGH and found.goal.constraints:
        rows.append(("few rows", _thin(found)))
    rows += [("nearest reachable", _near(found.goal, near)) for near in found.nearest]
    if found.binding:
        rows.append(("binding", listing(found.binding)))
    for price in found.prices:
        label = "price" if found.feasible else "price there"
        rows += [(label, words) for words in price.sentences()]
    return rows


def _verdict(found: Diagnosis) -> tuple[str, str]:
    on = f"on {found.rows:,} rows"
    if not found.feasible:
        return NOT_FEASIBLE, f"{found.reason} ({on})."
    value = f"{found.goal.objective} {said(found.value)}"
    if not found.goal.constraints:
        return FEASIBLE, f"{value} {on}, {found.point}; without a constraint nothing is infeasible."
    pairs = zip(found.goal.constraints, found.sides, strict=True)
    held = listing(f"{c.left} {said(side)}" for c, side in pairs)
    return FEASIBLE, f"{value} with {held} {on}, {found.point}."


def _thin(found: Diagnosis) -> str:
    noun = "row" if found.behind == 1 else "rows"
    return f"the smallest rate rests on {found.behind} {noun}, and can be another on others"


def _near(goal: Goal, near: NearestGoal) -> str:
    rows = f"{near.behind:,} row{'' if near.behind == 1 else 's'} behind it"
    there = f"{goal.objective} {said(near.value)} ({rows})"
    if len(goal.constraints) == 1:
        return f"{listing(near.relaxed)} at {there}"
    if near.how == ALONE:
        return f"{listing(near.relaxed)}, the rest as asked, at {there}"
    return f"{listing(near.relaxed)}, each {100 * near.share:.2g}% off at most, at {there}"


def _proof_facts(found: Diagnosis) -> list[tuple[str, str]]:
    rows = []
    if found.provable is not None:
        rows.append(("nearest provable", _provable(found, found.provable)))
    elif found.unproven and found.goal.constraints:
        rows.append(("nearest provable", f"none: {found.unproven}"))
    rows += [("labels", _labels(found, labels)) for labels in found.labels]
    return rows


def _provable(found: Diagnosis, provable: Provable) -> str:
    promise = listing(provable.goal.constraints)
    asked = " as asked" if provable.as_asked else ""
    return (
        f"{promise}{asked} ({100 * found.confidence:g}%) on {provable.rows:,} fresh rows, at "
        f"{found.goal.objective} {said(provable.value)}, {provable.point}"
    )


def _labels(found: Diagnosis, labels: LabelsNeeded) -> str:
    promise = listing(labels.goal.constraints)
    if labels.rows is None:
        return f"no number of rows can be named for {promise}: these leave open whether it holds"
    say = labels.of_them is not None and labels.who != ROWS
    among = f", {labels.of_them:,} {labels.who} among them," if say else ""
    seen = ", if the truth is what these show" if labels.if_as_seen else ""
    there = f"at {found.goal.objective} {said(labels.value)}{seen}"
    rows = f"about {labels.rows:,} fresh rows{among}"
    return f"{rows} would prove {promise} (power {found.power:g}), {there}"


def diagnose(
    goal: Goal | Expression | str,
    y_true: Any,
    scores: Any,
    *,
    sample_weight: Any = None,
    group: Any = None,
    task: Task | str | None = None,
    positive: Label = None,
    kind: str | None = None,
    by: str | None = None,
    confidence: float = 0.95,
    fresh: int | None = None,
    power: float = POWER,
) -> Diagnosis:
    """Say whether a goal can be met on these rows, at which price, and what could be had instead.

    Where it can be met: which constraints bind, and what a point of each costs. Where it cannot:
    the nearest goals that can. In both cases: the nearest goal that fresh rows would *prove*, and
    how many it takes to prove this one. One threshold is looked at everywhere, exactly; rules of
    other kinds are searched anew at some bounds, which takes its time.

    Parameters
    ----------
    goal : Goal, str or Expression
    y_true, scores : array-like
        As for :func:`tune`; usually the tune rows. They stand for the truth, and flatter what is
        chosen on them.
    sample_weight, group, task, positive, kind, by
        As for :func:`tune`. Where rows are weighted nothing is said about proofs.
    confidence : float
        Of a proof.
    fresh : int, optional
        Labelled rows that the proof would have, drawn like these; as many as these without it.
    power : float
        The probability that they prove it.

    Returns
    -------
    Diagnosis

    Examples
    --------
    >>> import numpy as np, setpoint as sp
    >>> random = np.random.default_rng(0)
    >>> y = random.random(2000) < 0.2
    >>> scores = 2 * y + random.normal(size=2000)
    >>> found = sp.diagnose("maximize f1 subject to precision >= 0.9, recall >= 0.6", y, scores)
    >>> found.feasible, [near.relaxed for near in found.nearest]
    (False, [('precision >= 0.76',), ('recall >= 0.37',), ('precision >= 0.81', 'recall >= 0.54')])
    """
    delta = check_confidence(confidence)
    if not is_real(power) or not 0.5 <= power < 1:
        raise DataError(f"power is a number from 0.5 to below 1; got {power!r}")
    if fresh is not None and (not isinstance(fresh, int) or isinstance(fresh, bool) or fresh < 1):
        raise DataError(f"fresh is a number of rows, 1 or more; got {fresh!r}")
    task = Task.make(task, positive)
    goal = check(Goal.of(goal), task).lowered
    search = RuleSearch(rule=kind_for(goal, task.kind, kind), by=by)
    if scores is None:
        raise KindError("scores must be an array with one entry per row; got None")
    columns = take_in(
        task, y_true, scores=scores, sample_weight=sample_weight, group=group
    ).on_host()
    refuse_one_class(columns)
    return diagnose_columns(goal, columns, search, delta=delta, fresh=fresh, power=float(power))


def diagnose_columns(
    goal: Goal,
    columns: Columns,
    search: RuleSearch,
    *,
    delta: float,
    fresh: int | None = None,
    power: float = POWER,
) -> Diagnosis:
    """:func:`diagnose` of rows that are checked and on the host.

    Parameters
    ----------
    goal : Goal
        Lowered, and checked against the task.
    columns : Columns
        Labels and scores, of more than one class.
    search : RuleSearch
    delta : float
        1 − confidence.
    fresh, power
        As for :func:`diagnose`.
    """
    rule = choose(goal, columns, search)
    land = landscape(goal, columns, search)
    fresh = columns.size if fresh is None else fresh
    asked = tuple(a.cap for a in land.asked)
    solid = rule.feasible and (not asked or land.best(asked, solid=True) is not None)
    near = () if solid or rule.value is None else nearest_goals(land, asked)
    at = land.goal if rule.feasible or not near else near[0].goal
    met = rule.feasible or bool(near)
    caps = caps_of(land, at)
    costs = prices(land, caps) if met else ()
    provable, labels, unproven = _proof(land, at, caps if met else None, fresh, delta, power)
    return Diagnosis(
        goal=land.goal,
        kind=search.rule.kind,
        rows=land.columns.size,
        fresh=fresh,
        weighted=land.columns.weight is not None,
        feasible=rule.feasible,
        reason=_reason(land, rule),
        point=rule.operating_point(),
        value=rule.value,
        sides=tuple(held.value for held in rule.held),
        behind=land.of(rule).behind,
        binding=_binding(land, rule, near, costs),
        prices=costs,
        nearest=near,
        provable=provable,
        labels=labels,
        unproven=unproven,
        frontier=rule.frontier,
        confidence=1 - delta,
        power=power,
    )


def _reason(land: Along | Searched, rule: DecisionRule) -> str:
    """Why the goal is not met, on these rows."""
    never = [j for j, held in enumerate(rule.held) if held.alone is False]
    if rule.feasible or not never or rule.value is None or isinstance(land, Searched):
        return rule.obstacle()
    names = listing(rule.held[j].constraint for j in never)
    empty = any(land.excess[j][0] == float("inf") for j in never)  # where nothing is decided
    counts = land.goal.sign > 0 and land.goal.objective.interval()[0] == 0
    above = f" with {land.goal.objective} > 0" if empty and counts else ""
    return f"{names} {'is' if len(never) == 1 else 'are'} reached at no threshold{above}"


def _binding(
    land: Landscape, rule: DecisionRule, near: tuple[NearestGoal, ...], costs: tuple[Price, ...]
) -> tuple[str, ...]:
    """The constraints that cost something, or that stand in the way."""
    if not rule.feasible:
        alone = {text for n in near if n.how == ALONE for text in _original(land, n)}
        short = [held.constraint for held in rule.held if not held.holds]
        found = [held.constraint for held in rule.held if held.constraint in alone] or short
        never = [held.constraint for held in rule.held if held.alone is False]
        return tuple(never or found)
    if rule.point.finds_binding:
        return rule.binding
    # the search leaves it open, the prices do not
    return tuple(price.constraint for price in costs if price.binds)


def _original(land: Landscape, near: NearestGoal) -> list[str]:
    """The constraints that gave way, as they were asked for."""
    pairs = zip(land.goal.constraints, near.goal.constraints, strict=True)
    return [str(one) for one, other in pairs if str(one) != str(other)]


def _proof(
    land: Along | Searched,
    at: Goal,
    caps: tuple[float, ...] | None,
    fresh: int,
    delta: float,
    power: float,
) -> tuple[Provable | None, tuple[LabelsNeeded, ...], str]:
    """What could be proven, what that takes, and why nothing can."""
    if not land.asked:
        return None, (), "there is no constraint to prove"
    if land.columns.weight is not None:
        return None, (), "weighted rows prove nothing unless their weights have a bound"
    look = outlook(land, at, delta, fresh, power)
    if isinstance(look, str):
        return None, (), look
    provable = look.provable(fresh)
    worth = 0.0 if caps is None else _worth(land, look, caps)
    labels = [] if caps is None else [look.labels(caps, worth, fresh)]
    if provable is None:
        why = f"{fresh:,} fresh rows are too few to prove anything of it"
        return None, tuple(labels), why
    if caps is not None and not provable.as_asked and len(caps) == 1:
        near = caps_of(land, provable.goal)[0]
        labels += _between(look, labels[0], caps[0], near, worth, fresh)
    return provable, tuple(labels), ""


def _worth(land: Landscape, look: Outlook, caps: tuple[float, ...]) -> float:
    """Halfway from the worst candidate to the best within the caps."""
    known = look.merit[look.merit > -np.inf]
    best = land.best(caps)
    if best is None or not known.size:
        return -np.inf
    return (best.merit + float(known.min())) / 2


def _between(
    look: Outlook, first: LabelsNeeded, target: float, provable: float, worth: float, fresh: int
) -> list[LabelsNeeded]:
    """The rows for a bound halfway from what is provable to what is met."""
    (asked,) = look.asked
    middle = asked.sign * asked.outward((target + provable) / 2)
    if not target < middle < provable:
        return []
    found = look.labels((middle,), worth, fresh)
    sooner = found.rows is not None and (first.rows is None or found.rows < first.rows)
    return [found] if sooner else []
