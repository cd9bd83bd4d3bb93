"""Long work while it runs: the plan of a fit before anything is fitted, and a bar on a terminal."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Self

from setpoint._core.progress import Progress
from setpoint.cli.display.terminal import Screen

if TYPE_CHECKING:
    from setpoint.fit.events import Planned
    from setpoint.fit.plan import FitPlan

_PLAN = {"rows": "", "models": "", "why": "", "referee": "referee: ", "time": ""}


class ProgressBar:
    """A bar on a terminal: how much is done, for how long, and what is going on.

    It listens to any work that tells its progress.

    Parameters
    ----------
    quiet : bool
        Whether no bar is to be shown; there is none without a terminal either.
    """

    def __init__(self, quiet: bool) -> None:
        screen = Screen.open(stderr=True)
        self.screen = None if quiet or not screen.console.is_terminal else screen
        self.bar: Any = None

    @property
    def shown(self) -> bool:
        """Whether there is a terminal to show it on."""
        return self.screen is not None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Leave the bar as it stands."""
        if self.bar is not None:
            self.bar.stop()

    def __call__(self, event: Progress) -> None:
        """Show how far the work is."""
        self.show(event.words(), event.done, event.total)

    def show(self, text: str, done: float | None = None, total: float | None = None) -> None:
        """Say what is going on, and how much is done; None leaves a number as it is."""
        if self.screen is None:
            return
        if self.bar is None:
            self.bar = _begun(self.screen)
        said = self.screen.say(text)
        self.bar.update(self.bar.task_ids[0], description=said, completed=done, total=total)


def _begun(screen: Screen) -> Any:
    from rich import progress

    bar = progress.Progress(
        progress.TextColumn(""),
        progress.BarColumn(),
        progress.TaskProgressColumn(),
        progress.TimeElapsedColumn(),
        progress.TextColumn("{task.description}", markup=False),
        console=screen.console,
    )
    bar.add_task("", total=1)
    bar.start()
    return bar


class FitBar(ProgressBar):
    """The bar of a fit, which shows its plan first and the epochs of a network.

    Parameters
    ----------
    planned : callable
        Called with the event of the plan before anything is fitted.
    quiet : bool
    """

    def __init__(self, planned: Callable[[Planned], None], quiet: bool) -> None:
        super().__init__(quiet)
        self.planned = planned
        self.stage = ""

    def __call__(self, event: Any) -> None:
        """Take an event of a fit."""
        from setpoint.fit.events import FitProgress, Planned
        from setpoint.training.events import EpochDone

        if isinstance(event, Planned):
            self.planned(event)
        elif isinstance(event, FitProgress):
            self.stage = event.words()
            super().__call__(event)
        elif isinstance(event, EpochDone) and self.stage:
            self.show(f"{self.stage}, epoch {event.epoch + 1}")


def plan_facts(plan: FitPlan) -> list[tuple[str, str]]:
    """The plan in words, as facts."""
    shown = [f"{_PLAN[label]}{words}" for label, words in plan.facts() if label in _PLAN]
    return [("" if i else "Plan", words) for i, words in enumerate(shown)]
