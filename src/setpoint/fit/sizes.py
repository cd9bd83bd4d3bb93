"""Sizes of batches and weights of classes, from how many rows each class has."""

from __future__ import annotations

import torch
from torch import Tensor

from setpoint.goals import Task


def batch_size(target: Tensor, task: Task) -> int:
    """A sixteenth of the rows between 32 and 1024, and enough for ten of the rarest class."""
    n = len(target)
    size = min(max(n // 16, 32), 1024)
    if task.kind == "binary":
        rarest = float(min(target.float().mean(), 1 - target.float().mean()))
    elif task.kind == "multiclass":
        counts = torch.bincount(target.long(), minlength=len(task.classes or ()))
        rarest = float(counts[counts > 0].min()) / n
    else:
        rarest = float(target.float().mean(0).clamp(min=1 / n).min())
    return max(1, min(n, max(size, min(int(10 / max(rarest, 1e-9)), 4096))))


def class_weights(target: Tensor, task: Task, power: float) -> tuple[float, ...]:
    """(1 / frequency)^power of each class; of a label, that of positives to negatives."""
    if task.kind == "multilabel":
        share = target.double().mean(0).clamp(1 / len(target), 1 - 1 / len(target))
        u = (1 - share) / share
    else:
        width = 2 if task.kind == "binary" else len(task.classes or ())
        u = 1 / torch.bincount(target.long(), minlength=width).clamp(min=1).double()
        u = u / u.mean()
    return tuple((u**power).tolist())
