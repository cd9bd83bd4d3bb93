"""From what the user asks for to members, folds and a plan that can be read before it runs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from sklearn.base import BaseEstimator
from torch import nn

from setpoint._core.errors import Argument, KindError
from setpoint._core.json_codec import Record
from setpoint._core.words import listing
from setpoint.datasets import Parts
from setpoint.fit.conclusion.stack import ALWAYS, FOR_REFEREE
from setpoint.fit.members import (
    GivenMember,
    LinearMember,
    Member,
    Network,
    ScoresGiven,
    TreesMember,
)
from setpoint.fit.network.goal_network import NetworkSettings
from setpoint.fit.portfolio_members import PORTFOLIO_MEMBERS, members_at
from setpoint.goals import Goal, Task
from setpoint.methods import CrossEntropy, Method, method
from setpoint.methods.portfolio import Effort, entries
from setpoint.rules.table import needs_group

# What a conclusion is asked for: the kind of rule, its caution, and who may decide.


@dataclass(frozen=True, kw_only=True)
class ConclusionRequest:
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
    trees : str
        The one that stands for LightGBM.
    """

    kind: str | None
    margin: float
    confidence: float
    proof_price: float
    main: tuple[str, ...]
    driven: tuple[str, ...] = ()
    plain: tuple[str, ...] = ()
    trees: str = ""


MODELS = ("auto", "linear", "trees", "mlp", "baseline")
CERTIFY = 0.25  #: share of the rows kept for the proof, where there is something to prove


@dataclass(frozen=True)
class Recipe:
    """Members in the order they are fitted, how many folds, and who may decide.

    Attributes
    ----------
    members : tuple of Member
    why : tuple of str
        Of each member, in words.
    folds : int
    choice : ConclusionRequest
    notes : tuple of str
    """

    members: tuple[Member, ...]
    why: tuple[str, ...]
    folds: int
    choice: ConclusionRequest
    notes: tuple[str, ...] = ()

    @property
    def forms(self) -> set[str]:
        """The forms of rows that the members take."""
        return {m.form for m in self.members}


