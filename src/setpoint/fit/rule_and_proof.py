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
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from setpoint._core.notes import Note, NoteCode
from setpoint.datasets import Parts
from setpoint.decisions import Certificate, DecisionRule, Fingerprint
from setpoint.decisions.certify import as_figures, certify_columns, examine
from setpoint.decisions.comparison import Comparison
from setpoint.decisions.evaluate import evaluate_columns
from setpoint.decisions.proof.fixed_sequence import prove_columns
from setpoint.decisions.proof.safety_margin import MARGIN, cautious
from setpoint.decisions.referee import Bout, Entrant, cross_decided
from setpoint.decisions.tune import tune_columns
from setpoint.expressions import AtK, Columns, take_in
from setpoint.fit.cross_fitting import Portfolio
from setpoint.fit.plan import RuleChoice
from setpoint.fit.stack import Stack, fit_stack
from setpoint.fit.training_data import SOME, Job
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


@dataclass(frozen=True, eq=False)
class Concluded:
    """How a fit ended."""

    name: str
    stack: Stack
    rule: DecisionRule
    certificate: Certificate | None
    comparison: Comparison | None
    held: np.ndarray
    held_scores: np.ndarray
    fold: np.ndarray
    certify_scores: np.ndarray | None
    notes: tuple[Note, ...]
    left_out: dict[str, str]  #: metric-driven members that are not in the stack, and why


