"""``setpoint methods``: how a goal can be trained, and which method takes which goal."""

from __future__ import annotations

from dataclasses import fields
from typing import Annotated, Any

import typer

from setpoint._core.errors import GoalError
from setpoint.cli.display.terminal import Json, Screen, print_json
from setpoint.cli.inputs.shared_options import Debug
from setpoint.cli.words import command
from setpoint.expressions import Curve
from setpoint.goals import Goal, Task, check

HELP = "List the methods a goal can be trained by, with their options; or say which take a goal."
EPILOG = """
Examples

  setpoint methods
  setpoint methods "maximize recall subject to precision >= 0.9"
  setpoint methods "maximize auroc" --json
"""


def methods(
    goal: Annotated[
        str | None,
        typer.Argument(metavar="GOAL", help="A goal in quotes; of a binary task where it can be."),
    ] = None,
    as_json: Json = False,
    debug: Debug = False,
) -> None:
    """Print the table of methods, or what each says to a goal."""
    entries = [described(name) for name in _table()]
    if goal is not None:
        stated = Goal.parse(goal)
        task = _task(stated)
        for entry in entries:
            entry["refusal"] = _table()[entry["name"]]().refusal(stated, task)
    if as_json:
        print_json({"goal": goal, "methods": entries})
        return
    screen = Screen.open()
    screen.line()
    if goal is None:
        rows = [(e["name"], e["says"], "\n".join(e["options"])) for e in entries]
        screen.table(("method", "trains on", "options"), rows)
        screen.line(f'{command()} methods "GOAL" says which of them take a goal.')
    else:
        rows = [(e["name"], e["refusal"] or "yes") for e in entries]
        screen.table(("method", "takes it?"), rows)


def described(name: str) -> dict[str, Any]:
    """What the table says of one method."""
    method = _table()[name]
    options = {field.name: field.default for field in fields(method)}  # type: ignore[arg-type]
    return {
        "name": name,
        "says": method.summary,
        "options": [f"{option}={default!r}" for option, default in options.items()],
    }


def _task(goal: Goal) -> Task:
    """The first task that the goal fits, with values that stand in for those of its columns."""
    groups = {name: ("a", "b") for name in goal.columns}
    tasks = (
        Task.binary(groups=groups),
        Task.multiclass(("a", "b", "c"), groups=groups),
        Task.regression(edges=(0.0, 1.0), groups=groups),
        Task.ranking(),
    )
    listed = any(isinstance(x, Curve) and x.ranks for x in goal.objective.leaves())
    for task in tasks[::-1] if listed else tasks:
        try:
            check(goal, task)
        except GoalError:
            continue
        return task
    return tasks[0]


def _table() -> dict[str, Any]:
    from setpoint.methods import METHODS

    return METHODS
