"""A certificate on the screen: what is proven, by which rows, under which assumption."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Text

from setpoint._core.errors import GoalError, KindError
from setpoint._core.words import listing
from setpoint.cli.display.terminal import Screen
from setpoint.cli.words import count, number
from setpoint.decisions import Certificate, Evidence, Finding
from setpoint.goals import Constraint, Goal
from setpoint.rules.certificate import NOT_PROVEN, PROVEN, REFUTED

_NONE = "–"
_MOST_LINES = 3  #: more rates than these behind one bound are counted, not listed
_STYLES = {PROVEN: "green", NOT_PROVEN: "yellow", REFUTED: "bold red"}


def show_certificate(
    screen: Screen, proof: Certificate, decided: Sequence[tuple[str, str]]
) -> None:
    """Objective and constraints as a table, then the verdict and what it rests on.

    ``decided`` says how many rows are decided, from
    :func:`setpoint.cli.display.rule_view.decided_facts`.
    """
    goal = proof.goal
    low, high = proof.interval
    rows: list[tuple[str | Text, ...]] = [
        (
            f"{goal.sense} {goal.objective}",
            number(proof.value),
            _NONE,
            _NONE if proof.value is None else f"{number(low)} to {number(high)}",
            _NONE,
            _NONE,
        )
    ]
    for constraint, found in zip(goal.constraints, proof.findings, strict=True):
        rows.append(
            (
                _name(constraint),
                number(found.value),
                f"{found.op} {number(found.asked)}",
                _bound(found),
                _rows_behind(found.evidence),
                Text(found.verdict, _STYLES[found.verdict]),
            )
        )
    headers = ("", "here", "asked", "bound", "k of n", "")
    legend = f"bound: on all rows like these, at {100 * proof.confidence:g}% confidence"
    screen.table(headers, rows, numeric=(1,), solid=(2, 3, 4, 5), spare=(4,), legend=legend)
    screen.facts([*_verdict(proof), *decided, *_grounds(proof)])


def _verdict(proof: Certificate) -> list[tuple[str, str]]:
    """What is proven, and what would settle the rest."""
    promise = listing((f.constraint for f in proof.findings), most=99)
    facts = [(proof.verdict, f"at {100 * proof.confidence:g}% confidence: {promise}")]
    several = len(proof.findings) > 1
    for found in proof.findings:
        if found.verdict == NOT_PROVEN:
            which = f"{found.constraint}: " if several else ""
            facts.append(("Labels needed", f"{which}{found.way_out()}"))
    return facts


def _grounds(proof: Certificate) -> list[tuple[str, str]]:
    """What the verdict rests on."""
    ways = {_name(c): f.how for c, f in zip(proof.goal.constraints, proof.findings, strict=True)}
    ways[str(proof.goal.objective)] = proof.interval_how
    same = len(set(ways.values())) == 1
    how = proof.interval_how if same else "; ".join(f"{n}: {way}" for n, way in ways.items())
    return [("Bounds by", how), ("Assumption", proof.assumption)]


def told_short(proof: Certificate) -> str:
    """The certificate in one line."""
    return (
        f"{proof.verdict} at {100 * proof.confidence:g}% on {count(proof.rows, 'row')} "
        f"(fingerprint {proof.fingerprint})"
    )


def refuse_unprovable(goal: Goal) -> None:
    """Raise where a goal promises nothing, before rows are used up on it."""
    if not goal.constraints:
        raise GoalError(
            f'"{goal}" promises nothing that could be proven; add a constraint, for example '
            f'"{goal} subject to precision >= 0.9".'
        )


def refuse_weights(weight: str | None, weight_bound: float | None) -> None:
    """Raise where weights would leave nothing to prove, before rows are used up on it."""
    if weight is not None and weight_bound is None:
        raise KindError(
            "weighted rows prove nothing unless the largest weight there can be is known: say "
            "--weight-bound X."
        )


def _name(constraint: Constraint) -> str:
    """What is bounded: the left side, or the difference of two metrics."""
    if constraint.number is not None:
        return str(constraint.left)
    return f"{constraint.left} - {constraint.right}"


def _bound(found: Finding) -> str:
    if found.op == "==" or not found.bounded:
        return _NONE
    return found.limit()


def _rows_behind(evidence: tuple[Evidence, ...]) -> str:
    if not evidence:
        return _NONE
    different = list(dict.fromkeys(map(str, evidence)))
    if len(different) > _MOST_LINES:
        least = min(e.n for e in evidence)
        return f"{len(different)} rates,\n{count(least, 'row')} or more"
    return "\n".join(different)
