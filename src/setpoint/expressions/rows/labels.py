"""Labels as the columns hold them: booleans, class indices, floats; and the classes there are."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from setpoint._core.arrays import Array, is_tensor, namespace, to_numpy
from setpoint._core.errors import Argument, DataError, Name, RowNumber, Spelling
from setpoint._core.words import did_you_mean, listing, nearest
from setpoint.expressions.rows.raw_arrays import numeric
from setpoint.expressions.rows.row_events import Label, label_of
from setpoint.expressions.rows.task import Task

DEFAULT_BINS = 10


def with_classes(task: Task, y: Array, decisions: Array | None, scores: Any) -> Task:
    """Fill in what the task leaves to the data: classes, target bins."""
    if task.kind == "multiclass" and task.classes is None:
        seen = [np.unique(to_numpy(a)) for a in (y, decisions) if a is not None]
        if len({a.dtype.kind in "US" for a in seen}) > 1:
            raise DataError(
                "{argument} and y_pred hold labels of different kinds, text and numbers",
                argument=Name("y_true"),
            )
        labels = (label_of(c) for c in np.unique(np.concatenate(seen)).tolist())
        classes = tuple(c for c in labels if task.unknown is None or c != task.unknown)
        width = len(classes) if scores is None else np.shape(scores)[-1]
        if width != len(classes):
            raise DataError(
                "{argument} holds {classes} classes and the scores have {width} columns; "
                "say which column is which: {way}",
                argument=Name("y_true"),
                classes=len(classes),
                width=width,
                way=Spelling('task=Task.multiclass(["…", …])', "--classes a,b,…"),
            )
        return replace(task, classes=classes)
    if task.kind == "multilabel":
        classes = task.classes or tuple(range(y.shape[1]))
        if len(classes) != y.shape[1]:
            raise DataError(
                "{argument} has {columns} columns for {labels} labels",
                argument=Name("y_true"),
                columns=y.shape[1],
                labels=len(classes),
            )
        return replace(task, classes=classes)
    if task.kind == "regression" and task.edges is None:
        values = to_numpy(encode(task, y, "y_true"))
        low, high = float(values.min()), float(values.max())
        inner = np.linspace(low, high, DEFAULT_BINS + 1)[1:-1] if high > low else []
        return replace(task, edges=tuple(float(e) for e in inner))
    return task


def encode(task: Task, a: Array, name: str, positives: bool = True) -> Array:
    """Labels, relevances or targets as the columns hold them.

    Without ``positives`` a label that is nearly the positive one is no slip of the pen.
    """
    if task.kind == "binary":
        return _binary(a, task.positive, name, positives)
    if task.kind == "multiclass":
        return _codes(a, task.classes or (), name, task.unknown if name == "y_true" else None)
    if task.kind == "multilabel":
        return _zero_one(a, name)
    values = numeric(a, name)
    values = values.double() if is_tensor(values) else values.astype(np.float64)
    if not bool(namespace(values).isfinite(values).all()):
        row = int(np.flatnonzero(~np.isfinite(to_numpy(values)))[0])
        raise DataError(
            "{argument} holds {value} {row}; drop or repair such rows",
            argument=Name(name),
            value=float(values[row]),
            row=RowNumber(row),
        )
    if task.kind == "ranking" and name == "y_true" and bool((values < 0).any()):
        raise DataError(
            "{argument} holds a negative relevance; relevances are 0 or more", argument=Name(name)
        )
    return values


def _zero_one(a: Array, name: str) -> Array:
    if str(a.dtype) in ("bool", "torch.bool"):
        return a
    if not is_tensor(a) and a.dtype.kind not in "fiu":
        words = sorted({str(v) for v in a.ravel()})
        raise DataError(
            "{argument} holds {words}; say which label is positive, for example {way}",
            argument=Name(name),
            words=listing(map(repr, words), 3),
            way=Argument("positive", words[-1]),
        )
    ok = (a == 0) | (a == 1)
    if bool(ok.all()):
        return a == 1
    bad = to_numpy(a)[~to_numpy(ok)].ravel()[0].item()
    where = int(np.argwhere(~to_numpy(ok))[0][0])
    if name == "y_pred":
        raise DataError(
            "y_pred holds {bad!r} {row}, which is no decision; this metric judges decisions: "
            "pass scores >= threshold, or let sp.tune choose the threshold",
            bad=bad,
            row=RowNumber(where),
        )
    raise DataError(
        "{argument} holds {bad!r} {row}; a binary task has the labels 0 and 1, "
        "or say which label is positive, for example {way}",
        argument=Name("y_true"),
        bad=bad,
        row=RowNumber(where),
        way=Argument("positive", bad),
    )


def _binary(a: Array, positive: Label, name: str, positives: bool) -> Array:
    booleans = str(a.dtype) in ("bool", "torch.bool")
    if booleans and name == "y_true" and positive is not None and not positive:
        raise DataError(
            "{argument} turns the booleans of {labels} round; pass ~{labels} instead",
            argument=Argument("positive", positive),
            labels=Name(name),
        )
    if positive is None or booleans:
        return _zero_one(a, name)
    if isinstance(positive, str) != (not is_tensor(a) and a.dtype.kind in "OUS"):
        first = to_numpy(a)[:1].tolist()[0]
        raise DataError(
            "{argument} is {kind}, and {labels} holds {first!r}; they must be of one kind",
            argument=Argument("positive", positive),
            kind="text" if isinstance(positive, str) else "a number",
            labels=Name(name),
            first=first,
        )
    wanted = positives and name == "y_true" and isinstance(positive, str)
    if wanted and not np.any(a == positive):
        near = nearest(positive, np.unique(a).tolist())
        if near is not None:  # a slip of the pen; rows without positives are nothing strange
            raise DataError(
                'no row of {labels} is "{positive}": did you mean {way}?',
                labels=Name(name),
                positive=positive,
                way=Argument("positive", near),
            )
    return a == positive


def _codes(a: Array, classes: tuple[Label, ...], name: str, unknown: Label) -> Array:
    """Class index of each row; (n,) integers, −1 for rows of none of the classes."""
    values = to_numpy(a)
    codes = np.full(values.shape, -1)
    for index, label in enumerate(classes):
        codes[values == label] = index
    strange = codes < 0 if unknown is None else (codes < 0) & (values != unknown)
    if np.any(strange):
        row = int(np.flatnonzero(strange)[0])
        label = values[row : row + 1].tolist()[0]
        text = isinstance(label, str)
        hint = f"the classes are {listing(map(repr, classes))}."
        hint = did_you_mean(label, classes, hint) if text else hint
        raise DataError(
            "{argument} holds the label {label!r} {row}: {hint}",
            argument=Name(name),
            label=label,
            row=RowNumber(row),
            hint=hint,
        )
    if is_tensor(a):
        return namespace(a).as_tensor(codes, device=a.device)
    return codes
