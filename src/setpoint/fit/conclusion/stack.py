"""The stack: members weighed by how well their out-of-fold outputs together tell the classes apart.

    logit = b + Σ w_m z_m,   w_m ≥ 0        minimise  Σ loss + ½ Σ (w_m − 1/M)²

with z_m the logits of member m (log-probabilities of several classes, where b has one entry a
class), each the mean over its fold models. Weights are not negative: a member that only corrects
another one's mistakes on these rows is left out (Breiman 1996). The pull towards the plain mean is
worth about a row, and matters only where rows are few.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np

from setpoint._core import scipy_special as special
from setpoint._core.errors import FileError
from setpoint._core.json_codec import Record
from setpoint.goals import Task

_FAR = 30.0  #: logits are cut here, so that one sure mistake does not rule the fit


@dataclass(frozen=True)
class Stack(Record):
    """Weights of members, and the constant; "raw" for one member whose outputs are no logits."""

    names: tuple[str, ...]
    weights: tuple[float, ...]
    bias: tuple[float, ...]
    raw: bool = False

    def __post_init__(self) -> None:
        if not self.names or len(self.names) != len(self.weights):
            raise FileError("this stack is damaged: a weight for each member is needed")

    @classmethod
    def alone(cls, name: str, raw: bool = False) -> Stack:
        """One member as it is."""
        return cls((name,), (1.0,), (0.0,), raw)

    @property
    def used(self) -> tuple[str, ...]:
        """Members with a weight worth the name."""
        return tuple(n for n, w in zip(self.names, self.weights, strict=True) if w > 0)

    def scores(self, outputs: Mapping[str, np.ndarray], task: Task) -> np.ndarray:
        """Probabilities, (n,) or (n, K), or the raw scores of one member."""
        parts = [(w, outputs[n]) for n, w in zip(self.names, self.weights, strict=True) if w > 0]
        if self.raw:
            return parts[0][1]
        alone = len(parts) == 1 and parts[0][0] == 1.0
        z = parts[0][1] if alone else sum(w * np.clip(x, -_FAR, _FAR) for w, x in parts)
        z = np.asarray(z) + (self.bias[0] if len(self.bias) == 1 else np.array(self.bias))
        return special.softmax(z, 1) if task.kind == "multiclass" else special.expit(z)


def fit_stack(
    names: Sequence[str],
    outputs: Mapping[str, np.ndarray],
    target: np.ndarray,
    weight: np.ndarray | None,
    task: Task,
) -> Stack:
    """Weigh members on out-of-fold outputs.

    Parameters
    ----------
    outputs : mapping
        Of each member (n,) or (n, K).
    target : numpy.ndarray
        (n,) codes, or (n, L) of 0 and 1.
    """
    from scipy.optimize import minimize

    if len(names) == 1:
        return Stack.alone(names[0])
    z = np.stack([np.clip(outputs[n], -_FAR, _FAR) for n in names], -1)  # (n, M) or (n, K, M)
    w = np.ones(len(z)) if weight is None else weight / weight.mean()
    width = z.shape[1] if z.ndim == 3 else 1
    m, classes = len(names), task.kind == "multiclass"
    start = np.r_[np.full(m, 1 / m), np.zeros(width)]

    def loss(at: np.ndarray) -> tuple[float, np.ndarray]:
        a, b = at[:m], at[m:]
        out = z @ a + (b if z.ndim == 3 else b[0])  # (n,) or (n, K)
        if classes:
            norm = special.logsumexp(out, 1)
            each = norm - out[np.arange(len(out)), target]
            pull = np.exp(out - norm[:, None])
            pull[np.arange(len(out)), target] -= 1
        else:
            y = target
            each = np.logaddexp(0, out) - y * out
            each = each.sum(1) if each.ndim == 2 else each
            pull = special.expit(out) - y
        pull = pull * (w[:, None] if pull.ndim == 2 else w)
        down = np.tensordot(pull, z, pull.ndim)  # (M,)
        up = pull.sum(0) if pull.ndim == 2 else np.array([pull.sum()])
        value = float(w @ each) + 0.5 * float(((a - 1 / m) ** 2).sum()) + 0.5e-3 * float(b @ b)
        return value, np.r_[down + a - 1 / m, up + 1e-3 * b]

    limits = [(0.0, None)] * m + [(None, None)] * width
    found = minimize(loss, start, jac=True, method="L-BFGS-B", bounds=limits)
    weights = np.where(found.x[:m] < 1e-6, 0.0, found.x[:m])
    if not weights.any():  # nobody tells the classes apart: the plain mean
        weights, found.x[m:] = np.full(m, 1 / m), 0.0
    return Stack(tuple(names), tuple(weights.tolist()), tuple(found.x[m:].tolist()))


# What became of each member of a plan; here, as a command reads it without loading a model.


#: Why a member is in a plan: without a special reason, and for the comparison alone. These two are
#: roles that a run folder names, and everything else is a reason in words.
ALWAYS, FOR_REFEREE = "always", "for the referee"


class MemberFate(StrEnum):
    """What became of a member of the plan."""

    ALONE = "alone"  # it decides by itself
    STACKED = "stacked"  # it decides together with others
    NO_WEIGHT = "no weight"  # in the stack, and adds nothing to the others
    LEFT_OUT = "left out"  # the stack with it cannot be told from the stack without it
    SURPASSED = "surpassed"  # one member alone is better than the stack
    COMPARED = "compared"  # fitted for the comparison only
    TOO_LATE = "too late"  # the time limit came first
    NOT_FITTED = "not fitted"  # the run was stopped before


@dataclass(frozen=True, kw_only=True)
class MemberOutcome(Record):
    """One member of the plan and what became of it.

    Attributes
    ----------
    name : str
    weight : float or None
        In the stack; None where it is not part of it.
    fate : MemberFate
    reason : str
        What there is to say beside the fate, with figures.
    """

    name: str
    weight: float | None
    fate: MemberFate
    reason: str = ""


def read_outcomes(record: Mapping[str, Any]) -> tuple[MemberOutcome, ...]:
    """The outcomes in the record of a run; of one that version 1 saved, what its weights tell."""
    if "members" in record:
        return tuple(map(MemberOutcome.from_json, record["members"]))
    weights = dict(zip(record["stack"]["names"], record["stack"]["weights"], strict=True))
    stacked = [name for name, weight in weights.items() if weight > 0]
    outcomes = []
    for name, why in record["plan"]["members"]:
        weight = weights.get(name)
        if name in stacked:
            fate = MemberFate.ALONE if len(stacked) == 1 else MemberFate.STACKED
        elif weight is not None:
            fate = MemberFate.NO_WEIGHT
        elif why == FOR_REFEREE:
            fate = MemberFate.COMPARED
        else:
            fate = MemberFate.LEFT_OUT if record["finished"] else MemberFate.NOT_FITTED
        outcomes.append(MemberOutcome(name=name, weight=weight, fate=fate))
    return tuple(outcomes)
