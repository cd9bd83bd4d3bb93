"""Rule, certificate, comparison, plan and diagnosis as a report tells them: plain data."""

from __future__ import annotations

from typing import Any

from setpoint.decisions import Certificate, DecisionRule, Plan
from setpoint.decisions.comparison import Comparison
from setpoint.decisions.outcome import same_point
from setpoint.decisions.plan import thinned
from setpoint.rules.certificate import NOT_PROVEN
from setpoint.reports.report_inputs import Diagnosed

VOID = (
    "The rows to come are unlike the tested ones (drift). Watch for it: feed labelled rows to the "
    "command setpoint monitor.",
    "The model, the way its columns are prepared, or the threshold is changed.",
    "The tested rows are used again: to tune, to choose among models, or for another rule.",
    "The label comes to mean something else, or the rows that get a label are picked by a new way.",
)
OPTIONS = 24  #: rules of a plan that are kept


def tell_rule(rule: DecisionRule) -> dict[str, Any]:
    """How scores become decisions, and how that was chosen."""
    return {
        "kind": rule.kind,
        "point": rule.operating_point(),
        "sentence": rule.sentence(),
        "search": rule.search,
        "rows": rule.rows,
        "feasible": rule.feasible,
        "binding": list(rule.binding),
        "chosen_on": None if rule.chosen_on is None else str(rule.chosen_on),
        "with_proof": rule.certificate is not None,
    }


def tell_certificate(certificate: Certificate, rule: DecisionRule) -> dict[str, Any]:
    """What was proven, under which assumption, and what would void it."""
    return {
        "verdict": certificate.verdict,
        "confidence": certificate.confidence,
        "rows": certificate.rows,
        "fingerprint": str(certificate.fingerprint),
        "point": certificate.point.operating_point(),
        "of_this_rule": same_point(certificate, rule),
        "assumption": certificate.assumption,
        "needed": certificate.needed,
        "findings": [
            {
                "constraint": f.constraint,
                "verdict": f.verdict,
                "value": f.value,
                "op": f.op,
                "asked": f.asked,
                "limit": f.limit(),
                "how": f.how,
                "evidence": [str(e) for e in f.evidence[:4]],
                "needed": f.needed,
                "sentence": f.sentence(),
                "way_out": f.way_out() if f.verdict == NOT_PROVEN else "",
            }
            for f in certificate.findings
        ],
        "void": list(VOID),
    }


def tell_comparison(comparison: Comparison) -> dict[str, Any]:
    """Who won, by how much, on which rows."""
    told = comparison.to_json()
    contenders = [{**c, "chosen": c["name"] == comparison.chosen} for c in told["contenders"]]
    return {**told, "contenders": contenders}


def tell_plan(plan: Plan) -> dict[str, Any]:
    """What more labels would buy."""
    told = plan.to_json()
    bounds = [c.number for c in plan.goal.constraints]
    needs = [
        {
            **need,
            "sentence": str(n),
            "asked": bound,
            "metric": str(c.left),
            "bounds": [pair for pair in need["bounds"] if pair[1] is not None],
        }
        for need, n, bound, c in zip(
            told["needs"], plan.needs, bounds, plan.goal.constraints, strict=True
        )
    ]
    options = [vars(option) for option in thinned(plan.options, OPTIONS)]
    objective = str(plan.goal.objective)
    return {**told, "needs": needs, "options": options, "objective": objective}


def tell_diagnosis(diagnosis: Diagnosed) -> dict[str, Any]:
    """Why the goal cannot be met, and the price of each limit."""
    return {"lines": [str(line) for line in diagnosis.lines()], "details": diagnosis.to_json()}
