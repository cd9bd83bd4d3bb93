"""From out-of-fold outputs to a rule that is proven, and what it bought.

1. stack     members weighed on out-of-fold outputs; metric-driven ones stay only if the rows tell
             the stack with them apart from the one without
2. rule      chosen on out-of-fold scores, with a margin
3. referee   against cross-entropy and LightGBM with tuned thresholds, on the same rows
4. proof     one touch of the certify rows: the best rule that is proven there, tested in an order
             that the out-of-fold rows fix; else the rule of step 2, NOT PROVEN, and a portfolio is
             fitted once more with these rows, which are of no further use to a proof
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from setpoint._core.notes import Note, NoteCode
from setpoint.decisions import Certificate, DecisionRule, Fingerprint
from setpoint.decisions.certify import as_figures, certify_columns, examine
from setpoint.decisions.comparison import Comparison
from setpoint.decisions.evaluate import evaluate_columns
from setpoint.decisions.proof.fixed_sequence import prove_columns
from setpoint.decisions.proof.safety_margin import MARGIN, cautious
from setpoint.decisions.referee import Bout, Entrant, cross_decided
from setpoint.decisions.tune import tune_columns
from setpoint.expressions import AtK, Columns
from setpoint.fit.conclusion.out_of_fold import OutOfFold
from setpoint.fit.conclusion.stack import Stack
from setpoint.goals import Goal, Task, symmetric
from setpoint.rules.class_offsets import ClassOffsets
from setpoint.rules.decision_rule import choose, declared, groups_of
from setpoint.rules.goal_on_rows import refuse_one_class
from setpoint.rules.one_threshold import OneThreshold, quick_point
from setpoint.rules.rule import RuleSearch
from setpoint.rules.table import kind_for
from setpoint.rules.threshold_blocks import LabelThresholds

# The operating point of a fitted model, from the tune rows.


def choose_rule(
    goal: Goal,
    columns: Columns,
    *,
    kind: str | None,
    seed: int,
    margin: float = MARGIN,
) -> tuple[DecisionRule, tuple[Note, ...]]:
    """The rule that best meets the goal on these rows, and what to know of it.

    Constraints hold with a margin (see :mod:`setpoint.decisions.proof.safety_margin`; 0 is none).
    ½ and the
    plain argmax are left only for something better; a goal that judges the ranking alone leaves the
    threshold open, and ½ is taken.
    """
    goal = goal.lowered
    if ranks_only(goal):
        value = quick_point(goal, columns).value
        note = Note(
            NoteCode.RANKING_ONLY,
            f'"{goal}" judges the ranking and leaves the threshold open: ½ is taken',
        )
        rule = _usual(goal, columns.task, columns.size, value)
        return replace(rule, chosen_on=Fingerprint.of(columns)), (note,)
    search = RuleSearch(rule=kind_for(goal, columns.task.kind, kind), seed=seed)
    refuse_one_class(columns)
    if not goal.constraints or margin == 0:
        return _plainest(goal, tune_columns(goal, columns, search), columns), ()
    rule, share = cautious(goal, columns, search, margin=margin)
    notes = ()
    if share < 1:
        left = "no margin" if share == 0 else "less than the margin asked for"
        words = f"the rule has {left}: no rule has more on the rows it was chosen on"
        notes = (Note(NoteCode.SMALL_MARGIN, words, {"share": share, "margin": margin}),)
    return replace(rule, chosen_on=Fingerprint.of(columns), groups=groups_of(goal, columns)), notes


def ranks_only(goal: Goal) -> bool:
    """Whether a goal judges scores alone, so that no operating point is wanted."""
    top = any(isinstance(leaf, AtK) for leaf in goal.objective.leaves())
    return goal.objective.needs() <= {"scores"} and not goal.constraints and not top


def _plainest(goal: Goal, rule: DecisionRule, columns: Columns) -> DecisionRule:
    """½ or the plain argmax, where they are as good.

    Exactly as good; of a goal that does not tell the classes apart (accuracy, mcc) also where what
    is better is so by less than two standard errors, 2 √(v (1 − v) / n): with probabilities ½ is
    where such goals belong, and a threshold that a few rows have moved is noise.
    """
    plain = rule.point.plain()
    if plain is None or rule.task.score != "probability" or goal.constraints:
        return rule
    usual = replace(rule, point=plain)
    value = evaluate_columns(usual, usual.decided_columns(columns)).value
    if value is None or rule.value is None:
        return rule
    inside = min(max(abs(rule.value), 0.0), 1.0)
    error = 2 * math.sqrt(inside * (1 - inside) / columns.size) if symmetric(goal) else 0.0
    near = goal.sign * (rule.value - value) <= error
    return replace(usual, value=value) if near else rule


def _usual(goal: Goal, task: Task, rows: int, value: float | None) -> DecisionRule:
    labels = task.classes or ()
    if task.kind == "binary":
        point = OneThreshold(task=task, threshold=0.5 if task.score == "probability" else 0.0)
    elif task.kind == "multiclass":
        point = ClassOffsets(task=task, offsets=(0.0,) * len(labels))
    else:
        point = LabelThresholds(task=task, thresholds=tuple((label, 0.5) for label in labels))
    return DecisionRule(point=point, goal=goal, feasible=True, value=value, rows=rows)


PORTFOLIO = "portfolio"
ALIKE = 0.001  #: a share decided of less, or of more than the rest, is remarked upon
_MANY_CLASSES = 8  #: with more, the referee decides by argmax: offsets of every fold take too long
_AFTER = (
    "The rows are out-of-fold: these are figures, and prove nothing. A proof was tried on {:,} "
    "rows that nothing had seen: {}. Then they went back into training."
)
_FIGURES = (
    "{}: the rule is the one chosen on out-of-fold rows, with its margin, and what stands here "
    "are its figures."
)
_TOGETHER = (
    "Rows of one id depend on each other, so nothing is proven by them: what stands here are "
    "figures."
)


# The stack: who decides.


@dataclass(frozen=True, kw_only=True, eq=False)
class StackChoice:
    """Who decides, and its scores on the out-of-fold rows.

    Attributes
    ----------
    name : str
        As the comparison calls it.
    members : tuple of str
    stack : Stack
    scores : numpy.ndarray
    why : str
        What the comparison says of the choice; may be empty.
    left_out : dict
        Metric-driven members that are not in the stack, and why.
    notes : tuple of Note
    """

    name: str
    members: tuple[str, ...]
    stack: Stack
    scores: np.ndarray
    why: str = ""
    left_out: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()


def choose_stack(held: OutOfFold) -> StackChoice:
    """The stack of the plain members, with metric-driven ones or one member alone if better."""
    choice = held.choice
    names = tuple(n for n in choice.main if n in held.ran)
    driven = tuple(n for n in names if n in choice.driven)
    plain = tuple(n for n in names if n not in driven)
    if len(names) == 1:
        return _stack_choice(held, names[0], names)
    if not plain:
        return _stack_choice(held, PORTFOLIO, names)
    entrants = [_entrant(held, PORTFOLIO, plain, choice.margin)]
    if driven:
        entrants.append(_entrant(held, "with", names, choice.margin))
    trees = str(choice.trees)
    if trees in plain and len(plain) > 1:
        entrants.append(_entrant(held, "single", (trees,), choice.margin))
    bout = Bout.of(held.goal, entrants, held.fold, held.job.seed)
    members = plain
    left_out: dict[str, str] = {}
    notes: tuple[Note, ...] = ()
    if driven:
        gap = bout.difference("with", PORTFOLIO)
        better = gap.merit_low > 0
        members = names if better else plain
        span = f"{gap.merit:+.3f} [{gap.merit_low:+.3f}, {gap.merit_high:+.3f}]"
        code = NoteCode.DRIVEN_KEPT if better else NoteCode.DRIVEN_LEFT_OUT
        what = "kept" if better else "left out"
        words = f"{' and '.join(driven)}: {what}, the stack with it differs by {span}"
        notes = (Note(code, words, {"members": list(driven)}),)
        if not better:
            left_out = dict.fromkeys(driven, f"the stack with it differs by {span}")
    if members == plain and any(e.name == "single" for e in entrants):
        gap = bout.difference("single", PORTFOLIO)
        if gap.merit > bout.error("single", PORTFOLIO):
            why = f"{trees} alone is better than the stack here."
            return _stack_choice(held, trees, (trees,), why=why, left_out=left_out, notes=notes)
    return _stack_choice(held, PORTFOLIO, members, left_out=left_out, notes=notes)


def _stack_choice(
    held: OutOfFold, name: str, members: tuple[str, ...], **details: Any
) -> StackChoice:
    stack = held.stacked(members)
    scores = held.scores(stack)
    return StackChoice(name=name, members=members, stack=stack, scores=scores, **details)


# The referee: everybody on rows that other folds chose the rules for.


def compare(held: OutOfFold, chosen: StackChoice, proof: Proof) -> Comparison | None:
    """The one who decides and the baselines; None where there is nobody to compare with."""
    entrants = [_entrant(held, chosen.name, chosen.members, held.choice.margin)]
    for label, member in held.baselines():
        entrants.append(_entrant(held, label, (member,), 0))
    if len(entrants) == 1:
        return None
    bout = Bout.of(held.goal, entrants, held.fold, held.job.seed)
    return bout.comparison(chosen.name, _verdicts(held, chosen, proof), chosen.why)


def _verdicts(held: OutOfFold, chosen: StackChoice, proof: Proof) -> dict[str, str]:
    """What the certify rows, where there are any, say of everybody's own rule."""
    if proof.certificate is None or not proof.rows or not held.goal.constraints:
        return {}
    verdicts = {chosen.name: proof.certificate.verdict}
    for label, member in held.baselines():
        stack, task = held.stacked((member,)), held.task_of((member,))
        rule, _ = rule_on(held, held.scores(stack), task, margin=0)
        columns = held.columns(held.parts.certify, stack.scores(proof.outputs, task), task)
        columns = rule.decided_columns(columns)
        certificate = certify_columns(held.goal, rule, columns, 1 - held.choice.confidence)
        verdicts[label] = certificate.verdict
    return verdicts


