"""A rule on the screen: where it stands, what holds, what could not be had, on which rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.text import Text

from setpoint._core.words import listing
from setpoint.cli.display.terminal import Screen
from setpoint.cli.words import command, count, number
from setpoint.decisions import DecisionRule, Evaluation
from setpoint.goals import Constraint
from setpoint.rules.decision_rule import ConstraintStanding

CAUTION = "on the rows it was chosen on; check it on others"


def show_rule(screen: Screen, rule: DecisionRule) -> None:
    """Objective and constraints as a table (where there are any), then the outcome in words."""
    if rule.held:
        _show_table(screen, rule)
    screen.facts(outcome(rule))


_NONE = "–"
_LEGEND = "costs: without this constraint the objective would be better"


def _show_table(screen: Screen, rule: DecisionRule) -> None:
    headers = ["", "value", "bound", "", "costs", "short by", "reachable"]
    rows: list[list[str | Text]] = [
        [f"{rule.goal.sense} {rule.goal.objective}", number(rule.value), *[_NONE] * 5]
    ]
    for constraint, held in zip(rule.goal.constraints, rule.held, strict=True):
        costs = "yes" if held.binding else "no"
        rows.append(
            [
                str(constraint.left),
                number(held.value),
                f"{constraint.op} {constraint.right}",
                verdict(held.holds),
                costs if rule.point.finds_binding else _NONE,
                _NONE if held.holds else number(short_by(constraint, held)),
                number(held.reachable, "not known"),
            ]
        )
    # What a constraint costs is known where all hold, how much is lacking where one does not.
    left_out = 5 if rule.feasible else 4
    for row in (headers, *rows):
        del row[left_out]
    plain = all(c.number is not None for c in rule.goal.constraints)
    solid = (2, 3, 4) if plain else (3, 4)
    numeric = (1, 5) if rule.feasible else (1, 4, 5)
    legend = _LEGEND if rule.feasible else ""
    screen.table(headers, rows, numeric=numeric, solid=solid, spare=(5,), legend=legend)


def short_by(constraint: Constraint, held: ConstraintStanding) -> float | None:
    """How far a broken constraint is from its bound, in the units of the metric."""
    bound = constraint.number
    return held.short if bound is None or held.value is None else abs(held.value - bound)


def show_kept(screen: Screen, evaluation: Evaluation) -> None:
    """Objective and constraints on other rows, where there are constraints."""
    if not evaluation.kept:
        return
    goal = evaluation.goal
    rows: list[tuple[str | Text, ...]] = [
        (f"{goal.sense} {goal.objective}", number(evaluation.value), _NONE, _NONE)
    ]
    for constraint, kept in zip(goal.constraints, evaluation.kept, strict=True):
        said = Text("holds", "green") if kept.holds else Text("BROKEN", "bold red")
        bound = f"{constraint.op} {constraint.right}"
        rows.append((str(constraint.left), number(kept.value), bound, said))
    plain = all(c.number is not None for c in goal.constraints)
    screen.table(("", "value", "bound", ""), rows, numeric=(1,), solid=(2, 3) if plain else (3,))


def decided_facts(counts: Mapping[str, Any] | None, chosen_here: bool) -> list[tuple[str, str]]:
    """How many rows are decided, how many of them rightly, and what that is worth."""
    if counts is None:
        return []
    if "undecided" in counts:
        rest = f"{counts['undecided']:,} left undecided"
    else:
        rest = f"{counts['missed']:,} of {count(counts['positives'], 'positive')} missed"
    facts = [
        (
            "Decided",
            f"{counts['rows']:,} of {count(counts['of'], 'row')}: {counts['right']:,} right, "
            f"{counts['wrong']:,} wrong; {rest}",
        )
    ]
    if counts["few"]:
        facts.append(("", "few rows carry these figures"))
    if chosen_here:
        facts.append(("", f"{CAUTION}: {command()} evaluate"))
    return facts


def outcome(rule: DecisionRule) -> list[tuple[str, str | Text]]:
    """What was reached; where that is not the goal, why not and what is nearest."""
    if rule.feasible:
        return [("Reached", rule.sentence())]
    facts: list[tuple[str, str | Text]] = [
        ("NOT FEASIBLE", Text(f"{rule.obstacle()}.", "bold red"))
    ]
    if rule.value is not None:
        sides = ", ".join(
            f"{c.left} {number(h.value)}"
            for c, h in zip(rule.goal.constraints, rule.held, strict=True)
            if not h.holds
        )
        reached = f"{rule.goal.objective} {number(rule.value)}"
        facts.append(("nearest", f"{sides} at {reached}, where {rule.operating_point()}"))
    return facts


def verdict(holds: bool) -> Text:
    """In words, so that it survives printing in grey."""
    return Text("holds", "green") if holds else Text("broken", "bold red")


def data_line(about: Mapping[str, Any], source: str) -> str:
    """Rows, how many of what, and the columns that have a say."""
    parts = [count(about["rows"], "row")]
    if "positives" in about:
        parts.append(f"{_positives(about)}, {about['label']} = {about['positive']}{_rest(about)}")
    for names in about.get("differ_only_by_case", ()):
        quoted = " and ".join(f'"{name}"' for name in names)
        parts.append(f"CAUTION: the labels {quoted} differ only by case")
    parts.extend(f"{label['label']}: {_positives(label)}" for label in about.get("labels", ()))
    if "classes" in about:
        parts.append(", ".join(f"{name} {many:,}" for name, many in about["classes"].items()))
    if "groups" in about:
        parts.append(f"groups: {', '.join(about['groups'])}")
    if "weight" in about:
        parts.append(f"weighted by {about['weight']}")
    return "; ".join([*parts, source])


def _rest(about: Mapping[str, Any]) -> str:
    """The labels that the positive one is set against, where they are more than one."""
    others = about.get("against", {})
    return f" against {listing(f'{k} {n:,}' for k, n in others.items())}" if others else ""


def _positives(about: Mapping[str, Any]) -> str:
    return f"{about['positives']:,} positive ({100 * about['share']:.1f}%)"
