"""The attributes of fitted estimators, each read from the record of the fit."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from setpoint._core.notes import texts
from setpoint.datasets.class_labels import ClassLabels
from setpoint.decisions import Certificate, Comparison, DecisionRule
from setpoint.fit.conclusion.stack import Stack
from setpoint.fit.fold_models import Model
from setpoint.fit.plan import FitPlan
from setpoint.fit.regression.regression_comparison import RegressionComparison
from setpoint.fit.regression.regression_pipeline import RegressionPlan, RegressionRun
from setpoint.fit.run_record import ClassifierRun, FittedRun
from setpoint.goals import Task
from setpoint.reports import Report


class RunAttributes:
    """Read-only attributes over ``run_``, as scikit-learn names what a fit gave."""

    run_: FittedRun

    @property
    def _run(self) -> FittedRun:
        """The record of the fit; raises where there is none yet."""
        check_is_fitted(self, "run_")
        return self.run_

    @property
    def notes_(self) -> tuple[str, ...]:
        """What was chosen and why; ``run_.notes`` has the same with codes."""
        return texts(self._run.notes)

    @property
    def history_(self) -> list[dict[str, Any]]:
        """One row per epoch of every network."""
        return self._run.history

    @property
    def members_(self) -> dict[str, list[Model]]:
        """The fitted models, by member, one of each fold."""
        return dict(self._run.models)

    @property
    def model_(self) -> Any:
        """The one model where there is one, as its library knows it; else all of them by member."""
        models = self._run.all_models
        return models[0].own if len(models) == 1 else self.members_

    @property
    def finished_(self) -> bool:
        """False where it was interrupted."""
        return self._run.finished


class ClassifierAttributes(RunAttributes):
    """Attributes of a fitted classifier."""

    run_: ClassifierRun

    @property
    def _run(self) -> ClassifierRun:
        check_is_fitted(self, "run_")
        return self.run_

    @property
    def classes_(self) -> np.ndarray:
        """The classes; of a multilabel task the labels."""
        return self._run.labels.classes

    @property
    def task_(self) -> Task:
        """The task, with its classes and what the scores are."""
        return self._run.labels.task

    @property
    def rule_(self) -> DecisionRule:
        """The operating point."""
        return self._run.rule

    @property
    def certificate_(self) -> Certificate | None:
        """What the certify rows prove."""
        return self._run.certificate

    @property
    def comparison_(self) -> Comparison | None:
        """What the goal bought over the baselines."""
        return self._run.comparison

    @property
    def report_(self) -> Report:
        """The report: text, JSON, HTML and a model card."""
        return self._run.report

    @property
    def plan_(self) -> FitPlan:
        """The chain from the goal to the rule."""
        return self._run.plan

    @property
    def stack_(self) -> Stack:
        """How members are weighed."""
        return self._run.stack

    @property
    def _labels(self) -> ClassLabels:
        return self._run.labels


class RegressorAttributes(RunAttributes):
    """Attributes of a fitted regressor."""

    run_: RegressionRun

    @property
    def _run(self) -> RegressionRun:
        check_is_fitted(self, "run_")
        return self.run_

    @property
    def task_(self) -> Task:
        """The task, with the bins and groups that were used."""
        return self._run.task

    @property
    def comparison_(self) -> RegressionComparison:
        """What every member reached on the held rows, and which was taken."""
        return self._run.comparison

    @property
    def plan_(self) -> RegressionPlan:
        """What the fit did."""
        return self._run.plan

    @property
    def certificate_(self) -> None:
        """None: errors have no upper bound, so no number of rows proves a bound on their mean."""
        check_is_fitted(self, "run_")
