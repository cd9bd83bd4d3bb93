"""Validation rows: a model's outputs on them, read without leaving a trace in the model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, RandomSampler

from setpoint._core.errors import DataError, KindError
from setpoint.expressions import Task

Forward = Callable[[nn.Module, Any], Any]


def evaluate_outputs(model: nn.Module, inputs: Tensor, size: int = 65536) -> Tensor:
    """A model's outputs on rows in memory, in evaluation mode, in chunks."""
    with evaluation_mode(model):
        n = len(inputs)
        return torch.cat([model(inputs[i : i + size]) for i in range(0, n, size)])


@contextmanager
def evaluation_mode(model: nn.Module) -> Iterator[None]:
    """Evaluation mode without gradients; afterwards every module has its own mode back."""
    training = model.training
    modes = [(module, module.training) for module in model.modules()]
    model.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        model.train(training)  # for modules whose train() does more than to note the mode
        for module, mode in modes:
            module.training = mode


class ValidationRows:
    """Inputs and targets of validation rows, in any of the forms that loops have them in.

    Parameters
    ----------
    inputs : Tensor, tuple or dict of Tensor, or DataLoader
        Called as ``model(x)``, ``model(*x)`` and ``model(**x)``. A loader gives pairs of inputs and
        targets, or dicts with "labels".
    target : Tensor, optional
        Left out with a loader.
    weight, group
        As the loss takes them, in the order of the rows.
    batch_size : int
    forward : callable, optional
        ``forward(model, inputs)`` for one batch, where the model is called otherwise.
    """

    def __init__(
        self,
        inputs: Any,
        target: Any = None,
        *,
        weight: Any = None,
        group: Any = None,
        batch_size: int = 1024,
        forward: Forward | None = None,
    ) -> None:
        self.loader = inputs if isinstance(inputs, DataLoader) else None
        self.inputs = inputs
        self.target = None if target is None else _tensor(target)
        self.weight = None if weight is None else _tensor(weight)
        several = isinstance(group, Mapping)
        self.group = {k: _tensor(v) for k, v in group.items()} if several else group
        if group is not None and not several:
            self.group = _tensor(group)
        self.batch_size = batch_size
        self.forward = forward or _called
        if self.loader is None:
            self._check_memory()
        else:
            self._check_loader(self.loader)

    def _check_memory(self) -> None:
        if self.target is None:
            raise DataError("the targets are missing: pass X_val and y_val, or a DataLoader alone")
        self.inputs = _each(self.inputs, _tensor)
        for part in _parts(self.inputs):
            if len(part) != len(self.target):
                raise DataError(f"X_val has {len(part):,} rows and y_val {len(self.target):,}")

    def _check_loader(self, loader: DataLoader[Any]) -> None:
        if self.target is not None:
            raise KindError("a DataLoader gives the targets itself; leave y_val out")
        columns = self.weight is not None or self.group is not None
        if columns and isinstance(loader.sampler, RandomSampler):
            raise KindError(
                "weight and group are in the order of the rows, and this DataLoader shuffles them; "
                "pass DataLoader(…, shuffle=False)"
            )

    def outputs(self, model: nn.Module, task: Task) -> tuple[Tensor, Tensor]:
        """Logits and targets of all rows, on the host; modes and generators are as before."""
        device = next((p.device for p in model.parameters()), torch.device("cpu"))
        cuda = [device] if device.type == "cuda" else []
        logits, targets = [], []
        # a loader draws a seed from the generator even where it does not shuffle
        with torch.random.fork_rng(devices=cuda), _generators_kept(self.loader):
            with evaluation_mode(model):
                for inputs, target in self._batches():
                    inputs = _each(inputs, lambda x: x.to(device) if isinstance(x, Tensor) else x)
                    logits.append(goal_logits(self.forward(model, inputs), task).cpu())
                    targets.append(_tensor(target).cpu())
        if not logits:
            raise DataError("the DataLoader of the validation rows is empty")
        z, y = torch.cat(logits), torch.cat(targets)
        one = task.kind in ("binary", "regression")
        return z, y.reshape(len(y)) if one and y.ndim == 2 and y.shape[1] == 1 else y

    def _batches(self) -> Iterator[tuple[Any, Any]]:
        if self.loader is None:
            assert self.target is not None
            for rows in torch.arange(len(self.target)).split(self.batch_size):
                at = slice(int(rows[0]), int(rows[-1]) + 1)
                yield _each(self.inputs, lambda x, at=at: x[at]), self.target[at]
            return
        for batch in self.loader:
            if isinstance(batch, Mapping) and "labels" in batch:
                yield {k: v for k, v in batch.items() if k != "labels"}, batch["labels"]
            elif isinstance(batch, tuple | list) and len(batch) == 2:
                yield batch[0], batch[1]
            else:
                raise DataError(
                    'the DataLoader must give (inputs, targets) or a dict with "labels"; got '
                    f"{type(batch).__name__}"
                )


def goal_logits(outputs: Any, task: Task) -> Tensor:
    """Logits as a goal takes them from what a model gives back.

    That is a tensor, or something with ``logits``. Two columns of a binary task are its classes,
    and their difference is the logit of the positive one.

    Examples
    --------
    >>> goal_logits(torch.tensor([[0.5, 2.0], [1.0, -1.0]]), Task.binary())
    tensor([ 1.5000, -2.0000])
    """
    z = outputs.get("logits") if isinstance(outputs, Mapping) else None
    z = getattr(outputs, "logits", outputs) if z is None else z
    if not isinstance(z, Tensor):
        raise KindError(
            f"the model gives a {type(z).__name__}, and logits are needed; pass "
            "forward=lambda model, x: …, which gives them as a tensor"
        )
    if task.kind == "binary" and z.ndim == 2 and z.shape[1] == 2:
        return z[:, 1] - z[:, 0]
    single = task.kind in ("binary", "regression") and z.ndim == 2 and z.shape[1] == 1
    return z.reshape(len(z)) if single else z


def _called(model: nn.Module, inputs: Any) -> Any:
    if isinstance(inputs, Mapping):
        return model(**inputs)
    return model(*inputs) if isinstance(inputs, tuple | list) else model(inputs)


def _tensor(x: Any) -> Tensor:
    return x if isinstance(x, Tensor) else torch.as_tensor(np.asarray(x))


def _parts(inputs: Any) -> list[Any]:
    if isinstance(inputs, Mapping):
        return list(inputs.values())
    return list(inputs) if isinstance(inputs, tuple | list) else [inputs]


def _each(inputs: Any, change: Callable[[Any], Any]) -> Any:
    """The same inputs, each tensor of them changed."""
    if isinstance(inputs, Mapping):
        return {name: change(x) for name, x in inputs.items()}
    if isinstance(inputs, tuple | list):
        return tuple(change(x) for x in inputs)
    return change(inputs)


@contextmanager
def _generators_kept(loader: DataLoader[Any] | None) -> Iterator[None]:
    """Put the generators of a loader and of its sampler back."""
    owners = [] if loader is None else [loader, loader.sampler]
    generators = [getattr(owner, "generator", None) for owner in owners]
    states = [(g, g.get_state()) for g in generators if isinstance(g, torch.Generator)]
    try:
        yield
    finally:
        for generator, state in states:
            generator.set_state(state)
