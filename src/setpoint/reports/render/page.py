"""The page: one HTML file with its style and its figures inside, drawn from the record alone."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

from setpoint._core.errors import FileError
from setpoint._core.json_codec import number
from setpoint.goals import Goal
from setpoint.reports.render.comparison_figures import (
    bounds_figure,
    classes_figure,
    comparison_figure,
    groups_figure,
    options_figure,
)
from setpoint.reports.render.score_figures import (
    calibration_figure,
    distribution_figure,
    pr_figure,
    roc_figure,
    tradeoff_figure,
)
from setpoint.reports.wording import labelled, percent, signed

Record = Mapping[str, Any]
_FOLDER = resources.files("setpoint.reports.render") / "templates"
DRAWN_GROUPS = 2  #: group columns that get a figure
DRAWN_NEEDS = 3  #: limits whose provable bound is drawn

#: status -> (class of the style sheet, what is drawn beside it)
TONES = {
    "PROVEN": ("good", "check"),
    "NOT PROVEN": ("open", "question"),
    "REFUTED": ("bad", "cross"),
    "NOT FEASIBLE": ("bad", "barred"),
    "NO CONSTRAINT": ("plain", "dash"),
}


def page_of(record: Record) -> str:
    """The HTML of a record; every text in it is escaped."""
    import jinja2
    from markupsafe import Markup

    drawings = {key: [Markup(svg) for svg in found] for key, found in figures_of(record).items()}
    try:
        return _template().render(
            r=record,
            drawn=drawings,
            style=Markup(_FOLDER.joinpath("page.css").read_text(encoding="utf-8")),
            tone=TONES[record["verdict"]["status"]],
            told=told_intervals(record),
            pages=sections(record),
        )
    except jinja2.UndefinedError as error:
        raise FileError(f"this report is damaged: {error.message}. Make it again") from error


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
        figure=figure, share=share, count=count, signed=signed, span=span, part=part, at=number,
        labelled=labelled,
    )  # fmt: skip
    return environment.get_template("page.html.j2")


def figures_of(record: Record) -> dict[str, list[str]]:
    """Every figure of a record by section, as SVG."""
    main = record["main"] or ""
    found: dict[str, list[str]] = {}
    trade, curves = record["tradeoff"], record["curves"]
    if trade:
        found["tradeoff"] = [
            tradeoff_figure(f"trade{i}", panel, trade["objective"], trade["sense"], main)
            for i, panel in enumerate(trade["panels"])
        ]
    if curves:
        found["curves"] = [
            pr_figure("pr", curves, _point(record, "recall", "precision"), main),
            roc_figure("roc", curves, _point(record, "fpr", "recall"), main),
        ]
    if record["confusion"] and "classes" in record["confusion"]:
        found["classes"] = [classes_figure("classes", record["confusion"])]
    if record["distribution"]:
        named = record["task"]["named"]
        found["spread"] = [distribution_figure("spread", record["distribution"], named)]
    if record["calibration"]:
        found["calibration"] = [calibration_figure("calibration", record["calibration"])]
    found["groups"] = [
        groups_figure(f"group{i}", table) for i, table in enumerate(record["groups"][:DRAWN_GROUPS])
    ]
    if record["comparison"] and record["comparison"]["differences"]:
        objective = str(Goal.parse(record["lowered"]).objective)
        found["comparison"] = [comparison_figure("compare", record["comparison"], objective)]
    if record["plan"]:
        found["plan"] = plan_figures(record["plan"])
    return found


def plan_figures(plan: Record) -> list[str]:
    """What more labels would buy, and what they would prove."""
    found = [options_figure("options", plan)] if plan["options"] else []
    needs = [need for need in plan["needs"] if need["bounds"]][:DRAWN_NEEDS]
    return found + [bounds_figure(f"need{i}", need, plan) for i, need in enumerate(needs)]


def _point(record: Record, x: str, y: str) -> dict[str, Any] | None:
    """The rule on a curve, from the key figures of the rows that are drawn."""
    people = {p["name"]: p["value"] for p in (record["confusion"] or {}).get("people", ())}
    if (record["confusion"] or {}).get("abstains") or None in (people.get(x), people.get(y)):
        return None
    return {"x": people[x], "y": people[y]}


def told_intervals(record: Record) -> list[str]:
    """The kinds of interval of the key figures, each with the metrics it is for."""
    kinds: dict[str, list[str]] = {}
    for item in next((f["items"] for f in record["figures"] if f["on"] == record["main"]), ()):
        if item["how"]:
            kinds.setdefault(item["how"], []).append(item["name"])
    return [f"{', '.join(dict.fromkeys(names))}: {how}" for how, names in kinds.items()]


def sections(record: Record) -> list[tuple[str, str]]:
    """Anchors and titles of the sections that are there."""
    scores = record["curves"] or record["distribution"] or record["calibration"]
    binary = record["task"]["kind"] == "binary"
    all_of = (
        ("figures", "Key figures", record["figures"]),
        ("tradeoff", "Trade-off", record["tradeoff"]),
        ("limits", "Limits", record["diagnosis"]),
        ("people", "In people" if binary else "Decisions", record["confusion"]),
        ("groups", "Groups", record["groups"]),
        ("certificate", "Certificate", record["certificate"]),
        ("comparison", "Comparison", record["comparison"]),
        ("plan", "More labels", record["plan"]),
        ("scores", "Scores", scores),
        ("checks", "Checks", record["checks"]),
        ("threshold", "Threshold", True),
        ("use", "Use", record["facts"]["usage"]),
        ("reproduce", "Reproduce", True),
    )
    return [(anchor, title) for anchor, title, there in all_of if there]


# --- words for numbers -----------------------------------------------------------------------


def figure(x: Any) -> str:
    """A number of a table: three decimals, or what is needed for a small one.

    Examples
    --------
    >>> figure(0.79268), figure(0.00123), figure(None), figure("inf"), figure(1234.5)
    ('0.793', '0.00123', '–', 'none', '1,234')
    """
    value = number(x)
    if value != value:
        return "–"
    if abs(value) == float("inf"):
        return "none"
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.3f}" if abs(value) >= 0.01 or value == 0 else f"{value:.3g}"


def span(item: Record) -> str:
    """The interval of a figure."""
    if item["low"] is None and item["high"] is None:
        return "–"
    return f"{figure(item['low'])} to {figure(item['high'])}"


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
