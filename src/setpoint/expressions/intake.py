"""The door: turns what a user passes (lists, arrays, tensors, series) into checked columns.

Every complaint names the argument, the value and the way out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from setpoint._core.arrays import Array, is_tensor, namespace, to_numpy
from setpoint._core.errors import DataError, KindError
from setpoint._core.words import did_you_mean, listing
from setpoint.expressions.columns import Columns
from setpoint.expressions.events import RESERVED, Label
from setpoint.expressions.task import Task

DEFAULT_BINS = 10


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

    Raises
    ------
    DataError, KindError
    """
    y = _array(y_true, "y_true", 2 if task.kind == "multilabel" else 1)
    n = y.shape[0]
    if n == 0:
        raise DataError("y_true is empty; there is nothing to measure")
    given = None if decisions is None else _array(decisions, "y_pred", y.ndim, n)
    task = _with_classes(task, y, given, scores)
    actual = _encode(task, y, "y_true")
    decided = None if given is None else _encode(task, given, "y_pred")
    if memberships is not None:
        decided = _memberships(task, memberships, n)
    return Columns(
        task=task,
        actual=actual,
        decided=decided,
        scores=None if scores is None else take_scores(task, scores, n),
        weight=None if sample_weight is None else _weight(sample_weight, n),
        groups=take_groups(group, n),
        query=None if query is None else _plain(query, "query", n),
        abstained=None if abstained is None else _flags(abstained, n),
    )


def take_scores(task: Task, scores: Any, n: int | None = None, name: str = "scores") -> Array:
    """Check scores: numbers, finite, of the declared kind, one column per class where needed."""
    matrix = task.kind in ("multiclass", "multilabel")
    s = _array(scores, name, 2 if matrix else 1, n)
    if str(s.dtype) in ("bool", "torch.bool"):
        raise KindError(
            f"{name} are booleans, which look like decisions; pass the model's scores "
            "(decision_function, a probability or a logit)"
        )
    s = _numeric(s, name)
    if not is_tensor(s) and s.dtype.kind in "iu":
        s = s.astype(np.float64)  # thresholds are floats; +inf is one of them
    finite = namespace(s).isfinite(s)
    if not bool(finite.all()):
        row = int(np.argwhere(~to_numpy(finite))[0][0])
        value = to_numpy(s[row])
        raise DataError(f"{name} hold {value} at row {row}; drop or repair rows without a score")
    if task.score == "probability" and not bool(((s >= 0) & (s <= 1)).all()):
        bad = to_numpy(s[(s < 0) | (s > 1)]).ravel()[0]
        raise KindError(
            f'{name} hold {bad:.6g}, which is not a probability; say score="logit" or "raw", '
            "or pass probabilities"
        )
    if matrix and task.classes is not None and s.shape[1] != len(task.classes):
        raise DataError(
            f"{name} have {s.shape[1]} columns for {len(task.classes)} classes "
            f"({listing(task.classes)}); pass one column per class, in that order"
        )
    return s


def take_groups(group: Any, n: int) -> dict[str, np.ndarray]:
    """Group columns from one array (named "group") or a mapping of arrays."""
    if group is None:
        return {}
    columns = dict(group) if isinstance(group, Mapping) else {"group": group}
    for name in columns:
        if name in RESERVED or not isinstance(name, str):
            raise DataError(f'"{name}" cannot name a group column: it is a word of the language')
    return {name: _plain(values, f'group "{name}"', n) for name, values in columns.items()}


# --- arrays ----------------------------------------------------------------------------------


def _array(x: Any, name: str, dims: int, n: int | None = None) -> Array:
    if isinstance(x, str | bytes | Mapping) or x is None or np.isscalar(x):
        raise KindError(f"{name} must be an array with one entry per row; got {x!r}")
    try:
        a = x if is_tensor(x) else np.asarray(x)
    except ValueError as error:
        raise DataError(f"{name} cannot be read as an array: {error}") from error
    if a.ndim != dims:
        want = "one-dimensional" if dims == 1 else "a matrix with one column per class"
        raise DataError(f"{name} must be {want}; its shape is {tuple(a.shape)}")
    if n is not None and a.shape[0] != n:
        raise DataError(f"y_true has {n} rows and {name} has {a.shape[0]}; they must match")
    return a


def _plain(x: Any, name: str, n: int) -> np.ndarray:
    """A numpy column of names or numbers without gaps."""
    a = to_numpy(_array(x, name, 1, n))
    missing = a != a if a.dtype.kind != "O" else np.array([v is None or v != v for v in a])
    if np.any(missing):
        row = int(np.flatnonzero(missing)[0])
        raise DataError(f"{name} has a missing value at row {row}; give such rows a name")
    return a.astype(str) if a.dtype.kind == "O" and all(isinstance(v, str) for v in a) else a


def _numeric(a: Array, name: str) -> Array:
    if is_tensor(a) or a.dtype.kind in "fiu":
        return a
    try:
        return a.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise KindError(
            f"{name} must be numbers; got {a.dtype} such as {a.ravel()[0]!r}"
        ) from error


def _weight(x: Any, n: int) -> Array:
    w = _numeric(_array(x, "sample_weight", 1, n), "sample_weight")
    w = w if is_tensor(w) else w.astype(np.float64)
    ok = namespace(w).isfinite(w) & (w >= 0)
    if not bool(ok.all()):
        row = int(np.flatnonzero(~to_numpy(ok))[0])
        raise DataError(
            f"sample_weight is {float(w[row]):g} at row {row}; weights are finite and not negative"
        )
    if not bool(w.sum() > 0):
        raise DataError("sample_weight sums to zero; at least one row must count")
    return w


