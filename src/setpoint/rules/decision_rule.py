"""The decision rule: the rule that was chosen, how it fared there, and which rows it has seen."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from setpoint._core.arrays import Array
from setpoint._core.errors import Argument, FileError, KindError, SetpointError
from setpoint._core.files import write_json
from setpoint._core.json_codec import number_from, number_to
from setpoint._core.words import listing
from setpoint.expressions import Columns, Label, Task, take_in
from setpoint.expressions.rows.row_fingerprint import Fingerprint
from setpoint.goals import Goal
from setpoint.rules.certificate import Certificate, opened
from setpoint.rules.rule import ABSENT, BestRule, ConstraintStanding, Rule, RuleSearch
from setpoint.rules.table import rule_from_json
from setpoint.rules.tradeoff_curve import Frontier

# The groups a promise is about: those the goal speaks of, as far as any rows have shown them.


Groups = tuple[tuple[str, tuple[Label, ...]], ...]


def groups_of(goal: Goal, columns: Columns) -> Groups:
    """The values of each group column that the goal speaks of, on these rows."""
    return tuple((name, columns.group_values(name)) for name in goal.columns)


def declared(goal: Goal, columns: Columns, also: Iterable[Groups] = ()) -> Task:
    """The task with all groups declared: those of these rows, and those that others have shown.

    A group without rows here leaves nothing to prove about it: what these rows happen not to hold
    must not drop out of the promise.
    """
    shown = {name: dict.fromkeys(values) for name, values in groups_of(goal, columns)}
    for groups in also:
        for name, values in groups:
            if name in shown:
                shown[name].update(dict.fromkeys(values))
    declared_values = {name: tuple(sorted(values, key=_key)) for name, values in shown.items()}
    return replace(columns.task, groups={**dict(columns.task.groups), **declared_values})  # type: ignore[arg-type]


def _key(value: Label) -> tuple[str, Label]:
    return type(value).__name__, value


FORMAT = "setpoint rule 1"


def _number(name: str, meaning: str) -> Any:
    """A number of the rule, None or empty where its kind has no such number."""
    return property(lambda rule: getattr(rule.point, name, ABSENT[name]), doc=meaning)


@dataclass(frozen=True, kw_only=True)
class DecisionRule:
    """How scores become decisions, and how good that was where it was chosen.

    Attributes
    ----------
    point : Rule
        The operating point: what decides. Its numbers can be read here as well: ``task``, ``kind``
        ("threshold", "per-group", "per-label", "offsets", "top-k" or "abstain"), ``threshold``,
        ``thresholds``, ``by``, ``offsets``, ``k``, ``band``, ``confidence`` and ``norms``; None or
        empty where its kind has no such number.
    goal : Goal
    feasible : bool
        Whether every constraint held on these rows.
    value : float or None
        The objective there; None where it is an empty rate.
    held : tuple of ConstraintStanding
    rows : int
    search : str
        "exact", or how the search was cut short.
    frontier : Frontier or None
        The trade-off along the threshold.
    chosen_on : Fingerprint or None
        Of the rows it was chosen on.
    groups : tuple of (column, values)
        The groups that the goal speaks of, as those rows (and reference rows) showed them.
    certificate : Certificate or None
        Where it was chosen with proof: what was proven, on these same rows.
    touched : list of Fingerprint
        Of other rows that are used up for it: the reference rows of a proof, and those it has been
        certified on since; :func:`setpoint.certify` adds to it.
    """

    point: Rule
    goal: Goal
    feasible: bool
    value: float | None
    rows: int
    held: tuple[ConstraintStanding, ...] = ()
    search: str = "exact"
    frontier: Frontier | None = None
    chosen_on: Fingerprint | None = None
    groups: Groups = ()
    certificate: Certificate | None = None
    touched: list[Fingerprint] = field(default_factory=list, compare=False, repr=False)

    def __post_init__(self) -> None:
        """What is touched is this rule's own."""
        object.__setattr__(self, "touched", list(self.touched))

    # --- the operating point ---------------------------------------------------------------------

    threshold = _number("threshold", "Decides positive from here; of a confidence, decides at all.")
    thresholds = _number("thresholds", "Pairs of a group value or label and its threshold.")
    by = _number("by", 'The column of the groups; "query" for the first k of each query.')
    offsets = _number("offsets", "Added to the score of each class before the argmax.")
    k = _number("k", "How many of the highest scores are decided positive.")
    band = _number("band", "(low, high): between them nothing is decided.")
    confidence = _number("confidence", "What an abstaining rule over classes goes by.")
    norms = _number("norms", 'Of the rows of the last layer, for the confidence "rl_geo_m".')

    @property
    def task(self) -> Task:
        """The task that it decides."""
        return self.point.task

    @property
    def kind(self) -> str:
        """The kind of rule by its name."""
        return self.point.kind

    def decide(self, scores: Any, group: Any = None, query: Any = None) -> Array:
        """Turn scores into decisions.

        Parameters
        ----------
        scores : array-like
            (n,), or (n, K) for multiclass and multilabel, of the kind the rule was tuned on, which
            is its ``task.score``. A rule tuned on probabilities refuses values outside [0, 1]; one
            tuned on logits or raw scores cannot tell probabilities from them.
        group : array-like or mapping, optional
            Only where the rule has one threshold per group.
        query : array-like, optional
            Only for a top-k rule by query.

        Returns
        -------
        array
            Binary: booleans, True where decided positive. Multilabel: a boolean matrix.
            Multiclass: the class of each row. A tensor for tensors. A rule that may abstain gives
            1, 0 and -1 (nothing is decided), or classes with None where nothing is decided.

        Examples
        --------
        >>> import setpoint as sp
        >>> rule = sp.tune("maximize f1", [0, 0, 1, 1], [0.1, 0.6, 0.4, 0.9])
        >>> rule.decide([0.3, 0.4, 0.95]).tolist()
        [False, True, True]
        """
        return self.point.decide(scores, group, query)

    def decided_columns(self, columns: Columns) -> Columns:
        """The same rows, decided; columns on the host."""
        return self.point.decided_columns(columns)

    def abstains(self, scores: Any) -> Array:
        """True for each row on which nothing is decided.

        Examples
        --------
        >>> import setpoint as sp
        >>> goal = "maximize coverage subject to selective_risk <= 0.1"
        >>> rule = sp.tune(goal, [0, 0, 1, 0, 1, 1], [0.1, 0.2, 0.3, 0.6, 0.8, 0.9])
        >>> rule.abstains([0.05, 0.5, 0.95]).tolist()
        [False, True, False]
        >>> rule.decide([0.05, 0.5, 0.95]).tolist()
        [0, -1, 1]
        """
        return self.point.abstains(scores)

    def operating_point(self) -> str:
        """The rule in words: ``score >= 0.73``."""
        return self.point.describe()

    # --- what has been seen and proven -----------------------------------------------------------

    @property
    def proven(self) -> bool:
        """Whether it was chosen with proof that every constraint holds on rows like these."""
        return self.certificate is not None and self.certificate.proven

    @property
    def seen(self) -> tuple[Fingerprint, ...]:
        """All rows it has been chosen or certified on."""
        own = () if self.chosen_on is None else (self.chosen_on,)
        return (*own, *self.touched)

    # --- words -------------------------------------------------------------------------------

    @property
    def binding(self) -> tuple[str, ...]:
        """The constraints that cost something."""
        return tuple(h.constraint for h in self.held if h.binding)

    def sentence(self) -> str:
        """One sentence: what was reached, or why it could not be."""
        return self.account() if self.feasible else f"NOT FEASIBLE: {self.account()}"

    def account(self) -> str:
        """The sentence without its verdict."""
        if self.value is None:
            return f"{self.obstacle()}."
        values = (("empty" if h.value is None else f"{h.value:.4g}") for h in self.held)
        pairs = zip(self.held, values, strict=True)
        standings = "".join(f", {h.constraint} ({value})" for h, value in pairs)
        reached = f"{self.goal.objective} {self.value:.4g}{standings}"
        if self.feasible:
            return f"{reached} on {self.rows:,} rows."
        return f"{self.obstacle()}. The rule comes nearest: {reached}."

    def obstacle(self) -> str:
        """Why the goal is not met; empty where it is."""
        if self.feasible:
            return ""
        if self.value is None:
            return f"{self.goal.objective} is an empty rate at every candidate"
        names = listing(h.constraint for h in self.held)
        alone = [h for h in self.held if h.alone is False]
        if alone:
            return "; ".join(map(_never, alone))
        if any(h.alone is None for h in self.held) or self.search != "exact":
            return f"no rule was found that meets {names}; the search did not see every rule"
        if len(self.held) == 1:
            return f"{self.goal.objective} is an empty rate wherever {names} holds"
        return f"{names} can each be met, not together"

    def __str__(self) -> str:
        return f"{self.goal}\n{self.operating_point()}\n{self.sentence()}"

    # --- files -------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """Plain data that :meth:`from_json` reads back; infinities are strings."""
        return {
            "format": FORMAT,
            "goal": str(self.goal),
            **self.point.to_json(),
            "feasible": self.feasible,
            "value": number_to(self.value),
            "rows": self.rows,
            "held": [
                {f.name: number_to(getattr(h, f.name)) for f in fields(ConstraintStanding)}
                for h in self.held
            ],
            "search": self.search,
            "frontier": None if self.frontier is None else self.frontier.to_json(),
            "chosen_on": None if self.chosen_on is None else self.chosen_on.to_json(),
            "certificate": None if self.certificate is None else self.certificate.to_json(),
            "touched": [f.to_json() for f in self.touched],
            "groups": [[name, list(values)] for name, values in self.groups],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> DecisionRule:
        """Read what :meth:`to_json` wrote."""
        if not isinstance(data, Mapping) or data.get("format") != FORMAT:
            raise FileError(f'this is not a rule: it lacks "format": "{FORMAT}"')
        try:
            frontier, chosen, proof = (
                data.get(name) for name in ("frontier", "chosen_on", "certificate")
            )
            return cls(
                point=rule_from_json(data),
                goal=Goal.parse(data["goal"]),
                feasible=data["feasible"] is True,
                value=number_from(data["value"]),
                rows=int(data["rows"]),
                held=tuple(
                    ConstraintStanding(**{name: number_from(value) for name, value in h.items()})
                    for h in data["held"]
                ),
                search=data["search"],
                frontier=None if frontier is None else Frontier.from_json(frontier),
                chosen_on=None if chosen is None else Fingerprint.from_json(chosen),
                certificate=None if proof is None else Certificate.from_json(proof),
                touched=[Fingerprint.from_json(f) for f in data.get("touched", ())],
                groups=tuple((name, tuple(values)) for name, values in data.get("groups", ())),
            )
        except SetpointError:
            raise
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise FileError(f"this rule is damaged: {error!r}. Tune again") from error

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the rule as JSON (temporary name, then rename)."""
        return write_json(path, self.to_json())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> DecisionRule:
        """Read a rule that :meth:`save` wrote; nothing in the file is executed."""
        return opened(path, "a rule", cls.from_json)


def _never(standing: ConstraintStanding) -> str:
    nearest = "" if standing.reachable is None else f", the nearest is {standing.reachable:.4g}"
    return f"{standing.constraint} is reached by no candidate{nearest}"


# --- rules met with rows --------------------------------------------------------------------------


def choose(goal: Goal, columns: Columns, search: RuleSearch) -> DecisionRule:
    """The rule that best meets a goal on these rows.

    Parameters
    ----------
    goal : Goal
        Checked against the task.
    columns : Columns
        Labels and scores, on the host.
    search : RuleSearch
    """
    if search.by is not None and not search.rule.takes_by:
        raise KindError(
            "{argument} belongs to {per_group} or {abstain}",
            argument=Argument("by", search.by),
            per_group=Argument("kind", "per-group"),
            abstain=Argument("kind", "abstain"),
        )
    if search.head is not None and not search.rule.takes_head:
        raise KindError('head= belongs to kind="abstain" with by="rl_geo_m"')
    return decision_rule(search.rule.search(goal, columns, search), columns)


def decision_rule(best: BestRule, columns: Columns) -> DecisionRule:
    """The best rule of a search on these rows."""
    return DecisionRule(
        point=best.rule,
        goal=best.goal,
        feasible=best.feasible,
        value=best.value,
        rows=columns.size,
        held=best.held,
        search=best.search,
        frontier=best.frontier,
    )


def point_of(rule: object) -> Rule:
    """The operating point of what a user passes as a rule."""
    point = rule.point if isinstance(rule, DecisionRule) else rule
    if not isinstance(point, Rule):
        raise KindError(
            f"a DecisionRule is needed, from sp.tune or DecisionRule.load; got {rule!r}"
        )
    return point


def applied(
    rule: DecisionRule | Rule,
    y_true: Any,
    scores: Any,
    *,
    sample_weight: Any = None,
    group: Any = None,
    query: Any = None,
    positives: bool = True,
) -> Columns:
    """Labels, scores and the decisions of a rule, checked and on the host.

    Without ``positives`` rows that hold none are nothing strange, whatever their labels look like.
    """
    point = point_of(rule)
    if scores is None:
        raise KindError("scores must be an array with one entry per row; got None")
    columns = take_in(
        point.task,
        y_true,
        scores=scores,
        sample_weight=sample_weight,
        group=group,
        query=query,
        positives=positives,
        tuned=True,
    )
    return point.decided_columns(columns.on_host())
