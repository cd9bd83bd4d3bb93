"""Pixels as rows: batches of images whose every place has a label of its own, as in segmentation.

    two classes       logits (b, 1, …) or (b, …),   target of that shape or (b, …)
    several classes   logits (b, K, …),             target (b, …), as torch's cross_entropy takes it
    several labels    logits (b, L, …),             target (b, L, …)

Weights and group codes are given for each place, or for each image, (b,).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from setpoint._core.errors import DataError
from setpoint.goals import Task

Shape = tuple[int, ...]


def as_rows(
    task: Task, outputs: Tensor, target: Any, weight: Any, group: Any, row: Any
) -> tuple[Tensor, Any, Any, Any, Any]:
    """A batch of images as rows, a row for each place; what is no tensor is left for later checks.

    Raises
    ------
    DataError
        With the shapes that do not fit.
    """
    if task.kind == "ranking" or not isinstance(target, Tensor):
        return outputs, target, weight, group, row
    flat = _channels if task.kind in ("multiclass", "multilabel") else _one_channel
    outputs, target, places = flat(task, outputs, target)
    if isinstance(group, Mapping):
        group = {name: _each(codes, f'group "{name}"', places) for name, codes in group.items()}
    else:
        group = _each(group, "group", places)
    return outputs, target, _each(weight, "weight", places), group, _each(row, "row", places)


def _one_channel(task: Task, outputs: Tensor, target: Tensor) -> tuple[Tensor, Tensor, Shape]:
    """Outputs and targets (N,) of one number per place, and the shape of the places."""
    del task
    places = _without_channel(outputs.shape)
    shapes = {tuple(outputs.shape), places, (places[0], 1, *places[1:])}
    if outputs.ndim == target.ndim:  # (b, 1, h) beside (b, 1, h): whichever is the channel
        shapes = {tuple(outputs.shape)}
    if tuple(target.shape) not in shapes:
        more = ""
        if outputs.shape[1] != 1 and target.shape == outputs.shape[:1] + outputs.shape[2:]:
            more = "; for one of several classes per pixel say task=Task.multiclass(classes)"
        raise DataError(
            f"logits have shape {tuple(outputs.shape)} and target {tuple(target.shape)}; with one "
            f"label per pixel target has shape {places}{more}"
        )
    return outputs.reshape(-1), target.reshape(-1), places


def _without_channel(shape: torch.Size) -> Shape:
    return (shape[0], *shape[2:]) if shape[1] == 1 else tuple(shape)


def _channels(task: Task, outputs: Tensor, target: Tensor) -> tuple[Tensor, Tensor, Shape]:
    """Outputs (N, K), targets (N,) or (N, L), and the shape of the places."""
    places = (outputs.shape[0], *outputs.shape[2:])
    if task.kind == "multilabel":
        fits, expected = target.shape == outputs.shape, tuple(outputs.shape)
    else:
        fits = tuple(target.shape) in (places, (places[0], 1, *places[1:]))
        expected = places
    if not fits:
        raise DataError(
            f"logits have shape {tuple(outputs.shape)} and target {tuple(target.shape)}; with a "
            f"label per pixel target has shape {expected}"
        )
    rows = _last(target) if task.kind == "multilabel" else target.reshape(-1)
    return _last(outputs), rows, places


def _last(x: Tensor) -> Tensor:
    """(b, K, …) as (N, K)."""
    return x.movedim(1, -1).reshape(-1, x.shape[1])


def _each(x: Any, name: str, places: Shape) -> Any:
    """One entry per place, of a column that is given for places or for images."""
    if not isinstance(x, Tensor):
        return x
    shape = tuple(x.shape)
    if shape in (places, (places[0], 1, *places[1:])):
        return x.reshape(-1)
    if shape == places[:1] and name != "row":
        return x.view(-1, *[1] * (len(places) - 1)).expand(places).reshape(-1)
    image = "" if name == "row" else f", or {places[:1]}, one per image"
    raise DataError(f"{name} must have shape {places}, one entry per pixel{image}; got {shape}")
