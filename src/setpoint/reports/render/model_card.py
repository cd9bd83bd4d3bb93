"""The model card: YAML front matter as Hugging Face reads it, and Markdown."""

from __future__ import annotations

import json
from collections.abc import Mapping
from html import escape
from typing import Any

from setpoint._core.json_codec import number
from setpoint.reports.render.page import count, figure, share, span
from setpoint.reports.wording import labelled, signed

Record = Mapping[str, Any]


def card_of(record: Record) -> str:
    """The card of a record; text of users is quoted in YAML and escaped in Markdown."""
    return f"---\n{_front(record)}---\n\n{_body(record)}"


def _front(record: Record) -> str:
    """The front matter. A JSON string is a YAML string, whatever it holds."""
    facts = record["facts"]
    lines = [
        "library_name: setpoint",
        "pipeline_tag: tabular-classification",
        "tags:",
        "- tabular-classification",
        "- setpoint",
        *([f"- {json.dumps(record['verdict']['status'].lower())}"]),
    ]
    items = [i for i in _items(record) if i["value"] is not None]
    if items:
        lines += [
            "model-index:",
            f"- name: {json.dumps(facts['target'])}",
            "  results:",
            "  - task:",
            "      type: tabular-classification",
            "    dataset:",
            f"      name: {json.dumps(facts['source'])}",
            f"      type: {json.dumps(facts['source'])}",
            f"      split: {json.dumps(record['main'])}",
            "    metrics:",
        ]
        for item in items:
            lines += [
                f"    - type: {json.dumps(item['name'])}",
                f"      value: {number(item['value']):.6g}",
                f"      name: {json.dumps(item['name'] + ', 95% interval ' + span(item))}",
            ]
    return "\n".join(lines) + "\n"


def _items(record: Record) -> list[Any]:
    return next((f["items"] for f in record["figures"] if f["on"] == record["main"]), [])


def _body(record: Record) -> str:
    facts, verdict, rule = record["facts"], record["verdict"], record["rule"]
    parts = [
        f"# {_safe(facts['target'])} in {_safe(facts['source'])}",
        f"**{verdict['status']}.** {_safe(verdict['headline'])}",
        _safe(verdict["detail"]),
        "## The goal",
        f"    {signed(record['goal'])}",
        f"Decided by {_safe(signed(rule['point']))}.",
        *_figures(record),
        *_proof(record),
        *_compared(record),
        *_cost(record),
        "## How to use it",
        _code(facts["usage"]),
        "## Training data",
        f"{_safe(facts['source'])}: {count(facts['rows'])} rows, target {_safe(facts['target'])}, "
        f"fingerprint {_span(facts['fingerprint'])}.",
        _list(_part(name, sizes) for name, sizes in facts["parts"].items()),
        *_limitations(record),
        "## How it was made",
        _list(map(_labelled, labelled((*facts["plan"], *facts["notes"])))),
        _list(f"{_safe(k)}: {_span(v)}" for k, v in facts["settings"].items()),
        _list(f"{_safe(k)} {_safe(v)}" for k, v in facts["versions"].items()),
        "`report.html` beside this card has the figures, `report.json` every number.",
    ]
    return "\n\n".join(filter(None, parts)) + "\n"


def _figures(record: Record) -> list[str]:
    items = _items(record)
    if not items:
        return []
    where = "rows never used before" if record["fresh"] else "rows that also chose the rule"
    table = ["| figure | value | 95% interval |", "|---|---|---|"]
    table += [f"| {_safe(i['name'])} | {figure(i['value'])} | {span(i)} |" for i in items]
    return [f"## Figures on {where} ({_safe(record['main'])})", "\n".join(table)]


def _proof(record: Record) -> list[str]:
    certificate = record["certificate"]
    if not certificate:
        return []
    found = [_safe(signed(f["sentence"])) + "." for f in certificate["findings"]]
    return [
        f"## The certificate, at {share(certificate['confidence'])} confidence",
        _list(found),
        _safe(certificate["assumption"]),
        "It is void if:",
        _list(_safe(line) for line in certificate["void"]),
    ]


def _compared(record: Record) -> list[str]:
    compared = record["comparison"]
    if not compared:
        return []
    return ["## Compared with baselines", _safe(signed(compared["sentence"]))]


def _cost(record: Record) -> list[str]:
    if not record["diagnosis"]:
        return []
    pairs = labelled(record["diagnosis"]["lines"])
    return ["## What the limits cost", _list(map(_labelled, pairs))]


def _limitations(record: Record) -> list[str]:
    """What a reader should know before relying on it."""
    lines = [f"{c['code']} {c['title']}: {c['sentence']}" for c in record["checks"]
             if c["status"] == "look"]  # fmt: skip
    for table in record["groups"]:
        small = [g["value"] for g in table["groups"] if g["small"]]
        if small:
            lines.append(f"Few rows by {table['column']}: {', '.join(small[:8])}.")
    if not record["facts"]["finished"]:
        lines.append("The run was stopped before its plan was done.")
    return ["## Limitations", _list(_safe(signed(line)) for line in lines)] if lines else []


def _part(name: str, sizes: Any) -> str:
    positive = "" if sizes[1] is None else f", {count(sizes[1])} positive"
    return f"{_safe(name)}: {count(sizes[0])} rows{positive}"


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
