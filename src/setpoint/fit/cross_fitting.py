"""Members on folds: fitted, scored on the rows each fold held, kept as far as time allows."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np

from setpoint._core.notes import Note, NoteCode
from setpoint.datasets import Parts
from setpoint.fit.events import FitProgress
from setpoint.fit.fold_models import Model
from setpoint.fit.member_checkpoints import MemberCheckpoints
from setpoint.fit.members import FoldFit, Member
from setpoint.fit.training_data import Data, Encoded, TrainingData


@dataclass(eq=False)
class FittedMember:
    """A member on its folds.

    Attributes
    ----------
    member : Member
    models : list of Model
        One of each fold that is done.
    outputs : numpy.ndarray
        (n,) or (n, K), NaN in rows that no fold held.
    history : list of dict
    notes : list of str
    seconds : float
    """

    member: Member[Any]
    models: list[Model] = field(default_factory=list)
    outputs: np.ndarray = field(default_factory=lambda: np.zeros(0))
    history: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def name(self) -> str:
        """Of the member."""
        return self.member.name

    @property
    def probable(self) -> bool:
        """Whether outputs are logits."""
        return self.models[0].probable

    def add(self, fit: FoldFit, held: np.ndarray, outputs: np.ndarray, n: int, fold: int) -> None:
        """One more fold."""
        if not self.models:
            self.outputs = np.full((n, *outputs.shape[1:]), np.nan)
        self.models.append(fit.model)
        self.outputs[held] = outputs
        self.history += [{"member": self.name, "fold": fold, **row} for row in fit.history]
        self.notes += [note for note in fit.notes if note not in self.notes]

    def predict(self, rows: Encoded) -> np.ndarray:
        """The mean of the fold models' outputs on other rows."""
        return mean_outputs(self.models, rows)


def mean_outputs(models: Sequence[Model], rows: Encoded) -> np.ndarray:
    """The mean of several models' outputs."""
    form = rows.rows(models[0].form)
    whole = models[0].outputs(form)
    for model in models[1:]:
        whole = whole + model.outputs(form)
    return whole if len(models) == 1 else whole / len(models)


@dataclass(frozen=True, eq=False)
class FittedMembers:
    """Members with all their folds, and whether they are all that was planned.

    ``late`` are the members that the time limit left out.
    """

    ran: tuple[FittedMember, ...]
    notes: tuple[Note, ...]
    finished: bool
    late: tuple[str, ...] = ()

    def named(self, name: str) -> FittedMember:
        """A member that was run, by name."""
        return next(r for r in self.ran if r.name == name)


def run_members(
    job: Data,
    members: Sequence[Member[Data]],
    parts: Parts,
    checkpoints: MemberCheckpoints | None = None,
    time_limit: float | None = None,
) -> FittedMembers:
    """Fit every member on every fold, the simplest first.

    Ctrl-C, or the end of the time, leaves the members whose folds are all done; the first member
    is always finished unless it is interrupted.
    """
    start, done = time.monotonic(), 0
    notes: list[Note] = []
    late: list[str] = []
    total = len(members) * len(parts.folds)
    ran: list[FittedMember] = []
    for member in members:
        one = FittedMember(member)
        try:
            left = None if time_limit is None or not ran else time_limit
            ending = _run(job, one, parts, checkpoints, start, left, done, total)
        except KeyboardInterrupt:
            notes.append(_stopped(member))
            return FittedMembers(tuple(ran), tuple(notes), False, tuple(late))
        done += len(parts.folds)
        if ending is Ending.STOPPED:
            if len(one.models) == len(parts.folds):  # its last fold stopped early, and is usable
                ran.append(one)
            notes.append(_stopped(member))
            return FittedMembers(tuple(ran), tuple(notes), False, tuple(late))
        if ending is Ending.LATE:
            late.append(member.name)
            why = f"{member.name} was left out: the time limit of {time_limit:g} s"
            notes.append(Note(NoteCode.MEMBER_TOO_LATE, why, {"member": member.name}))
            continue
        ran.append(one)
    return FittedMembers(tuple(ran), tuple(notes), True, tuple(late))


def _stopped(member: Member[Any]) -> Note:
    words = f"stopped by hand while fitting {member.name}"
    return Note(NoteCode.MEMBER_STOPPED, words, {"member": member.name})


class Ending(Enum):
    """How the folds of one member ended."""

    WHOLE = "whole"
    LATE = "late"  #: the time limit came before the last fold
    STOPPED = "stopped"  #: by hand, in a fold that ended early


def rows_mark(fit: np.ndarray, held: np.ndarray) -> str:
    """A digest of the rows of a fold."""
    parts = (np.ascontiguousarray(rows, np.int64).tobytes() for rows in (fit, held))
    return hashlib.sha256(b"|".join(parts)).hexdigest()


def _run(
    job: TrainingData,
    one: FittedMember,
    parts: Parts,
    checkpoints: MemberCheckpoints | None,
    start: float,
    limit: float | None,
    done: int,
    total: int,
) -> Ending:
    """Fit one member on all folds, as far as time allows."""
    folds, n = len(parts.folds), len(job.target)
    for fold, (fit, held) in enumerate(parts.folds):
        settings = one.member.mark() + rows_mark(fit, held)
        began = time.monotonic()
        if limit is not None:
            ahead = one.seconds / len(one.models) * (folds - fold) if one.models else 0.0
            if began - start + ahead > limit:
                return Ending.LATE
        job.tell(
            FitProgress(
                "fit",
                what=one.name,
                done=done + fold,
                total=total,
                fold=fold + 1,
                folds=folds,
            )
        )
        checkpoint = None if checkpoints is None else checkpoints.find(one.name, settings, fold)
        if checkpoint is None:
            fitted = one.member.fit(job, fit, held, fold)
            outputs = fitted.model.outputs(job.rows.rows(fitted.model.form, held))
            if checkpoints is not None and fitted.finished:
                checkpoints.keep(one.name, settings, fold, fitted, outputs)
        else:
            fitted, outputs = checkpoint
        one.add(fitted, held, outputs, n, fold)
        one.seconds += time.monotonic() - began
        if not fitted.finished:
            return Ending.STOPPED
    return Ending.WHOLE
