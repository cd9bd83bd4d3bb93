"""`diagnose`: why a goal cannot be met, or what it costs; and what could be had instead."""

from __future__ import annotations

from typing import Any

import numpy as np

from setpoint._core.errors import DataError, KindError
from setpoint._core.reals import is_real
from setpoint._core.words import listing
from setpoint.decisions.diagnosis import Diagnosis
from setpoint.decisions.outlook import outlook
from setpoint.decisions.price import Price
from setpoint.decisions.proof.power import POWER
from setpoint.decisions.sensitivity.provable_goal import Labels, Outlook, Provable, score_words
from setpoint.decisions.sensitivity.relaxations import ALONE, Nearest, caps_of, nearest_goals
from setpoint.decisions.sensitivity.shadow_price import prices
from setpoint.decisions.sensitivity.value_function import Along, Landscape, Searched, landscape
from setpoint.expressions import Expression, Label, Task, take_in
from setpoint.goals import Goal, check, lower
from setpoint.rules.decision_rule import DecisionRule
from setpoint.rules.table import choose, kind_for, refuse_one_class
from setpoint.statistics.binomial import check_confidence


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
    goal = lower(check(Goal.of(goal), task))
    chosen = kind_for(goal, task.kind, kind)
    if scores is None:
        raise KindError("scores must be an array with one entry per row; got None")
    columns = take_in(
        task, y_true, scores=scores, sample_weight=sample_weight, group=group
    ).on_host()
    refuse_one_class(columns)
    rule = choose(goal, columns, chosen, by)
    land = landscape(goal, columns, chosen, by)
    given = {"confidence": 1 - delta, "power": float(power)}
    return _diagnosis(land, rule, chosen, fresh or columns.size, delta, given)


def _diagnosis(
    land: Along | Searched,
    rule: DecisionRule,
    kind: str,
    fresh: int,
    delta: float,
    given: dict[str, float],
) -> Diagnosis:
    asked = tuple(a.cap for a in land.asked)
    solid = rule.feasible and (not asked or land.best(asked, solid=True) is not None)
    near = () if solid or rule.value is None else nearest_goals(land, asked)
    at = land.goal if rule.feasible or not near else near[0].goal
    met = rule.feasible or bool(near)
    caps = caps_of(land, at)
    costs = prices(land, caps) if met else ()
    power = given["power"]
    provable, labels, unproven = _proof(land, at, caps if met else None, fresh, delta, power)
    return Diagnosis(
        goal=land.goal,
        kind=kind,
        rows=land.columns.size,
        fresh=fresh,
        weighted=land.columns.weight is not None,
        feasible=rule.feasible,
        reason=_reason(land, rule),
        point=score_words(rule.operating_point()),
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
        **given,
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
    land: Landscape, rule: DecisionRule, near: tuple[Nearest, ...], costs: tuple[Price, ...]
) -> tuple[str, ...]:
    """The constraints that cost something, or that stand in the way."""
    if not rule.feasible:
        alone = {text for n in near if n.how == ALONE for text in _original(land, n)}
        short = [held.constraint for held in rule.held if not held.holds]
        found = [held.constraint for held in rule.held if held.constraint in alone] or short
        never = [held.constraint for held in rule.held if held.alone is False]
        return tuple(never or found)
    if rule.kind != "offsets":
        return rule.binding
    # the search for offsets leaves it open, the prices do not
    return tuple(price.constraint for price in costs if price.binds)


def _original(land: Landscape, near: Nearest) -> list[str]:
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
) -> tuple[Provable | None, tuple[Labels, ...], str]:
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
    look: Outlook, first: Labels, target: float, provable: float, worth: float, fresh: int
) -> list[Labels]:
    """The rows for a bound halfway from what is provable to what is met."""
    (asked,) = look.asked
    middle = asked.sign * asked.outward((target + provable) / 2)
    if not target < middle < provable:
        return []
    found = look.labels((middle,), worth, fresh)
    sooner = found.rows is not None and (first.rows is None or found.rows < first.rows)
    return [found] if sooner else []
