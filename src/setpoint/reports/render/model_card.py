"""Model card: YAML front matter as Hugging Face reads it, and Markdown."""

from __future__ import annotations

import json
from html import escape
from typing import Any

from setpoint.reports.checks.check_record import LOOK
from setpoint.reports.render.page import count, share, shown_number, span
from setpoint.reports.report_content import ReportContent
from setpoint.reports.wording import labelled, signed

_SMALL_GROUPS = 8  # named in a line of the limitations: more would hide the others


def card_of(report: ReportContent) -> str:
    """The card of a report; text of users is quoted in YAML and escaped in Markdown."""
    return f"---\n{_front(report)}---\n\n{_body(report)}"


def _front(report: ReportContent) -> str:
    """The front matter. A JSON string is a YAML string, whatever it holds."""
    facts = report.facts
    lines = [
        "library_name: setpoint",
        "pipeline_tag: tabular-classification",
        "tags:",
        "- tabular-classification",
        "- setpoint",
        f"- {json.dumps(report.verdict.status.lower())}",
    ]
    figures = [figure for figure in report.key_figures if figure.value is not None]
    if figures:
        lines += [
            "model-index:",
            f"- name: {json.dumps(facts.target)}",
            "  results:",
            "  - task:",
            "      type: tabular-classification",
            "    dataset:",
            f"      name: {json.dumps(facts.source)}",
            f"      type: {json.dumps(facts.source)}",
            f"      split: {json.dumps(report.main)}",
            "    metrics:",
        ]
        for item in figures:
            lines += [
                f"    - type: {json.dumps(item.name)}",
                f"      value: {item.value:.6g}",
                f"      name: {json.dumps(item.name + ', 95% interval ' + span(item))}",
            ]
    return "\n".join(lines) + "\n"


def _body(report: ReportContent) -> str:
    facts = report.facts
    verdict = report.verdict
    parts = [
        f"# {_safe(facts.target)} in {_safe(facts.source)}",
        f"**{verdict.status}.** {_safe(verdict.headline)}",
        _safe(verdict.detail),
        "## The goal",
        f"    {signed(report.goal)}",
        f"Decided by {_safe(signed(report.rule.point))}.",
        *_figures(report),
        *_proof(report),
        *_compared(report),
        *_cost(report),
        "## How to use it",
        _code(facts.usage),
        "## Training data",
        f"{_safe(facts.source)}: {count(facts.rows)} rows, target {_safe(facts.target)}, "
        f"fingerprint {_span(facts.fingerprint)}.",
        _list(_part(name, *sizes) for name, sizes in facts.parts.items()),
        *_limitations(report),
        "## How it was made",
        _list(map(_labelled, labelled((*facts.plan, *facts.notes)))),
        _list(f"{_safe(k)}: {_span(v)}" for k, v in facts.settings.items()),
        _list(f"{_safe(k)} {_safe(v)}" for k, v in facts.versions.items()),
        "`report.html` beside this card has the figures, `report.json` every number.",
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def _figures(report: ReportContent) -> list[str]:
    if not report.key_figures:
        return []
    where = "rows never used before" if report.fresh else "rows that also chose the rule"
    table = ["| figure | value | 95% interval |", "|---|---|---|"]
    table += [
        f"| {_safe(i.name)} | {shown_number(i.value)} | {span(i)} |" for i in report.key_figures
    ]
    return [f"## Figures on {where} ({_safe(report.main)})", "\n".join(table)]


def _proof(report: ReportContent) -> list[str]:
    certificate = report.certificate
    if not certificate:
        return []
    return [
        f"## The certificate, at {share(certificate.confidence)} confidence",
        _list(_safe(signed(f.sentence)) + "." for f in certificate.findings),
        _safe(certificate.assumption),
        "It is void if:",
        _list(_safe(line) for line in certificate.void),
    ]


def _compared(report: ReportContent) -> list[str]:
    if not report.comparison:
        return []
    return ["## Compared with baselines", _safe(signed(report.comparison.sentence))]


def _cost(report: ReportContent) -> list[str]:
    if not report.diagnosis:
        return []
    return ["## What the limits cost", _list(map(_labelled, labelled(report.diagnosis.lines)))]


def _limitations(report: ReportContent) -> list[str]:
    """What a reader should know before relying on it."""
    lines = [f"{c.code} {c.title}: {c.sentence}" for c in report.checks if c.status == LOOK]
    for table in report.groups:
        small = [group.value for group in table.groups if group.small]
        if small:
            lines.append(f"Few rows by {table.column}: {', '.join(small[:_SMALL_GROUPS])}.")
    if not report.facts.finished:
        lines.append("The run was stopped before its plan was done.")
    return ["## Limitations", _list(_safe(signed(line)) for line in lines)] if lines else []


def _part(name: str, rows: int, positives: int | None) -> str:
    positive = "" if positives is None else f", {count(positives)} positive"
    return f"{_safe(name)}: {count(rows)} rows{positive}"


def _list(lines: Any) -> str:
    return "\n".join(f"- {line}" for line in lines)


def _code(lines: Any) -> str:
    return "\n".join(f"    {part}" for line in lines for part in line.splitlines())


def _labelled(pair: tuple[str, str]) -> str:
    return ": ".join(map(_safe, filter(None, pair)))


def _span(text: Any) -> str:
    """Text of a user as code; a browser must not see a tag even where a reader gets it wrong."""
    return f"`{' '.join(str(text).split()).replace('`', chr(39)).replace('<', '&lt;')}`"


def _safe(text: Any) -> str:
    """Text of a user in Markdown: no HTML, no table cells, no line breaks of its own."""
    plain = " ".join(str(text).split())
    return escape(plain, quote=False).replace("|", "\\|").replace("`", "'")