class Conclusion:
    """The four steps over one portfolio."""

    def __init__(
        self, job: Job, run: Portfolio, parts: Parts, choice: RuleChoice, apart: bool = True
    ) -> None:
        """With ``apart`` no two rows depend on each other, so that a proof can be had."""
        self.apart, self.price = apart, ""
        self.job, self.run, self.parts, self.choice = job, run, parts, choice
        self.goal = job.goal.lowered
        self.outputs = {r.name: r.outputs for r in run.ran}
        self.held = parts.held
        self.notes: list[Note] = []
        self.left_out: dict[str, str] = {}
        fold = parts.fold_of(len(job.target))[self.held]
        self.fold = fold if len(parts.folds) > 1 else _dealt(job, self.held)
        raw = not all(r.probable for r in run.ran if r.name in choice.main)
        task = job.labels.task
        self.task = Task(
            task.kind, task.positive, task.classes, score="raw" if raw else "probability"
        )
        self.certificate: Certificate | None = None
        self.certify_scores: np.ndarray | None = None
        self.certify_outputs: dict[str, np.ndarray] = {}

    # --- scores ----------------------------------------------------------------------------------

    def stacked(self, names: Sequence[str]) -> Stack:
        """Members weighed on all held rows."""
        if len(names) == 1:
            return Stack.alone(names[0], raw=not self.run.named(names[0]).probable)
        rows = self.held
        held = {n: self.outputs[n][rows] for n in names}
        task, weight = self.job.labels.task, self.job.weights(rows)
        return fit_stack(names, held, self.job.target[rows], weight, task)

    def scores(self, stack: Stack) -> np.ndarray:
        """Scores of a stack on the held rows."""
        return stack.scores({n: self.outputs[n][self.held] for n in stack.names}, self.task)

    def crossed(self, names: Sequence[str]) -> np.ndarray:
        """The same, each fold's weights from other folds: nobody is judged on their own rows."""
        if len(names) == 1:
            return self.scores(self.stacked(names))
        task = self.job.labels.task
        found: np.ndarray | None = None
        for f in np.unique(self.fold):
            here, there = self.held[self.fold == f], self.held[self.fold != f]
            outputs = {n: self.outputs[n][there] for n in names}
            stack = fit_stack(names, outputs, self.job.target[there], self.job.weights(there), task)
            part = stack.scores({n: self.outputs[n][here] for n in names}, self.task)
            found = np.zeros((len(self.held), *part.shape[1:])) if found is None else found
            found[self.fold == f] = part
        assert found is not None
        return found

    def columns(self, rows: np.ndarray, scores: np.ndarray, task: Task | None = None) -> Columns:
        """Rows as the rooms of decisions take them."""
        return take_in(task or self.task, **self.given(rows, scores)).on_host()

    def given(self, rows: np.ndarray, scores: np.ndarray) -> dict[str, Any]:
        """The arguments of tune, certify and evaluate."""
        job = self.job
        return {
            "y_true": job.labels.named(job.target[rows]),
            "scores": scores,
            "sample_weight": job.weights(rows),
            "group": {name: job.groups[name][rows] for name in job.groups} or None,
        }

    # --- the referee -----------------------------------------------------------------------------

    def entrant(self, name: str, names: Sequence[str], margin: float) -> Entrant:
        """Somebody who decides the held rows by rules of other folds."""
        raw = not all(self.run.named(n).probable for n in names)
        task = replace(self.task, score="raw" if raw else "probability")
        columns = self.columns(self.held, self.crossed(names), task)
        if ranks_only(self.goal):
            return Entrant(name, columns, "the ranking")
        decided = cross_decided(columns, self.fold, self._chooser(margin))
        words = "threshold with margin" if margin != 0 and self.goal.constraints else "tuned"
        return Entrant(name, decided, words)

    def _chooser(self, margin: float) -> Callable[[Columns], DecisionRule]:
        kind = kind_for(self.goal, self.task.kind, self.choice.kind)
        if len(self.task.classes or ()) > _MANY_CLASSES:
            kind = kind.quick_kind()
        by = next(iter(self.job.groups)) if kind.needs_group and self.job.groups else None
        search = RuleSearch(rule=kind, by=by, seed=self.job.seed)

        def chosen(columns: Columns) -> DecisionRule:
            if margin == 0:
                return choose(self.goal, columns, search)
            return cautious(self.goal, columns, search, margin=margin)[0]

        return chosen

    def main(self) -> tuple[str, tuple[str, ...], str]:
        """Who decides: its name, its members, and why."""
        ran = {r.name for r in self.run.ran}
        names = tuple(n for n in self.choice.main if n in ran)
        driven = tuple(n for n in names if n in self.choice.driven)
        plain = tuple(n for n in names if n not in driven)
        margin, why = self.choice.margin, ""
        if len(names) == 1:
            return names[0], names, why
        if not plain:
            return PORTFOLIO, names, why
        entrants = [self.entrant(PORTFOLIO, plain, margin)]
        if driven:
            entrants.append(self.entrant("with", names, margin))
        if self.choice.trees in plain and len(plain) > 1:
            entrants.append(self.entrant("single", (str(self.choice.trees),), margin))
        bout = Bout.of(self.goal, entrants, self.fold, self.job.seed)
        chosen = plain
        if driven:
            gap = bout.difference("with", PORTFOLIO)
            kept = gap.merit_low > 0
            chosen = names if kept else plain
            who = " and ".join(driven)
            span = f"{gap.merit:+.3f} [{gap.merit_low:+.3f}, {gap.merit_high:+.3f}]"
            code = NoteCode.DRIVEN_KEPT if kept else NoteCode.DRIVEN_LEFT_OUT
            words = f"{who}: {'kept' if kept else 'left out'}, the stack with it differs by {span}"
            self.notes.append(Note(code, words, {"members": list(driven)}))
            if not kept:
                self.left_out = dict.fromkeys(driven, f"the stack with it differs by {span}")
        if any(e.name == "single" for e in entrants):
            gap = bout.difference("single", PORTFOLIO)
            if gap.merit > bout.error("single", PORTFOLIO) and chosen == plain:
                single = str(self.choice.trees)
                return single, (single,), f"{single} alone is better than the stack here."
        return PORTFOLIO, chosen, why

    def compare(self, name: str, names: tuple[str, ...], verdicts: dict[str, str], why: str) -> Any:
        """The comparison of who decides with the baselines."""
        entrants = [self.entrant(name, names, self.choice.margin)]
        for label, member in self.baselines():
            entrants.append(self.entrant(label, (member,), 0))
        if len(entrants) == 1:
            return None
        bout = Bout.of(self.goal, entrants, self.fold, self.job.seed)
        return bout.comparison(name, verdicts, why)

    def baselines(self) -> list[tuple[str, str]]:
        """The baselines that were run: a label and a member."""
        ran = {r.name for r in self.run.ran}
        known = [
            (f"{m if (m,) == self.choice.main else f'cross-entropy ({m})'} + tuned threshold", m)
            for m in self.choice.plain
        ]
        known.append(("lightgbm + tuned threshold", str(self.choice.trees)))
        same = self.choice.main if self.choice.margin == 0 or not self.goal.constraints else ()
        return [(label, m) for label, m in known if m in ran and (m,) != same]

    # --- the end ---------------------------------------------------------------------------------

    def decide(self) -> Self:
        """Who decides, its rule, and what the certify rows prove of it."""
        self.name, self.names, self.why = self.main()
        self.stack = self.stacked(self.names)
        self.held_scores = self.scores(self.stack)
        self.rule, notes = self._rule(self.held_scores, self.task, self.choice.margin)
        self.notes += notes
        if len(self.parts.certify):
            rows = self.job.rows.encoder.encode(self.job.rows.rows("raw", self.parts.certify))
            self.certify_outputs = {r.name: r.predict(rows) for r in self.run.ran}
            self.certify_scores = self.stack.scores(self.certify_outputs, self.task)
            self.rule, self.certificate = self._prove(self.certify_scores)
        return self

    @property
    def proven(self) -> bool:
        """Whether the certify rows prove every constraint."""
        return self.certificate is not None and self.certificate.proven

    def after(self, tried: Conclusion) -> Self:
        """Take over from a proof that failed, whose rows went back into training."""
        assert tried.certificate is not None
        columns = self.columns(self.held, self.held_scores)
        columns = self.rule.decided_columns(columns)
        columns = replace(columns, task=declared(self.goal, columns, (self.rule.groups,)))
        rows = Fingerprint.of(columns)
        made = examine(self.goal, self.rule.point, columns, rows, 1 - self.choice.confidence)
        fresh = len(tried.parts.certify)
        why = (
            "a rule was proven, and cost more than it may" if tried.price else "no rule was proven"
        )
        self.certificate = as_figures(made, _AFTER.format(fresh, why), out_of_fold=True)
        self.notes += [n for n in tried.notes if n.code is NoteCode.PROOF_TOO_COSTLY]
        told = (f.sentence().removeprefix("NOT PROVEN: ") for f in tried.certificate.findings)
        seen = "; ".join(told)
        words = f"on {fresh:,} rows that nothing had seen, before they were used: {seen}"
        self.notes.append(Note(NoteCode.PROOF_TRIED, words, {"rows": fresh}))
        return self

    def verdicts_of(self) -> dict[str, str]:
        """What the certify rows say of everybody's own rule."""
        if self.certificate is None or not self.goal.constraints or not len(self.parts.certify):
            return {}
        return {self.name: self.certificate.verdict} | self._verdicts(self.certify_outputs)

    def _remember_training(self) -> None:
        """Let the rule know the rows it was trained on, as the final model scores them."""
        rows, job = self.parts.train, self.job
        parts = []
        for some in np.array_split(rows, max(1, -(-len(rows) // SOME))):
            encoded = job.rows.encoder.encode(job.rows.rows("raw", some))
            outputs = {n: self.run.named(n).predict(encoded) for n in self.stack.used}
            parts.append(self.stack.scores(outputs, self.task))
        self.rule.touched.append(Fingerprint.of(self.columns(rows, np.concatenate(parts))))

    def finish(self, compare: bool) -> Concluded:
        """The comparison, and all of it as one record."""
        self._remember_training()
        self._remark()
        comparison = None
        if compare:
            comparison = self.compare(self.name, self.names, self.verdicts_of(), self.why)
        return Concluded(
            self.name,
            self.stack,
            self.rule,
            self.certificate,
            comparison,
            self.held,
            self.held_scores,
            self.fold,
            self.certify_scores,
            tuple(self.notes),
            self.left_out,
        )

    def _remark(self) -> None:
        """Note a rule that decides nearly nobody or nearly everybody, which a goal may allow."""
        rule = self.rule
        if self.task.kind != "binary" or rule.point.may_abstain or not rule.point.row_by_row:
            return
        group = self.given(self.held, self.held_scores)["group"]
        by = {"group": group} if rule.point.needs_group else {}
        share = float(np.mean(np.asarray(rule.decide(self.held_scores, **by))))
        if ALIKE < share < 1 - ALIKE:
            return
        who = "nobody" if share <= ALIKE else "everybody"
        more = '; method="lagrangian" or kind="per-group" may do better'
        more = more if self.goal.columns else ""
        words = (
            f"the rule decides {who} ({share:.2%} of {len(self.held):,} held rows), which the goal "
            f"allows: say what it must find or spare, for example a floor on recall{more}"
        )
        self.notes.append(Note(NoteCode.EXTREME_RULE, words, {"share": share}))

    def _rule(
        self, scores: np.ndarray, task: Task, margin: float
    ) -> tuple[DecisionRule, tuple[Note, ...]]:
        return choose_rule(
            self.job.goal,
            self.columns(self.held, scores, task),
            kind=self.choice.kind,
            seed=self.job.seed,
            margin=margin,
        )

    def _prove(self, certify_scores: np.ndarray) -> tuple[DecisionRule, Certificate]:
        rows, goal, sure = self.parts.certify, self.goal, self.choice.confidence
        rule, scores = self.rule, self.held_scores
        columns = self.columns(rows, certify_scores)
        provable = goal.constraints and not rule.point.no_proof and self.job.weight is None
        if provable and self.apart and not self.parts.shared:
            refuse_one_class(columns)
            found = prove_columns(
                goal,
                columns,
                self.columns(self.held, scores),
                1 - sure,
                RuleSearch(rule=type(rule.point), by=rule.by, seed=self.job.seed),
            )
            if found.certificate is not None and found.proven and self._affordable(found):
                return replace(found, frontier=rule.frontier), found.certificate
        figures = certify_columns(goal, rule, rule.decided_columns(columns), 1 - sure)
        words = _FIGURES.format(self.price or "Nothing was proven on these rows")
        if not self.apart:
            words = _TOGETHER
        return rule, as_figures(figures, words) if goal.constraints else figures

    def _affordable(self, proven: DecisionRule) -> bool:
        """Whether a proven rule costs no more of the objective than a proof may cost."""
        columns = self.columns(self.held, self.held_scores)
        ours, theirs = (
            evaluate_columns(rule, rule.decided_columns(columns)).value
            for rule in (self.rule, proven)
        )
        if ours is None:
            return True
        low, high = self.goal.objective.interval()
        scale = 1.0 if math.isfinite(high - low) else max(abs(ours), 1e-12)
        cost = math.inf if theirs is None else self.goal.sign * (ours - theirs) / scale
        what = self.goal.objective
        value = "empty" if theirs is None else f"{theirs:.3g}"
        had = f"{what} {value} out of fold, where {ours:.3g} can be had without proof"
        if cost <= self.choice.proof_price:
            if cost > 0:
                words = f"the price of the proof: {had}"
                self.notes.append(Note(NoteCode.PROOF_PRICE, words, {"cost": cost}))
            return True
        self.price = f"A rule is proven, and costs more than it may ({had})"
        words = (
            f"a rule is proven, at {had}: more than proof_price={self.choice.proof_price:g} "
            "allows; say proof_price=1 to take it"
        )
        self.notes.append(Note(NoteCode.PROOF_TOO_COSTLY, words, {"cost": cost}))
        return False

    def _verdicts(self, outputs: dict[str, np.ndarray]) -> dict[str, str]:
        """What the certify rows say of the baselines' own rules."""
        found = {}
        for label, member in self.baselines():
            raw = not self.run.named(member).probable
            stack = Stack.alone(member, raw)
            task = replace(self.task, score="raw" if raw else "probability")
            rule, _ = self._rule(self.scores(stack), task, 0)
            columns = self.columns(self.parts.certify, stack.scores(outputs, task), task)
            columns = rule.decided_columns(columns)
            found[label] = certify_columns(self.goal, rule, columns, 1 - self.choice.confidence)
        return {label: certificate.verdict for label, certificate in found.items()}


def _dealt(job: Job, held: np.ndarray, folds: int = 5) -> np.ndarray:
    """Folds for the referee where there is one part of held rows: dealt by class."""
    y = job.target[held]
    order = np.lexsort(
        (np.random.default_rng(job.seed).random(len(y)), y if y.ndim == 1 else y[:, 0])
    )
    fold = np.empty(len(y), np.intp)
    fold[order] = np.arange(len(y)) % folds
    return fold
