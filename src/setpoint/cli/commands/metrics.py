"""``setpoint metrics``: what can be said in a goal."""

from __future__ import annotations

import math
from typing import Annotated, Any

import typer

from setpoint.cli.display.terminal import Json, Screen, print_json
from setpoint.cli.inputs.shared_options import Debug
from setpoint.cli.words import command
from setpoint.expressions import Expression, Named, Total
from setpoint.metrics import (
    METRICS,
    binary,
    fnr,
    metric,
    precision,
    ranking,
    recall,
    reductions,
    regression,
    selective,
)
from setpoint.metrics import operating_points as points
from setpoint.metrics.definition import MetricDefinition

HELP = "List every metric a goal may use, or describe one, or a whole expression."
EPILOG = """
Examples

  setpoint metrics
  setpoint metrics recall
  setpoint metrics "0.5 * recall + 0.5 * precision"
  setpoint metrics f_beta --json
"""

ROOMS = {
    "Decisions about one class": binary,
    "Scores at an operating point": points,
    "Whole curves, and rankings by query": ranking,
    "Over classes, groups and target bins; of several metrics": reductions,
    "Real predictions": regression,
    "Decisions that may abstain": selective,
}
_BETTER = {1: "higher is better", -1: "lower is better"}


def metrics(
    name: Annotated[
        str | None,
        typer.Argument(metavar="NAME", help="A name, an alias, or an expression in quotes."),
    ] = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Print the table of metrics, or one entry of it."""
    if name is None and as_json:
        print_json({"metrics": [describe(row) for row in METRICS.values()]})
    elif name is None:
        _show_all(Screen.open())
    else:
        row = row_of(name.strip())
        entry = describe_expression(metric(name)) if row is None else describe(row)
        if as_json:
            print_json(entry)
        else:
            _show_one(Screen.open(), entry)


def row_of(name: str) -> MetricDefinition | None:
    """The row with this name or alias."""
    return next((r for r in METRICS.values() if name == r.name or name in r.aliases), None)


def describe(row: MetricDefinition) -> dict[str, Any]:
    """Everything the table says of one metric."""
    expression = example_of(row)
    room = next(title for title, module in ROOMS.items() if row in module.ROWS)
    return {
        "name": row.name,
        "room": room,
        "says": row.says,
        "formula": row.formula,
        "aliases": list(row.aliases),
        "examples": list(row.examples or (row.name,)),
        **_properties(expression),
        "reference": row.reference,
    }


def describe_expression(expression: Expression) -> dict[str, Any]:
    """What can be said of an expression that is no row of the table."""
    names = dict.fromkeys(n.name for n in expression.walk() if isinstance(n, Named))
    rows = {row.name: row for row in map(row_of, names) if row is not None}
    return {
        "expression": str(expression),
        "in_totals": str(expression.normal()),
        **_properties(expression),
        "made_of": {name: row.formula for name, row in rows.items()},
    }


def example_of(row: MetricDefinition) -> Expression:
    """The metric, or an example of it where it takes arguments."""
    return row.what if isinstance(row.what, Expression) else metric(row.usage)


def _properties(expression: Expression) -> dict[str, Any]:
    latex = expression.latex()
    if isinstance(expression, Named) and "scores" not in expression.needs():
        latex += f" = {expression.body.latex()}"
    return {
        "range": list(expression.interval()),
        "direction": _BETTER.get(expression.better() or 0, "neither way is better by itself"),
        "judges": " and ".join(sorted(expression.needs() - {"rows"})) or "labels",
        "latex": latex,
        "example_goals": example_goals(expression),
    }


def example_goals(expression: Expression) -> list[str]:
    """Goals with the metric as their objective, and as a constraint where that says something."""
    better, (low, high) = expression.better() or 0, expression.interval()
    leaves = expression.leaves()
    if all(isinstance(leaf, Total) and leaf.threshold_free() for leaf in leaves):
        return []
    goals = [f"{'maximize' if better > 0 else 'minimize'} {expression}"] if better else []
    if (low, high) == (0, 1) and "scores" not in expression.needs() and _for_any_task(expression):
        other = precision if expression == recall or expression == fnr else recall
        bound = ">= 0.9" if better > 0 else "<= 0.05"
        goals.append(f"maximize {other} subject to {expression} {bound}")
    return goals


def _for_any_task(expression: Expression) -> bool:
    return not any(isinstance(node, Named) and node.tasks for node in expression.walk())


def _show_all(screen: Screen) -> None:
    for title, module in ROOMS.items():
        screen.line()
        screen.line(title, "bold")
        rows = [_cells(row) for row in module.ROWS]
        screen.table(("write", "formula", "says"), rows, spare=(1,))
    screen.line(f"{command()} metrics NAME says more; metrics add, subtract, multiply and divide.")


def _cells(row: MetricDefinition) -> tuple[str, str, str]:
    usage = "\n".join(row.examples) or row.name
    also = f"\nalso {', '.join(row.aliases)}" if row.aliases else ""
    return usage + also, row.formula, row.says


def _show_one(screen: Screen, entry: dict[str, Any]) -> None:
    low, high = entry["range"]
    left = f"[{low:g}" if math.isfinite(low) else "(-inf"
    right = f"{high:g}]" if math.isfinite(high) else "inf)"
    shown = {
        "Metric": entry.get("name"),
        "Expression": entry.get("expression"),
        "Says": entry.get("says"),
        "Formula": entry.get("formula"),
        "In totals": entry.get("in_totals"),
        "Also written": ", ".join(entry.get("aliases", ())),
        "Written": "\n".join(entry.get("examples", ())),
        "Range": f"{left}, {right}, {entry['direction']}",
        "Judges": entry["judges"],
        "LaTeX": entry["latex"],
        "Tested against": entry.get("reference"),
        "Made of": "\n".join(f"{n} = {f}" for n, f in entry.get("made_of", {}).items()),
        "Example goals": "\n".join(entry["example_goals"]),
    }
    screen.line()
    screen.facts([(name, said) for name, said in shown.items() if said])
