"""The report as a page of plain text."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Mapping
from typing import Any

from setpoint._core.json_codec import number
from setpoint.reports.render.page import count, figure, span
from setpoint.reports.wording import labelled, signed

Record = Mapping[str, Any]
_WIDTH, _MARGIN = 100, 14


def text_of(record: Record) -> str:
    """The record in words: verdict, figures, certificate, comparison, checks, use."""
    facts, verdict = record["facts"], record["verdict"]
    lines = [verdict["status"], *_wrapped("", [verdict["headline"], verdict["detail"]])]
    data = f"{facts['source']}, {count(facts['rows'])} rows, fingerprint {facts['fingerprint']}"
    lines += _wrapped("Goal", [signed(record["goal"])])
    lines += _wrapped("Data", [f"{facts['target']} in {data}"])
    lines += _wrapped("Rule", [signed(record["rule"]["point"])])
    lines += _wrapped("Figures", _figures(record))
    certificate, compared = record["certificate"], record["comparison"]
    if certificate:
        found = [signed(f["sentence"]) + "." for f in certificate["findings"]]
        lines += _wrapped("Certificate", [*found, certificate["assumption"]])
    if compared:
        lines += _wrapped("Referee", [*_rivals(compared), signed(compared["sentence"])])
    if record["diagnosis"]:
        pairs = labelled(record["diagnosis"]["lines"])
        lines += _wrapped("Limits", [": ".join(filter(None, pair)) for pair in pairs])
    if record["plan"]:
        lines += _wrapped("Labels", [signed(n["sentence"]) for n in record["plan"]["needs"]])
    lines += _wrapped(
        "Checks", [f"{c['code']} {c['status']}: {c['sentence']}" for c in record["checks"]]
    )
    lines += _wrapped("Use", facts["usage"])
    return "\n".join(lines)


def _figures(record: Record) -> list[str]:
    """The figures of the rows that the report is about, one a line."""
    for found in record["figures"]:
        if found["on"] == record["main"]:
            where = f"on {found['on']} rows"
            where += ", never used before" if record["fresh"] else ""
            told = [f"{i['name']} {figure(i['value'])} [{span(i)}]" for i in found["items"]]
            return [*told, where]
    return []


def _rivals(compared: Record) -> list[str]:
    gaps = {d["name"]: d for d in compared["differences"]}
    lines = []
    for who in compared["contenders"]:
        words = f"{who['name']}: {figure(who['value'])}"
        if who["name"] in gaps:
            gap = gaps[who["name"]]
            value, low, high = (number(gap[k]) for k in ("value", "low", "high"))
            words += f" (difference {value:+.3f} [{low:+.3f}, {high:+.3f}])"
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
