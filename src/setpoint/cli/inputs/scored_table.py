"""From a file and the options of a command to the rows that the library takes."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from setpoint._core.errors import DataError, KindError
from setpoint._core.words import did_you_mean, listing
from setpoint.cli.inputs.shared_options import labels_of, scores_of
from setpoint.cli.words import count
from setpoint.datasets import column, labelled, numbers, read_table
from setpoint.datasets.columns.column_names import absent_column
from setpoint.datasets.columns.column_roles import refuse_missing
from setpoint.datasets.labels import plain_positive, spells
from setpoint.decisions import Certificate, DecisionRule, Rule
from setpoint.expressions import Label, Over
from setpoint.expressions.arithmetic import Bound
from setpoint.expressions.rows.row_events import RESERVED
from setpoint.goals import Goal, Task
from setpoint.rules.table import needs_group

if TYPE_CHECKING:
    import pandas as pd


LABEL, SCORE = ("label",), ("score",)
FEW = 30  #: fewer decided rows than these carry no figure
TASKS = ("binary", "multiclass", "multilabel", "ranking")


@dataclass(frozen=True)
class Roles:
    """Which column is what, as the options say it.

    Parameters
    ----------
    labels, scores, groups : tuple of str
    task, score_kind : str
    positive : label, optional
        Text, as it is typed, or the value that a rule has kept.
    weight, query : str, optional
    classes : tuple of str, optional
        Names of the classes, in the order of ``scores``; the names of the columns without it.
    sought : tuple of str
        Columns that the goal or the rule names: groups as well.
    one_sided : bool
        Whether rows of one label alone are in order, as in a small batch.

    Without ``labels`` and ``scores`` they are the columns "label" and "score".
    """

    labels: tuple[str, ...] = ()
    scores: tuple[str, ...] = ()
    task: str = "binary"
    score_kind: str = "raw"
    positive: Any = None
    classes: tuple[str, ...] | None = None
    weight: str | None = None
    groups: tuple[str, ...] = ()
    query: str | None = None
    sought: tuple[str, ...] = ()
    one_sided: bool = False

    def __post_init__(self) -> None:
        if self.task not in TASKS:
            hint = did_you_mean(self.task, TASKS, f"choose from {listing(TASKS)}.")
            raise KindError(f'unknown task "{self.task}": {hint}')
        labels, scores = len(self.labels or LABEL), len(self.scores or SCORE)
        if self.task != "multilabel" and labels > 1:
            raise KindError(f"a {self.task} task has one --label; {labels} are given.")
        if self.task in ("binary", "ranking") and scores > 1:
            raise KindError(
                f"a {self.task} task has one --score; {scores} are given. With one column per "
                "class say --task multiclass, with one per label --task multilabel."
            )
        if self.task == "multiclass" and scores < 2:
            raise KindError("a multiclass task has one score per class: --scores a,b,c.")
        if self.task == "multilabel" and labels != scores:
            raise KindError(
                f"a multilabel task has one --score per --label; {count(labels, 'label')} and "
                f"{count(scores, 'score')} are given."
            )
        if self.positive is not None and self.task not in ("binary", "multilabel"):
            raise KindError(f"--positive belongs to a binary task, and this one is {self.task}.")
        if self.classes is not None and self.task != "multiclass":
            raise KindError(f"--classes belongs to a multiclass task, and this one is {self.task}.")
        if self.classes is not None and len(self.classes) != scores:
            raise KindError(
                f"--classes names {count(len(self.classes), 'class', 'classes')} for {scores} "
                "columns of scores; name one per column, in that order."
            )


@dataclass(frozen=True, eq=False)
class ScoredTable:
    """Rows in the form ``setpoint.tune`` takes.

    Parameters
    ----------
    y : numpy.ndarray
    scores : numpy.ndarray
        (n,), or (n, K) for multiclass and multilabel.
    task : Task
    about : mapping
        What can be said of the labels: rows, positives, classes.
    more : mapping
        ``sample_weight``, ``group`` and ``query``, where they were given.
    positive : label
        The positive value of a binary label, as it stands in the file.
    score_names : tuple of str
        The columns of the scores.
    """

    y: np.ndarray
    scores: np.ndarray
    task: Task
    about: dict[str, Any]
    more: dict[str, Any] = field(default_factory=dict)
    positive: Any = None
    score_names: tuple[str, ...] = SCORE

    def decided(self, rule: DecisionRule) -> dict[str, Any] | None:
        """What a rule about one class decides on these rows, in counts of rows.

        Of a rule that may abstain: on how many rows it decides, and how often rightly.
        """
        if rule.point.may_abstain:
            return self._decided_or_not(rule)
        if self.task.kind != "binary":
            return None
        group = self.more.get("group") if rule.point.needs_group else None
        query = self.more.get("query") if rule.point.needs_query else None
        decided = np.asarray(rule.decide(self.scores, group=group, query=query), dtype=bool)
        actual = self.y.astype(bool)
        right = int(np.count_nonzero(decided & actual))
        many, positives = int(np.count_nonzero(decided)), int(np.count_nonzero(actual))
        return {
            "rows": many,
            "of": len(actual),
            "right": right,
            "wrong": many - right,
            "positives": positives,
            "missed": positives - right,
            "few": many < FEW,
        }

    def _decided_or_not(self, rule: DecisionRule) -> dict[str, Any]:
        decided = np.asarray(rule.decide(self.scores))
        kept = ~np.asarray(rule.abstains(self.scores), dtype=bool)
        right = int(np.count_nonzero(decided[kept] == self.y[kept]))
        many = int(np.count_nonzero(kept))
        return {
            "rows": many,
            "of": len(kept),
            "right": right,
            "wrong": many - right,
            "undecided": len(kept) - many,
            "few": many < FEW,
        }

    def sign(self, rule: DecisionRule) -> DecisionRule:
        """The rule, knowing which label it was told to take as positive."""
        proof = None if rule.certificate is None else self.sign_proof(rule.certificate)
        point = replace(rule.point, task=self._signed(rule.task))
        return replace(rule, point=point, certificate=proof)

    def sign_proof(self, proof: Certificate) -> Certificate:
        """The certificate, knowing the same."""
        return replace(proof, point=replace(proof.point, task=self._signed(proof.point.task)))

    def _signed(self, task: Task) -> Task:
        if not isinstance(self.positive, str | int | float) or self.positive == 1:
            return task
        return replace(task, positive=self.positive)

    def options(self, *wanted: str) -> str:
        """Columns as options of the next command; the rule knows its groups and its positive."""
        about = self.about
        several = [x["label"] for x in about.get("labels", ())]
        labels = [about["label"]] if "label" in about else several
        named = {
            "label": ("label", ",".join(labels)),
            "score": (
                "scores" if len(self.score_names) > 1 else "score",
                ",".join(self.score_names),
            ),
            "weight": ("weight", about.get("weight")),
            "query": ("query", about.get("query")),
        }
        pairs = [named[name] for name in wanted]
        return " ".join(f"--{option} {shlex.quote(column)}" for option, column in pairs if column)


def columns_of(goal: Goal) -> tuple[str, ...]:
    """The group columns that a goal speaks of: by="sex", recall.on(sex="f").

    >>> columns_of(Goal.parse('maximize f1 subject to gap(recall, by="sex") <= 0.1'))
    ('sex',)
    """
    sides = (goal.objective, *(side for c in goal.constraints for side in c.sides))
    columns: dict[str, None] = {}
    for node in (node for side in sides for node in side.walk()):
        if isinstance(node, Over) and node.by not in RESERVED:
            columns[node.by] = None
        if isinstance(node, Bound):
            columns.update(dict.fromkeys(column for column, _ in node.conditions))
    return tuple(columns)


def read_rows(path: Path, roles: Roles) -> ScoredTable:
    """Read the file and take each column for its role."""
    return rows_of(read_table(path), roles)


def rows_of(table: pd.DataFrame, roles: Roles) -> ScoredTable:
    """Take each column of a table for its role."""
    roles = replace(
        roles,
        labels=roles.labels or usual_column(table, LABEL, "label"),
        scores=roles.scores or usual_column(table, SCORE, "score"),
        groups=tuple(dict.fromkeys((*roles.groups, *_sought(table, roles)))),
    )
    read = {"multiclass": _multiclass, "multilabel": _multilabel, "ranking": _ranking}
    rows = read.get(roles.task, _binary)(table, roles)
    more: dict[str, Any] = {}
    if roles.weight is not None:
        more["sample_weight"] = numbers(table, roles.weight, "weight")
    if roles.groups:
        more["group"] = {name: group_values(table, name, "group") for name in roles.groups}
    if roles.query is not None:
        more["query"] = group_values(table, roles.query, "query")
    used = {"groups": list(roles.groups), "weight": roles.weight, "query": roles.query}
    about = {**rows.about, **{name: said for name, said in used.items() if said}}
    return replace(rows, more=more, about=about, score_names=roles.scores)


def usual_column(table: pd.DataFrame, names: tuple[str, ...], role: str) -> tuple[str, ...]:
    """The usual column of a role, or the option that names another."""
    if names[0] in table.columns:
        return names
    raise absent_column(names[0], role, table.columns, remedy=f"say --{role} COL")


def _sought(table: pd.DataFrame, roles: Roles) -> list[str]:
    """Group columns without an option; the word "group" need not be the name of one."""
    return [name for name in roles.sought if name != "group" or name in table.columns]


def group_values(table: pd.DataFrame, name: str, role: str) -> np.ndarray:
    """A column of names (groups, queries, classes), none of them missing."""
    series = column(table, name, role)
    refuse_missing(series.isna().to_numpy(dtype=bool), f'column "{name}" ({role})')
    return np.array(series.tolist())


def _binary(table: pd.DataFrame, roles: Roles) -> ScoredTable:
    (label,), (score,) = roles.labels, roles.scores
    y, positive = _sides(table, label, roles)
    about = {
        "rows": len(y),
        **_share(label, y),
        "positive": positive,
        **_against(table[label].tolist(), positive),
    }
    return ScoredTable(
        y=y,
        scores=numbers(table, score, "score"),
        task=Task.binary(score=roles.score_kind),
        about=about,
        positive=positive,
    )


def _sides(table: pd.DataFrame, name: str, roles: Roles) -> tuple[np.ndarray, Any]:
    """A label as 0 and 1, and its positive value."""
    stated = roles.positive
    values = group_values(table, name, "label").tolist() if roles.one_sided else []
    if values and all(value == values[0] for value in values):
        return _one_side(values[0], stated, name, len(values))
    label = labelled(table, name, stated)
    return label.y, label.positive


def _one_side(only: Any, stated: Any, name: str, rows: int) -> tuple[np.ndarray, Any]:
    """The same of a column that holds one label alone."""
    if stated is None and plain_positive([only]) is not None:
        return np.full(rows, int(only), np.int8), 1
    if stated is None:
        raise DataError(f'column "{name}" holds only "{only}": say --positive LABEL.')
    if spells(stated, only):
        return np.ones(rows, np.int8), only
    if str(only).casefold() == str(stated).casefold():
        raise DataError(
            f'column "{name}" holds only "{only}", and positive is "{stated}": spell them alike.'
        )
    return np.zeros(rows, np.int8), stated


def _ranking(table: pd.DataFrame, roles: Roles) -> ScoredTable:
    (label,), (score,) = roles.labels, roles.scores
    y = numbers(table, label, "label")
    return ScoredTable(
        y, numbers(table, score, "score"), Task.ranking(), {"rows": len(y), "label": label}
    )


def _multiclass(table: pd.DataFrame, roles: Roles) -> ScoredTable:
    (label,) = roles.labels
    values = group_values(table, label, "label")
    names = roles.classes or roles.scores
    spelled = {str(value): value for value in np.unique(values).tolist()}
    if all(name in spelled for name in names):
        classes: Sequence[Any] = [spelled[name] for name in names]
    else:  # a class without rows: all are taken as text
        classes, values = names, values.astype(str)
    rows_of = {str(c): int(np.count_nonzero(values == c)) for c in classes}
    return ScoredTable(
        y=values,
        scores=score_matrix(table, roles.scores),
        task=Task.multiclass(classes, score=roles.score_kind),
        about={"rows": len(values), "label": label, "classes": rows_of},
    )


def _multilabel(table: pd.DataFrame, roles: Roles) -> ScoredTable:
    sides = [_sides(table, name, roles)[0] for name in roles.labels]
    pairs = zip(roles.labels, sides, strict=True)
    return ScoredTable(
        y=np.stack(sides, axis=1),
        scores=score_matrix(table, roles.scores),
        task=Task.multilabel(roles.labels, score=roles.score_kind),
        about={"rows": len(table), "labels": [_share(name, y) for name, y in pairs]},
    )


def score_matrix(table: pd.DataFrame, names: Sequence[str]) -> np.ndarray:
    """Columns of scores side by side."""
    return np.stack([numbers(table, name, "score") for name in names], axis=1)


def _share(label: str, y: np.ndarray) -> dict[str, Any]:
    return {"label": label, "positives": int(y.sum()), "share": float(y.mean())}


def _against(values: Sequence[Any], positive: Any) -> dict[str, Any]:
    """The other labels with their rows where they are several, and labels spelled alike."""
    counts = Counter(values)
    others = {str(v): n for v, n in counts.most_common() if v != positive}
    spelled: dict[str, list[str]] = {}
    for value in counts:
        spelled.setdefault(str(value).casefold(), []).append(str(value))
    alike = [sorted(names) for names in spelled.values() if len(names) > 1]
    said = {"against": others if len(others) > 1 else None, "differ_only_by_case": alike}
    return {name: what for name, what in said.items() if what}


# What a rule already knows of the columns it is applied to.


def roles_of(
    point: Rule,
    goal: Goal,
    label: Sequence[str] | None,
    score: Sequence[str] | None,
    scores: str | None,
    positive: str | None,
    weight: str | None = None,
    group: Sequence[str] | None = None,
    query: str | None = None,
) -> Roles:
    """Which column is what: as the options say it, and where they do not, as the rule has it."""
    task, known = point.task, tuple(map(str, point.task.classes or ()))
    sought = [*columns_of(goal), point.group_column]
    return Roles(
        labels=labels_of(label, task.kind) or (known if task.kind == "multilabel" else ()),
        scores=score_columns(task, scores_of(score, scores)),
        task=task.kind,
        score_kind=task.score,
        positive=positive_of(task, positive),
        classes=known if task.kind == "multiclass" else None,
        weight=weight,
        groups=tuple(group or ()),
        query=query,
        sought=tuple(dict.fromkeys(name for name in sought if name is not None)),
    )


def read_for(task: Task, file: Path, roles: Roles) -> ScoredTable:
    """Rows whose labels are spelled as the task has its classes."""
    return spelled_for(task, read_rows(file, roles))


def spelled_for(task: Task, rows: ScoredTable) -> ScoredTable:
    """The rows, their labels spelled as the task has its classes."""
    if task.kind != "multiclass":
        return rows
    return replace(rows, y=in_classes_of(task, rows.y), task=task)


def labels_for(task: Task, rows: ScoredTable) -> np.ndarray:
    """The labels as the task wants them: with its positive label where it states one."""
    positive = task.positive
    if task.kind != "binary" or positive is None:
        return rows.y
    if isinstance(positive, str):
        return np.where(rows.y == 1, positive, "")
    return np.where(rows.y == 1, float(positive), float(positive) + 1)


def score_columns(task: Task, given: Sequence[str]) -> tuple[str, ...]:
    """The columns of scores; of a multiclass rule, without others, those named as its classes."""
    kind, classes = task.kind, tuple(map(str, task.classes or ()))
    if kind not in ("multiclass", "multilabel"):
        if len(given) > 1:
            raise KindError(f"this rule is {kind} and takes one --score; {len(given)} are given.")
        return tuple(given)
    what = "class" if kind == "multiclass" else "label"
    if not given and kind == "multiclass":
        return classes
    if len(given) != len(classes):
        raise KindError(
            f"this rule needs one score per {what} ({listing(classes)}): say --scores with "
            f"{count(len(classes), 'column')}, in that order; given: "
            f"{listing(given) or 'none'}."
        )
    if set(given) == set(classes) and tuple(given) != classes:
        raise KindError(
            f"the scores are named in another order than the rule has them; say --scores "
            f"{','.join(classes)}."
        )
    return tuple(given)


def positive_of(task: Task, given: str | None) -> Any:
    """The positive label: as the rule has it, or as it is given."""
    known = task.positive
    if known is None:
        return given
    if given is not None and given != str(known):
        raise KindError(f"--positive {given} contradicts the rule, which has {known!r} as positive")
    return known


def in_classes_of(task: Task, values: np.ndarray) -> np.ndarray:
    """Labels as the task has its classes: the number 1 for a text "1", or the other way."""
    spelled: dict[str, Label] = {str(c): c for c in task.classes or ()}
    return np.array([spelled.get(str(v), v) for v in values.tolist()])


# Columns of groups that a kind of rule takes.


def by_column(by: str | None, kind: str | None, groups: Sequence[str]) -> str | None:
    """The column a per-group rule goes by: the only --group, where there are no others."""
    if not needs_group(kind):
        return by
    if by is None:
        return groups[0] if len(groups) == 1 else None
    if groups and by not in groups:
        raise KindError(f"--by {by} is not among --group {', '.join(groups)}.")
    return by


def sought_for(goal: Goal, kind: str | None, by: str | None) -> tuple[str, ...]:
    """Columns of groups that need no option of their own."""
    column = [by] if needs_group(kind) and by is not None else []
    return tuple(dict.fromkeys([*columns_of(goal), *column]))
