"""`Monitor`: whether a promise still holds, watched row by row as labels arrive.

Valid at every moment: a promise that holds is ever called broken with probability at most δ, no
matter how often one looks and when one stops (see :mod:`setpoint.statistics.betting_process`).
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from setpoint._core.errors import (
    Argument,
    DataError,
    FileError,
    GoalError,
    KindError,
    Name,
    Phrase,
    SetpointError,
    Spelling,
)
from setpoint._core.files import write_text
from setpoint._core.json_codec import number_from, number_to
from setpoint._core.words import listing
from setpoint.decisions.proof.row_claims import RowClaim, row_claims
from setpoint.expressions import Columns, Constraint
from setpoint.expressions.rows.row_fingerprint import Fingerprint, refuse_seen
from setpoint.rules.certificate import Certificate, opened
from setpoint.rules.decision_rule import applied
from setpoint.statistics.betting_process import (
    STAKES,
    anytime_wealth,
    mean_wealth,
    wealth_of_one_bet,
)

# One claim under watch: the bets for it and against it, and what they have come to.


@dataclass
class ClaimWatch:
    """The state of one claim."""

    claim: RowClaim
    seen: int = 0
    against: np.ndarray = field(default_factory=lambda: np.full(STAKES.size, -np.inf))
    favour: np.ndarray = field(default_factory=lambda: np.zeros(STAKES.size))
    worst: float = 0.0
    waiting: tuple[list[float], list[float]] = field(default_factory=lambda: ([], []))

    def feed(self, rows: Any, limit: float) -> int | None:
        """Bet on rows; the place of the one at which the evidence against passes the limit."""
        z, places = self._pairs(*rows) if self.claim.paired else rows
        if z.size == 0:
            return None
        against = anytime_wealth(self.against, -z, max(self.claim.high, 1e-12), self.seen)
        favour = wealth_of_one_bet(self.favour, z, max(-self.claim.low, 1e-12))
        self.against, self.favour = against[-1], favour[-1]
        self.seen += z.size
        trace = mean_wealth(against)
        self.worst = max(self.worst, float(trace.max()))
        passed = np.flatnonzero(trace >= limit)
        return int(places[passed[0]]) if passed.size else None

    def _pairs(self, *new: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Rows of the two groups in pairs, as they come, at the place of the later; others wait."""
        z = [np.r_[old, values] for old, (values, _) in zip(self.waiting, new, strict=True)]
        at = [
            np.r_[np.full(len(old), -1), places]
            for old, (_, places) in zip(self.waiting, new, strict=True)
        ]
        ready = min(map(len, z))
        self.waiting = (z[0][ready:].tolist(), z[1][ready:].tolist())
        return z[0][:ready] + z[1][:ready], np.maximum(at[0][:ready], at[1][:ready])

    def to_json(self) -> dict[str, Any]:
        return {
            "name": self.claim.name,
            "seen": self.seen,
            "against": [number_to(x) for x in self.against.tolist()],
            "favour": [number_to(x) for x in self.favour.tolist()],
            "worst": self.worst,
            "waiting": [list(w) for w in self.waiting],
        }

    def restore(self, data: Mapping[str, Any]) -> None:
        if data["name"] != self.claim.name:
            raise FileError(f'this monitor is damaged: it has "{data["name"]}" out of place')
        self.seen = int(data["seen"])
        self.against = np.array([number_from(x) for x in data["against"]], float)
        self.favour = np.array([number_from(x) for x in data["favour"]], float)
        if self.against.shape != STAKES.shape or self.favour.shape != STAKES.shape:
            raise FileError("this monitor is damaged: its bets have the wrong number")
        self.worst = float(data["worst"])
        self.waiting = ([*map(float, data["waiting"][0])], [*map(float, data["waiting"][1])])


HOLDS, BROKEN, AGAIN = "holds", "broken", "re-certified"
NOT_MONITORABLE = "not monitorable"
LABELS = ("all", "flagged")
FORMAT = "setpoint monitor 1"
_REMEMBERED = 50  #: batches of which single rows are known again
_TRACE = 2000  #: points of the trace that are kept


@dataclass(frozen=True)
class Watched:
    """One constraint under watch.

    Attributes
    ----------
    constraint : str
    status : {"holds", "broken", "re-certified", "not monitorable"}
    evidence : float
        Against it: 1 at the start, broken where it reaches :attr:`Monitor.broken_at`, the number of
        claims under watch, of all constraints, over δ.
    rows : int
        That have had a say.
    why : str
        Why it cannot be monitored; empty where it can.
    """

    constraint: str
    status: str
    evidence: float
    rows: int
    why: str = ""

    def __str__(self) -> str:
        if self.status == NOT_MONITORABLE:
            return f"{self.constraint}: {self.status}, {self.why}"
        return f"{self.constraint}: {self.status} after {self.rows:,} rows that have a say"


