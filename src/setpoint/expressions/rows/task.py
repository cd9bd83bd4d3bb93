"""The task: what labels, scores and bins mean. Declared once, checked, never guessed."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

from setpoint._core.errors import Argument, KindError
from setpoint._core.options import is_real
from setpoint._core.words import did_you_mean, listing
from setpoint.expressions.rows.row_events import RESERVED, Label, label_of

KINDS = ("binary", "multiclass", "multilabel", "ranking", "regression")
SCORES = ("raw", "probability", "logit")
REST = "rest"


@dataclass(frozen=True)
class Task:
    """What the columns of a problem mean.

    Parameters
    ----------
    kind : {"binary", "multiclass", "multilabel", "ranking", "regression"}
    positive : label, optional
        The positive label of a binary task, set against all others. Without it the labels must be
        0 and 1, or booleans, and 1 is positive.
    classes : sequence of labels, optional
        The classes of a multiclass task, or the names of the labels of a multilabel one, in the
        order of the columns of a score matrix. Without it a multiclass task takes the sorted
        labels it sees, a multilabel task the column numbers.
    score : {"raw", "probability", "logit"}
        The kind of score. A probability is checked to lie in [0, 1]; nothing is ever converted.
    edges : sequence of float, optional
        Inner edges of the target bins of a regression task; bin j holds edges[j-1] <= y < edges[j].
        Without it ten bins of equal width span the targets seen.
    groups : mapping of column to values, optional
        The values of each group column. Needed only where totals of several shards are merged.
    unknown : label, optional
        Of a multiclass task: the label of rows that are of none of the classes, such as −1.
        Whatever is decided about them is wrong.

    Examples
    --------
    >>> Task.binary(positive="fraud").positive
    'fraud'
    """

    kind: str = "binary"
    positive: Label = None
    classes: tuple[Label, ...] | None = None
    score: str = "raw"
    edges: tuple[float, ...] | None = None
    groups: tuple[tuple[str, tuple[Label, ...]], ...] = ()
    unknown: Label = None

    def __post_init__(self) -> None:
        if self.positive is not None:
            self._set("positive", label_of(self.positive, "the positive label"))
        if self.classes is not None:
            self._set(
                "classes", tuple(label_of(c, "a class") for c in _several("classes", self.classes))
            )
        if self.edges is not None:
            self._set("edges", tuple(_edge(e) for e in _several("edges", self.edges)))
        self._set("groups", _pairs(self.groups))
        if self.kind not in KINDS:
            hint = did_you_mean(self.kind, KINDS, f"choose from {listing(KINDS)}.")
            raise KindError(f"unknown task {self.kind!r}: {hint}")
        if self.score not in SCORES:
            hint = did_you_mean(self.score, SCORES, f"choose from {listing(SCORES)}.")
            raise KindError(f"unknown kind of score {self.score!r}: {hint}")
        if self.classes is not None:
            if len(set(self.classes)) != len(self.classes) or len(self.classes) < 1:
                raise KindError(f"classes must differ from each other; got {listing(self.classes)}")
        if self.positive is not None and self.kind != "binary":
            raise KindError(
                "{argument} belongs to a binary task, and this one is {kind}",
                argument=Argument("positive", self.positive),
                kind=self.kind,
            )
        if self.unknown is not None:
            self._check_unknown()
        edges = self.edges
        if edges is not None and (
            not all(map(math.isfinite, edges)) or any(a >= b for a, b in pairwise(edges))
        ):
            raise KindError(f"edges must be finite and increasing; got {listing(edges)}")
        for column, _ in self.groups:
            if column in RESERVED:
                raise KindError(f'"{column}" is a word of the language, not a group column')

    def _check_unknown(self) -> None:
        self._set("unknown", label_of(self.unknown, "the unknown label"))
        if self.kind != "multiclass":
            raise KindError(
                f"unknown={self.unknown!r} belongs to a multiclass task, not {self.kind}"
            )
        if self.unknown in (self.classes or ()):
            raise KindError(f"unknown={self.unknown!r} is one of the classes; name another label")

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    @classmethod
    def binary(cls, positive: Label = None, score: str = "raw", groups: Any = ()) -> Task:
        """Two classes, one of them positive."""
        return cls("binary", positive=positive, score=score, groups=groups)

    @classmethod
    def multiclass(
        cls,
        classes: Iterable[Any] | None = None,
        score: str = "raw",
        groups: Any = (),
        unknown: Label = None,
    ) -> Task:
        """One of several classes per row; ``unknown`` labels rows of none of them."""
        return cls("multiclass", classes=classes, score=score, groups=groups, unknown=unknown)  # type: ignore[arg-type]

    @classmethod
    def multilabel(
        cls, classes: Iterable[Any] | None = None, score: str = "raw", groups: Any = ()
    ) -> Task:
        """Any number of labels per row, as a 0/1 matrix."""
        return cls("multilabel", classes=classes, score=score, groups=groups)  # type: ignore[arg-type]

    @classmethod
    def ranking(cls) -> Task:
        """Relevances (0 or more) and scores, by query."""
        return cls("ranking")

    @classmethod
    def regression(cls, edges: Iterable[float] | None = None, groups: Any = ()) -> Task:
        """Real targets and predictions."""
        return cls("regression", edges=edges, groups=groups)  # type: ignore[arg-type]

    @classmethod
    def make(cls, task: Task | str | None, positive: Label = None) -> Task:
        """A task from a task, a word or nothing (binary), with ``positive`` filled in."""
        if not isinstance(task, Task | str | None):
            raise KindError(f"task must be a word or a Task; got {type(task).__name__}")
        made = task if isinstance(task, Task) else cls(task or "binary")
        if positive is None:
            return made
        if made.positive not in (None, positive):
            raise KindError(
                "{argument} contradicts the task's {positive!r}",
                argument=Argument("positive", positive),
                positive=made.positive,
            )
        return replace(made, positive=positive)

    @property
    def sides(self) -> tuple[Label, ...]:
        """The classes in order; of a binary task the negative one first."""
        if self.kind == "binary":
            return (0, 1) if self.positive is None else (REST, self.positive)
        return self.classes or ()

    @property
    def bins(self) -> int:
        """Number of target bins of a regression task."""
        return len(self.edges or ()) + 1

    def group_values(self, column: str) -> tuple[Label, ...] | None:
        """The declared values of a group column, or None."""
        return dict(self.groups).get(column)

    def to_json(self) -> dict[str, Any]:
        """Plain data that :meth:`from_json` reads back."""
        full = {
            "kind": self.kind,
            "positive": self.positive,
            "classes": None if self.classes is None else list(self.classes),
            "score": self.score,
            "edges": None if self.edges is None else list(self.edges),
            "groups": {name: list(values) for name, values in self.groups},
            "unknown": self.unknown,
        }
        return {name: value for name, value in full.items() if value not in (None, {})}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Task:
        """Read what :meth:`to_json` wrote."""
        return cls(
            kind=data["kind"],
            positive=data.get("positive"),
            classes=data.get("classes"),
            score=data.get("score", "raw"),
            edges=data.get("edges"),
            groups=data.get("groups", ()),
            unknown=data.get("unknown"),
        )


def _several(name: str, items: Any) -> tuple[Any, ...]:
    if isinstance(items, str) or not isinstance(items, Iterable):
        raise KindError(f"{name} must be a list; got {items!r}")
    return tuple(items)


def _edge(x: Any) -> float:
    if not is_real(x):
        raise KindError(f"edges must be numbers; got {x!r}")
    return float(x)


def _pairs(groups: Any) -> tuple[tuple[str, tuple[Label, ...]], ...]:
    """Group columns and their values, from a mapping or from pairs."""
    items = groups.items() if isinstance(groups, Mapping) else groups
    if isinstance(items, str) or not isinstance(items, Iterable):
        raise KindError(f"groups must map columns to their values; got {groups!r}")
    pairs = []
    for pair in items:
        if isinstance(pair, str) or len(pair) != 2 or not isinstance(pair[0], str):
            raise KindError(f"groups must map columns to their values; got {groups!r}")
        values = _several(f'the values of "{pair[0]}"', pair[1])
        pairs.append((pair[0], tuple(label_of(v, "a group") for v in values)))
    return tuple(pairs)
