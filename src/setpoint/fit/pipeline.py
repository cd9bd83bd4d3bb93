"""The main job: rows and a goal in, models and a rule that is proven out."""

from __future__ import annotations

import hashlib
import os
import time
from dataclasses import dataclass, replace
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
from setpoint.fit.conclusion.out_of_fold import OutOfFold
from setpoint.fit.conclusion.rule_and_proof import (
    StackChoice,
    choose_stack,
    compare,
    extreme_note,
    figures_after,
    prove_rule,
    ranks_only,
    remember_training,
    rule_on,
)
from setpoint.fit.conclusion.stack import MemberFate, MemberOutcome
from setpoint.fit.cross_fitting import Portfolio, run_members
from setpoint.fit.member_checkpoints import Workshop
from setpoint.fit.members import ScoresGiven
from setpoint.fit.plan import CERTIFY, FitPlan, FitRequest, Planned, Recipe, counts_of
from setpoint.fit.run_checks import prospects, scored_rows, table_checks
from setpoint.fit.run_record import ClassifierRun, RunOrigin, as_notes, versions
from setpoint.fit.training_data import Encoder, FitProgress, Job
from setpoint.goals import Goal
from setpoint.rules.goal_on_rows import GoalOnRows
from setpoint.rules.table import kind_for


@dataclass(frozen=True)
class Division:
    """How rows are to be parted; see :func:`setpoint.datasets.part`."""

    certify_size: float | None = None
    split: Any = None
    together: Any = None
    time: Any = None

    def part(self, job: Job, certify_size: float, folds: int) -> Parts:
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
    asked: FitRequest,
    job: Job,
    division: Division,
    *,
    origin: RunOrigin,
    work: str | os.PathLike[str] | None = None,
    time_limit: float | None = None,
) -> ClassifierRun:
    """Part the rows, fit the members, conclude.

    Parameters
    ----------
    asked : FitRequest
    job : Job
        Its rows are not encoded yet: the encoder is learned from rows that do not certify.
    division : Division
    origin : RunOrigin
        Settings and names, kept in the run.
    work : path, optional
        A folder where finished parts are kept and taken up.
    time_limit : float, optional
        Seconds after which no member is begun.
    """
    start = time.monotonic()
    refuse_unmeant(job, asked.kind)
    recipe = asked.recipe(job.labels.task)
    size = division.certify_size
    independent = not division.repeats()
    if size is None:  # rows with weights, or that depend on each other, prove nothing here
        provable = asked.goal.lowered.constraints and job.weight is None and independent
        size = CERTIFY if provable else 0.0
    parts = division.part(job, size, recipe.folds)
    given_scores = isinstance(asked.model, ScoresGiven)
    if given_scores:  # nothing is fitted: all other rows choose the rule
        parts = replace(parts, folds=((np.zeros(0, np.intp), parts.train),))
    first, X = parts, job.rows.X
    recipe, encoder = _encoder(recipe, X, job, parts)
    job = replace(job, rows=encoder.encode(X))
    plan = FitPlan.of(asked.goal, recipe, parts, job.target, job.rows.width)
    mark = fingerprint_of(X, job.target)
    job.tell(Planned("plan", plan, mark))
    key = "|".join([mark, str(asked.goal), str(job.seed), _surroundings(job, asked)])
    module = asked.model if isinstance(asked.model, nn.Module) else None
    shop = None if work is None else Workshop(work, key, job.labels.task, module)
    portfolio = run_members(job, recipe.members, parts, shop, time_limit)
    if not any(r.name in recipe.choice.main for r in portfolio.ran):
        raise KeyboardInterrupt("stopped before any model was fitted; there is nothing to keep")
    job.tell(FitProgress("conclude", what="rule, proof, referee", done=1, total=1))
    if not portfolio.finished:  # the certify rows are kept for the fit that goes on
        parts = replace(parts, certify=np.zeros(0, np.intp))
    choice = recipe.choice
    held = OutOfFold.of(job, portfolio, parts, choice)
    chosen, rule, decision_notes = _decided(held)
    proof = prove_rule(held, chosen, rule, independent=independent)
    spent = time.monotonic() - start
    late = time_limit is not None and 2 * spent > time_limit
    if not proof.proven and portfolio.finished and not late and division.free(parts):
        again = division.part(job, 0.0, recipe.folds)
        place = None if work is None else Path(work) / "again"
        more = None if place is None else Workshop(place, key, job.labels.task, module)
        left = None if time_limit is None else time_limit - spent
        second = run_members(job, recipe.members, again, more, left)
        if second.finished and len(second.ran) == len(portfolio.ran):
            portfolio, parts = second, again
            held = OutOfFold.of(job, portfolio, parts, choice)
            chosen, rule, decision_notes = _decided(held)
            proof = figures_after(held, chosen, rule, proof)
        elif not second.finished:
            notes = (*portfolio.notes, *second.notes)
            portfolio = replace(portfolio, notes=notes, finished=False)
    rule = proof.rule
    remember_training(held, chosen, rule)
    comparison = compare(held, chosen, proof) if asked.compare else None
    counts = counts_of(parts, job.target)
    out_of_fold = scored_rows("out-of-fold", job, held.rows, chosen.scores, held.fold)
    scored = (out_of_fold,)
    checks = table_checks(job, first, counts, out_of_fold, rule, fitted=not given_scores)
    if proof.scores is not None:
        scored = (scored_rows("certify", job, parts.certify, proof.scores), out_of_fold)
    goal = rule.goal.lowered
    diagnosis, label_plan, unknown = prospects(goal, rule, scored, choice.confidence)
    notes = (*parts.notes, *recipe.notes, *portfolio.notes, *decision_notes, *proof.notes)
    notes += extreme_note(held, chosen, rule)
    notes += tuple(n for r in portfolio.ran for n in r.notes)
    main = [m for m in recipe.members if m.name in choice.main]
    if encoder.schema is not None and any(m.form != "raw" for m in main):
        notes += tuple(encoder.schema.notes)
    if job.weight is not None:
        weighted = "the goal's figures count every row with its sample_weight"
        notes = (Note(NoteCode.WEIGHTED, weighted), *notes)
    return ClassifierRun(
        goal=asked.goal,
        origin=origin,
        labels=job.labels,
        encoder=encoder,
        plan=plan,
        models={r.name: r.models for r in portfolio.ran if r.name in chosen.stack.names},
        members=member_outcomes(recipe, portfolio, chosen),
        stack=chosen.stack,
        rule=rule,
        certificate=proof.certificate,
        comparison=comparison,
        outcome=Outcome.of(goal, rule, proof.certificate or rule.certificate),
        notes=as_notes((*notes, *unknown)),
        history=[row for r in portfolio.ran for row in r.history],
        fingerprint=mark,
        seconds=time.monotonic() - start,
        versions=versions(),
        finished=portfolio.finished,
        rows=len(job.target),
        parts=parts,
        counts=counts,
        scored=scored,
        diagnosis=diagnosis,
        label_plan=label_plan,
        checks=checks,
    )


