"""`tune`: the operating point that best meets a goal on scores of any model."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from setpoint._core.errors import Argument, KindError
from setpoint._core.words import listing
from setpoint.decisions.certify import USED_BEFORE, check_weights, fingerprints
from setpoint.decisions.proof.fixed_sequence import prove_columns
from setpoint.expressions import Columns, Expression, Label, Task, take_in
from setpoint.expressions.rows.row_fingerprint import Fingerprint, refuse_seen
from setpoint.goals import Goal, check
from setpoint.rules.decision_rule import DecisionRule, choose, groups_of
from setpoint.rules.goal_on_rows import refuse_one_class
from setpoint.rules.rule import RuleSearch
from setpoint.rules.table import kind_for
from setpoint.statistics.binomial import check_confidence


def tune(
    goal: Goal | Expression | str,
    y_true: Any,
    scores: Any,
    *,
    sample_weight: Any = None,
    group: Any = None,
    query: Any = None,
    task: Task | str | None = None,
    positive: Label = None,
    kind: str | None = None,
    by: str | None = None,
    head: Any = None,
    random_state: int = 0,
    prove: float | None = None,
    reference: Any = None,
    weight_bound: float | None = None,
    seen: Iterable[Any] = (),
) -> DecisionRule:
    """Choose the operating point that best meets a goal on these rows.

    Binary: exact over all distinct thresholds, decided where score >= threshold; among equally good
    thresholds the highest. A threshold at which a rate of the goal is empty (0/0) is not feasible.

    Parameters
    ----------
    goal : Goal, str or Expression
        ``"maximize recall subject to precision >= 0.9"``; a metric alone is made as good as
        possible.
    y_true : array-like
        Labels (n,), or a 0/1 matrix for multilabel.
    scores : array-like
        (n,), or (n, K) for multiclass and multilabel. What they are is declared, never guessed:
        with ``task=Task.binary(score="probability")`` the rule refuses logits later on.
    sample_weight, query : array-like of shape (n,), optional
    group : array-like or mapping of array-likes, optional
    task : Task or str, optional
        Needed where the task is not binary.
    positive : label, optional
        The positive label where the labels are not 0 and 1.
    kind : str, optional
        The kind of rule. Binary: "threshold" (default), "per-group" (then ``decide`` needs the
        group as well), "top-k" (chosen by goals on precision_at_k). Multiclass: "offsets" (default)
        or "argmax". Multilabel: "per-label". "abstain" (binary and multiclass; chosen by goals on
        coverage or selective_risk): some rows are left undecided.
    by : str, optional
        The column of a "per-group" rule, where ``group`` has several. Of an abstaining rule over
        classes, the confidence it goes by: "sr_max" (default for logits and probabilities),
        "rl_conf_m" (default for raw scores) or another of ``CONFIDENCES``.
    head : array-like, optional
        The weights of the last layer (K, d) or the norms of their rows, for by="rl_geo_m".
    random_state : int
        Seed of the folds that shrink class offsets.
    prove : float, optional
        A confidence: choose *and prove* on these rows, which nothing may have seen. The rule is the
        best of those whose constraints are all proven, by tests in an order that is fixed on the
        reference rows; ``rule.proven`` says whether there was one, ``rule.certificate`` what was
        proven. It is the one touch of these rows: ``certify`` of the rule on them raises.
    reference : tuple (y, scores) or (y, scores, group), optional
        For ``prove``: rows that the candidates and their order come from, such as training, tune or
        out-of-fold rows. Whatever they are, a proof is valid; good ones make it likely.
    weight_bound : float, optional
        For ``prove`` with ``sample_weight``: the largest weight a row can have.
    seen : iterable of Certificate, DecisionRule or Fingerprint
        For ``prove``: whose rows are used up. Rows that are among them raise.

    Returns
    -------
    DecisionRule

    Examples
    --------
    >>> import setpoint as sp
    >>> goal = "maximize recall subject to precision >= 0.7"
    >>> rule = sp.tune(goal, [0, 1, 0, 1], [0.1, 0.4, 0.35, 0.8])
    >>> rule.threshold, rule.feasible
    (0.4, True)
    """
    goal = Goal.of(goal)
    task = Task.make(task, positive)
    check(goal, task)
    search = RuleSearch(rule=kind_for(goal, task.kind, kind), by=by, head=head, seed=random_state)
    if not isinstance(random_state, int) or random_state < 0:
        raise KindError(f"random_state is a whole number, 0 or more; got {random_state!r}")
    if scores is None:
        raise KindError("scores must be an array with one entry per row; got None")
    columns = take_in(
        task, y_true, scores=scores, sample_weight=sample_weight, group=group, query=query
    ).on_host()
    if task.kind != "ranking":
        refuse_one_class(columns)
    if prove is None:
        used = tuple(seen) or None
        for_proof = {"reference": reference, "weight_bound": weight_bound, "seen": used}
        for name, option in for_proof.items():
            if option is not None:
                raise KindError(
                    "{argument} belongs to {prove}, the confidence of the proof",
                    argument=Argument(name),
                    prove=Argument("prove"),
                )
        return tune_columns(goal, columns, search)
    delta = check_confidence(prove)
    refuse_seen(Fingerprint.of(columns), fingerprints(seen), "certify rows", USED_BEFORE)
    if weight_bound is not None:
        check_weights(columns, weight_bound)
    return prove_columns(
        goal.lowered,
        columns,
        _reference(goal, reference, columns),
        delta,
        search,
        weight_bound,
    )


def tune_columns(goal: Goal, columns: Columns, search: RuleSearch) -> DecisionRule:
    """:func:`tune` without proof, of rows that are checked and on the host.

    Parameters
    ----------
    goal : Goal
        Checked against the task.
    columns : Columns
        Labels and scores, of more than one class.
    search : RuleSearch
    """
    rule = choose(goal, columns, search)
    return replace(rule, chosen_on=Fingerprint.of(columns), groups=groups_of(goal, columns))


def _reference(goal: Goal, reference: Any, columns: Columns) -> Columns:
    """The reference rows, checked."""
    if reference is None:
        raise KindError(
            "prove= needs reference=(y, scores): rows the order of the tests comes from, such as "
            "the training or the tune rows"
        )
    if not isinstance(reference, tuple | list) or len(reference) not in (2, 3):
        raise KindError("reference is a tuple (y, scores) or (y, scores, group)")
    y, scores, *group = reference
    if columns.groups and not group:
        names = listing(goal.columns or columns.groups)
        raise KindError(f"the reference rows lack {names}: reference=(y, scores, group)")
    if scores is None:
        raise KindError("reference is a tuple (y, scores); the scores are None")
    group = group[0] if group else None
    rows = take_in(columns.task, y, scores=scores, group=group).on_host()
    if rows.task.kind != "ranking":
        refuse_one_class(rows)
    return rows
