"""Events of a fit, as its listeners get them."""

from __future__ import annotations

from dataclasses import dataclass

from setpoint._core.progress import Progress
from setpoint.fit.plan import FitPlan
from setpoint.training.events import TrainingEvent


@dataclass(frozen=True)
class Planned(TrainingEvent):
    """The plan is made, and nothing has been fitted yet."""

    plan: FitPlan
    fingerprint: str  #: of cells and labels


@dataclass(frozen=True, kw_only=True)
class FitProgress(Progress, TrainingEvent):
    """A step of a fit: ``done`` of ``total`` fits, and the member that is fitted."""

    fold: int = 0
    folds: int = 0
    best: str = ""

    @property
    def member(self) -> str:
        """The member that is fitted."""
        return self.what

    def words(self) -> str:
        """The member, its fold, and the best model so far."""
        fold = f", fold {self.fold}/{self.folds}" if self.folds > 1 else ""
        best = f", best {self.best}" if self.best else ""
        return f"{self.member}{fold}{best}"