def _entrant(held: OutOfFold, name: str, members: Sequence[str], margin: float) -> Entrant:
    """Somebody who decides the held rows by rules of other folds."""
    columns = held.columns(held.rows, held.cross_scores(members), held.task_of(members))
    if ranks_only(held.goal):
        return Entrant(name, columns, "the ranking")
    decided = cross_decided(columns, held.fold, _chooser(held, margin))
    words = "threshold with margin" if margin != 0 and held.goal.constraints else "tuned"
    return Entrant(name, decided, words)


def _chooser(held: OutOfFold, margin: float) -> Callable[[Columns], DecisionRule]:
    goal, job = held.goal, held.job
    kind = kind_for(goal, held.task.kind, held.choice.kind)
    if len(held.task.classes or ()) > _MANY_CLASSES:
        kind = kind.quick_kind()
    by = next(iter(job.groups)) if kind.needs_group and job.groups else None
    search = RuleSearch(rule=kind, by=by, seed=job.seed)

    def rule_of(columns: Columns) -> DecisionRule:
        if margin == 0:
            return choose(goal, columns, search)
        rule, _ = cautious(goal, columns, search, margin=margin)
        return rule

    return rule_of


# The rule, and what the certify rows prove of it.


@dataclass(frozen=True, kw_only=True, eq=False)
class Proof:
    """The rule that stands, and what the certify rows prove of it.

    Attributes
    ----------
    rule : DecisionRule
        Of several proven ones the best; else the one that was chosen out of fold.
    certificate : Certificate or None
        None where no row certifies.
    rows : int
        Certify rows.
    scores : numpy.ndarray or None
        Of the certify rows.
    outputs : dict
        Of every member that was run, on the certify rows.
    notes : tuple of Note
    """

    rule: DecisionRule
    certificate: Certificate | None = None
    rows: int = 0
    scores: np.ndarray | None = None
    outputs: Mapping[str, np.ndarray] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()

    @property
    def proven(self) -> bool:
        """Whether the certify rows prove every constraint."""
        return self.certificate is not None and self.certificate.proven

    @property
    def too_costly(self) -> tuple[Note, ...]:
        """Notes on a rule that is proven, and costs more than it may."""
        return tuple(n for n in self.notes if n.code is NoteCode.PROOF_TOO_COSTLY)


