"""One loop for every loss: the same steps, the step kept that is best on validation rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from benchmarks.implicit.rows import Part, Split

#: of labels and scores, to be made as small or as large as ``sign`` says
Judge = Callable[[np.ndarray, np.ndarray], float]
OPTIMISERS = {"adam": torch.optim.Adam, "adagrad": torch.optim.Adagrad}


@dataclass
class Kept:
    """The best step by one judge, and the scores of validation and test rows there."""

    value: float = -math.inf
    step: int = 0
    tune: Any = None
    test: Any = None


@dataclass(frozen=True)
class Pace:
    """How long, how often judged, how many rows a step (0: all), which part of it slows down."""

    steps: int
    every: int
    batch: int = 0
    decay: bool = False


def trained(
    net: nn.Module,
    loss: Callable[..., Tensor],
    rows: Split,
    judges: Mapping[str, Judge],
    pace: Pace,
    optimiser: tuple[str, float],
    seed: int,
    *,
    groups: bool = False,
    flip: bool = False,
) -> dict[str, Kept]:
    """The best step by each judge (greater is better), all from one run."""
    kind, rate = optimiser
    stepper = OPTIMISERS[kind](net.parameters(), lr=rate)
    kept = {name: Kept() for name in judges}
    y = rows.tune.y.cpu().numpy()
    for step, part in enumerate(batches(rows.train, pace.batch, seed, flip=flip), start=1):
        if pace.decay:
            now = rate * 0.5 * (1 + math.cos(math.pi * (step - 1) / pace.steps))
            stepper.param_groups[0]["lr"] = now
        stepper.zero_grad(set_to_none=True)
        more = {"group": part.group} if groups else {}
        loss(net(part.x), part.y, **more).backward()
        stepper.step()
        if step % pace.every == 0:
            tune = scores(net, rows.tune.x)
            found = {name: judge(y, tune) for name, judge in judges.items()}
            better = [name for name, value in found.items() if value > kept[name].value]
            test = scores(net, rows.test.x) if better else None
            for name in better:
                kept[name] = Kept(found[name], step, tune, test)
        if step == pace.steps:
            return kept
    raise AssertionError("batches end")


def batches(rows: Part, size: int, seed: int, *, flip: bool) -> Iterator[Part]:
    """All rows again and again, or batches from one permutation of them after another."""
    device, n = rows.y.device, len(rows.y)
    chance = torch.Generator(device=device).manual_seed(seed)
    left = torch.empty(0, dtype=torch.long, device=device)
    while True:
        if not size or size >= n:
            yield rows
            continue
        if len(left) < size:
            left = torch.cat([left, torch.randperm(n, generator=chance, device=device)])
        taken, left = left[:size], left[size:]
        x = rows.x[taken]
        if flip:
            mirrored = torch.rand(size, 1, 1, 1, generator=chance, device=device) < 0.5
            x = torch.where(mirrored, x.flip(3), x)
        yield Part(x, rows.y[taken], rows.group[taken])


def scores(net: nn.Module, x: Tensor) -> np.ndarray:
    """Logits in evaluation mode; numbers that are not finite count as the lowest score."""
    net.eval()
    with torch.no_grad():
        found = torch.cat([net(part) for part in x.split(16384)])
    net.train()
    return found.double().nan_to_num(-1e9, 1e9, -1e9).cpu().numpy()


def linear(inputs: int) -> nn.Module:
    """One logit a row."""
    return nn.Sequential(nn.Linear(inputs, 1), nn.Flatten(0))


def perceptron(inputs: int) -> nn.Module:
    """d–64–32–1 with ReLU."""
    return nn.Sequential(
        nn.Linear(inputs, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1),
        nn.Flatten(0),
    )  # fmt: skip
