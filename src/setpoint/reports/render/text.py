"""Report as a page of plain text."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable

from setpoint.reports.render.page import count, shown_number, span
from setpoint.reports.report_content import ReportContent
from setpoint.reports.sections.summaries import ComparisonSummary
from setpoint.reports.wording import labelled, signed

_WIDTH = 100  # columns of a line, as long as those of our own source
_MARGIN = 14  # columns of the titles; the longest is "Certificate"


def text_of(report: ReportContent) -> str:
    """The report in words: verdict, figures, certificate, comparison, checks, use."""
    facts = report.facts
    verdict = report.verdict
    lines = [verdict.status, *_wrapped("", [verdict.headline, verdict.detail])]
    data = f"{facts.source}, {count(facts.rows)} rows, fingerprint {facts.fingerprint}"
    lines += _wrapped("Goal", [signed(report.goal)])
    lines += _wrapped("Data", [f"{facts.target} in {data}"])
    lines += _wrapped("Rule", [signed(report.rule.point)])
    lines += _wrapped("Figures", _figures(report))
    if report.certificate:
        findings = [signed(f.sentence) + "." for f in report.certificate.findings]
        lines += _wrapped("Certificate", [*findings, report.certificate.assumption])
    if report.comparison:
        verdict_of_it = signed(report.comparison.sentence)
        lines += _wrapped("Referee", [*_contenders(report.comparison), verdict_of_it])
    if report.diagnosis:
        pairs = labelled(report.diagnosis.lines)
        lines += _wrapped("Limits", [": ".join(filter(None, pair)) for pair in pairs])
    if report.plan:
        lines += _wrapped("Labels", [signed(need.sentence) for need in report.plan.needs])
    lines += _wrapped("Checks", [f"{c.code} {c.status}: {c.sentence}" for c in report.checks])
    lines += _wrapped("Use", facts.usage)
    return "\n".join(lines)


def _figures(report: ReportContent) -> list[str]:
    """The figures of the rows that the report is about, one a line."""
    if not report.key_figures:
        return []
    where = f"on {report.main} rows" + (", never used before" if report.fresh else "")
    figures = [f"{i.name} {shown_number(i.value)} [{span(i)}]" for i in report.key_figures]
    return [*figures, where]


def _contenders(comparison: ComparisonSummary) -> list[str]:
    differences = {d.name: d for d in comparison.differences}
    lines = []
    for contender in comparison.contenders:
        words = f"{contender.name}: {shown_number(contender.value)}"
        if contender.name in differences:
            d = differences[contender.name]
            words += f" (difference {d.value:+.3f} [{d.low:+.3f}, {d.high:+.3f}])"
        lines.append(words)
    return lines


def _wrapped(title: str, paragraphs: Iterable[str]) -> list[str]:
    """Paragraphs with the title in the margin of the first line."""
    lines: list[str] = []
    for text in filter(None, paragraphs):
        first = f"{title:<{_MARGIN}}" if not lines else " " * _MARGIN
        lines += textwrap.wrap(
            text,
            _WIDTH,
            initial_indent=first if title else "",
            subsequent_indent=" " * _MARGIN if title else "",
            break_long_words=False,
        )
    return lines
