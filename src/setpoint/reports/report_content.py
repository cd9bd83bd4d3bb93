"""Content of a report: every section as a record, from which page, text and card are drawn."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from setpoint._core.json_codec import Record
from setpoint.reports.checks.check_record import Check
from setpoint.reports.report_inputs import RunFacts
from setpoint.reports.sections.confusion import Confusion
from setpoint.reports.sections.groups import GroupTable
from setpoint.reports.sections.key_figures import (
    OBJECTIVE,
    FiguresOnRows,
    KeyFigure,
    RowsSummary,
)
from setpoint.reports.sections.score_distribution import Reliability, ScoreDistribution
from setpoint.reports.sections.summaries import (
    CertificateSummary,
    ComparisonSummary,
    DiagnosisSummary,
    PlanSummary,
    RuleSummary,
)
from setpoint.reports.sections.threshold_curves import ThresholdCurves
from setpoint.reports.sections.tradeoff import Tradeoff
from setpoint.reports.verdict import VerdictSection

FORMAT = "setpoint report 1"


@dataclass(frozen=True)
class TaskSection(Record):
    """The task, and how rows of the positive class are spoken of."""

    kind: str
    score: str
    classes: tuple[str, ...]
    named: str
    are: str
    them: str


@dataclass(frozen=True)
class LeftOutSection(Record):
    """A section that is not there, and why."""

    what: str
    why: str


@dataclass(frozen=True, eq=False, kw_only=True)
class ReportContent(Record):
    """The sections in the order of ``report.json``; None where one does not apply.

    Attributes
    ----------
    lowered : str
        The goal in the terms that are measured.
    main : str or None
        The name of the rows that the report is about.
    fresh : bool
        Whether those rows had no part in training or choosing.
    chosen_here : bool
        Whether the rule was chosen on them, with proof.
    """

    format: Literal["setpoint report 1"] = FORMAT
    goal: str
    lowered: str
    task: TaskSection
    verdict: VerdictSection
    facts: RunFacts
    rule: RuleSummary
    rows: tuple[RowsSummary, ...]
    figures: tuple[FiguresOnRows, ...]
    main: str | None
    fresh: bool
    chosen_here: bool
    tradeoff: Tradeoff | None
    curves: ThresholdCurves | None
    confusion: Confusion | None
    distribution: ScoreDistribution | None
    calibration: Reliability | None
    groups: tuple[GroupTable, ...]
    comparison: ComparisonSummary | None
    certificate: CertificateSummary | None
    plan: PlanSummary | None
    diagnosis: DiagnosisSummary | None
    checks: tuple[Check, ...]
    left_out: tuple[LeftOutSection, ...] = ()

    @property
    def key_figures(self) -> tuple[KeyFigure, ...]:
        """The figures of the rows that the report is about."""
        return next((f.items for f in self.figures if f.on == self.main), ())

    @property
    def objective(self) -> str:
        """The objective by its name; "the objective" where nothing was measured."""
        figures = (f.name for f in self.key_figures if f.role == OBJECTIVE)
        return next(figures, "the objective")
