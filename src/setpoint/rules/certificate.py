"""The certificate: what was proven of a rule, on which rows, under which assumption."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, TypeVar

from setpoint._core.errors import FileError, SetpointError
from setpoint._core.files import read_json, write_json
from setpoint._core.json_codec import number_from, number_to
from setpoint._core.options import is_real
from setpoint._core.words import listing
from setpoint.expressions.rows.row_fingerprint import Fingerprint
from setpoint.goals import Goal
from setpoint.rules.rule import Rule
from setpoint.rules.table import rule_from_json

T = TypeVar("T")
PROVEN, NOT_PROVEN, REFUTED = "PROVEN", "NOT PROVEN", "REFUTED"
FORMAT = "setpoint certificate 1"


@dataclass(frozen=True)
class Evidence:
    """The rows behind a bound: k of n for a pure rate, n alone for bets.

    Attributes
    ----------
    name : str
        The rate: "recall, sex=f".
    k : int or None
    n : int
    part : str
        The group or class whose rows these are: "sex=f"; empty where they are of all.
    """

    name: str
    k: int | None
    n: int
    part: str = ""

    def __str__(self) -> str:
        return f"{self.n:,} rows" if self.k is None else f"{self.k:,} of {self.n:,}"


@dataclass(frozen=True)
class Finding:
    """One constraint, tested.

    Attributes
    ----------
    constraint : str
    verdict : {"PROVEN", "NOT PROVEN", "REFUTED"}
    value : float or None
        The left side on these rows (left minus right, where the right side is no number).
    op : {">=", "<=", "=="}
    asked : float
        The bound of the constraint.
    bound : float
        The left side is at least (at most, for <=) this, at the confidence of the certificate.
    other : float
        The bound on the other side, which refutes where it is beyond what was asked. Of several
        constraints each has a share of the level here.
    how : str
        The kind of bound, in words.
    exact : bool
        Whether the bound is a guarantee; a bootstrap is not.
    evidence : tuple of Evidence
    needed : int or None
        Fresh labelled rows that would prove it with power 0.8, if the truth is what was seen here;
        None where it is proven, or where no number would.
    out_of_fold : bool
        Whether the rows were scored by models that the others helped to fit: figures, no proof.
    """

    constraint: str
    verdict: str
    value: float | None
    op: str
    asked: float
    bound: float
    other: float
    how: str
    exact: bool
    evidence: tuple[Evidence, ...]
    needed: int | None
    out_of_fold: bool = False

    def sentence(self) -> str:
        """The finding in one sentence."""
        return f"{self.verdict}: {self.account()}"

    def account(self) -> str:
        """The sentence without its verdict: the constraint, what was seen, the way out."""
        seen = "is empty here" if self.value is None else f"{self.value:.4g} here"
        rows = f", {self.evidence[0]}" if len(self.evidence) == 1 else self._each()
        words = f"{self.constraint} ({seen}{rows}; {self.limit()} by {self.how})"
        if self.verdict == NOT_PROVEN:
            words += f"; {self.way_out()}"
        return words

    def _each(self) -> str:
        """The rows behind each part, where there are a few."""
        if not 1 < len(self.evidence) <= 4:
            return ""
        parts = {e.part for e in self.evidence}
        by_part = "" not in parts and len(parts) == len(self.evidence)
        named = (f"{e.part if by_part else e.name}: {e}" for e in self.evidence)
        return "; " + ", ".join(named)

    def sides(self) -> tuple[float, float]:
        """No bound at all: on the side that was asked for, and on the other."""
        endless = float("inf")
        return (-endless, endless) if self.op == ">=" else (endless, -endless)

    @property
    def bounded(self) -> bool:
        """Whether the bound that matters is a finite number."""
        return abs(self._bound_that_matters()) < float("inf")

    def limit(self) -> str:
        """The bound that matters, in words: where it is refuted, that on the other side."""
        if not self.bounded:
            return "no bound"
        least = {">=": "at least", "<=": "at most"}.get(self.op, "at")
        if self._by_other_side:
            least = "at most" if self.op == ">=" else "at least"
        return f"{least} {self._bound_that_matters():.4g}"

    @property
    def _by_other_side(self) -> bool:
        return self.verdict == REFUTED and self.op != "=="

    def _bound_that_matters(self) -> float:
        return self.other if self._by_other_side else self.bound

    def way_out(self) -> str:
        """What would settle an open finding."""
        if not self.exact:
            return "the bound is no guarantee, so nothing is proven by it"
        if self.op == "==":
            return "an equality cannot be proven from a sample; state a range"
        if self.value is None:
            return "no row here has a say in it"
        if self.needed is not None:
            return (
                f"if the truth is as seen here, about {self.needed:,} fresh labelled rows would "
                "prove it (power 0.8)"
            )
        if (self.value > self.asked) == (self.op == ">=") and self.value != self.asked:
            return "no number of rows can be named that would prove it"
        side = "above" if self.op == ">=" else "below"
        return f"the estimate is not {side} the limit; more rows prove it only if the true value is"


@dataclass(frozen=True)
class Certificate:
    """What was proven of a rule on rows that nothing had seen.

    Attributes
    ----------
    verdict : {"PROVEN", "NOT PROVEN", "REFUTED"}
        PROVEN where every constraint is; REFUTED where one is.
    goal : Goal
    confidence : float
        Over the draw of these rows: PROVEN is said of a broken promise with probability at most
        1 − confidence.
    findings : tuple of Finding
        One per constraint.
    value : float or None
        The objective on these rows.
    interval : pair of float
        Around the objective, at the same confidence (both ends together).
    interval_how : str
    rows : int
    point : Rule
        The rule that was tested; its task declares the groups that were seen.
    fingerprint : Fingerprint
    assumption : str
    weight_bound : float or None
    prevalence : pair of float, or empty
    weighted : bool
        Whether the rows had weights.
    flagged : float or None
        The share of rows decided positive, in a binary task.
    """

    verdict: str
    goal: Goal
    confidence: float
    findings: tuple[Finding, ...]
    value: float | None
    interval: tuple[float, float]
    interval_how: str
    rows: int
    point: Rule
    fingerprint: Fingerprint
    assumption: str
    weight_bound: float | None = None
    prevalence: tuple[float, ...] = ()
    weighted: bool = False
    flagged: float | None = None

    def __post_init__(self) -> None:
        """Hold what a certificate says to what it can say."""
        numbers = (*self.interval, *self.prevalence)
        one_of = (PROVEN, NOT_PROVEN, REFUTED)
        fine = (
            self.verdict in one_of
            and is_real(self.confidence)
            and 0.5 <= self.confidence < 1
            and self.rows > 0
            and (self.value is None or is_real(self.value))
            and all(map(is_real, numbers))
            and (len(self.interval), len(self.prevalence)) in ((2, 0), (2, 2))
            and all(0 < x < 1 for x in self.prevalence)
            and (self.weight_bound is None or is_real(self.weight_bound))
            and (self.weight_bound is None or self.weight_bound > 0)
            and isinstance(self.weighted, bool)
            and (self.flagged is None or is_real(self.flagged))
        )
        if not fine:
            raise FileError("this certificate is damaged: its numbers cannot be. Certify again")

    @property
    def proven(self) -> bool:
        """Whether every constraint is proven."""
        return self.verdict == PROVEN

    @property
    def needed(self) -> int | None:
        """Fresh labelled rows that would prove every constraint (power 0.8 each), if any number."""
        open_ones = [f for f in self.findings if f.verdict != PROVEN]
        if not open_ones or any(f.needed is None for f in open_ones):
            return None
        return max(f.needed or 0 for f in open_ones)

    def __str__(self) -> str:
        """One paragraph."""
        head = f"{self.verdict} at {100 * self.confidence:g}% confidence: {self._promise()}"
        low, high = self.interval
        ends = "" if self.value is None else f" [{low:.4g}, {high:.4g}]"
        value = "empty" if self.value is None else f"{self.value:.4g}"
        lines = [
            f"{head}.",
            *(f"  {finding.sentence()}." for finding in self.findings),
            f"  {self.goal.objective} {value}{ends} by {self.interval_how}.",
            f"  Decided: {self.point.describe()}. Tested on {self.rows:,} rows "
            f"(fingerprint {self.fingerprint}).",
            f"  {self.assumption}",
        ]
        return "\n".join(lines)

    def _promise(self) -> str:
        if not self.findings:
            return f"{self.goal} promises nothing; add a constraint to prove"
        alike = [f.constraint for f in self.findings if f.verdict == self.verdict]
        others = [f.constraint for f in self.findings if f.verdict == PROVEN != self.verdict]
        proven = f" (proven: {listing(others, most=99)})" if others else ""
        return listing(alike, most=99) + proven

    # --- files -------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """Plain data that :meth:`from_json` reads back."""
        return {
            "format": FORMAT,
            "verdict": self.verdict,
            "goal": str(self.goal),
            "confidence": self.confidence,
            "findings": [_finding_to(f) for f in self.findings],
            "value": number_to(self.value),
            "interval": [number_to(x) for x in self.interval],
            "interval_how": self.interval_how,
            "rows": self.rows,
            "point": self.point.to_json(),
            "fingerprint": self.fingerprint.to_json(),
            "assumption": self.assumption,
            "weight_bound": self.weight_bound,
            "prevalence": list(self.prevalence),
            "weighted": self.weighted,
            "flagged": self.flagged,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Certificate:
        """Read what :meth:`to_json` wrote."""
        if not isinstance(data, Mapping) or data.get("format") != FORMAT:
            raise FileError(f'this is not a certificate: it lacks "format": "{FORMAT}"')
        try:
            low, high = data["interval"]
            return cls(
                verdict=_verdict(data["verdict"]),
                goal=Goal.parse(data["goal"]),
                confidence=float(data["confidence"]),
                findings=tuple(_finding_from(f) for f in data["findings"]),
                value=number_from(data["value"]),
                interval=(number_from(low), number_from(high)),
                interval_how=str(data["interval_how"]),
                rows=int(data["rows"]),
                point=rule_from_json(data["point"]),
                fingerprint=Fingerprint.from_json(data["fingerprint"]),
                assumption=str(data["assumption"]),
                weight_bound=data["weight_bound"],
                prevalence=tuple(data["prevalence"]),
                weighted=data["weighted"],
                flagged=data["flagged"],
            )
        except SetpointError:
            raise
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise FileError(f"this certificate is damaged: {error!r}. Certify again") from error

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the certificate as JSON (temporary name, then rename)."""
        return write_json(path, self.to_json())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Certificate:
        """Read a certificate that :meth:`save` wrote; nothing in the file is executed."""
        return opened(path, "a certificate", cls.from_json)


