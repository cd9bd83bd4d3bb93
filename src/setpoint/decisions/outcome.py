"""The outcome of a run: whether its goal is met, and with proof."""

from __future__ import annotations

from enum import StrEnum

from setpoint.goals import Goal
from setpoint.rules.certificate import NOT_PROVEN as NOT_PROVEN_VERDICT
from setpoint.rules.certificate import PROVEN as PROVEN_VERDICT
from setpoint.rules.certificate import REFUTED as REFUTED_VERDICT
from setpoint.rules.certificate import Certificate
from setpoint.rules.decision_rule import DecisionRule


class Outcome(StrEnum):
    """How a run ended; the text is what reports show and store.

    >>> Outcome.PROVEN.met, Outcome("NOT PROVEN").met
    (True, False)
    """

    PROVEN = PROVEN_VERDICT
    NOT_PROVEN = NOT_PROVEN_VERDICT
    REFUTED = REFUTED_VERDICT
    NOT_FEASIBLE = "NOT FEASIBLE"
    NO_CONSTRAINT = "NO CONSTRAINT"

    @property
    def met(self) -> bool:
        """Whether the goal is met: proven, where there is something to prove."""
        return self in (Outcome.PROVEN, Outcome.NO_CONSTRAINT)

    @classmethod
    def of(cls, goal: Goal, rule: DecisionRule, certificate: Certificate | None) -> Outcome:
        """From a lowered goal, the rule, and its certificate or the one nearest to it."""
        if not goal.constraints:
            return cls.NO_CONSTRAINT
        of_rule = certificate is not None and certificate.point.same_as(rule.point)
        if certificate is not None and of_rule and certificate.verdict == PROVEN_VERDICT:
            return cls.PROVEN
        # chosen without proof, infeasible means that no rule met the goal on the rows it was
        # chosen on; that comes before REFUTED: another threshold would not help either
        if not rule.feasible and rule.certificate is None:
            return cls.NOT_FEASIBLE
        refuted = certificate is not None and certificate.verdict == REFUTED_VERDICT
        return cls.REFUTED if refuted else cls.NOT_PROVEN
