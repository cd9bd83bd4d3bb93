"""The decision rule: an operating point as frozen data, with what was found when it was chosen."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np

from setpoint._core.arrays import Array, is_tensor, namespace, to_numpy
from setpoint._core.errors import DataError, FileError, KindError, SetpointError
from setpoint._core.files import write_text
from setpoint._core.words import did_you_mean, listing
from setpoint.decisions.frontier import Frontier, number_from, number_to
from setpoint.expressions import Label, Task, take_groups, take_names, take_scores
from setpoint.goals import Goal

KINDS = ("threshold", "per-group", "per-label", "offsets", "top-k")
FORMAT = "setpoint rule 1"


@dataclass(frozen=True)
class Held:
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


@dataclass(frozen=True)
class DecisionRule:
    """How scores become decisions, and how good that was where it was chosen.

    Attributes
    ----------
    goal : Goal
    task : Task
    kind : {"threshold", "per-group", "per-label", "offsets", "top-k"}
    threshold : float or None
        Decide positive where score >= threshold; +inf decides nothing.
    thresholds : tuple of (group value or label, float)
        One threshold each, for "per-group" and "per-label".
    by : str or None
        The column of the groups, or "query" for a top-k rule per query.
    offsets : tuple of float
        Added to the score of each class before the argmax.
    k : int or None
    feasible : bool
        Whether every constraint held on these rows.
    value : float or None
        The objective there; None where it is an empty rate.
    held : tuple of Held
    rows : int
    search : str
        "exact", or how the search was cut short.
    frontier : Frontier or None
        The trade-off along the threshold.
    """

    goal: Goal
    task: Task
    kind: str
    feasible: bool
    value: float | None
    rows: int
    held: tuple[Held, ...] = ()
    threshold: float | None = None
    thresholds: tuple[tuple[Label, float], ...] = ()
    by: str | None = None
    offsets: tuple[float, ...] = ()
    k: int | None = None
    search: str = "exact"
    frontier: Frontier | None = None

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
        }[self.kind]
        if not ready:
            raise FileError(f'this rule is damaged: a rule of kind "{self.kind}" lacks its numbers')

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
            Multiclass: the class of each row. A tensor for tensors.

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
        return self._top(s, query)

    def _refuse_extra(self, group: Any, query: Any) -> None:
        if group is not None and self.kind != "per-group":
            raise KindError(
                "this rule has one threshold for all and takes no group; tune with "
                'kind="per-group" for one threshold per group'
            )
        if query is not None and self.by != "query":
            raise KindError("this rule does not look at queries; leave query= out")

    def _group_thresholds(self, s: Array, group: Any) -> Array:
        if group is None:
            raise DataError(f'this rule has one threshold per "{self.by}": pass group=')
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
                f'unknown group {unknown!r} in "{self.by}" at row {row}: {hint} '
                "Tune again with rows of that group"
            )
        return _like(out, s)

    def _classes(self, s: Array) -> Array:
        # On the host and in float64, as when the offsets were chosen.
        shifted = to_numpy(s).astype(np.float64) + np.array(self.offsets)
        labels = np.array(self.task.classes or ())[shifted.argmax(1)]
        numeric = labels.dtype.kind in "biuf"
        return (
            namespace(s).as_tensor(labels, device=s.device) if is_tensor(s) and numeric else labels
        )

    def _top(self, s: Array, query: Any) -> Array:
        scores = to_numpy(s)
        k = self.k or 0
        if self.by == "query":
            if query is None:
                raise DataError("this rule takes the first k of each query: pass query=")
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

    # --- words -------------------------------------------------------------------------------

    @property
    def binding(self) -> tuple[str, ...]:
        """The constraints that cost something."""
        return tuple(h.constraint for h in self.held if h.binding)

    def operating_point(self) -> str:
        """The rule in words: ``score >= 0.73``."""
        if self.kind == "threshold":
            return f"score >= {self.threshold:.6g}"
        if self.kind in ("per-group", "per-label"):
            return ", ".join(f"{name}: score >= {t:.6g}" for name, t in self.thresholds)
        if self.kind == "offsets":
            pairs = zip(self.task.classes or (), self.offsets, strict=True)
            moved = [f"{name} {offset:+.4g}" for name, offset in pairs if offset]
            return "argmax of scores" + (f" with {', '.join(moved)}" if moved else "")
        return f"the {self.k} highest scores" + (" of each query" if self.by == "query" else "")

    def sentence(self) -> str:
        """One sentence: what was reached, or why it could not be."""
        if self.value is None:
            return f"NOT FEASIBLE: {self.obstacle()}."
        values = (("empty" if h.value is None else f"{h.value:.4g}") for h in self.held)
        pairs = zip(self.held, values, strict=True)
        held = "".join(f", {h.constraint} ({value})" for h, value in pairs)
        reached = f"{self.goal.objective} {self.value:.4g}{held}"
        if self.feasible:
            return f"{reached} on {self.rows:,} rows."
        return f"NOT FEASIBLE: {self.obstacle()}. The rule comes nearest: {reached}."

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
            "task": self.task.to_json(),
            "kind": self.kind,
            "feasible": self.feasible,
            "value": number_to(self.value),
            "rows": self.rows,
            "held": [
                {f.name: number_to(getattr(h, f.name)) for f in fields(Held)} for h in self.held
            ],
            "threshold": number_to(self.threshold),
            "thresholds": [[name, number_to(t)] for name, t in self.thresholds],
            "by": self.by,
            "offsets": list(self.offsets),
            "k": self.k,
            "search": self.search,
            "frontier": None if self.frontier is None else self.frontier.to_json(),
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> DecisionRule:
        """Read what :meth:`to_json` wrote."""
        if not isinstance(data, Mapping) or data.get("format") != FORMAT:
            raise FileError(f'this is not a rule: it lacks "format": "{FORMAT}"')
        try:
            return cls(
                goal=Goal.parse(data["goal"]),
                task=Task.from_json(data["task"]),
                kind=data["kind"],
                feasible=data["feasible"] is True,
                value=number_from(data["value"]),
                rows=int(data["rows"]),
                held=tuple(
                    Held(**{name: number_from(value) for name, value in h.items()})
                    for h in data["held"]
                ),
                threshold=number_from(data["threshold"]),
                thresholds=tuple((name, number_from(t)) for name, t in data["thresholds"]),
                by=data["by"],
                offsets=tuple(data["offsets"]),
                k=data["k"],
                search=data["search"],
                frontier=None if data["frontier"] is None else Frontier.from_json(data["frontier"]),
            )
        except SetpointError:
            raise
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise FileError(f"this rule is damaged: {error!r}. Tune again") from error

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the rule as JSON (temporary name, then rename)."""
        return write_text(path, json.dumps(self.to_json(), indent=1, allow_nan=False) + "\n")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> DecisionRule:
        """Read a rule that :meth:`save` wrote; nothing in the file is executed."""
        try:
            return cls.from_json(json.loads(Path(path).read_text(encoding="utf-8")))
        except SetpointError:
            raise
        except (json.JSONDecodeError, UnicodeDecodeError) as error:
            raise FileError(f'"{path}" is not a rule: {error}') from error
        except (OSError, TypeError, ValueError) as error:
            reason = getattr(error, "strerror", None) or error
            raise FileError(f'cannot read "{path}": {reason}') from error


def _is_cut(x: object) -> bool:
    return isinstance(x, float | int) and not isinstance(x, bool) and x == x


def _never(held: Held) -> str:
    nearest = "" if held.reachable is None else f", the nearest is {held.reachable:.4g}"
    return f"{held.constraint} is reached by no candidate{nearest}"


def _like(a: np.ndarray, s: Array) -> Array:
    if not is_tensor(s):
        return a.astype(s.dtype) if a.dtype.kind == "f" and s.dtype.kind == "f" else a
    xp = namespace(s)
    dtype = s.dtype if a.dtype.kind == "f" else None
    return xp.as_tensor(a, dtype=dtype, device=s.device)
