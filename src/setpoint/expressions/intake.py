"""The door: turns what a user passes (lists, arrays, tensors, series) into checked columns.

Every complaint names the argument, the value and the way out.
"""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from setpoint._core.arrays import Array, is_tensor, namespace, to_numpy
from setpoint._core.errors import DataError, KindError
from setpoint._core.words import did_you_mean, listing, nearest
from setpoint.expressions.columns import Columns
from setpoint.expressions.events import RESERVED, Label, label_of
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
    task = _named_labels(task, y_true)
    y = _array(y_true, "y_true", 2 if task.kind == "multilabel" else 1)
    n = y.shape[0]
    if n == 0:
        raise DataError("y_true is empty; there is nothing to measure")
    given = None if decisions is None else _array(decisions, "y_pred", y.ndim, n)
    _same_width(y, given)
    task = _with_classes(task, y, given, scores if memberships is None else memberships)
    actual = _encode(task, y, "y_true")
    decided = None if given is None else _encode(task, given, "y_pred")
    if memberships is not None:
        decided = _memberships(task, memberships, n)
    groups = take_groups(group, n)
    _declared(task, groups)
    columns = {
        "actual": actual,
        "decided": decided,
        "scores": None if scores is None else take_scores(task, scores, n),
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
        raise DataError(f"y_true has {y.shape[1]} columns and y_pred has {decisions.shape[1]}")


def _declared(task: Task, groups: Mapping[str, np.ndarray]) -> None:
    """Declared groups are all there are."""
    for name, values in groups.items():
        known = task.group_values(name)
        if known is None:
            continue
        strange = ~np.isin(
            values, np.array(known, dtype=values.dtype if values.dtype.kind in "US" else None)
        )
        if strange.any():
            row = int(np.flatnonzero(strange)[0])
            value = values[row : row + 1].tolist()[0]
            raise DataError(
                f'group "{name}" holds {value!r} at row {row}; the task declares {listing(known)}'
            )


def take_scores(task: Task, scores: Any, n: int | None = None, name: str = "scores") -> Array:
    """Check scores: numbers, finite, of the declared kind, one column per class where needed."""
    matrix = task.kind in ("multiclass", "multilabel")
    s = _array(_by_name(task, scores, name), name, 2 if matrix else 1, n)
    if str(s.dtype) in ("bool", "torch.bool"):
        raise KindError(
            f"{name} are booleans, which look like decisions; pass the model's scores "
            "(decision_function, a probability or a logit)"
        )
    s = _floating(_numeric(s, name))  # thresholds are floats; +inf is one of them
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


# --- arrays ----------------------------------------------------------------------------------


def _array(x: Any, name: str, dims: int, n: int | None = None) -> Array:
    if isinstance(x, str | bytes | Mapping) or x is None or np.isscalar(x):
        raise KindError(f"{name} must be an array with one entry per row; got {x!r}")
    if isinstance(x, np.ma.MaskedArray):
        raise KindError(f"{name} is a masked array; drop the masked rows, or fill them")
    try:
        a = x if is_tensor(x) else _settled(_read(x), name)
    except ValueError as error:
        if isinstance(error, DataError):
            raise
        raise DataError(f"{name} cannot be read as an array: {error}") from error
    if a.ndim != dims:
        want = "one-dimensional" if dims == 1 else "a matrix with one column per class"
        pair = dims == 1 and a.ndim == 2 and a.shape[1] == 2
        hint = "; of predict_proba pass [:, 1]" if pair else ""
        raise DataError(f"{name} must be {want}; its shape is {tuple(a.shape)}{hint}")
    if n is not None and a.shape[0] != n:
        raise DataError(f"y_true has {n} rows and {name} has {a.shape[0]}; they must match")
    return a


def _read(x: Any) -> np.ndarray:
    """An array; a list that mixes text and numbers stays one of objects, where numpy makes text."""
    a = np.asarray(x)
    mixed = isinstance(x, list | tuple) and a.dtype.kind == "U" and a.ndim == 1
    if mixed and not all(isinstance(v, str) for v in x):
        return np.array(x, dtype=object)
    return a


def _settled(a: np.ndarray, name: str) -> np.ndarray:
    """An array of Python objects as an array of one kind: text, numbers or truth values."""
    if a.dtype.kind == "S":
        raise DataError(f"{name} holds bytes such as {a.ravel()[:1].tolist()}; decode them to text")
    if a.dtype.kind != "O":
        return a
    items = a.ravel().tolist()
    gaps = [i for i, v in enumerate(items) if _is_gap(v)]
    if gaps:
        row = gaps[0] // max(1, a.size // max(1, a.shape[0]))
        raise DataError(f"{name} has a missing value at row {row}; drop such rows or fill them")
    if all(isinstance(v, str) for v in items):
        return a.astype(np.str_)
    if all(isinstance(v, numbers.Real) for v in items):
        return np.array(items).reshape(a.shape)
    kinds = sorted({type(v).__name__ for v in items})
    raise DataError(f"{name} mixes or holds {listing(kinds)}; give text, numbers or truth values")


def _is_gap(v: Any) -> bool:
    """None, NaN, or what pandas puts for a missing value."""
    if v is None or type(v).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(v, float) and v != v


def take_names(x: Any, name: str, n: int) -> np.ndarray:
    """A column of names or numbers without gaps, on the host."""
    a = to_numpy(_array(x, name, 1, n))
    if a.dtype.kind == "f" and np.isnan(a).any():
        row = int(np.flatnonzero(np.isnan(a))[0])
        raise DataError(f"{name} has a missing value at row {row}; give such rows a name")
    if a.dtype.kind not in "USbiuf":
        raise DataError(f"{name} holds {a.dtype}; give text, numbers or truth values")
    return a


def _numeric(a: Array, name: str) -> Array:
    """Refuse what is no real number: text, dates, complex numbers."""
    if is_tensor(a):
        if not a.is_complex():
            return a
    elif a.dtype.kind in "fiub":
        return a
    first = to_numpy(a).ravel()[:1].tolist()
    raise KindError(f"{name} must be numbers; got {a.dtype} such as {first[0]!r}")


def _floating(a: Array) -> Array:
    """Integers as float64; floats as they are."""
    if is_tensor(a):
        return a if a.is_floating_point() else a.double()
    return a if a.dtype.kind == "f" else a.astype(np.float64)


def _weight(x: Any, n: int) -> Array:
    w = _floating(_numeric(_array(x, "sample_weight", 1, n), "sample_weight"))
    w = w if is_tensor(w) else w.astype(np.float64)
    ok = namespace(w).isfinite(w) & (w >= 0)
    if not bool(ok.all()):
        row = int(np.flatnonzero(~to_numpy(ok))[0])
        raise DataError(
            f"sample_weight is {float(w[row]):g} at row {row}; weights are finite and not negative"
        )
    if float(w.max()) > 1e100:
        raise DataError(f"sample_weight reaches {float(w.max()):g}; scale the weights down")
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
        if len({a.dtype.kind in "US" for a in seen}) > 1:
            raise DataError("y_true and y_pred hold labels of different kinds, text and numbers")
        classes = tuple(label_of(c) for c in np.unique(np.concatenate(seen)).tolist())
        width = len(classes) if scores is None else np.shape(scores)[-1]
        if width != len(classes):
            raise DataError(
                f"y_true holds {len(classes)} classes and the scores have {width} columns; "
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
    values = values.double() if is_tensor(values) else values.astype(np.float64)
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
    if booleans and name == "y_true" and positive is not None and not positive:
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
    if isinstance(positive, str) and name == "y_true" and not np.any(a == positive):
        near = nearest(positive, np.unique(a).tolist())
        if near is not None:  # a slip of the pen; rows without positives are nothing strange
            raise DataError(f'no row of y_true is "{positive}": did you mean positive="{near}"?')
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
        text = isinstance(label, str)
        hint = f"the classes are {listing(map(repr, classes))}."
        hint = did_you_mean(label, classes, hint) if text else hint
        raise DataError(f"{name} holds the label {label!r} at row {row}: {hint}")
    if is_tensor(a):
        return namespace(a).as_tensor(codes, device=a.device)
    return codes


def _memberships(task: Task, x: Any, n: int) -> Array:
    x = _by_name(task, x, "memberships")
    s = _array(x, "memberships", 1 if task.kind == "binary" else 2, n)
    s = _floating(_numeric(s, "memberships"))
    if not bool(((s >= 0) & (s <= 1)).all()):
        raise DataError("memberships lie in [0, 1]")
    if s.ndim == 2 and s.shape[1] != len(task.classes or ()):
        raise DataError(
            f"memberships have {s.shape[1]} columns for {len(task.classes or ())} classes; pass "
            "one column per class, in their order"
        )
    return s if is_tensor(s) else s.astype(np.float64)
