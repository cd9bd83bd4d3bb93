"""The operating point: how scores become decisions, as frozen data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from setpoint._core.arrays import Array, is_tensor, namespace, to_numpy
from setpoint._core.errors import (
    Argument,
    DataError,
    FileError,
    KindError,
    Phrase,
    RowNumber,
    Spelling,
)
from setpoint._core.words import did_you_mean, listing
from setpoint.expressions import Columns, Label, Task, take_groups, take_in, take_names, take_scores
from setpoint.rules.confidence_scores import CONFIDENCES, confidence, from_probabilities
from setpoint.rules.tradeoff_curve import number_from, number_to

KINDS = ("threshold", "per-group", "per-label", "offsets", "top-k", "abstain")


@dataclass(frozen=True, kw_only=True)
class OperatingPoint:
    """How scores become decisions.

    Attributes
    ----------
    task : Task
    kind : {"threshold", "per-group", "per-label", "offsets", "top-k", "abstain"}
    threshold : float or None
        Decide positive where score >= threshold; +inf decides nothing. Of an abstaining rule over
        classes: decide where the confidence >= threshold.
    thresholds : tuple of (group value or label, float)
        One threshold each, for "per-group" and "per-label".
    by : str or None
        The column of the groups, or "query" for a top-k rule per query.
    offsets : tuple of float
        Added to the score of each class before the argmax.
    k : int or None
    band : tuple of two floats, or empty
        Of an abstaining binary rule: (low, high). Positive where score >= high, negative where
        score < low, and nothing is decided between.
    confidence : str or None
        What an abstaining rule over classes goes by, a name of ``CONFIDENCES``.
    norms : tuple of float
        Of the rows of the last layer, for the confidence "rl_geo_m".
    """

    task: Task
    kind: str
    threshold: float | None = None
    thresholds: tuple[tuple[Label, float], ...] = ()
    by: str | None = None
    offsets: tuple[float, ...] = ()
    k: int | None = None
    band: tuple[float, ...] = ()
    confidence: str | None = None
    norms: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        """Hold the parts that the kind of rule needs."""
        if self.kind not in KINDS:
            raise FileError(f'unknown kind of rule "{self.kind}"; known are {listing(KINDS)}')
        columns = len(self.task.classes or ())
        cuts = [t for _, t in self.thresholds]
        whole = isinstance(self.k, int) and not isinstance(self.k, bool) and self.k > 0
        ready = {
            "threshold": _is_cut(self.threshold),
            "per-group": bool(cuts) and isinstance(self.by, str) and all(map(_is_cut, cuts)),
            "per-label": 0 < columns == len(cuts) and all(map(_is_cut, cuts)),
            "offsets": 0 < columns == len(self.offsets) and all(map(_is_cut, self.offsets)),
            "top-k": whole,
            "abstain": self._may_abstain(),
        }[self.kind]
        if not ready:
            raise FileError(f'this rule is damaged: a rule of kind "{self.kind}" lacks its numbers')

    def _may_abstain(self) -> bool:
        if self.task.kind == "binary":
            return len(self.band) == 2 and all(map(_is_cut, self.band)) and self._ordered()
        if self.confidence not in CONFIDENCES or not _is_cut(self.threshold):
            return False
        wanted = len(self.task.classes or ()) if CONFIDENCES[self.confidence].needs_head else 0
        return len(self.norms) == wanted and all(_is_cut(n) and n > 0 for n in self.norms)

    def _ordered(self) -> bool:
        return self.band[0] <= self.band[1]

    def decide(self, scores: Any, group: Any = None, query: Any = None) -> Array:
        """Turn scores into decisions.

        Parameters
        ----------
        scores : array-like
            (n,), or (n, K) for multiclass and multilabel, of the kind the rule was tuned on.
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
        s = take_scores(self.task, scores)
        self._refuse_extra(group, query)
        if self.kind == "threshold":
            return s >= self.threshold
        if self.kind == "per-group":
            return s >= self._group_thresholds(s, group)
        if self.kind == "per-label":
            return s >= _like(np.array([t for _, t in self.thresholds]), s)
        if self.kind == "offsets":
            return self._classes(s)
        if self.kind == "abstain":
            return self._decided_or_not(s)
        return self._top(s, query)

    def _refuse_extra(self, group: Any, query: Any) -> None:
        if group is not None and self.kind != "per-group":
            raise KindError(
                "this rule has one threshold for all and takes no group; tune with {way} for one "
                "threshold per group",
                way=Argument("kind", "per-group"),
            )
        if query is not None and self.by != "query":
            raise KindError("this rule does not look at queries; leave query= out")

    def _group_thresholds(self, s: Array, group: Any) -> Array:
        if group is None:
            raise DataError(
                'this rule has one threshold per "{by}": {way}',
                by=self.by,
                way=Spelling(
                    "pass group=", Phrase("add {group}", group=Argument("group", self.by))
                ),
            )
        columns = take_groups(group, s.shape[0])
        name = self.by or "group"
        if name not in columns and set(columns) == {"group"}:
            name = "group"
        if name not in columns:
            raise DataError(f'this rule needs the column "{self.by}"; given: {listing(columns)}')
        values, table = columns[name], dict(self.thresholds)
        out = np.full(values.shape, np.nan)
        for value, threshold in table.items():
            out[values == value] = threshold
        if np.isnan(out).any():
            row = int(np.flatnonzero(np.isnan(out))[0])
            unknown = values[row : row + 1].tolist()[0]
            hint = did_you_mean(unknown, table, f"known are {listing(table)}.")
            raise DataError(
                'unknown group {unknown!r} in "{by}" {row}: {hint} Tune again with rows of that '
                "group",
                unknown=unknown,
                by=self.by,
                row=RowNumber(row),
                hint=hint,
            )
        return _like(out, s)

    def class_index(self, s: Array) -> np.ndarray:
        """The class of each row by its place, for a rule with offsets."""
        # On the host and in float64, as when the offsets were chosen.
        return (to_numpy(s).astype(np.float64) + np.array(self.offsets)).argmax(1)

    def _classes(self, s: Array) -> Array:
        labels = np.array(self.task.classes or ())[self.class_index(s)]
        numeric = labels.dtype.kind in "biuf"
        return (
            namespace(s).as_tensor(labels, device=s.device) if is_tensor(s) and numeric else labels
        )

    def _decided_or_not(self, s: Array) -> Array:
        decided, abstained = map(to_numpy, self.split(s))
        if self.task.kind == "binary":
            return _like(np.where(abstained, -1, decided).astype(np.int8), s)
        classes = np.array([*(self.task.classes or ()), None], dtype=object)
        return classes[np.where(abstained, -1, decided)]

    def _top(self, s: Array, query: Any) -> Array:
        scores = to_numpy(s)
        k = self.k or 0
        if self.by == "query":
            if query is None:
                raise DataError(
                    "this rule takes the first k of each query: {way}",
                    way=Spelling("pass query=", "say --query"),
                )
            queries = take_names(query, "query", scores.size)
            decided = np.zeros(scores.size, bool)
            for value in np.unique(queries):
                rows = np.flatnonzero(queries == value)
                decided[rows[np.argsort(-scores[rows], kind="stable")[:k]]] = True
            return _like(decided, s)
        if k > scores.size:
            raise DataError(
                f"k = {k} is more than the {scores.size} rows given; pass at least k rows"
            )
        decided = np.zeros(scores.size, bool)
        decided[np.argsort(-scores, kind="stable")[:k]] = True
        return _like(decided, s)

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
        s = take_scores(self.task, scores)
        return self.split(s)[1]

    def split(self, s: Array) -> tuple[Array, Array]:
        """(decisions as if every row were decided, where nothing is decided)."""
        if self.kind != "abstain":
            xp = namespace(s)
            none = xp.zeros(s.shape[0], dtype=xp.bool) if is_tensor(s) else np.zeros(len(s), bool)
            return s, none
        if self.task.kind == "binary":
            low, high = self.band
            return s >= high, (s >= low) & (s < high)
        z = logits_of(self.task, s)
        sure, index = confidence(self.confidence or "", z, list(self.norms) or None)
        return index, sure < self.threshold

    def operating_point(self) -> str:
        """The rule in words: ``score >= 0.73``."""
        if self.kind == "threshold":
            return f"score >= {self.threshold:.6g}"
        if self.kind in ("per-group", "per-label"):
            return ", ".join(f"{name}: score >= {t:.6g}" for name, t in self.thresholds)
        if self.kind == "abstain":
            return self._band_in_words()
        if self.kind == "offsets":
            pairs = zip(self.task.classes or (), self.offsets, strict=True)
            moved = [f"{name} {offset:+.4g}" for name, offset in pairs if offset]
            return "argmax of scores" + (f" with {', '.join(moved)}" if moved else "")
        return f"the {self.k} highest scores" + (" of each query" if self.by == "query" else "")

    def _band_in_words(self) -> str:
        if self.task.kind == "binary":
            low, high = self.band
            return f"positive where score >= {high:.6g}, negative where score < {low:.6g}"
        odds = ""
        if self.confidence == "sr_max":  # kept as a logit, so that nothing saturates
            odds = f" (a probability of {1 / (1 + np.exp(-(self.threshold or 0.0))):.4g})"
        return f"argmax of scores where {self.confidence} >= {self.threshold:.6g}{odds}"

    def point_to_json(self) -> dict[str, Any]:
        """The operating point as plain data; infinities are strings."""
        return {
            "task": self.task.to_json(),
            "kind": self.kind,
            "threshold": number_to(self.threshold),
            "thresholds": [[name, number_to(t)] for name, t in self.thresholds],
            "by": self.by,
            "offsets": list(self.offsets),
            "k": self.k,
            "band": [number_to(t) for t in self.band],
            "confidence": self.confidence,
            "norms": list(self.norms),
        }

    @staticmethod
    def point_from_json(data: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of an operating point, from what :meth:`point_to_json` wrote."""
        return {
            "task": Task.from_json(data["task"]),
            "kind": data["kind"],
            "threshold": number_from(data["threshold"]),
            "thresholds": tuple((name, number_from(t)) for name, t in data["thresholds"]),
            "by": data["by"],
            "offsets": tuple(data["offsets"]),
            "k": data["k"],
            "band": tuple(number_from(t) for t in data.get("band", ())),
            "confidence": data.get("confidence"),
            "norms": tuple(data.get("norms", ())),
        }


def logits_of(task: Task, scores: Any) -> Any:
    """Scores of classes as logits: the logarithms of probabilities, others as they are."""
    return from_probabilities(scores) if task.score == "probability" else scores


def _is_cut(x: object) -> bool:
    return isinstance(x, float | int) and not isinstance(x, bool) and x == x


def _like(a: np.ndarray, s: Array) -> Array:
    if not is_tensor(s):
        return a.astype(s.dtype) if a.dtype.kind == "f" and s.dtype.kind == "f" else a
    xp = namespace(s)
    dtype = s.dtype if a.dtype.kind == "f" else None
    return xp.as_tensor(a, dtype=dtype, device=s.device)


# A rule met with rows: columns that hold its decisions.


def applied(
    point: OperatingPoint,
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
    if not isinstance(point, OperatingPoint):
        raise KindError(
            f"a DecisionRule is needed, from sp.tune or DecisionRule.load; got {point!r}"
        )
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
    )
    return with_decisions(point, columns.on_host())


def with_decisions(point: OperatingPoint, columns: Columns) -> Columns:
    """The same rows, decided by a rule; columns on the host."""
    scores = np.asarray(columns.scores)
    if point.kind == "offsets":
        return replace(columns, decided=point.class_index(scores))
    if point.kind == "abstain":
        decided, abstained = point.split(scores)
        return replace(columns, decided=decided, abstained=abstained)
    group = (columns.groups or None) if point.kind == "per-group" else None
    query = columns.query if point.by == "query" else None
    return replace(columns, decided=point.decide(scores, group=group, query=query))