@dataclass(frozen=True)
class MonitorReport:
    """What a monitor says.

    Attributes
    ----------
    status : {"holds", "broken", "re-certified", "not monitorable"}
        holds: nothing speaks against the promise yet. broken: it does not hold, with error at most
        1 − confidence for ever. re-certified: the rows fed, taken together, prove it.
    rows : int
        Fed so far.
    alarm : int or None
        The row at which it was called broken.
    watched : tuple of Watched
    confidence : float
    caution : Phrase or None
        A hint where the rows fed do not look like those of the certificate.
    """

    status: str
    rows: int
    alarm: int | None
    watched: tuple[Watched, ...]
    confidence: float
    caution: Phrase | None = None

    @property
    def note(self) -> str:
        """The caution in words; empty where there is none."""
        return "" if self.caution is None else str(self.caution)

    def __str__(self) -> str:
        head = f"{self.status.upper()} after {self.rows:,} rows"
        if self.alarm is not None:
            head += f", since row {self.alarm:,} (error at most {1 - self.confidence:.3g} for ever)"
        note = [f"  Note: {self.note}."] if self.note else []
        return "\n".join([f"{head}.", *(f"  {w}." for w in self.watched), *note])


class Monitor:
    """Watches the constraints of a certificate on labelled rows as they come.

    Parameters
    ----------
    certificate : Certificate
    labels : {"all", "flagged"}
        Whether the labelled rows are a random sample of all rows, or only of those that were
        decided positive. Of the latter, precision can be watched and recall cannot.

    Notes
    -----
    The rows must come in an order that does not depend on what was decided or found, such as that
    of arrival, and each once.

    Examples
    --------
    >>> import numpy as np, setpoint as sp
    >>> random = np.random.default_rng(0)
    >>> y = random.random(900) < 0.5
    >>> scores = y + random.normal(size=900)
    >>> goal = "maximize recall subject to precision >= 0.7"
    >>> rule = sp.tune(goal, y[:300], scores[:300])
    >>> monitor = sp.Monitor(sp.certify(goal, rule, y[300:600], scores[300:600]))
    >>> monitor.update(y[600:], scores[600:]).status
    'holds'
    """

    def __init__(self, certificate: Certificate, *, labels: str = "all") -> None:
        given = getattr(certificate, "certificate", certificate)  # a rule chosen with proof has one
        if not isinstance(given, Certificate):
            kind = type(certificate).__name__
            raise KindError(f"a Certificate is needed, from sp.certify; got a {kind} without one")
        certificate = given
        if labels not in LABELS:
            raise KindError(f"labels is {listing(LABELS)}; got {labels!r}")
        if not certificate.goal.constraints:
            raise GoalError(f'"{certificate.goal}" promises nothing; there is nothing to monitor')
        self.certificate = certificate
        self.labels = labels
        self.rows = 0
        self.alarm: int | None = None
        self.trace: list[tuple[int, float]] = []  #: (rows so far, ln of the evidence)
        self._fed: list[Fingerprint] = []
        self._flagged = 0
        self._watches: list[tuple[Constraint, list[ClaimWatch], str]] = []
        for constraint in certificate.goal.constraints:
            claims, why = row_claims(constraint, certificate, labels)
            self._watches.append((constraint, [ClaimWatch(c) for c in claims], why))

    @property
    def status(self) -> str:
        """The status of the whole promise."""
        return self.report().status

    @property
    def broken_at(self) -> float:
        """The evidence from which on a constraint is called broken."""
        return math.exp(self.limit)

    @property
    def limit(self) -> float:
        """The evidence (its logarithm) at which a claim is broken: ln(claims / δ)."""
        claims = sum(len(watches) for _, watches, _ in self._watches)
        return float(np.log(max(claims, 1) / (1 - self.certificate.confidence)))

    def update(
        self,
        y_true: Any,
        scores: Any,
        *,
        sample_weight: Any = None,
        group: Any = None,
    ) -> MonitorReport:
        """Feed labelled rows, in the order they came; returns what is known now."""
        point = self.certificate.point
        more = {"sample_weight": sample_weight, "group": group}
        return self.update_columns(applied(point, y_true, scores, positives=False, **more))

    def update_columns(self, columns: Columns) -> MonitorReport:
        """Feed rows that are checked, on the host, and hold the rule's decisions."""
        rows = self._refuse(columns)
        every = [watch for _, watches, _ in self._watches for watch in watches]
        values = [watch.claim.values(columns) for watch in every]  # what may fail fails here
        self._remember(rows)
        alarms: list[int] = []
        for watch, fed in zip(every, values, strict=True):
            passed = watch.feed(fed, self.limit)
            if passed is not None:
                alarms.append(self.rows + passed + 1)
        if self.alarm is None and alarms:
            self.alarm = min(alarms)
        self.rows += columns.size
        if columns.task.kind == "binary":
            self._flagged += int(np.asarray(columns.decided).sum())
        now = max(
            (float(mean_wealth(w.against)) for _, ws, _ in self._watches for w in ws if w.seen),
            default=0.0,
        )
        self.trace = _thinned([*self.trace, (self.rows, now)])
        return self.report()

    def _refuse(self, columns: Columns) -> Fingerprint:
        if self.certificate.weighted != (columns.weight is not None):
            with_ = "without" if columns.weight is not None else "with"
            raise DataError(
                "the certificate was made {with_} {argument}; feed the monitor rows like those",
                with_=with_,
                argument=Spelling("sample_weight", "--weight"),
            )
        if columns.weight is not None:
            heaviest, bound = float(columns.weight.max()), self.certificate.weight_bound
            if bound is not None and heaviest > bound:
                raise DataError(
                    "a row weighs {heaviest:g}, more than the certificate's {argument}",
                    heaviest=heaviest,
                    argument=Name("weight_bound"),
                )
        rows = Fingerprint.of(columns)
        way = "to certify the rule; a monitor needs rows that came later"
        refuse_seen(rows, [self.certificate.fingerprint], "rows", way)
        if not rows.by_accident():
            refuse_seen(rows, self._fed, "rows", "by this monitor; feed each row once")
        return rows

    def _caution(self) -> Phrase | None:
        """A hint where all rows fed were decided positive, though few were when certified."""
        share = self.certificate.flagged
        if self.labels != "all" or not share or not self.rows or self._flagged < self.rows:
            return None
        if self.rows * np.log(share) > -20:
            return None
        return Phrase(
            "all {rows:,} rows fed were decided positive, and {share:.1%} were when the rule was "
            "certified; where only such rows are labelled, say {way}",
            rows=self.rows,
            share=share,
            way=Argument("labels", "flagged"),
        )

    def __str__(self) -> str:
        return str(self.report())

    def _remember(self, rows: Fingerprint) -> None:
        self._fed.append(rows)
        if len(self._fed) > _REMEMBERED:  # older ones are known again only as a whole
            old = self._fed[-1 - _REMEMBERED]
            self._fed[-1 - _REMEMBERED] = replace(old, sketch=())

    def report(self) -> MonitorReport:
        """What is known now."""
        delta = 1 - self.certificate.confidence
        watched = []
        for constraint, watches, why in self._watches:
            worst = max((w.worst for w in watches), default=0.0)
            rows = sum(w.seen for w in watches)
            if not watches:
                status = NOT_MONITORABLE
            elif worst >= self.limit:
                status = BROKEN
            elif all(float(mean_wealth(w.favour)) >= np.log(1 / delta) for w in watches):
                status = AGAIN
            else:
                status = HOLDS
            watched.append(
                Watched(str(constraint), status, float(np.exp(min(worst, 700))), rows, why)
            )
        said = [w.status for w in watched]
        can = [s for s in said if s != NOT_MONITORABLE]
        if BROKEN in said:
            status = BROKEN
        elif not can:
            status = NOT_MONITORABLE
        else:
            status = AGAIN if all(s == AGAIN for s in said) else HOLDS
        sure = self.certificate.confidence
        return MonitorReport(status, self.rows, self.alarm, tuple(watched), sure, self._caution())

    # --- files -------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """Plain data that :meth:`from_json` reads back."""
        return {
            "format": FORMAT,
            "certificate": self.certificate.to_json(),
            "labels": self.labels,
            "rows": self.rows,
            "alarm": self.alarm,
            "flagged": self._flagged,
            "trace": [list(point) for point in self.trace],
            "fed": [f.to_json() for f in self._fed],
            "watches": [[w.to_json() for w in watches] for _, watches, _ in self._watches],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Monitor:
        """Read what :meth:`to_json` wrote."""
        if not isinstance(data, Mapping) or data.get("format") != FORMAT:
            raise FileError(f'this is not a monitor: it lacks "format": "{FORMAT}"')
        try:
            made = cls(Certificate.from_json(data["certificate"]), labels=data["labels"])
            made.rows, made.alarm = int(data["rows"]), data["alarm"]
            if made.alarm is not None and not 0 < int(made.alarm) <= made.rows:
                raise FileError("this monitor is damaged: its alarm is no row. Begin another")
            made.trace = [(int(n), float(e)) for n, e in data["trace"]]
            made._flagged = int(data["flagged"])
            made._fed = [Fingerprint.from_json(f) for f in data["fed"]]
            for (_, watches, _), saved in zip(made._watches, data["watches"], strict=True):
                for watch, state in zip(watches, saved, strict=True):
                    watch.restore(state)
            return made
        except SetpointError:
            raise
        except (KeyError, IndexError, TypeError, AttributeError, ValueError) as error:
            raise FileError(f"this monitor is damaged: {error!r}. Begin another") from error

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the monitor as JSON (temporary name, then rename)."""
        return write_text(path, json.dumps(self.to_json(), allow_nan=False) + "\n")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Monitor:
        """Read a monitor that :meth:`save` wrote; nothing in the file is executed."""
        return opened(path, "a monitor", cls.from_json)


def _thinned(trace: list[tuple[int, float]]) -> list[tuple[int, float]]:
    """Every second point of the older half, once there are many."""
    if len(trace) <= _TRACE:
        return trace
    half = len(trace) // 2
    return [*trace[:half:2], *trace[half:]]
