"""The trade-off of a rule: as a picture in the terminal, and as a file."""

from __future__ import annotations

import math
from pathlib import Path

from rich.text import Text

from setpoint.cli.display.terminal import Screen
from setpoint.cli.display.terminal_plot import ASCII, BRAILLE, Picture
from setpoint.cli.files.output_paths import as_bytes
from setpoint.decisions import DecisionRule, plot_frontier

_WIDEST = 72


def constraint_of(rule: DecisionRule) -> int:
    """The constraint that the trade-off is drawn along: a broken one, a binding one, the first."""
    for index, held in enumerate(rule.held):
        if not held.holds:
            return index
    return next((index for index, held in enumerate(rule.held) if held.binding), 0)


def picture(rule: DecisionRule) -> Picture | None:
    """The objective against a constrained metric, or the threshold; None if there is no curve."""
    frontier = rule.frontier
    if frontier is None:
        return None
    which, bound, mark = constraint_of(rule), None, None
    if frontier.constraints:
        constraint = rule.goal.constraints[which]
        along, name = frontier.sides[which], str(constraint.left)
        bound = constraint.number
        at = rule.held[which].value
    else:
        along, name, at = frontier.thresholds, "threshold", rule.threshold
    if at is not None and rule.value is not None and math.isfinite(at):
        mark = (at, rule.value)
    points = [
        (x, y)
        for x, y in zip(along, frontier.values, strict=True)
        if x is not None and y is not None and math.isfinite(x)
    ]
    if len(points) < 2:
        return None
    xs, ys = zip(*points, strict=True)
    return Picture(name, frontier.objective, xs, ys, mark, rule.feasible, bound)


def show(screen: Screen, rule: DecisionRule) -> None:
    """Draw the trade-off of a rule, if it has one, and say what the signs mean."""
    drawn = picture(rule)
    if drawn is None:
        return
    pen = BRAILLE if screen.unicode else ASCII
    for line in drawn.draw(min(screen.width - 1, _WIDEST), pen=pen):
        screen.line(line)
    legend = Text(" ")
    if drawn.mark is not None and drawn.good:
        legend.append(f"{pen.mark} the rule", "bold green")
    elif drawn.mark is not None:
        legend.append(f"{pen.cross} the nearest", "bold red")
    if drawn.bound is not None:
        legend.append(f"   {pen.bound} {rule.goal.constraints[constraint_of(rule)]}", "yellow")
    screen.line(legend)
    screen.line()


def render(rule: DecisionRule, path: Path) -> bytes:
    """The trade-off as the bytes of a plot, of the type that the ending of the name tells."""
    return as_bytes(plot_frontier(rule, constraint_of(rule)), path)


def tell_none(rule: DecisionRule, path: Path) -> None:
    """Say on stderr that a rule of this kind has nothing to draw."""
    which = "chosen with proof" if rule.certificate is not None else f'of kind "{rule.kind}"'
    Screen.open(stderr=True).note(
        f'a rule {which} has no trade-off to draw; "{path}" is not written.'
    )
