"""Files of rules and certificates, told apart by what they say they are."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from setpoint._core.errors import FileError
from setpoint._core.files import read_json
from setpoint.cli.files.saved_run import SavedRun
from setpoint.cli.words import command
from setpoint.decisions import Certificate, DecisionRule
from setpoint.decisions.monitor import FORMAT as MONITOR
from setpoint.rules.certificate import FORMAT as CERTIFICATE
from setpoint.rules.decision_rule import FORMAT as RULE

_NAMES = {CERTIFICATE: "a certificate", MONITOR: "the state of a monitor", RULE: "a rule"}


def load_rule(path: Path) -> DecisionRule:
    """The rule of a file."""
    data = read_json(path, "a rule")
    said = _said(data)
    if said in (CERTIFICATE, MONITOR):
        raise FileError(
            f'"{path}" is {_NAMES[said]}, and a rule is needed, as tune --out wrote it.'
        )
    return DecisionRule.from_json(data)


def load_certificate(path: Path) -> Certificate:
    """The certificate of a file, of a run, or the one that a rule was chosen with."""
    if path.is_dir():
        return _of_run(path)
    data = read_json(path, "a certificate")
    said = _said(data)
    if said == MONITOR:
        raise FileError(
            f'"{path}" is {_NAMES[said]}: name it as --state, and its certificate here.'
        )
    if said != RULE:
        return Certificate.from_json(data)
    found = DecisionRule.from_json(data).certificate
    if found is None:
        raise FileError(
            f'"{path}" is a rule without a certificate; make one on rows that nothing has seen: '
            f"{command()} certify {path} ROWS."
        )
    return found


def _of_run(folder: Path) -> Certificate:
    found = SavedRun.open(folder).certificate
    if found is None:
        raise FileError(
            f'"{folder}" has no certificate: the goal has no constraint, or no rows were kept to '
            f"certify. Fit again with one, or certify its rule.json: {command()} certify --help."
        )
    return found


def load_seen(path: Path) -> Certificate | DecisionRule:
    """A certificate or a rule, whose rows are used up."""
    data = read_json(path, "a certificate or a rule")
    return DecisionRule.from_json(data) if _said(data) == RULE else Certificate.from_json(data)


def _said(data: Any) -> str | None:
    """What a file says it is."""
    said = data.get("format") if isinstance(data, dict) else None
    return said if isinstance(said, str) else None
