"""A fit while it runs: the plan before anything is fitted, then a bar on the terminal."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

from setpoint.cli.display.terminal import Screen

if TYPE_CHECKING:
    from setpoint.fit.plan import FitPlan, Planned
    from setpoint.fit.training_data import FitProgress

_PLAN = {"rows": "", "models": "", "why": "", "referee": "referee: ", "time": ""}


class Live:
    """Listens to a fit.

    Parameters
    ----------
    planned : callable
        Called with the event of the plan before anything is fitted.
    quiet : bool
        Whether no bar is to be shown; there is none without a terminal either.
    """

    def __init__(self, planned: Callable[[Planned], None], quiet: bool) -> None:
        screen = Screen.open(stderr=True)
        self.planned = planned
        self.screen = None if quiet or not screen.console.is_terminal else screen
        self.bar: Bar | None = None
        self.said = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self.bar is not None:
            self.bar.stop()

    def __call__(self, event: Any) -> None:
        """Take an event."""
        from setpoint.fit.plan import Planned
        from setpoint.fit.training_data import FitProgress
        from setpoint.training.events import EpochDone

        if isinstance(event, Planned):
            self.planned(event)
        elif self.screen is None:
            return
        elif isinstance(event, FitProgress):
            self._progress(event, self.screen)
        elif isinstance(event, EpochDone) and self.bar is not None:
            self.bar.show(f"{self.said}, epoch {event.epoch + 1}")

    def _progress(self, event: FitProgress, screen: Screen) -> None:
        fold = f", fold {event.fold}/{event.folds}" if event.folds > 1 else ""
        best = f", best {event.best}" if event.best else ""
        self.said = f"{event.member}{fold}{best}"
        if self.bar is None:
            self.bar = Bar(screen)
        done = event.done if event.phase == "fit" else event.total
        self.bar.show(self.said, done, event.total)


class Bar:
    """A bar on a terminal: how much is done, for how long, and what is going on."""

    def __init__(self, screen: Screen) -> None:
        from rich import progress

        self.screen = screen
        self.progress = progress.Progress(
            progress.TextColumn(""),
            progress.BarColumn(),
            progress.TaskProgressColumn(),
            progress.TimeElapsedColumn(),
            progress.TextColumn("{task.description}", markup=False),
            console=screen.console,
        )
        self.task = self.progress.add_task("", total=1)
        self.progress.start()

    def show(self, text: str, done: float | None = None, total: float | None = None) -> None:
        """Say what is going on, and how much is done."""
        said = self.screen.say(text)
        self.progress.update(self.task, description=said, completed=done, total=total)

    def stop(self) -> None:
        """Leave the bar as it stands."""
        self.progress.stop()


def plan_facts(plan: FitPlan) -> list[tuple[str, str]]:
    """The plan in words, as facts."""
    shown = [f"{_PLAN[label]}{words}" for label, words in plan.facts() if label in _PLAN]
    return [("" if i else "Plan", words) for i, words in enumerate(shown)]
