"""Classifiers of scikit-learn under a goal: the goal's own costs as sample weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from sklearn.model_selection import StratifiedKFold

from setpoint.decisions.problem import Problem
from setpoint.decisions.threshold import best_threshold
from setpoint.expressions import take_in
from setpoint.fit.network import labelled
from setpoint.goals import Goal, Task
from setpoint.methods import Costs

FOLDS = 5


def reweighted(
    fit: Callable[[np.ndarray, np.ndarray], np.ndarray],
    goal: Goal,
    task: Task,
    method: Costs,
    y: np.ndarray,
    weight: np.ndarray | None,
    seed: int,
) -> tuple[np.ndarray, str]:
    """Sample weights with the goal's costs, from decisions on rows that a model has not seen.

    Scores are taken out of fold at the best threshold (binary) or by argmax; the goal's prices at
    those decisions weigh the rows of each class.

    Parameters
    ----------
    fit : callable
        ``fit(train, held) -> scores`` on indices of rows: trains on the first, scores the second.
    y : numpy.ndarray
        (n,) codes of the classes.

    Returns
    -------
    numpy.ndarray, str
        (n,) weights, and a sentence on what the costs are.
    """
    scores = None
    folds = min(FOLDS, int(np.bincount(y).min()))
    if folds < 2:
        return np.ones(len(y)) if weight is None else weight, "too few rows of a class for costs"
    for train, held in StratifiedKFold(folds, shuffle=True, random_state=seed).split(y, y):
        part = fit(train, held)
        scores = np.zeros((len(y), *part.shape[1:])) if scores is None else scores
        scores[held] = part
    program: Any = method.lower(goal, task)
    logits, multipliers = _logits(goal, task, method, program, scores, y, weight)
    target = torch.as_tensor(y)
    w = None if weight is None else torch.as_tensor(weight, dtype=torch.float32)
    batch = program.rows(logits, target, w, None)
    totals, _ = program.measure(batch, torch.zeros(()))
    totals = totals / program.whole(totals)
    if multipliers is not None:
        settled = program.settle(totals, multipliers)
        method = replace(method, multipliers=tuple(settled.tolist()))
        program = method.lower(goal, task)
    worth = program.price(totals, program.start.numpy()).prices.reshape(program.cells.shape)[0]
    costs = np.diagonal(worth).copy()
    costs = costs / costs.max()
    names = ("rest", "positive") if task.kind == "binary" else task.classes or ()
    told = ", ".join(f"{name} {c:.3g}" for name, c in zip(names, costs, strict=True))
    return costs[y] * (1.0 if weight is None else weight), f"costs of a mistake, by class: {told}"


def _logits(
    goal: Goal,
    task: Task,
    method: Costs,
    program: Any,
    scores: Any,
    y: np.ndarray,
    weight: np.ndarray | None,
) -> tuple[torch.Tensor, float | None]:
    """Outputs whose sign or argmax is the decision; the threshold where multipliers need it."""
    if task.kind == "multiclass":
        return torch.as_tensor(scores, dtype=torch.float32), None
    columns = take_in(
        task, labelled(torch.as_tensor(y), task), scores=scores, sample_weight=weight
    ).on_host()
    _, threshold = best_threshold(Problem.meet(goal, columns))
    decided = np.where(scores >= threshold, 1.0, -1.0)
    fixed = method.multipliers is not None or not program.start.numel()
    inside = 0 < threshold < 1
    return torch.as_tensor(decided, dtype=torch.float32), (
        threshold if inside and not fixed else None
    )
