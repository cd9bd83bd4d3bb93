"""Bias of batch gradients: the mean gradient of many small batches against that of all rows.

40,000 simulated rows of 20 features, 2.3 % of them positive, and a linear model after a few steps
of cross-entropy, whose parameters then stay put. Over one epoch of batches the mean gradient of the
loss 1 − soft F1 is compared with the gradient at all rows at once: the angle between the two, the
greatest of three epochs.

running totals
    ``GoalLoss`` as it is, without cross-entropy. The totals are full before the epoch that is
    measured, as they are after the first minute of any training.
naive
    Each batch's own soft F1 (``memory=0``), which is what a metric written as a loss gives.

Target: at most 5° with running totals at 16 rows a batch. The other sizes and the naive angles are
reported.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Iterator

import torch
from rich.console import Console
from torch import Tensor

from benchmarks.harness import Check, new_table, one_thread, verdict
from benchmarks.harness import verdict_cell as cell
from setpoint.losses import GoalLoss
from setpoint.methods import SoftSet
from setpoint.metrics import f1

ROWS = 40_000
FEATURES = 20
POSITIVES = 0.023
SIZES = (16, 32, 128, 512)
SEEDS = (1, 5, 9)  # of the order of rows
JUDGED = 16
WIDEST = 5.0  # degrees
GOAL = "maximize f1"


def run(console: Console, repeats: int, rows: int) -> list[dict]:
    """Measure the angles at each batch size; one record for each."""
    del repeats, rows
    one_thread()
    logging.getLogger("setpoint").setLevel(logging.ERROR)  # that such batches are small is known
    x, y = simulated(ROWS)
    line = partly_trained(x, y)
    whole = full_gradient(x, y, line)
    table = new_table(
        f"Angle between the mean gradient of batches and that of all {ROWS:,} rows, degrees",
        f"soft F1, {100 * float(y.double().mean()):.1f} % positive; one epoch, greatest of three",
        ("rows a batch",),
        ("batches", "running totals", "naive", ""),
    )
    records = []
    for size in SIZES:
        ours, naive = (
            max(
                angle(mean_gradient(x, y, line, size, memory=memory, seed=seed), whole)
                for seed in SEEDS
            )
            for memory in (None, 0)
        )
        check = Check(ours, WIDEST if size == JUDGED else None)
        word = verdict([check])
        batches = math.ceil(ROWS / size)
        table.add_row(str(size), str(batches), check.cell(), f"{naive:.2f}", cell(word))
        records.append(
            {
                "batch": size,
                "batches": batches,
                "running_totals": ours,
                "naive": naive,
                "verdict": word,
            }
        )
    console.print(table)
    return records


def simulated(rows: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Draw rows × features and labels: positives are rare and shifted in five of the features."""
    g = torch.Generator().manual_seed(seed)
    y = (torch.rand(rows, generator=g) < POSITIVES).long()
    shift = torch.zeros(FEATURES, dtype=torch.float64)
    shift[:5] = torch.tensor([1.0, 0.8, 0.6, 0.4, 0.2])
    x = torch.randn(rows, FEATURES, generator=g, dtype=torch.float64) + y[:, None] * shift
    return torch.cat([x, torch.ones(rows, 1, dtype=torch.float64)], 1), y


def partly_trained(x: Tensor, y: Tensor, steps: int = 100) -> Tensor:
    """Give the weights of a line after so many steps of class-weighted cross-entropy."""
    line = torch.zeros(x.shape[1], dtype=torch.float64)
    weight = torch.where(y == 1, 8.0, 1.0).double()
    for _ in range(steps):
        slope = weight * (torch.sigmoid(x @ line) - y)
        line -= 0.5 * (x.T @ slope) / weight.sum()
    return line


def full_gradient(x: Tensor, y: Tensor, line: Tensor) -> Tensor:
    """Differentiate 1 − soft F1 of all rows, by autograd through the metric itself."""
    leaf = line.clone().requires_grad_()
    member = SoftSet().surrogate.value(torch.sigmoid(x @ leaf))
    (gradient,) = torch.autograd.grad(1 - f1.soft(y, member), leaf)
    return gradient


def mean_gradient(
    x: Tensor, y: Tensor, line: Tensor, size: int, *, memory: float | None = None, seed: int = 1
) -> Tensor:
    """Average the loss's gradient over one epoch of batches; ``memory`` None is the default."""
    options = {} if memory is None else {"memory": memory, "warmup": 0}
    loss = GoalLoss(GOAL, SoftSet(cross_entropy=0.0), guard=False, **options).double()
    logits = x @ line
    if memory is None:  # fill the totals
        for index in _batches(len(x), size, seed + 1):
            loss.observe(logits[index], y[index])
    total = torch.zeros_like(line)
    for index in _batches(len(x), size, seed):
        z = logits[index].requires_grad_()
        (slope,) = torch.autograd.grad(loss(z, y[index]), z)
        total += len(index) * (x[index].T @ slope)  # the last batch may be smaller
    return total / len(x)


def angle(a: Tensor, b: Tensor) -> float:
    """Degrees between two vectors."""
    cosine = torch.dot(a, b) / (a.norm() * b.norm())
    return math.degrees(math.acos(max(-1.0, min(1.0, float(cosine)))))


def _batches(rows: int, size: int, seed: int) -> Iterator[Tensor]:
    yield from torch.randperm(rows, generator=torch.Generator().manual_seed(seed)).split(size)