def prove_rule(
    held: OutOfFold, chosen: StackChoice, rule: DecisionRule, *, independent: bool
) -> Proof:
    """One touch of the certify rows: the best rule that is proven there, else figures of this one.

    Parameters
    ----------
    independent : bool
        Whether no two rows depend on each other, so that a proof can be had.
    """
    rows, job = held.parts.certify, held.job
    if not len(rows):
        return Proof(rule=rule)
    encoded = job.rows.encoder.encode(job.rows.rows("raw", rows))
    outputs = {r.name: r.predict(encoded) for r in held.portfolio.ran}
    scores = chosen.stack.scores(outputs, held.task)
    stands, certificate, notes = _proven(held, chosen, rule, scores, independent)
    return Proof(
        rule=stands,
        certificate=certificate,
        rows=len(rows),
        scores=scores,
        outputs=outputs,
        notes=notes,
    )


def figures_after(held: OutOfFold, chosen: StackChoice, rule: DecisionRule, tried: Proof) -> Proof:
    """Out-of-fold figures of a rule, after a proof that failed gave its rows back to training."""
    assert tried.certificate is not None
    columns = rule.decided_columns(held.columns(held.rows, chosen.scores))
    columns = replace(columns, task=declared(held.goal, columns, (rule.groups,)))
    rows = Fingerprint.of(columns)
    figures = examine(held.goal, rule.point, columns, rows, 1 - held.choice.confidence)
    why = (
        "a rule was proven, and cost more than it may" if tried.too_costly else "no rule was proven"
    )
    words = (finding.account() for finding in tried.certificate.findings)
    tested = f"on {tried.rows:,} rows that nothing had seen, before they were used: "
    note = Note(NoteCode.PROOF_TRIED, tested + "; ".join(words), {"rows": tried.rows})
    return Proof(
        rule=rule,
        certificate=as_figures(figures, _AFTER.format(tried.rows, why), out_of_fold=True),
        notes=(*tried.too_costly, note),
    )


