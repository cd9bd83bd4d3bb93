"""The rule: how scores become decisions, and everything that others may ask of a kind of rule.

A kind of rule is one final class, in the file that also holds its search, and one row of
:data:`setpoint.rules.table.RULES`. What differs from kind to kind is a method or an attribute of
the class; nothing outside ``rules`` asks which kind it is.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

import numpy as np

from setpoint._core.arrays import Array, is_tensor, namespace
from setpoint._core.errors import Argument, FileError, KindError
from setpoint.expressions import Columns, Task, take_scores
from setpoint.goals import Goal
from setpoint.rules.tradeoff_curve import Frontier

#: What a kind of rule that lacks a number has in its place. The names are those of the file format,
#: which writes all of them for every rule.
ABSENT: dict[str, Any] = {
    "threshold": None,
    "thresholds": (),
    "by": None,
    "offsets": (),
    "k": None,
    "band": (),
    "confidence": None,
    "norms": (),
}


@dataclass(frozen=True)
class ConstraintStanding:
    """How one constraint fared on the rows the rule was chosen on.

    Attributes
    ----------
    constraint : str
    value : float or None
        Its left side at the rule; None where that is an empty rate.
    holds, binding : bool
        Binding: without it the objective would be better.
    short : float
        How far it is from holding, in the units of the metric; 0 where it holds.
    reachable : float or None
        The best value for this constraint that any candidate reaches; None if not known, or if its
        bound is no number.
    alone : bool or None
        Whether some candidate meets it, the other constraints aside; None if not known.
    """

    constraint: str
    value: float | None
    holds: bool
    binding: bool
    short: float
    reachable: float | None
    alone: bool | None


@dataclass(frozen=True, kw_only=True, eq=False)
class RuleSearch:
    """Which rules are searched.

    Attributes
    ----------
    rule : type of Rule
        From :func:`setpoint.rules.table.kind_for`.
    by, head, seed
        As ``by``, ``head`` and ``random_state`` of :func:`setpoint.tune`.
    """

    rule: type[Rule]
    by: str | None = None
    head: Any = None
    seed: int = 0


@dataclass(frozen=True, kw_only=True, eq=False)
class BestRule:
    """The best rule of a search, and how it fares on the rows that were searched.

    Attributes
    ----------
    goal : Goal
        As it was searched.
    rule : Rule
    feasible : bool
    value : float or None
        The objective; None where it is an empty rate.
    held : tuple of ConstraintStanding
    search : str
        "exact", or how the search was cut short.
    frontier : Frontier or None
    """

    goal: Goal
    rule: Rule
    feasible: bool
    value: float | None
    held: tuple[ConstraintStanding, ...] = ()
    search: str = "exact"
    frontier: Frontier | None = None


@dataclass(frozen=True, kw_only=True)
class Rule(ABC):
    """How scores become decisions: the numbers of one kind of rule, and what it does with them.

    Attributes
    ----------
    task : Task
    kind : str
        Its name in ``RULES``, in files and on the command line.
    tasks : tuple of str
        The kinds of tasks it decides.
    row_by_row : bool
        Whether each row is decided on its own; otherwise all rows have to be there at once.
    no_proof : str
        Why nothing can be proven of it for other rows; empty where something can.
    may_abstain, needs_group : bool
        Whether it may leave rows undecided; whether it has to know the group of each row.
    along_scores : bool
        Whether its candidates are the thresholds of one score, so that one sweep reads all of them.
    slow_search : bool
        Whether a search takes so long that fewer of them are made.
    set_by_goal : bool
        Whether the goal alone sets it, so that there is nothing to search.
    finds_binding : bool
        Whether its search finds out which constraints bind.
    takes_by, takes_head : bool
        Whether ``by=`` and ``head=`` of :func:`setpoint.tune` mean something to it.
    only_with : str
        For a kind that goes with goals that ask for it, and these with no other kind: the sentence
        that refuses the rest.
    """

    task: Task

    kind: ClassVar[str]
    tasks: ClassVar[tuple[str, ...]]
    row_by_row: ClassVar[bool] = True
    no_proof: ClassVar[str] = ""
    may_abstain: ClassVar[bool] = False
    needs_group: ClassVar[bool] = False
    along_scores: ClassVar[bool] = False
    slow_search: ClassVar[bool] = False
    set_by_goal: ClassVar[bool] = False
    finds_binding: ClassVar[bool] = True
    takes_by: ClassVar[bool] = False
    takes_head: ClassVar[bool] = False
    only_with: ClassVar[str] = ""

    def __post_init__(self) -> None:
        """Refuse numbers that cannot be those of such a rule."""
        if not self.is_sound():
            raise FileError(f'this rule is damaged: a rule of kind "{self.kind}" lacks its numbers')

    # --- what each kind says for itself ----------------------------------------------------------

    @classmethod
    @abstractmethod
    def search(cls, goal: Goal, columns: Columns, options: RuleSearch) -> BestRule:
        """The rule of this kind that best meets a goal on these rows.

        Parameters
        ----------
        goal : Goal
            Checked against the task.
        columns : Columns
            Labels and scores, on the host.
        options : RuleSearch
        """

    @abstractmethod
    def decisions(self, s: Array, group: Any, query: Any) -> Array:
        """The decisions on checked scores, as :meth:`decide` gives them."""

    @abstractmethod
    def describe(self) -> str:
        """The rule in words: ``score >= 0.73``."""

    @abstractmethod
    def numbers(self) -> dict[str, Any]:
        """The numbers of the rule as plain data."""

    @classmethod
    @abstractmethod
    def from_numbers(cls, task: Task, data: Mapping[str, Any]) -> Rule:
        """The rule of the numbers that :meth:`numbers` wrote."""

    def is_sound(self) -> bool:
        """Whether the numbers can be those of such a rule."""
        return True

    @classmethod
    def asked_by(cls, goal: Goal) -> bool:
        """Whether a goal asks for this kind of rule, by what it speaks of."""
        del goal
        return False

    @classmethod
    def quick_kind(cls) -> type[Rule]:
        """The kind that stands in for this one where a search would take too long."""
        return cls

    @property
    def group_column(self) -> str | None:
        """The column of the groups it has to know, where it has to know any."""
        return None

    @property
    def needs_query(self) -> bool:
        """Whether it has to know the query of each row."""
        return False

    def search_again(self) -> RuleSearch:
        """The search that looks for rules like this one."""
        return RuleSearch(rule=type(self))

    def plain(self) -> Rule | None:
        """The same with ½ or the plain argmax; None for a kind that has nothing of the sort."""
        return None

    def cuts(self) -> tuple[float, ...]:
        """The thresholds on the one score of each row."""
        return ()

    # --- deciding --------------------------------------------------------------------------------

    def decide(self, scores: Any, group: Any = None, query: Any = None) -> Array:
        """Decisions, as :meth:`setpoint.DecisionRule.decide` describes them."""
        s = take_scores(self.task, scores, tuned=True)
        if group is not None and not self.needs_group:
            raise KindError(
                "this rule has one threshold for all and takes no group; tune with {way} for one "
                "threshold per group",
                way=Argument("kind", "per-group"),
            )
        if query is not None and not self.needs_query:
            raise KindError("this rule does not look at queries; leave query= out")
        return self.decisions(s, group, query)

    def decided_columns(self, columns: Columns) -> Columns:
        """The same rows, decided; columns on the host."""
        group = (columns.groups or None) if self.needs_group else None
        query = columns.query if self.needs_query else None
        decided = self.decide(np.asarray(columns.scores), group=group, query=query)
        return replace(columns, decided=decided)

    def abstains(self, scores: Any) -> Array:
        """True for each row on which nothing is decided."""
        s = take_scores(self.task, scores, tuned=True)
        xp = namespace(s)
        return xp.zeros(s.shape[0], dtype=xp.bool) if is_tensor(s) else np.zeros(len(s), bool)

    def margin(self, scores: np.ndarray, group: Any = None) -> np.ndarray:
        """How far each score lies beyond the threshold: positive exactly where decided positive.

        Without one threshold to measure from it is the score, less 2 where not decided positive,
        which puts probabilities on the right side of 0.
        """
        decided = np.asarray(self.decide(scores, group=group))
        return with_sign(np.where(decided, scores, scores - 2.0), decided)

    # --- files -----------------------------------------------------------------------------------

    def same_as(self, other: Rule) -> bool:
        """Whether both decide alike, whatever groups their tasks declare."""
        names = [f.name for f in fields(self) if f.name != "task"]
        return type(self) is type(other) and all(
            getattr(self, name) == getattr(other, name) for name in names
        )

    def to_json(self) -> dict[str, Any]:
        """Plain data that :func:`setpoint.rules.table.rule_from_json` reads back.

        Infinities are strings. Every number of every kind has its place, as version 1 reads it.
        """
        absent = {n: list(x) if isinstance(x, tuple) else x for n, x in ABSENT.items()}
        return {"task": self.task.to_json(), "kind": self.kind, **absent, **self.numbers()}


def score_at_least(threshold: float) -> str:
    """The positive rows of a threshold in words; no score reaches an infinite one."""
    return "nothing decided positive" if threshold == math.inf else f"score >= {threshold:.6g}"


def is_cut(x: object) -> bool:
    """Whether something can be a threshold or an offset: a number, infinities too."""
    return isinstance(x, float | int) and not isinstance(x, bool) and x == x


def as_array_of(a: np.ndarray, s: Array) -> Array:
    """An array such as the scores are: their type of numbers, a tensor on their device."""
    if not is_tensor(s):
        return a.astype(s.dtype) if a.dtype.kind == "f" and s.dtype.kind == "f" else a
    xp = namespace(s)
    dtype = s.dtype if a.dtype.kind == "f" else None
    return xp.as_tensor(a, dtype=dtype, device=s.device)


def beyond(scores: np.ndarray, cuts: Any, decided: np.ndarray) -> np.ndarray:
    """Scores less their thresholds, with the sign of the decisions.

    +inf decides nothing; 2 in its place leaves finite distances, all negative for probabilities.
    """
    finite = np.nan_to_num(np.asarray(cuts, dtype=np.float64), posinf=2.0)
    return with_sign(scores - finite, decided)


def with_sign(apart: np.ndarray, decided: np.ndarray) -> np.ndarray:
    """Distances that are positive exactly where decided positive.

    The tie rule is >=, and rounding or an infinite threshold must not turn a sign round.
    """
    tiny = np.finfo(np.float64).tiny
    return np.where(decided & (apart <= 0), tiny, np.where(~decided & (apart >= 0), -tiny, apart))
