"""A model's outputs as scored rows, in the task's own labels."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from setpoint.expressions import Columns, Task, take_in


def scored(
    task: Task, outputs: Tensor, target: Tensor, weight: Tensor | None, groups: Any
) -> Columns:
    """Rows with probabilities, on the host; groups by name, as arrays."""
    return take_in(
        replace(task, score="probability"),
        in_task_labels(target, task),
        scores=probabilities(outputs, task),
        sample_weight=None if weight is None else weight.cpu().numpy(),
        group=groups or None,
    ).on_host()


def probabilities(outputs: Tensor, task: Task) -> np.ndarray:
    """Scores from outputs, in float64: sigmoid, or softmax over classes."""
    z = outputs.double()
    z = z.reshape(len(z)) if task.kind == "binary" else z
    p = F.softmax(z, 1) if task.kind == "multiclass" else torch.sigmoid(z)
    return p.cpu().numpy()


def in_task_labels(target: Tensor, task: Task) -> np.ndarray:
    """Targets in the task's own labels; the negative, which a task does not name, is "not X"."""
    y = target.cpu().numpy()
    if task.kind == "multiclass":
        return np.array(task.classes)[y]
    if task.kind == "multilabel" or task.positive is None or isinstance(task.positive, bool):
        return y.astype(bool)
    rest = f"not {task.positive}" if isinstance(task.positive, str) else task.positive + 1
    return np.where(y.astype(bool), task.positive, rest)