@dataclass(frozen=True, kw_only=True)
class FitRequest:
    """What a fit is asked for; see :class:`setpoint.GoalClassifier` for each word."""

    goal: Goal
    model: str | nn.Module | BaseEstimator | ScoresGiven
    method: str | Method
    kind: str | None
    effort: Effort
    folds: int | None
    margin: float
    proof_price: float
    confidence: float
    compare: bool
    settings: NetworkSettings
    hidden: tuple[int, ...] = (128, 64)
    dropout: float = 0.1
    table: bool = True  #: whether rows are a table, which trees and a linear model can be fitted on
    numbers: int = 0  #: columns of a table that is numbers alone

    def recipe(self, task: Task) -> Recipe:
        """The members for a task."""
        if isinstance(self.model, ScoresGiven):
            choice = self._choice(("scores",), (), (), "")
            return Recipe((self.model,), ("the model",), 1, choice)
        if isinstance(self.model, str) and self.model in ("auto", "trees", "baseline"):
            return self._portfolio(task)
        return self._one(task)

    def _portfolio(self, task: Task) -> Recipe:
        if self.model != "auto" or self.method != "auto":
            return self._trees_or_method(task)
        goal = self.goal.lowered
        plain = members_at(self.effort.name)
        planned = entries(goal, task, self.effort, plain, self.numbers)
        members = [self._member(e.model, e.method) for e in planned]
        names = tuple(m.name for m in members)
        driven = tuple(m.name for m, e in zip(members, planned, strict=True) if e.driven)
        choice = self._choice(names, driven, ("linear", "mlp"), "trees")
        return Recipe(tuple(members), tuple(e.why for e in planned), self._folds(True), choice)

    def _trees_or_method(self, task: Task) -> Recipe:
        """One kind of model, or one method on the built-in networks, with its referee."""
        if self.model == "auto":  # a method was named: the network it trains
            return replace(self, model="mlp")._one(task)
        if self.method != "auto" and method(self.method) != CrossEntropy():
            chosen = method(self.method)
            name = chosen.name
            kind = "costs" if chosen.hints.tree_gradient is None else name
            raise KindError(
                "{argument} is LightGBM on log-loss; for trees trained on the goal take {trees}; "
                '{method} is for "linear", "mlp" and modules',
                argument=Argument("model", self.model),
                trees=f"model=setpoint.boosting.GoalLGBMClassifier(goal, method={kind!r})",
                method=Argument("method", name),
            )
        margin = 0.0 if self.model == "baseline" else self.margin
        members: list[Member] = [TreesMember()]
        why = ["the model" if self.model == "trees" else "the baseline itself"]
        if self.compare:
            members, why = [*members, LinearMember()], [*why, FOR_REFEREE]
        choice = replace(self._choice(("trees",), (), ("linear",), "trees"), margin=margin)
        return Recipe(tuple(members), tuple(why), self._folds(True), choice)

    def _one(self, task: Task) -> Recipe:
        """One model by one method; the referee gets cross-entropy and LightGBM beside it."""
        chosen = self._chosen()
        main: Member = (
            self._network(self.model, chosen)
            if isinstance(self.model, str | nn.Module)
            else GivenMember(cast("BaseEstimator", self.model), chosen)
        )
        members, why, plain, notes = [main], ["the model"], (main.name,), ()
        if self.compare and chosen.hints.goal_driven and isinstance(main, Network):
            same = self._network(main.model, CrossEntropy(), beside=True)
            members.append(same)
            plain = (same.name,)
        if self.compare and self.table:
            beside: list[Member] = [TreesMember()]
            if not isinstance(main, Network):
                beside, plain = [LinearMember(), TreesMember()], ("linear",)
            members += beside
        elif self.compare and not self.table:
            notes = ("the rows are no table: LightGBM is not fitted on them for comparison",)
        why += [FOR_REFEREE] * (len(members) - 1)
        choice = self._choice((main.name,), (), plain, "trees")
        return Recipe(tuple(members), tuple(why), self._folds(False), choice, notes)

    def _chosen(self) -> Method:
        chosen = method("cross-entropy" if self.method == "auto" else self.method)
        by = chosen.threshold_group
        if by is not None and not needs_group(self.kind):
            raise KindError(
                "{method} with {argument} trains a threshold for each group, which has to be known "
                "when a decision is made: say so, {way}",
                method=chosen.name,
                argument=Argument("by", by),
                way=Argument("kind", "per-group"),
            )
        return chosen

    def _choice(
        self, main: tuple[str, ...], driven: tuple[str, ...], plain: tuple[str, ...], trees: str
    ) -> ConclusionRequest:
        sure = self.confidence
        return ConclusionRequest(
            kind=self.kind,
            margin=self.margin,
            confidence=sure,
            proof_price=self.proof_price,
            main=main,
            driven=driven,
            plain=plain,
            trees=trees,
        )

    def _folds(self, crossed: bool) -> int:
        if self.folds is not None:
            return self.folds
        return self.effort.folds if crossed else 1

    def _member(self, model: str, by: Method) -> Member:
        plain = not by.hints.goal_driven
        row = PORTFOLIO_MEMBERS.get(model)
        if plain and row is not None and row.make is not None:
            return row.make()
        settings = replace(
            self.settings,
            epochs=0,  # by the number of rows
            steps=self.effort.steps,
            patience=12,
            checkpoint=None,
            learning_rate=None,
            pace=10.0 if model == "linear" else 4.0,
            final=0.05 if plain else 1.0,
            by="cross-entropy" if plain else "goal",
        )
        return Network(model, by, settings, self.hidden, self.dropout, apart=True)

    def _network(self, model: str | nn.Module, by: Method, beside: bool = False) -> Network:
        pace = 10.0 if isinstance(model, str) and model == "linear" else 1.0
        settings = replace(self.settings, pace=pace)
        if self._folds(False) > 1:  # folds are kept whole, each in its own file
            settings = replace(settings, checkpoint=None)
        if beside:
            settings = replace(settings, checkpoint=_beside(settings.checkpoint))
        return Network(
            model,
            by,
            settings,
            self.hidden,
            self.dropout,
            apart=self.compare or self._folds(False) > 1,
        )


