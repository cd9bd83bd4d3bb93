"""A model's outputs as scored rows, in the task's own labels."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from setpoint.expressions import Columns, Task, take_in


def scored(
    task: Task,
    outputs: Tensor,
    target: Tensor,
    weight: Tensor | None,
    groups: Any,
    score: str = "probability",
) -> Columns:
    """Rows with scores of a kind, on the host; groups by name, as arrays."""
    return take_in(
        replace(task, score=score),
        in_task_labels(target, task),
        scores=scores_of(outputs, task, score),
        sample_weight=None if weight is None else weight.cpu().numpy(),
        group=groups or None,
    ).on_host()


def scores_of(outputs: Tensor, task: Task, score: str) -> np.ndarray:
    """Scores from outputs, in float64: "logit", or "probability" by sigmoid or softmax."""
    z = outputs.double()
    z = z.reshape(len(z)) if task.kind == "binary" else z
    if score == "probability":
        z = F.softmax(z, 1) if task.kind == "multiclass" else torch.sigmoid(z)
    return z.cpu().numpy()


def entropy(outputs: Tensor, target: Tensor, weight: Tensor | None, task: Task) -> float:
    """Cross-entropy of outputs, in the mean over rows and labels."""
    if task.kind == "multiclass":
        each = F.cross_entropy(outputs.double(), target.long(), reduction="none")
    else:
        y = target.double()
        outputs = outputs.reshape(y.shape)
        each = F.binary_cross_entropy_with_logits(outputs.double(), y, reduction="none")
        each = each if each.ndim == 1 else each.mean(1)
    if weight is None:
        return float(each.mean())
    return float((each * weight).sum() / weight.sum().clamp(min=1e-30))


def in_task_labels(target: Tensor, task: Task) -> np.ndarray:
    """Targets in the task's own labels; the negative, which a task does not name, is "not X"."""
    y = target.cpu().numpy()
    if task.kind == "multiclass":
        return np.array(task.classes)[y]
    if task.kind == "multilabel" or task.positive is None or isinstance(task.positive, bool):
        return y.astype(bool)
    rest = f"not {task.positive}" if isinstance(task.positive, str) else task.positive + 1
    return np.where(y.astype(bool), task.positive, rest)


def in_group_values(group: Tensor | Mapping[str, Tensor] | None, task: Task) -> dict[str, Any]:
    """The group columns of the task, their codes read as the values declared for them."""
    columns = {}
    for name, values in task.groups:
        codes = group.get(name) if isinstance(group, Mapping) else group
        if codes is not None:
            columns[name] = np.array(values)[codes.cpu().numpy()]
    return columns
