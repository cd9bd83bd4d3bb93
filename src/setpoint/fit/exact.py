"""The exact reformulation on all rows at once: from a trained model to the goal's own optimum.

1. Iterate 0: the model as it is given (trained on cross-entropy), at its best threshold here.
2. The penalty (``solvers.ExactPenalty`` on ``methods.exact_whole``), weak at first. Every iterate
   is judged by its hard decisions at the best threshold, which is the exact minimum over
   memberships and threshold for its weights.
3. Exact line searches of the last layer on the hard goal, from iterate 0, the best and the last.

The best of all of them is returned: on the rows it is judged on, never worse than iterate 0.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from torch import Tensor, nn

from setpoint._core.errors import DataError, KindError
from setpoint.fit.network.exact_run import Run, Solved
from setpoint.goals import Goal, Task
from setpoint.methods import Exact
from setpoint.training.batches import Rows, taken
from setpoint.training.events import Listener


def fit_exact(
    goal: Any,
    model: nn.Module,
    X: Tensor,
    y: Tensor,
    *,
    task: Task | str | None = None,
    weight: Tensor | None = None,
    group: Any = None,
    tune: Any = None,
    method: Exact | None = None,
    judge: Callable[[nn.Module], tuple[float, ...]] | None = None,
    seed: int = 0,
    listener: Listener | None = None,
    checkpoint: Any = None,
    fingerprint: str = "",
) -> Solved:
    """Train a model on a goal's hard decisions, from where it is.

    Parameters
    ----------
    goal : Goal, str or Expression
    model : torch.nn.Module
        Trained on cross-entropy; its weights are changed in place. It is run in evaluation mode.
    X, y, weight, group
        All rows, as for a loss.
    task : Task or str, optional
        Binary by default.
    tune : tuple, optional
        (X, y) or (X, y, weight, group) of other rows, which the verdict speaks of as well.
    method : Exact, optional
    judge : callable, optional
        model -> tuple of numbers, greater is better: what the best iterate is chosen by. The goal
        on these rows by default, at the model's best threshold.
    seed : int
        Of the walk's directions and of random starts.
    listener : callable, optional
        Told the events of ``setpoint.training.events``.
    checkpoint : path, optional
        Where the run is kept; an existing one of the same run is taken up.
    fingerprint : str
        What else the run is about, beside goal, method and rows; a checkpoint of another run is
        refused.

    Raises
    ------
    GoalError
        The goal is no function of totals of decisions.
    DataError, KindError
        Rows or options that no problem can be made of.
    FileError
        The checkpoint belongs to another run.

    Examples
    --------
    >>> import torch
    >>> X = torch.tensor([[-2.0], [-1.0], [0.0], [1.0], [2.0]])
    >>> y = torch.tensor([0, 0, 1, 0, 1])
    >>> solved = fit_exact("maximize f1", torch.nn.Linear(1, 1), X, y)
    >>> solved.verdict.train.value
    0.8
    """
    found = Exact() if method is None else method
    if not isinstance(found, Exact):
        raise KindError(f"method={method!r}: an Exact with its options, or None")
    stated, kind = Goal.of(goal), Task.make(task)
    rows, other = _taken(Rows(X, y, weight, group), kind), None
    if tune is not None:
        other = _taken(Rows(*tune), kind)
    found = replace(found, form="whole")
    run = Run(stated, kind, model, rows, found, judge, listener, seed)
    return run.solve(other, checkpoint, fingerprint)


def _taken(rows: Rows, task: Task) -> Rows:
    """Rows as tensors, without those that weigh nothing."""
    for name, x in (("X", rows.inputs), ("y", rows.target)):
        if not isinstance(x, Tensor):
            raise KindError(f"{name} must be a tensor; got {type(x).__name__}")
    if len(rows.inputs) != len(rows.target) or not len(rows.target):
        raise DataError(f"X has {len(rows.inputs)} rows and y {len(rows.target)}: one label each")
    if task.kind != "multilabel" and rows.target.ndim > 1:
        rows = rows._replace(target=rows.target.reshape(len(rows.target)))
    if rows.weight is None or not bool((rows.weight == 0).any()):
        return rows
    left = (rows.weight != 0).nonzero().reshape(-1)
    if not len(left):
        raise DataError("every row has the weight 0: nothing is left to train on")
    return Rows(*(taken(column, left) for column in rows))