def _decided(held: OutOfFold) -> tuple[StackChoice, DecisionRule, tuple[Note, ...]]:
    """Who decides, and by which rule, with the margin asked for."""
    chosen = choose_stack(held)
    rule, notes = rule_on(held, chosen.scores, held.task, margin=held.choice.margin)
    return chosen, rule, (*chosen.notes, *notes)


def member_outcomes(
    recipe: Recipe, portfolio: Portfolio, chosen: StackChoice
) -> tuple[MemberOutcome, ...]:
    """What became of every member of the plan."""
    stack = chosen.stack
    weights = dict(zip(stack.names, stack.weights, strict=True))
    ran = {r.name for r in portfolio.ran}
    outcomes = []
    for member in recipe.members:
        name, reason = member.name, ""
        if weights.get(name, 0.0) > 0:
            fate = MemberFate.ALONE if len(stack.used) == 1 else MemberFate.STACKED
        elif name not in recipe.choice.main:
            fate = MemberFate.COMPARED
        elif name in portfolio.late:
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


def _encoder(recipe: Recipe, X: Any, job: Job, parts: Parts) -> tuple[Recipe, Encoder]:
    """The encoder; members for the referee are left out where rows cannot be encoded for them."""
    rows = parts.train
    try:
        if len(np.shape(X)) > 2:
            return recipe, Encoder()
        found = Encoder.fit(X, rows, job.target, job.weight, recipe.forms)
        return recipe, found
    except SetpointError as error:
        main = [m for m in recipe.members if m.name in recipe.choice.main]
        if any(m.form != "raw" for m in main):
            raise
        note = f"no comparison with LightGBM: {error}"
        why = tuple("the model" for _ in main)
        small = replace(recipe, members=tuple(main), why=why, notes=(*recipe.notes, note))
        return small, Encoder()


def _surroundings(job: Job, asked: FitRequest) -> str:
    """A digest of all that a finished part depends on, but its rows and its own settings."""
    encoder = job.rows.encoder
    made = [x for x in (encoder.schema, encoder.features, encoder.codes) if x is not None]
    digest = hashlib.sha256(repr([x.to_json() for x in made]).encode())
    digest.update(repr(job.labels.task.to_json()).encode())
    for name in sorted(job.groups):
        digest.update(name.encode() + repr(job.groups[name].tolist()).encode())
    if job.weight is not None:
        digest.update(job.weight.tobytes())
    if isinstance(asked.model, nn.Module):
        for tensor in asked.model.state_dict().values():
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


def refuse_unmeant(job: Job, kind: str | None) -> None:
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
