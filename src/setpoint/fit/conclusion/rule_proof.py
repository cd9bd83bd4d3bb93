"""The proof of a rule: one touch of the certify rows.

The best rule that is proven there stands, tested in an order that the out-of-fold rows fix; else
the rule that was chosen out of fold, NOT PROVEN. Then members are fitted once more with these rows,
which are of no further use to a proof.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from setpoint._core.notes import Note, NoteCode
from setpoint.decisions import Certificate, DecisionRule, Fingerprint
from setpoint.decisions.certify import as_figures, certify_columns, examine
from setpoint.decisions.evaluate import evaluate_columns
from setpoint.decisions.proof.fixed_sequence import prove_columns
from setpoint.expressions import Columns
from setpoint.fit.conclusion.out_of_fold import OutOfFold
from setpoint.fit.conclusion.stack_choice import StackChoice
from setpoint.goals import Goal
from setpoint.rules.decision_rule import declared
from setpoint.rules.goal_on_rows import refuse_one_class
from setpoint.rules.rule import RuleSearch

ALIKE = 0.001  #: a share decided of less, or of more than the rest, is remarked upon
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
    outputs = {r.name: r.predict(encoded) for r in held.fitted.ran}
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
