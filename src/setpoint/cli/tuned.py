"""What is said of a rule that was chosen: as one JSON object, and on the screen."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from setpoint.cli.display import tradeoff_view as tradeoff
from setpoint.cli.display.certificate_view import show_certificate
from setpoint.cli.display.rule_view import CAUTION, data_line, decided_facts, show_rule
from setpoint.cli.display.terminal import Screen, command
from setpoint.cli.inputs.scored_table import Rows
from setpoint.decisions import DecisionRule


@dataclass(frozen=True, eq=False)
class Told:
    """A rule, the rows it comes from, and the files it went to.

    Parameters
    ----------
    rule : DecisionRule
    rows : Rows
    file : Path
        Where they come from.
    known, reference : Rows and Path, or None
        Of a rule chosen with proof: the reference rows and their file.
    out, certificate, plot : Path or None
        What was written.
    """

    rule: DecisionRule
    rows: Rows
    file: Path
    known: Rows | None
    reference: Path | None
    out: Path | None
    certificate: Path | None
    plot: Path | None

    def record(self) -> dict[str, Any]:
        """Plain data."""
        rule, proof = self.rule, self.rule.certificate
        written = {"rule": self.out, "certificate": self.certificate, "plot": self.plot}
        proven: dict[str, Any] = {}
        if proof is not None and self.known is not None:
            proven = {
                "verdict": proof.verdict,
                "needed": proof.needed,
                "reference": {"file": str(self.reference), **self.known.about},
            }
        return {
            "goal": str(rule.goal),
            "data": {"file": str(self.file), **self.rows.about},
            "feasible": rule.feasible,
            **proven,
            "operating_point": rule.operating_point(),
            "decided": self.rows.decided(rule),
            **({"caution": CAUTION} if proof is None else {}),
            "sentence": rule.sentence() if proof is None else str(proof),
            "rule": rule.to_json(),
            "written": {name: str(path) for name, path in written.items() if path is not None},
        }

    def show(self, screen: Screen) -> None:
        """Print the screen."""
        rule, proof = self.rule, self.rule.certificate
        search = "" if rule.search == "exact" else f" (search: {rule.search})"
        ordered = []
        if self.known is not None:
            ordered = [("Reference", data_line(self.known.about, str(self.reference)))]
        screen.line()
        screen.facts(
            [
                ("Goal", str(rule.goal)),
                ("Data", data_line(self.rows.about, str(self.file))),
                *ordered,
                ("Operating point", rule.operating_point() + search),
            ]
        )
        decided = decided_facts(self.rows.decided(rule), chosen_here=proof is None)
        if proof is None:
            show_rule(screen, rule)
            screen.facts(decided)
        else:
            show_certificate(screen, proof, decided)
        screen.line()
        tradeoff.show(screen, rule)
        screen.facts(self._usage())

    def _usage(self) -> list[tuple[str, str]]:
        """How the rule is used from here."""
        rule, rows = self.rule, self.rows
        group = {"per-group": f', group={{"{rule.by}": …}}', "top-k": ""}.get(rule.kind, "")
        group = ", query=…" if rule.by == "query" else group
        written = [str(p) for p in (self.out, self.certificate, self.plot) if p is not None]
        facts = [("" if i else "Written", path) for i, path in enumerate(written)]
        if self.out is None:
            facts.append(("Keep it", "--out rule.json"))
        name = self.out or Path("rule.json")
        quoted, given = shlex.quote(str(name)), rows.options("score", "query")
        return [
            *facts,
            *self._checks(quoted),
            ("Use it", f"{command()} decide {quoted} new.csv {given} --out decided.csv"),
            ("in Python", "import setpoint as sp"),
            ("", f"rule = sp.DecisionRule.load({json.dumps(name.as_posix(), ensure_ascii=False)})"),
            ("", f"decisions = rule.decide(scores{group})"),
        ]

    def _checks(self, name: str) -> list[tuple[str, str]]:
        """How the rule is judged on other rows."""
        rule, rows = self.rule, self.rows
        checked = rows.options("label", "score", "weight", "query")
        if rule.proven:
            watched = rows.options("label", "score", "weight")
            state = "--state monitor.json"
            return [("Watch it", f"{command()} monitor {name} new.csv {watched} {state}")]
        if rule.certificate is not None:
            planned = f"{shlex.quote(str(self.reference))} {rows.options('label', 'score')}"
            goal = shlex.quote(str(rule.goal))
            return [("Plan for it", f"{command()} plan {planned} --goal {goal}")]
        facts = [("Check it", f"{command()} evaluate {name} held.csv {checked}")]
        if rule.feasible and rule.goal.constraints and rule.kind != "top-k":
            bound = " --weight-bound X" if "weight" in rows.about else ""
            facts.append(("Prove it", f"{command()} certify {name} fresh.csv {checked}{bound}"))
            facts.append(("", "on rows that nothing has seen: they are touched once"))
        return facts
