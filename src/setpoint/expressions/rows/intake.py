"""The door: turns what a user passes (lists, arrays, tensors, series) into checked columns.

Every complaint names the argument, the value and the way out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from setpoint._core.arrays import Array, is_tensor, namespace, to_numpy
from setpoint._core.errors import DataError, KindError, Name, RowNumber, Spelling
from setpoint._core.words import listing
from setpoint.expressions.rows.columns import Columns
from setpoint.expressions.rows.labels import encode, with_classes
from setpoint.expressions.rows.raw_arrays import array_of, floating, numeric
from setpoint.expressions.rows.row_events import RESERVED, label_of
from setpoint.expressions.rows.task import Task

#: How a sentence calls the weights of the rows.
WEIGHT = Name("sample_weight")


def take_in(
    task: Task,
    y_true: Any,
    *,
    decisions: Any = None,
    memberships: Any = None,
    scores: Any = None,
    sample_weight: Any = None,
    group: Any = None,
    query: Any = None,
    abstained: Any = None,
    positives: bool = True,
    tuned: bool = False,
) -> Columns:
    """Check all columns against the task and against each other.

    Parameters
    ----------
    task : Task
    y_true : array-like
        Labels (n,), a 0/1 matrix (n, L) for multilabel, relevances, or real targets.
    decisions : array-like, optional
        Hard decisions in the labels of ``y_true`` (booleans are always understood in a binary
        task), or predictions for regression.
    memberships : array-like, optional
        Soft decisions in [0, 1] instead: (n,) or (n, K).
    scores, sample_weight, group, query, abstained : array-like, optional
        See :class:`Columns`; ``group`` is an array or a mapping of arrays.
    positives : bool
        Whether labels that hold no positive, but one spelled nearly so, are taken for a mistake.
    tuned : bool
        Whether the scores are for a rule that was tuned before, which fixes their kind.

    Raises
    ------
    DataError, KindError
    """
    task = _named_labels(task, y_true)
    y = array_of(y_true, "y_true", 2 if task.kind == "multilabel" else 1)
    n = y.shape[0]
    if n == 0:
        raise DataError("{argument} is empty; there is nothing to measure", argument=Name("y_true"))
    given = None if decisions is None else array_of(decisions, "y_pred", y.ndim, n)
    _same_width(y, given)
    task = with_classes(task, y, given, scores if memberships is None else memberships)
    actual = encode(task, y, "y_true", positives)
    decided = None if given is None else encode(task, given, "y_pred")
    if memberships is not None:
        decided = _memberships(task, memberships, n)
    groups = take_groups(group, n)
    _declared(task, groups)
    columns = {
        "actual": actual,
        "decided": decided,
        "scores": None if scores is None else take_scores(task, scores, n, tuned=tuned),
        "weight": None if sample_weight is None else _weight(sample_weight, n),
        "abstained": None if abstained is None else _flags(abstained, n),
    }
    query = None if query is None else take_names(query, "query", n)
    return Columns(task=task, groups=groups, query=query, **_one_library(columns))


def _one_library(columns: dict[str, Array | None]) -> dict[str, Any]:
    """If any column is a tensor, make all of them tensors on its device."""
    tensor = next((c for c in columns.values() if is_tensor(c)), None)
    if tensor is None:
        return columns
    make = namespace(tensor).as_tensor
    return {n: None if c is None else make(c, device=tensor.device) for n, c in columns.items()}


def _same_width(y: Array, decisions: Array | None) -> None:
    if decisions is not None and y.ndim == 2 and decisions.shape[1] != y.shape[1]:
        raise DataError(
            "{argument} has {labels} columns and y_pred has {decisions}",
            argument=Name("y_true"),
            labels=y.shape[1],
            decisions=decisions.shape[1],
        )


def _declared(task: Task, groups: Mapping[str, np.ndarray]) -> None:
    """Declared groups are all there are."""
    for name, values in groups.items():
        known = task.group_values(name)
        if known is None:
            continue
        text = values.dtype.kind in "US"
        strange = ~np.isin(values, np.array([k for k in known if isinstance(k, str) == text]))
        if strange.any():
            row = int(np.flatnonzero(strange)[0])
            value = values[row : row + 1].tolist()[0]
            raise DataError(
                'group "{name}" holds {value!r} {row}; the task declares {known}',
                name=name,
                value=value,
                row=RowNumber(row),
                known=listing(known),
            )


def take_scores(
    task: Task, scores: Any, n: int | None = None, name: str = "scores", *, tuned: bool = False
) -> Array:
    """Check scores: numbers, finite, of the declared kind, one column per class where needed.

    With ``tuned`` they are for a rule that was tuned before, which fixes their kind.
    """
    matrix = task.kind in ("multiclass", "multilabel")
    s = array_of(_by_name(task, scores, name), name, 2 if matrix else 1, n)
    if str(s.dtype) in ("bool", "torch.bool"):
        raise KindError(
            f"{name} are booleans, which look like decisions; pass the model's scores "
            "(decision_function, a probability or a logit)"
        )
    s = floating(numeric(s, name))  # thresholds are floats; +inf is one of them
    finite = namespace(s).isfinite(s)
    if not bool(finite.all()):
        row = int(np.argwhere(~to_numpy(finite))[0][0])
        value = to_numpy(s[row])
        raise DataError(
            "{name} hold {value} {row}; drop or repair rows without a score",
            name=name,
            value=value,
            row=RowNumber(row),
        )
    if task.score == "probability" and not bool(((s >= 0) & (s <= 1)).all()):
        raise _no_probability(task, to_numpy(s[(s < 0) | (s > 1)]).ravel()[0], name, tuned)
    if matrix and float(abs(s).max()) > 1e150:
        raise DataError(f"{name} reach beyond 1e150; scale them down")
    if matrix and task.classes is not None and s.shape[1] != len(task.classes):
        raise DataError(
            f"{name} have {s.shape[1]} columns for {len(task.classes)} classes "
            f"({listing(task.classes)}); pass one column per class, in that order"
        )
    return s


def _no_probability(task: Task, value: Any, name: str, tuned: bool) -> KindError:
    """What is said of a score outside [0, 1] where probabilities are declared."""
    if not tuned:
        return KindError(
            "{name} hold {value:.6g}, which is not a probability; say {way}, or pass probabilities",
            name=name,
            value=value,
            way=Spelling('score="logit" or "raw"', "--score-kind logit or raw"),
        )
    several = task.kind == "multiclass"
    return KindError(
        "{name} hold {value:.6g}, which is not a probability, and the rule was tuned on "
        "probabilities; pass {way}, or tune again on logits ({again})",
        name=name,
        value=value,
        way="softmax(logits)" if several else "sigmoid(logits)",
        again=Spelling(f'task=Task.{task.kind}(…, score="logit")', "--score-kind logit"),
    )


def _named_labels(task: Task, y_true: Any) -> Task:
    """A data frame of labels names them."""
    if task.kind != "multilabel" or task.classes is not None or not hasattr(y_true, "columns"):
        return task
    return replace(task, classes=tuple(label_of(c, "a label") for c in y_true.columns))


def _by_name(task: Task, scores: Any, name: str) -> Any:
    """The columns of a data frame that bears the names of the classes, in their order."""
    if task.classes is None or not hasattr(scores, "columns"):
        return scores
    wanted, given = [str(c) for c in task.classes], {str(c): c for c in scores.columns}
    if set(given) == set(wanted):
        return scores[[given[c] for c in wanted]]
    if set(given) & set(wanted):
        raise DataError(
            f"the columns of {name} are {listing(given)} and the classes {listing(wanted)}; name "
            "the columns like the classes, or pass an array in their order"
        )
    return scores  # other names: in the order of the classes


def take_groups(group: Any, n: int) -> dict[str, np.ndarray]:
    """Group columns from one array (named "group") or a mapping of arrays."""
    if group is None:
        return {}
    many = isinstance(group, Mapping) or hasattr(group, "columns")
    columns = {name: group[name] for name in group} if many else {"group": group}
    for name in columns:
        if name in RESERVED or not isinstance(name, str):
            raise DataError(f'"{name}" cannot name a group column: it is a word of the language')
    return {name: take_names(values, f'group "{name}"', n) for name, values in columns.items()}


def take_names(x: Any, name: str, n: int) -> np.ndarray:
    """A column of names or numbers without gaps, on the host."""
    a = to_numpy(array_of(x, name, 1, n))
    if a.dtype.kind == "f" and np.isnan(a).any():
        row = int(np.flatnonzero(np.isnan(a))[0])
        raise DataError(
            "{name} has a missing value {row}; give such rows a name",
            name=name,
            row=RowNumber(row),
        )
    if a.dtype.kind not in "USbiuf":
        raise DataError(f"{name} holds {a.dtype}; give text, numbers or truth values")
    return a


def _weight(x: Any, n: int) -> Array:
    w = floating(numeric(array_of(x, "sample_weight", 1, n), "sample_weight"))
    w = w.detach() if is_tensor(w) else w.astype(np.float64)
    ok = namespace(w).isfinite(w) & (w >= 0)
    if not bool(ok.all()):
        row = int(np.flatnonzero(~to_numpy(ok))[0])
        raise DataError(
            "{argument} is {weight:g} {row}; weights are finite and not negative",
            argument=WEIGHT,
            weight=float(w[row]),
            row=RowNumber(row),
        )
    if float(w.max()) > 1e100:
        raise DataError(
            "{argument} reaches {weight:g}; scale the weights down",
            argument=WEIGHT,
            weight=float(w.max()),
        )
    if not bool(w.sum() > 0):
        raise DataError("{argument} sums to zero; at least one row must count", argument=WEIGHT)
    return w


def _flags(x: Any, n: int) -> Array:
    a = array_of(x, "abstained", 1, n)
    if str(a.dtype) not in ("bool", "torch.bool"):
        raise KindError(
            f"abstained must be booleans, True where nothing was decided; got {a.dtype}"
        )
    return a


def _memberships(task: Task, x: Any, n: int) -> Array:
    x = _by_name(task, x, "memberships")
    s = array_of(x, "memberships", 1 if task.kind == "binary" else 2, n)
    s = floating(numeric(s, "memberships"))
    if not bool(((s >= 0) & (s <= 1)).all()):
        raise DataError("memberships lie in [0, 1]")
    if s.ndim == 2 and s.shape[1] != len(task.classes or ()):
        raise DataError(
            f"memberships have {s.shape[1]} columns for {len(task.classes or ())} classes; pass "
            "one column per class, in their order"
        )
    return s if is_tensor(s) else s.astype(np.float64)