def opened(path: str | os.PathLike[str], what: str, read: Callable[[Any], T]) -> T:
    """What a JSON file holds, read; a complaint about its contents names the file."""
    data = read_json(path, what)
    try:
        return read(data)
    except FileError as error:
        raise FileError(f'"{path}": {error}') from error


def _verdict(word: Any) -> str:
    if word not in (PROVEN, NOT_PROVEN, REFUTED):
        raise FileError(f"a certificate says {PROVEN}, {NOT_PROVEN} or {REFUTED}; not {word!r}")
    return word


def _finding_to(finding: Finding) -> dict[str, Any]:
    plain = {f.name: number_to(getattr(finding, f.name)) for f in fields(Finding)}
    return {**plain, "evidence": [asdict(e) for e in finding.evidence]}


def _finding_from(data: Mapping[str, Any]) -> Finding:
    plain = {name: number_from(value) for name, value in data.items() if name != "evidence"}
    _verdict(plain["verdict"])
    finding = Finding(**plain, evidence=tuple(Evidence(**e) for e in data["evidence"]))
    fine = (
        all(isinstance(x, str) for x in (finding.constraint, finding.how))
        and finding.op in (">=", "<=", "==")
        and all(map(is_real, (finding.asked, finding.bound, finding.other)))
        and (finding.value is None or is_real(finding.value))
        and isinstance(finding.exact, bool)
        and (finding.needed is None or isinstance(finding.needed, int))
        and all(isinstance(e.n, int) for e in finding.evidence)
    )
    if not fine:
        raise FileError("this certificate is damaged: a finding lacks its numbers. Certify again")
    return finding
