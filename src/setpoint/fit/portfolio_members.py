"""The table of a portfolio's plain members: how each is made, and from which effort on it is there.

A new member is a class of :class:`~setpoint.fit.members.Member` in a file of its own, and a row
here; its fitted model is read back by its kind (:class:`~setpoint.fit.fold_models.Model`).
Metric-driven members enter by their methods (:mod:`setpoint.methods.portfolio`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from setpoint.fit.members import LinearMember, Member, TreesMember


@dataclass(frozen=True)
class PortfolioMember:
    """One row of the table.

    Attributes
    ----------
    efforts : tuple of str
        The efforts whose portfolio it is part of.
    make : callable or None
        Makes the member; None of a network, which takes its settings from the fit.
    """

    efforts: tuple[str, ...]
    make: Callable[[], Member] | None


#: in the order they are fitted, the simplest first
PORTFOLIO_MEMBERS: dict[str, PortfolioMember] = {
    "linear": PortfolioMember(("quick", "standard", "thorough"), LinearMember),
    "trees": PortfolioMember(("quick", "standard", "thorough"), TreesMember),
    "extra trees": PortfolioMember(
        ("standard", "thorough"),
        lambda: TreesMember(trees=200, rate=0.05, extra=True, label="extra trees"),
    ),
    "slow trees": PortfolioMember(
        ("thorough",), lambda: TreesMember(trees=600, rate=0.02, leaves=15, label="slow trees")
    ),
    "mlp": PortfolioMember(("standard", "thorough"), None),
}


def members_at(effort: str) -> tuple[str, ...]:
    """Names of the plain members of an effort's portfolio.

    >>> members_at("quick")
    ('linear', 'trees')
    """
    return tuple(name for name, row in PORTFOLIO_MEMBERS.items() if effort in row.efforts)