def _flags(x: Any, n: int) -> Array:
    a = _array(x, "abstained", 1, n)
    if str(a.dtype) not in ("bool", "torch.bool"):
        raise KindError(
            f"abstained must be booleans, True where nothing was decided; got {a.dtype}"
        )
    return a


# --- labels ----------------------------------------------------------------------------------


def _with_classes(task: Task, y: Array, decisions: Array | None, scores: Any) -> Task:
    """Fill in what the task leaves to the data: classes, target bins."""
    if task.kind == "multiclass" and task.classes is None:
        seen = [np.unique(to_numpy(a)) for a in (y, decisions) if a is not None]
        classes = tuple(np.unique(np.concatenate(seen)).tolist())
        width = getattr(scores, "shape", (0, len(classes)))[-1]
        if scores is not None and width != len(classes):
            raise DataError(
                f"y_true holds {len(classes)} classes and scores have {width} columns; "
                'say which column is which: task=Task.multiclass(["…", …])'
            )
        return replace(task, classes=classes)
    if task.kind == "multilabel":
        classes = task.classes or tuple(range(y.shape[1]))
        if len(classes) != y.shape[1]:
            raise DataError(f"y_true has {y.shape[1]} columns for {len(classes)} labels")
        return replace(task, classes=classes)
    if task.kind == "regression" and task.edges is None:
        values = to_numpy(_encode(task, y, "y_true"))
        low, high = float(values.min()), float(values.max())
        inner = np.linspace(low, high, DEFAULT_BINS + 1)[1:-1] if high > low else []
        return replace(task, edges=tuple(float(e) for e in inner))
    return task


def _encode(task: Task, a: Array, name: str) -> Array:
    if task.kind == "binary":
        return _binary(a, task.positive, name)
    if task.kind == "multiclass":
        return _codes(a, task.classes or (), name)
    if task.kind == "multilabel":
        return _zero_one(a, name)
    values = _numeric(a, name)
    values = values if is_tensor(values) else values.astype(np.float64)
    if not bool(namespace(values).isfinite(values).all()):
        row = int(np.flatnonzero(~np.isfinite(to_numpy(values)))[0])
        raise DataError(f"{name} holds {float(values[row])} at row {row}; drop or repair such rows")
    if task.kind == "ranking" and name == "y_true" and bool((values < 0).any()):
        raise DataError("y_true holds a negative relevance; relevances are 0 or more")
    return values


def _zero_one(a: Array, name: str) -> Array:
    if str(a.dtype) in ("bool", "torch.bool"):
        return a
    if not is_tensor(a) and a.dtype.kind not in "fiu":
        words = sorted({str(v) for v in a.ravel()})
        raise DataError(
            f"{name} holds {listing(map(repr, words), 3)}; say which label is positive, "
            f"for example positive={words[-1]!r}"
        )
    ok = (a == 0) | (a == 1)
    if bool(ok.all()):
        return a == 1
    bad = to_numpy(a)[~to_numpy(ok)].ravel()[0].item()
    where = int(np.argwhere(~to_numpy(ok))[0][0])
    if name == "y_pred":
        raise DataError(
            f"y_pred holds {bad!r} at row {where}, which is no decision; this metric judges "
            "decisions: pass scores >= threshold, or let sp.tune choose the threshold"
        )
    raise DataError(
        f"y_true holds {bad!r} at row {where}; a binary task has the labels 0 and 1, "
        f"or say which label is positive, for example positive={bad!r}"
    )


def _binary(a: Array, positive: Label, name: str) -> Array:
    booleans = str(a.dtype) in ("bool", "torch.bool")
    if booleans and positive is not None and not positive:
        raise DataError(
            f"positive={positive!r} turns the booleans of {name} round; pass ~{name} instead"
        )
    if positive is None or booleans:
        return _zero_one(a, name)
    if isinstance(positive, str) != (not is_tensor(a) and a.dtype.kind in "OUS"):
        first = to_numpy(a)[:1].tolist()[0]
        raise DataError(
            f"positive={positive!r} is {'text' if isinstance(positive, str) else 'a number'}, "
            f"and {name} holds {first!r}; they must be of one kind"
        )
    return a == positive


def _codes(a: Array, classes: tuple[Label, ...], name: str) -> Array:
    """Class index of each row; (n,) integers."""
    values = to_numpy(a)
    codes = np.full(values.shape, -1)
    for index, label in enumerate(classes):
        codes[values == label] = index
    if np.any(codes < 0):
        row = int(np.flatnonzero(codes < 0)[0])
        label = values[row : row + 1].tolist()[0]
        hint = did_you_mean(label, classes, f"the classes are {listing(classes)}.")
        raise DataError(f"{name} holds the label {label!r} at row {row}: {hint}")
    if is_tensor(a):
        return namespace(a).as_tensor(codes, device=a.device)
    return codes


def _memberships(task: Task, x: Any, n: int) -> Array:
    s = _array(x, "memberships", 1 if task.kind == "binary" else 2, n)
    s = _numeric(s, "memberships")
    if not bool(((s >= 0) & (s <= 1)).all()):
        raise DataError("memberships lie in [0, 1]")
    return s if is_tensor(s) else s.astype(np.float64)
