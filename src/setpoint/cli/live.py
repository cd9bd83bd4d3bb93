"""A fit while it runs: the plan before anything is fitted, then a bar on the terminal."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

from setpoint.cli.output import Screen

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

    from setpoint.fit.job import Progress
    from setpoint.fit.recipe import FitPlan

_PLAN = {"rows": "", "models": "", "why": "", "referee": "referee: ", "time": ""}


class Live:
    """Listens to a fit.

    Parameters
    ----------
    planned : callable
        Called with the plan before anything is fitted.
    quiet : bool
        Whether no bar is to be shown; there is none without a terminal either.
    """

    def __init__(self, planned: Callable[[FitPlan], None], quiet: bool) -> None:
        self.planned, self.bar, self.task = planned, None, None
        screen = Screen.open(stderr=True)
        self.screen = None if quiet or not screen.console.is_terminal else screen
        self.said = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.stop()

    def __call__(self, event: Any) -> None:
        """Take an event."""
        from setpoint.fit.job import Progress
        from setpoint.fit.recipe import Planned
        from setpoint.training.events import EpochDone

        if isinstance(event, Planned):
            self.planned(event.plan)
        elif self.screen is None:
            return
        elif isinstance(event, Progress):
            self._progress(event)
        elif isinstance(event, EpochDone):
            self._say(f"{self.said}, epoch {event.epoch + 1}")

    def _progress(self, event: Progress) -> None:
        fold = f", fold {event.fold}/{event.folds}" if event.folds > 1 else ""
        best = f", best {event.best}" if event.best else ""
        self.said = f"{event.member}{fold}{best}"
        if self.bar is None:
            self.bar = _bar(self.screen)
            self.task = self.bar.add_task("", total=event.total)
            self.bar.start()
        if event.phase == "fit":
            self.bar.update(self.task, completed=event.done, total=event.total)
        else:
            self.bar.update(self.task, completed=event.total, total=event.total)
        self._say(self.said)

    def _say(self, text: str) -> None:
        if self.bar is not None and self.screen is not None:
            self.bar.update(self.task, description=self.screen.say(text))


def _bar(screen: Screen | None) -> Bar:
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeElapsedColumn

    assert screen is not None
    return Progress(
        TextColumn(" "),
        BarColumn(bar_width=None),
        TaskProgressColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}", markup=False),
        console=screen.console,
        expand=True,
    )


def plan_facts(plan: FitPlan) -> list[tuple[str, str]]:
    """The plan in words, as facts."""
    facts = []
    for line in plan.lines():
        name, said = line.split(maxsplit=1)
        if name in _PLAN:
            facts.append(("" if facts else "Plan", f"{_PLAN[name]}{said}"))
    return facts
