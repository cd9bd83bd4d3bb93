"""The referee: the stack against cross-entropy and LightGBM with tuned thresholds."""

from __future__ import annotations

from setpoint.decisions.certify import certify_columns
from setpoint.decisions.comparison import Comparison
from setpoint.decisions.referee import Bout
from setpoint.fit.conclusion.out_of_fold import OutOfFold
from setpoint.fit.conclusion.rule_choice import rule_on
from setpoint.fit.conclusion.rule_proof import Proof
from setpoint.fit.conclusion.stack_choice import StackChoice, entrant


def compare(held: OutOfFold, chosen: StackChoice, proof: Proof) -> Comparison | None:
    """The one who decides and the baselines; None where there is nobody to compare with."""
    entrants = [entrant(held, chosen.name, chosen.members, held.choice.margin)]
    for label, member in held.baselines():
        entrants.append(entrant(held, label, (member,), 0))
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
