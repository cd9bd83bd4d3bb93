"""What was found out about a goal: as data, in words, and as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from setpoint._core.errors import FileError, SetpointError
from setpoint._core.words import listing
from setpoint.decisions.price import Move, Price
from setpoint.decisions.quantities.row_states import ROWS
from setpoint.decisions.sensitivity.provable_goal import Labels, Provable
from setpoint.decisions.sensitivity.relaxations import ALONE, Nearest, said
from setpoint.decisions.sensitivity.value_function import ENOUGH
from setpoint.goals import Goal
from setpoint.rules.tradeoff_curve import Frontier, number_from, number_to

FEASIBLE, NOT_FEASIBLE = "FEASIBLE", "NOT FEASIBLE"
FORMAT = "setpoint diagnosis 1"
_HEAD, _LABEL = 15, 19  #: columns of the printed block


@dataclass(frozen=True)
class Diagnosis:
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
    nearest : tuple of Nearest
        Goals that are met on these rows; empty where the goal is.
    provable : Provable or None
        The nearest goal that fresh rows would prove.
    labels : tuple of Labels
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
    nearest: tuple[Nearest, ...]
    provable: Provable | None
    labels: tuple[Labels, ...]
    unproven: str
    frontier: Frontier | None

    def told(self) -> list[tuple[str, str]]:
        """Pairs of a label and a sentence, the verdict first."""
        return _rows(self)

    def lines(self) -> list[str]:
        """The same as a block of text."""
        (verdict, first), *rest = self.told()
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
        """Plain data that :meth:`from_json` reads back."""
        plain = "kind rows fresh weighted confidence power feasible reason point behind unproven"
        return {
            "format": FORMAT,
            "goal": str(self.goal),
            **{name: getattr(self, name) for name in plain.split()},
            "value": number_to(self.value),
            "sides": [number_to(side) for side in self.sides],
            "binding": list(self.binding),
            "prices": [asdict(price) for price in self.prices],
            "nearest": [_goal_to(n) for n in self.nearest],
            "provable": None if self.provable is None else _goal_to(self.provable),
            "labels": [_goal_to(n) for n in self.labels],
            "frontier": None if self.frontier is None else self.frontier.to_json(),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Diagnosis:
        """Read what :meth:`to_json` wrote."""
        if not isinstance(data, Mapping) or data.get("format") != FORMAT:
            raise FileError(f'this is not a diagnosis: it lacks "format": "{FORMAT}"')
        try:
            given = {name: value for name, value in data.items() if name != "format"}
            provable, frontier = given["provable"], given["frontier"]
            own = {
                "goal": Goal.parse(given["goal"]),
                "value": number_from(given["value"]),
                "sides": tuple(number_from(side) for side in given["sides"]),
                "binding": tuple(given["binding"]),
                "prices": tuple(_price_from(price) for price in given["prices"]),
                "nearest": tuple(_goal_from(Nearest, n) for n in given["nearest"]),
                "provable": None if provable is None else _goal_from(Provable, provable),
                "labels": tuple(_goal_from(Labels, n) for n in given["labels"]),
                "frontier": None if frontier is None else Frontier.from_json(frontier),
            }
            return cls(**{**given, **own})
        except (SetpointError, KeyError, TypeError, AttributeError, ValueError) as error:
            raise FileError(f"this diagnosis is damaged: {error!r}. Diagnose again") from error


def _goal_to(part: Nearest | Provable | Labels) -> dict[str, Any]:
    plain = {name: number_to(value) for name, value in vars(part).items()}
    listed = {name: list(x) if isinstance(x, tuple) else x for name, x in plain.items()}
    return {**listed, "goal": str(part.goal)}


def _goal_from(kind: type, data: Mapping[str, Any]) -> Any:
    plain = {n: tuple(x) if isinstance(x, list) else number_from(x) for n, x in data.items()}
    return kind(**{**plain, "goal": Goal.parse(data["goal"])})


def _price_from(data: Mapping[str, Any]) -> Price:
    metric, objective = data["points"]
    moves = tuple(Move(**move) for move in data["moves"])
    return Price(**{**data, "points": (bool(metric), bool(objective)), "moves": moves})


# --- words --------------------------------------------------------------------------------------


def _rows(found: Diagnosis) -> list[tuple[str, str]]:
    """Pairs of a label and a sentence, the verdict first."""
    rows = [_verdict(found)]
    if found.feasible and found.behind < ENOUGH and found.goal.constraints:
        rows.append(("few rows", _thin(found)))
    rows += [("nearest reachable", _near(found.goal, near)) for near in found.nearest]
    if found.binding:
        rows.append(("binding", listing(found.binding)))
    for price in found.prices:
        label = "price" if found.feasible else "price there"
        rows += [(label, words) for words in price.sentences()]
    rows += _proof(found)
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


def _near(goal: Goal, near: Nearest) -> str:
    rows = f"{near.behind:,} row{'' if near.behind == 1 else 's'} behind it"
    there = f"{goal.objective} {said(near.value)} ({rows})"
    if len(goal.constraints) == 1:
        return f"{listing(near.relaxed)} at {there}"
    if near.how == ALONE:
        return f"{listing(near.relaxed)}, the rest as asked, at {there}"
    return f"{listing(near.relaxed)}, each {100 * near.share:.2g}% off at most, at {there}"


def _proof(found: Diagnosis) -> list[tuple[str, str]]:
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


def _labels(found: Diagnosis, labels: Labels) -> str:
    promise = listing(labels.goal.constraints)
    if labels.rows is None:
        return f"no number of rows can be named for {promise}: these leave open whether it holds"
    say = labels.of_them is not None and labels.who != ROWS
    among = f", {labels.of_them:,} {labels.who} among them," if say else ""
    seen = ", if the truth is what these show" if labels.if_as_seen else ""
    there = f"at {found.goal.objective} {said(labels.value)}{seen}"
    rows = f"about {labels.rows:,} fresh rows{among}"
    return f"{rows} would prove {promise} (power {found.power:g}), {there}"
