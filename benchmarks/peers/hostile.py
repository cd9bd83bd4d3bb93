"""Training a small network under conditions that break losses: which runs raise, which end NaN.

600 rows of 10 features, three epochs of a plain shuffled loader (no sampler that balances the
classes), a network 10-16-1. The same loop, data and seeds serve every loss.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch import Tensor, nn

ROWS = 600
EPOCHS = 3
SEEDS = 5


@dataclass(frozen=True)
class Condition:
    """One way in which data or model are unkind."""

    positives: float = 0.3
    batch: int = 32
    scale: float = 1.0  # of the last layer: 1e4 makes extreme logits
    constant: bool = False  # features
    dtype: torch.dtype = torch.float32


CONDITIONS = {
    "none (30 % positives, batch 32)": Condition(),
    "2 % positives, batch 32": Condition(positives=0.02),
    "1 % positives, batch 16": Condition(positives=0.01, batch=16),
    "no positives": Condition(positives=0.0),
    "no negatives": Condition(positives=1.0),
    "constant features": Condition(constant=True),
    "logits of 1e4": Condition(scale=1e4),
    "bfloat16": Condition(dtype=torch.bfloat16),
    "batches of one row": Condition(batch=1),
}

#: model -> (step of one batch: logits, targets, row numbers -> loss, optimizer, other parameters)
Setup = Callable[[nn.Module], tuple[Callable[[Tensor, Tensor, Tensor], Tensor], object, list]]


def outcome(setup: Setup, condition: Condition, seed: int) -> str:
    """``finite``, ``raised …`` or ``not finite: …`` after the run."""
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(10, 16), nn.ReLU(), nn.Linear(16, 1))
    with torch.no_grad():
        model[2].weight.mul_(condition.scale)
    model = model.to(condition.dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            loss_of, optimizer, more = setup(model)
            for x, y, index in _batches(condition, seed):
                optimizer.zero_grad()
                loss = loss_of(model(x), y, index)
                loss.backward()
                optimizer.step()
                if not loss.isfinite().all():
                    return "not finite: the loss"
                if not all(p.isfinite().all() for p in [*model.parameters(), *more]):
                    return "not finite: the parameters"
        except Exception as error:
            text = str(error).split("\n")[0]
            return f"raised {type(error).__name__}: {text}"
    return "finite"


def _batches(condition: Condition, seed: int) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
    g = torch.Generator().manual_seed(seed)
    y = (torch.arange(ROWS) < round(condition.positives * ROWS)).long()
    x = torch.randn(ROWS, 10, generator=g) + y[:, None]
    x = (torch.ones_like(x) if condition.constant else x).to(condition.dtype)
    for _ in range(EPOCHS):
        for index in torch.randperm(ROWS, generator=g).split(condition.batch):
            yield x[index], y[index], index


def outcomes(setups: dict[str, Setup]) -> dict[str, dict[str, dict[str, int]]]:
    """Count the outcomes: loss -> condition -> outcome -> runs."""
    found: dict = {}
    for name, setup in setups.items():
        for words, condition in CONDITIONS.items():
            counts = found.setdefault(name, {}).setdefault(words, {})
            for seed in range(SEEDS):
                end = outcome(setup, condition, seed)
                counts[end] = counts.get(end, 0) + 1
    return found