def _beside(checkpoint: str | os.PathLike[str] | None) -> str | None:
    return None if checkpoint is None else os.path.join(checkpoint, "baseline")


@dataclass(frozen=True)
class FitPlan(Record):
    """What a fit is about to do.

    Attributes
    ----------
    goal : Goal
    rows : dict
        Of each part: rows, and positives where the task is binary.
    members : tuple of (name, why)
    folds : int
    how : str
        How the rows were parted.
    seconds : float
        An estimate of the time.
    """

    goal: Goal
    rows: dict[str, tuple[int, int | None]]
    members: tuple[tuple[str, str], ...]
    folds: int
    how: str
    seconds: float

    @classmethod
    def of(
        cls, goal: Goal, recipe: Recipe, parts: Parts, target: np.ndarray, width: int
    ) -> FitPlan:
        """The plan of a recipe on parted rows."""
        train = len(parts.train)
        seconds = len(parts.folds) * sum(m.seconds(train, width) for m in recipe.members)
        rows = counts_of(parts, target)
        members = tuple((m.name, w) for m, w in zip(recipe.members, recipe.why, strict=True))
        return cls(goal, rows, members, len(parts.folds), parts.how, seconds)

    @property
    def tuned_on_fitted_rows(self) -> bool:
        """Whether the rule is chosen on the rows that models are fitted on, for want of rows."""
        return self.folds == 1 and "tune" not in self.rows

    def facts(self) -> list[tuple[str, str]]:
        """Pairs of a label and words, one for each link of the chain."""
        shown = []
        for part, (n, positives) in self.rows.items():
            some = "" if positives is None else f" ({positives:,} positive)"
            shown.append(f"{part} {n:,}{some}")
        folds = f"{self.folds}-fold out-of-fold" if self.folds > 1 else "one part held to tune"
        chosen = [name for name, why in self.members if why != FOR_REFEREE]
        beside = [name for name, why in self.members if why == FOR_REFEREE]
        reasons = [f"{n}: {why}" for n, why in self.members if why not in _USUAL]
        model = " + ".join(chosen) if len(chosen) == 1 else f"{listing(chosen)} → stack"
        return [
            ("goal", str(self.goal)),
            ("rows", f"{' · '.join(shown)}; {self.how}"),
            ("models", f"{model}, {folds}"),
            *([("why", "; ".join(reasons))] if reasons else []),
            *([("referee", f"{listing(beside)} beside it")] if beside else []),
            ("time", duration(self.seconds)),
        ]

    def lines(self) -> list[str]:
        """The same as lines of text, the labels in a column."""
        return [f"{label:<{_LABEL}}{words}" for label, words in self.facts()]

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def to_json(self) -> dict[str, Any]:
        return {**super().to_json(), "goal": str(self.goal)}


_LABEL = 9  #: width of the column of labels
_USUAL = (ALWAYS, FOR_REFEREE, "the model")


def counts_of(parts: Parts, target: np.ndarray) -> dict[str, tuple[int, int | None]]:
    """Rows of each part, and positives where there are two classes."""
    rows = {"train": count(target, parts.train)}
    if len(parts.folds) == 1 and not parts.shared:
        rows = {"train": count(target, parts.folds[0][0]), "tune": count(target, parts.held)}
    if len(parts.certify):
        rows["certify"] = count(target, parts.certify)
    return rows


def count(target: np.ndarray, rows: Sequence[int] | np.ndarray) -> tuple[int, int | None]:
    """Rows, and how many are positive where there are two classes."""
    some = target[rows]
    binary = target.ndim == 1 and target.max(initial=0) <= 1
    return len(some), int(some.sum()) if binary else None


def duration(seconds: float) -> str:
    """About how long, in words.

    >>> duration(8), duration(100)
    ('about 10 s', 'about 2 min')
    """
    if seconds < 55:
        return f"about {max(5, 5 * round(seconds / 5))} s"
    return f"about {max(1, round(seconds / 60))} min"