def _proven(
    held: OutOfFold,
    chosen: StackChoice,
    rule: DecisionRule,
    scores: np.ndarray,
    independent: bool,
) -> tuple[DecisionRule, Certificate, tuple[Note, ...]]:
    """The rule that stands after its test on the certify rows, its certificate, and notes."""
    goal = held.goal
    delta = 1 - held.choice.confidence
    columns = held.columns(held.parts.certify, scores)
    provable = goal.constraints and not rule.point.no_proof and held.job.weight is None
    notes: tuple[Note, ...] = ()
    reason = "Nothing was proven on these rows"
    if provable and independent and not held.parts.shared:
        refuse_one_class(columns)
        reference = held.columns(held.rows, chosen.scores)
        search = RuleSearch(rule=type(rule.point), by=rule.by, seed=held.job.seed)
        best = prove_columns(goal, columns, reference, delta, search)
        if best.certificate is not None and best.proven:
            cost, words = _proof_cost(goal, reference, rule, best)
            if cost <= held.choice.proof_price:
                if cost > 0:
                    text = f"the price of the proof: {words}"
                    notes = (Note(NoteCode.PROOF_PRICE, text, {"cost": cost}),)
                return replace(best, frontier=rule.frontier), best.certificate, notes
            reason = f"A rule is proven, and costs more than it may ({words})"
            text = (
                f"a rule is proven, at {words}: more than the proof price of "
                f"{held.choice.proof_price:g} allows; set the proof price to 1 to take it"
            )
            notes = (Note(NoteCode.PROOF_TOO_COSTLY, text, {"cost": cost}),)
    figures = certify_columns(goal, rule, rule.decided_columns(columns), delta)
    words = _FIGURES.format(reason) if independent else _TOGETHER
    return rule, as_figures(figures, words) if goal.constraints else figures, notes


def _proof_cost(
    goal: Goal, columns: Columns, rule: DecisionRule, proven: DecisionRule
) -> tuple[float, str]:
    """What a proven rule gives up of the objective out of fold, in its units, and in words."""
    ours, theirs = (evaluate_columns(r, r.decided_columns(columns)).value for r in (rule, proven))
    if ours is None:
        return 0.0, ""
    low, high = goal.objective.interval()
    scale = 1.0 if math.isfinite(high - low) else max(abs(ours), 1e-12)
    cost = math.inf if theirs is None else goal.sign * (ours - theirs) / scale
    value = "empty" if theirs is None else f"{theirs:.3g}"
    without = f"where {ours:.3g} can be had without proof"
    return cost, f"{goal.objective} {value} out of fold, {without}"


def rule_on(
    held: OutOfFold, scores: np.ndarray, task: Task, *, margin: float
) -> tuple[DecisionRule, tuple[Note, ...]]:
    """The rule that best meets the goal on the held rows, and what to know of it."""
    return choose_rule(
        held.job.goal,
        held.columns(held.rows, scores, task),
        kind=held.choice.kind,
        seed=held.job.seed,
        margin=margin,
    )


def remember_training(held: OutOfFold, chosen: StackChoice, rule: DecisionRule) -> None:
    """Let the rule know the rows it was trained on, as the final model scores them."""
    rows = held.parts.train
    rule.touched.append(Fingerprint.of(held.columns(rows, held.scores_of(chosen.stack, rows))))


def extreme_note(held: OutOfFold, chosen: StackChoice, rule: DecisionRule) -> tuple[Note, ...]:
    """A note on a rule that decides nearly nobody or nearly everybody, which a goal may allow."""
    if held.task.kind != "binary" or rule.point.may_abstain or not rule.point.row_by_row:
        return ()
    by = {"group": held.groups(held.rows)} if rule.point.needs_group else {}
    share = float(np.mean(np.asarray(rule.decide(chosen.scores, **by))))
    if ALIKE < share < 1 - ALIKE:
        return ()
    who = "nobody" if share <= ALIKE else "everybody"
    more = '; method="lagrangian" or kind="per-group" may do better'
    more = more if held.goal.columns else ""
    words = (
        f"the rule decides {who} ({share:.2%} of {len(held.rows):,} held rows), which the goal "
        f"allows: say what it must find or spare, for example a floor on recall{more}"
    )
    return (Note(NoteCode.EXTREME_RULE, words, {"share": share}),)
