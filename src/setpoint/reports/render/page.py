"""Page of a report: one HTML file with its style and its figures inside."""

from __future__ import annotations

from functools import cache
from importlib import resources
from typing import Any

from setpoint._core.json_codec import number
from setpoint.decisions.outcome import Outcome
from setpoint.reports.render.comparison_figures import (
    bounds_figure,
    classes_figure,
    comparison_figure,
    groups_figure,
    options_figure,
)
from setpoint.reports.render.palette import css_variables
from setpoint.reports.render.score_figures import (
    calibration_figure,
    distribution_figure,
    pr_figure,
    roc_figure,
    tradeoff_figure,
)
from setpoint.reports.report_content import ReportContent
from setpoint.reports.sections.confusion import BinaryConfusion, Confusion, ShareOfRows
from setpoint.reports.sections.key_figures import KeyFigure
from setpoint.reports.sections.summaries import PlanSummary
from setpoint.reports.wording import labelled, percent, signed

_FOLDER = resources.files("setpoint.reports.render") / "templates"
DRAWN_GROUPS = 2  #: group columns that get a drawing; all have a table
DRAWN_NEEDS = 3  #: limits whose provable bound is drawn; all have a sentence

#: outcome -> (class of the style sheet, what is drawn beside it)
TONES = {
    Outcome.PROVEN: ("good", "check"),
    Outcome.NOT_PROVEN: ("open", "question"),
    Outcome.REFUTED: ("bad", "cross"),
    Outcome.NOT_FEASIBLE: ("bad", "barred"),
    Outcome.NO_CONSTRAINT: ("plain", "dash"),
}


def page_of(report: ReportContent) -> str:
    """The HTML of a report; every text in it is escaped."""
    from markupsafe import Markup

    style = _FOLDER.joinpath("page.css").read_text(encoding="utf-8")
    drawings = {key: [Markup(svg) for svg in svgs] for key, svgs in drawings_of(report).items()}
    return _template().render(
        r=report,
        drawn=drawings,
        style=Markup(f"{css_variables()}\n{style}"),
        tone=TONES[report.verdict.status],
        intervals=interval_kinds(report),
        pages=sections(report),
    )


@cache
def _template() -> Any:
    """The page without its contents; compiled once."""
    import jinja2

    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(lambda n: _FOLDER.joinpath(n).read_text(encoding="utf-8")),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters.update(
        at=number,
        count=count,
        labelled=labelled,
        number=shown_number,
        part=part,
        share=share,
        signed=signed,
        span=span,
    )
    return environment.get_template("page.html.j2")


def drawings_of(report: ReportContent) -> dict[str, list[str]]:
    """Every drawing of a report by section, as SVG."""
    main = report.main or ""
    drawings: dict[str, list[str]] = {}
    if report.tradeoff:
        trade = report.tradeoff
        drawings["tradeoff"] = [
            tradeoff_figure(f"trade{i}", panel, trade.objective, main)
            for i, panel in enumerate(trade.panels)
        ]
    if report.curves:
        drawings["curves"] = [
            pr_figure("pr", report.curves, _point(report.confusion, "recall", "precision"), main),
            roc_figure("roc", report.curves.roc, _point(report.confusion, "fpr", "recall"), main),
        ]
    if report.confusion and not isinstance(report.confusion, BinaryConfusion):
        drawings["classes"] = [classes_figure("classes", report.confusion)]
    if report.distribution:
        drawings["spread"] = [distribution_figure("spread", report.distribution, report.task.named)]
    if report.calibration:
        drawings["calibration"] = [calibration_figure("calibration", report.calibration)]
    drawings["groups"] = [
        groups_figure(f"group{i}", table) for i, table in enumerate(report.groups[:DRAWN_GROUPS])
    ]
    if report.comparison and report.comparison.differences:
        drawings["comparison"] = [comparison_figure("compare", report.comparison, report.objective)]
    if report.plan:
        drawings["plan"] = plan_drawings(report.plan)
    return drawings


def plan_drawings(plan: PlanSummary) -> list[str]:
    """What more labels would buy, and what they would prove."""
    options = [options_figure("options", plan)] if plan.options else []
    needs = [need for need in plan.needs if need.bounds][:DRAWN_NEEDS]
    return options + [bounds_figure(f"need{i}", need) for i, need in enumerate(needs)]


def _point(confusion: Confusion | None, x: str, y: str) -> tuple[float, float] | None:
    """The rule on a curve, from the shares of the rows that are drawn."""
    if not isinstance(confusion, BinaryConfusion) or confusion.abstains:
        return None
    shares = {share.name: share.value for share in confusion.people}
    horizontal = shares[x]
    vertical = shares[y]
    return None if horizontal is None or vertical is None else (horizontal, vertical)


def interval_kinds(report: ReportContent) -> list[str]:
    """The kinds of interval of the key figures, each with the metrics it is for."""
    kinds: dict[str, list[str]] = {}
    for item in report.key_figures:
        if item.how:
            kinds.setdefault(item.how, []).append(item.name)
    return [f"{', '.join(dict.fromkeys(names))}: {how}" for how, names in kinds.items()]


def sections(report: ReportContent) -> list[tuple[str, str]]:
    """Anchors and titles of the sections that are there."""
    binary = report.task.kind == "binary"
    all_of = (
        ("figures", "Key figures", report.figures),
        ("tradeoff", "Trade-off", report.tradeoff),
        ("limits", "Limits", report.diagnosis),
        ("people", "In people" if binary else "Decisions", report.confusion),
        ("groups", "Groups", report.groups),
        ("certificate", "Certificate", report.certificate),
        ("comparison", "Comparison", report.comparison),
        ("plan", "More labels", report.plan),
        ("scores", "Scores", report.curves or report.distribution or report.calibration),
        ("checks", "Checks", report.checks),
        ("threshold", "Threshold", True),
        ("use", "Use", report.facts.usage),
        ("reproduce", "Reproduce", True),
    )
    return [(anchor, title) for anchor, title, section in all_of if section]


# --- words for numbers -----------------------------------------------------------------------


def shown_number(x: Any) -> str:
    """A number of a table: three decimals, or what is needed for a small one.

    Examples
    --------
    >>> [shown_number(x) for x in (0.79268, 0.00123, None, "inf", 1234.5)]
    ['0.793', '0.00123', '–', 'none', '1,234']
    """
    value = number(x)
    if value != value:
        return "–"
    if abs(value) == float("inf"):
        return "none"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3f}" if abs(value) >= 0.01 or value == 0 else f"{value:.3g}"


def span(item: KeyFigure | ShareOfRows) -> str:
    """The interval of a figure."""
    if item.low is None and item.high is None:
        return "–"
    return f"{shown_number(item.low)} to {shown_number(item.high)}"


def share(x: Any) -> str:
    """A share in percent."""
    return "–" if x is None else percent(number(x))


def count(x: Any) -> str:
    """A number of rows."""
    return "–" if x is None else f"{int(x):,}"


def part(x: Any) -> str:
    """A share of a thousand rows: a whole number, or "fewer than 1"."""
    value = number(x)
    if value != value:
        return "–"
    if 0 < value < 0.001:
        return "fewer than 1"
    return f"{round(1000 * value):,}"
