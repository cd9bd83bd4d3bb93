"""The batch both sides are timed on, and the losses written out over all pairs."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import torch
from torch import Tensor


def batch(rows: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Logits (float32) and 0/1 targets, every tenth row positive."""
    g = torch.Generator().manual_seed(seed)
    target = (torch.arange(rows) % 10 == 0).long()
    return torch.randn(rows, generator=g) + target, target


def forward_backward(loss: Callable, logits: Tensor, target: Tensor) -> Callable[[], Tensor]:
    """A call that takes the loss and gives the gradient of the logits."""
    leaf = logits.clone().requires_grad_()

    def call() -> Tensor:
        leaf.grad = None
        loss(leaf, target).backward()
        return leaf.grad

    return call


def medians(calls: dict[str, Callable], repeats: int) -> dict[str, float]:
    """Seconds of each call, median over rounds in which each runs twice, the second counted."""
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(repeats + 1):
        for name, call in calls.items():
            call()
            start = time.perf_counter()
            call()
            if turn:
                seconds[name].append(time.perf_counter() - start)
    return {name: statistics.median(values) for name, values in seconds.items()}


def squared_hinge(logits: Tensor, target: Tensor) -> Tensor:
    """Mean over pairs of max(0, 1 − d)²."""
    hit = target > 0
    d = logits[hit].unsqueeze(1) - logits[~hit]
    return (1 - d).clamp(min=0).square().mean()


def laplace(logits: Tensor, target: Tensor) -> Tensor:
    """Mean over pairs of max(0, −d) + ½ e^{−|d|}."""
    hit = target > 0
    d = logits[hit].unsqueeze(1) - logits[~hit]
    return ((-d).clamp(min=0) + 0.5 * (-d.abs()).exp()).mean()


def logistic(logits: Tensor, target: Tensor) -> Tensor:
    """Mean over pairs of log(1 + e^{−d})."""
    hit = target > 0
    return torch.nn.functional.softplus(logits[~hit] - logits[hit].unsqueeze(1)).mean()


def average_precision(logits: Tensor, target: Tensor, temperature: float = 0.1) -> Tensor:
    """1 − smooth AP, ranks by the Laplace distribution function."""
    hit = target > 0
    t = (logits - logits[hit].unsqueeze(1)) / temperature  # (positives, rows)
    half = 0.5 * (-t.abs()).exp()
    counts = torch.where(t <= 0, half, 1 - half)  # a row against itself: ½, and ½ more below
    return 1 - ((counts[:, hit].sum(1) + 0.5) / (counts.sum(1) + 0.5)).mean()
