"""What a conclusion is asked for: the kind of rule, its caution, and who may decide."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Choice:
    """What the user asked of the conclusion.

    Attributes
    ----------
    kind : str or None
        Of the rule.
    margin : float
        Of the rule, in standard errors; see :mod:`setpoint.decisions.proof.safety_margin`.
    proof_price : float
        The most that a proof may cost, in units of the objective.
    confidence : float
    main : tuple of str
        Members that may decide; the others are there for the referee.
    driven : tuple of str
        Those of them that are metric-driven.
    plain : tuple of str
        The members that stand for cross-entropy.
    trees : str or None
        The one that stands for LightGBM.
    """

    kind: str | None
    margin: float
    confidence: float
    proof_price: float
    main: tuple[str, ...]
    driven: tuple[str, ...] = ()
    plain: tuple[str, ...] = ()
    trees: str | None = None
