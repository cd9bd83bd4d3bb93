"""The main job: rows and a goal in, models and a rule that is proven out."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from setpoint._core.errors import DataError, SetpointError
from setpoint._core.notes import Note, NoteCode
from setpoint.datasets import Parts, part
from setpoint.decisions import DecisionRule
from setpoint.decisions.outcome import Outcome
from setpoint.expressions import Domain, take_in
from setpoint.fit.conclusion.baseline_comparison import compare
from setpoint.fit.conclusion.out_of_fold import OutOfFold
from setpoint.fit.conclusion.rule_choice import ranks_only, rule_on
from setpoint.fit.conclusion.rule_proof import (
    Proof,
    extreme_note,
    figures_after,
    prove_rule,
    remember_training,
)
from setpoint.fit.conclusion.stack import MemberFate, MemberOutcome
from setpoint.fit.conclusion.stack_choice import StackChoice, choose_stack
from setpoint.fit.cross_fitting import FittedMembers, run_members
from setpoint.fit.events import FitProgress, Planned
from setpoint.fit.member_checkpoints import MemberCheckpoints
from setpoint.fit.members import ScoresGiven
from setpoint.fit.plan import CERTIFY, FitPlan, FitRequest, Recipe, counts_of
from setpoint.fit.run_checks import prospects, scored_rows, table_checks
from setpoint.fit.run_record import ClassifierRun, RunOrigin, as_notes, versions
from setpoint.fit.training_data import ClassTrainingData, Encoder
from setpoint.goals import Goal
from setpoint.rules.goal_on_rows import GoalOnRows
from setpoint.rules.table import kind_for


@dataclass(frozen=True)
class PartOptions:
    """How rows are to be parted; see :func:`setpoint.datasets.part`."""

    certify_size: float | None = None
    split: Any = None
    together: Any = None
    time: Any = None

    def part(self, job: ClassTrainingData, certify_size: float, folds: int) -> Parts:
        """Part the rows of a job."""
        return part(
            job.target,
            certify_size=certify_size,
            folds=folds,
            seed=job.seed,
            split=self.split,
            together=self.together,
            time=self.time,
        )

    def repeats(self) -> bool:
        """Whether some rows share an id, and so depend on each other."""
        ids = None if self.together is None else np.asarray(self.together).tolist()
        return ids is not None and len(set(ids)) < len(ids)

    def free(self, parts: Parts) -> bool:
        """Whether rows whose proof failed may go back into training: not those the user parted."""
        own = self.split is None and self.time is None
        return own and len(parts.folds) > 1 and len(parts.certify) > 0


def fit_goal(
    request: FitRequest,
    job: ClassTrainingData,
    options: PartOptions,
    *,
    origin: RunOrigin,
    work: str | os.PathLike[str] | None = None,
    time_limit: float | None = None,
) -> ClassifierRun:
    """Part the rows, fit the members, conclude.

    Parameters
    ----------
    request : FitRequest
    job : ClassTrainingData
        Its rows are not encoded yet: the encoder is learned from rows that do not certify.
    options : PartOptions
    origin : RunOrigin
        Settings and names, kept in the run.
    work : path, optional
        A folder where finished parts are kept and taken up.
    time_limit : float, optional
        Seconds after which no member is begun.
    """
    start = time.monotonic()
    refuse_unmeant(job, request.kind)
    whole = request.recipe(job.labels.task)
    parts = _parts(request, job, options, whole.folds)
    recipe, encoder = _encoder(whole, job, parts)
    data = replace(job, rows=encoder.encode(job.rows.X))
    plan = FitPlan.of(request.goal, recipe, parts, data.target, data.rows.width)
    fingerprint = fingerprint_of(job.rows.X, data.target)
    data.tell(Planned("plan", plan, fingerprint))
    fit = FitSetup(
        request=request,
        data=data,
        recipe=recipe,
        options=options,
        parts=parts,
        plan=plan,
        fingerprint=fingerprint,
        work=None if work is None else Path(work),
        start=start,
        time_limit=time_limit,
    )
    return _run_of(fit, _with_certify_rows(_first_attempt(fit), fit), origin)


# Attempts: members on parts, and what is concluded from them.


@dataclass(frozen=True, kw_only=True, eq=False)
class FitSetup:
    """All that stands before anything is fitted.

    Attributes
    ----------
    request : FitRequest
    data : ClassTrainingData
        Its rows encoded.
    recipe : Recipe
    options : PartOptions
    parts : Parts
        Of the first attempt.
    plan : FitPlan
    fingerprint : str
        Of cells and labels.
    work : Path or None
        The folder of checkpoints.
    start : float
        When the fit began, by the monotonic clock.
    time_limit : float or None
        Seconds from then.
    """

    request: FitRequest
    data: ClassTrainingData
    recipe: Recipe
    options: PartOptions
    parts: Parts
    plan: FitPlan
    fingerprint: str
    work: Path | None
    start: float
    time_limit: float | None

    @cached_property
    def key(self) -> str:
        """Of the checkpoints: a part that another fit has left there is not taken up.

        It holds the weights that a module of the user's has before anything is fitted, so it is
        made once, by the first attempt.
        """
        surroundings = _surroundings(self.data, self.request)
        return f"{self.fingerprint}|{self.request.goal}|{self.data.seed}|{surroundings}"

    def run(self, parts: Parts, work: Path | None, time_limit: float | None) -> FittedMembers:
        """Fit every member on every fold; what is done is kept in a folder."""
        data, model = self.data, self.request.model
        checkpoints = None
        if work is not None:
            module = model if isinstance(model, nn.Module) else None
            checkpoints = MemberCheckpoints(work, self.key, data.labels.task, module)
        return run_members(data, self.recipe.members, parts, checkpoints, time_limit)


@dataclass(frozen=True, kw_only=True, eq=False)
class Attempt:
    """Fitted members and the conclusion from them.

    Attributes
    ----------
    fitted : FittedMembers
    parts : Parts
    held : OutOfFold
    chosen : StackChoice
    rule : DecisionRule
        As it was chosen out of fold, with the margin asked for.
    notes : tuple of Note
        On the stack and the rule.
    proof : Proof
    """

    fitted: FittedMembers
    parts: Parts
    held: OutOfFold
    chosen: StackChoice
    rule: DecisionRule
    notes: tuple[Note, ...]
    proof: Proof

    @classmethod
    def concluded(
        cls,
        fit: FitSetup,
        fitted: FittedMembers,
        parts: Parts,
        prove: Callable[[OutOfFold, StackChoice, DecisionRule], Proof],
    ) -> Attempt:
        """The conclusion from members that were run on these parts."""
        held = OutOfFold.of(fit.data, fitted, parts, fit.recipe.choice)
        chosen = choose_stack(held)
        rule, notes = rule_on(held, chosen.scores, held.task, margin=held.choice.margin)
        return cls(
            fitted=fitted,
            parts=parts,
            held=held,
            chosen=chosen,
            rule=rule,
            notes=(*chosen.notes, *notes),
            proof=prove(held, chosen, rule),
        )


def _parts(request: FitRequest, job: ClassTrainingData, options: PartOptions, folds: int) -> Parts:
    """The rows parted; those that certify only where there is something they can prove."""
    size = options.certify_size
    if size is None:  # rows with weights, or that depend on each other, prove nothing here
        independent = not options.repeats()
        provable = request.goal.lowered.constraints and job.weight is None and independent
        size = CERTIFY if provable else 0.0
    parts = options.part(job, size, folds)
    if isinstance(request.model, ScoresGiven):  # nothing is fitted: all other rows choose the rule
        return replace(parts, folds=((np.zeros(0, np.intp), parts.train),))
    return parts


def _first_attempt(fit: FitSetup) -> Attempt:
    """Members that have not seen the certify rows, and one touch of these."""
    parts = fit.parts
    fitted = fit.run(parts, fit.work, fit.time_limit)
    if not any(r.name in fit.recipe.choice.main for r in fitted.ran):
        raise KeyboardInterrupt("stopped before any model was fitted; there is nothing to keep")
    fit.data.tell(FitProgress("conclude", what="rule, proof, referee", done=1, total=1))
    # Of a fit that was stopped the certify rows are kept for the fit that goes on.
    touched = parts if fitted.finished else replace(parts, certify=np.zeros(0, np.intp))
    independent = not fit.options.repeats()
    return Attempt.concluded(fit, fitted, touched, partial(prove_rule, independent=independent))


def _with_certify_rows(first: Attempt, fit: FitSetup) -> Attempt:
    """After a proof that failed: members fitted once more with its rows, where time allows.

    Half of the time limit is for the first attempt: the second takes about as long.
    """
    spent = time.monotonic() - fit.start
    late = fit.time_limit is not None and 2 * spent > fit.time_limit
    complete = first.fitted.finished and not late
    if first.proof.proven or not complete or not fit.options.free(first.parts):
        return first
    parts = fit.options.part(fit.data, 0.0, fit.recipe.folds)
    work = None if fit.work is None else fit.work / "again"
    left = None if fit.time_limit is None else fit.time_limit - spent
    fitted = fit.run(parts, work, left)
    if not fitted.finished:
        notes = (*first.fitted.notes, *fitted.notes)
        return replace(first, fitted=replace(first.fitted, notes=notes, finished=False))
    if len(fitted.ran) < len(first.fitted.ran):  # some came too late: the first has more members
        return first
    return Attempt.concluded(fit, fitted, parts, partial(figures_after, tried=first.proof))


def _run_notes(fit: FitSetup, attempt: Attempt) -> tuple[Note | str, ...]:
    """What to know of a run: its rows, members, rule and proof."""
    fitted, recipe = attempt.fitted, fit.recipe
    weighted = "the goal's figures count every row with its sample_weight"
    schema = fit.data.rows.encoder.schema
    main = [m for m in recipe.members if m.name in recipe.choice.main]
    return (
        *(() if fit.data.weight is None else (Note(NoteCode.WEIGHTED, weighted),)),
        *attempt.parts.notes,
        *recipe.notes,
        *fitted.notes,
        *attempt.notes,
        *attempt.proof.notes,
        *extreme_note(attempt.held, attempt.chosen, attempt.proof.rule),
        *(note for r in fitted.ran for note in r.notes),
        *(schema.notes if schema is not None and any(m.form != "raw" for m in main) else ()),
    )


def _run_of(fit: FitSetup, attempt: Attempt, origin: RunOrigin) -> ClassifierRun:
    """The record of a fit: the attempt that stands, compared, measured and checked."""
    request, data = fit.request, fit.data
    held, chosen, proof = attempt.held, attempt.chosen, attempt.proof
    rule = proof.rule
    remember_training(held, chosen, rule)
    comparison = compare(held, chosen, proof) if request.compare else None
    counts = counts_of(attempt.parts, data.target)
    out_of_fold = scored_rows("out-of-fold", data, held.rows, chosen.scores, held.fold)
    scored = (out_of_fold,)
    if proof.scores is not None:
        scored = (scored_rows("certify", data, attempt.parts.certify, proof.scores), out_of_fold)
    fitted = not isinstance(request.model, ScoresGiven)
    checks = table_checks(data, fit.parts, counts, out_of_fold, rule, fitted=fitted)
    goal = rule.goal.lowered
    diagnosis, label_plan, unknown = prospects(goal, rule, scored, fit.recipe.choice.confidence)
    ran = attempt.fitted.ran
    return ClassifierRun(
        goal=request.goal,
        origin=origin,
        labels=data.labels,
        encoder=data.rows.encoder,
        plan=fit.plan,
        models={r.name: r.models for r in ran if r.name in chosen.stack.names},
        members=member_outcomes(fit.recipe, attempt.fitted, chosen),
        stack=chosen.stack,
        rule=rule,
        certificate=proof.certificate,
        comparison=comparison,
        outcome=Outcome.of(goal, rule, proof.certificate or rule.certificate),
        notes=as_notes((*_run_notes(fit, attempt), *unknown)),
        history=[row for r in ran for row in r.history],
        fingerprint=fit.fingerprint,
        seconds=time.monotonic() - fit.start,
        versions=versions(),
        finished=attempt.fitted.finished,
        rows=len(data.target),
        parts=attempt.parts,
        counts=counts,
        scored=scored,
        diagnosis=diagnosis,
        label_plan=label_plan,
        checks=checks,
    )


def member_outcomes(
    recipe: Recipe, fitted: FittedMembers, chosen: StackChoice
) -> tuple[MemberOutcome, ...]:
    """What became of every member of the plan."""
    stack = chosen.stack
    weights = dict(zip(stack.names, stack.weights, strict=True))
    ran = {r.name for r in fitted.ran}
    outcomes = []
    for member in recipe.members:
        name, reason = member.name, ""
        if weights.get(name, 0.0) > 0:
            fate = MemberFate.ALONE if len(stack.used) == 1 else MemberFate.STACKED
        elif name not in recipe.choice.main:
            fate = MemberFate.COMPARED
        elif name in fitted.late:
            fate = MemberFate.TOO_LATE
        elif name not in ran:
            fate = MemberFate.NOT_FITTED
        elif name in chosen.left_out:
            fate, reason = MemberFate.LEFT_OUT, chosen.left_out[name]
        elif name in weights:
            fate = MemberFate.NO_WEIGHT
        else:
            fate, reason = MemberFate.SURPASSED, f"{stack.names[0]} alone is better"
        weight = weights.get(name)
        outcomes.append(MemberOutcome(name=name, weight=weight, fate=fate, reason=reason))
    return tuple(outcomes)


def _encoder(recipe: Recipe, job: ClassTrainingData, parts: Parts) -> tuple[Recipe, Encoder]:
    """The encoder; members for the referee are left out where rows cannot be encoded for them."""
    X = job.rows.X
    if len(np.shape(X)) > 2:
        return recipe, Encoder()
    try:
        return recipe, Encoder.fit(X, parts.train, job.target, job.weight, recipe.forms)
    except SetpointError as error:
        main = [m for m in recipe.members if m.name in recipe.choice.main]
        if any(m.form != "raw" for m in main):
            raise
        note = f"no comparison with LightGBM: {error}"
        why = tuple("the model" for _ in main)
        small = replace(recipe, members=tuple(main), why=why, notes=(*recipe.notes, note))
        return small, Encoder()


def _surroundings(job: ClassTrainingData, request: FitRequest) -> str:
    """A digest of all that a finished part depends on, but its rows and its own settings."""
    encoder = job.rows.encoder
    learned = [x for x in (encoder.schema, encoder.features, encoder.codes) if x is not None]
    digest = hashlib.sha256(repr([x.to_json() for x in learned]).encode())
    digest.update(repr(job.labels.task.to_json()).encode())
    for name in sorted(job.groups):
        digest.update(name.encode() + repr(job.groups[name].tolist()).encode())
    if job.weight is not None:
        digest.update(job.weight.tobytes())
    if isinstance(request.model, nn.Module):
        for tensor in request.model.state_dict().values():
            digest.update(tensor.detach().cpu().numpy().tobytes())
    return digest.hexdigest()


def fingerprint_of(X: Any, target: np.ndarray) -> str:
    """A digest of the cells and the labels, the same for the same rows in the same order."""
    import pandas as pd

    hashed: Any = pd.util.hash_pandas_object  # type: ignore[attr-defined]
    digest = hashlib.sha256(np.ascontiguousarray(target).tobytes())
    if isinstance(X, pd.DataFrame):
        digest.update("|".join(map(str, X.columns)).encode())
        for name in range(X.shape[1]):
            column = X.iloc[:, name]
            try:
                marks = hashed(column, index=False)
            except TypeError:  # cells of several types
                marks = hashed(column.astype(str), index=False)
            digest.update(marks.to_numpy().tobytes())
        return digest.hexdigest()
    array = np.asarray(X)
    if array.dtype.kind == "O":
        return fingerprint_of(pd.DataFrame(array.reshape(len(array), -1)), target)
    digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


def refuse_unmeant(job: ClassTrainingData, kind: str | None) -> None:
    """Raise before anything is fitted where the goal names groups or classes that no row has."""
    task, rows, goal = job.labels.task, len(job.target), job.goal.lowered
    several = len(task.classes or ())
    scores = np.zeros((rows, several) if several else rows)
    labels = job.labels.named(job.target)
    columns = take_in(task, labels, scores=scores, group=job.groups or None).on_host()
    if ranks_only(goal):  # the ranking is judged, and no rule is looked for
        goal.objective.expand(Domain(columns))
        return
    kind_for(goal, task.kind, kind)
    GoalOnRows.ground(goal, columns)


def refuse_columns(goal: Goal, groups: dict[str, np.ndarray]) -> None:
    """Raise where the goal speaks of a column that is not there."""
    for column in goal.columns:
        if column not in groups:
            way = "group=…" if column == "group" else f'group={{"{column}": …}}'
            raise DataError(f'the goal speaks of the column "{column}": pass {way} to fit')
