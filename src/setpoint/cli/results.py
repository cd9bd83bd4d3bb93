"""A tuned rule on the screen: where it stands, what holds, what could not be had."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.text import Text

from setpoint.cli.output import Screen, count, number
from setpoint.decisions import DecisionRule


def show_rule(screen: Screen, rule: DecisionRule) -> None:
    """Objective and constraints as a table (where there are any), then the outcome in words."""
    if rule.held:
        _show_table(screen, rule)
    screen.facts(outcome(rule))


def _show_table(screen: Screen, rule: DecisionRule) -> None:
    headers = ("", "value", "bound", "", "binding", "short by", "reachable")
    none = "–"
    rows: list[tuple[str | Text, ...]] = [
        (f"{rule.goal.sense} {rule.goal.objective}", number(rule.value), *[none] * 5)
    ]
    for constraint, held in zip(rule.goal.constraints, rule.held, strict=True):
        rows.append(
            (
                str(constraint.left),
                number(held.value),
                f"{constraint.op} {constraint.right}",
                verdict(held.holds),
                "yes" if held.binding else "no",
                none if held.holds else number(held.short),
                number(held.reachable, "not known"),
            )
        )
    screen.table(headers, rows, numeric=(1, 5, 6))


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
    """Rows, and how many of what."""
    parts = [count(about["rows"], "row")]
    if "positives" in about:
        parts.append(f"{_positives(about)}, {about['label']} = {about['positive']}")
    parts.extend(f"{label['label']}: {_positives(label)}" for label in about.get("labels", ()))
    if "classes" in about:
        parts.append(", ".join(f"{name} {many:,}" for name, many in about["classes"].items()))
    return "; ".join([*parts, source])


def _positives(about: Mapping[str, Any]) -> str:
    return f"{about['positives']:,} positive ({100 * about['share']:.1f}%)"
