"""One training loop for every loss of every side: the same network, steps and schedule.

A perceptron d–64–64–1 with ReLU, batches of 256, :data:`STEPS` steps; all step sizes are divided by
ten after half and after three quarters of them, as LibAUC's tutorials do. Needs torch and numpy.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

BATCH = 256
STEPS = 1200
RATE = 1e-3  #: of Adam, for everybody that uses it
PARTS = ("train", "tune", "test")

#: (model, labels of the training rows) -> step(x, y, index) and slower(), which divides step sizes
Setup = Callable[[nn.Module, Tensor], tuple[Callable[[Tensor, Tensor, Tensor], None], Callable]]
#: (labels, seed) -> the rows of one batch after another, without end
Stream = Callable[[np.ndarray, int], Iterator[np.ndarray]]


def perceptron(inputs: int) -> nn.Module:
    """A logit a row."""
    return nn.Sequential(
        nn.Linear(inputs, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 1),
        nn.Flatten(0),
    )  # fmt: skip


def shuffled(y: np.ndarray, seed: int) -> Iterator[np.ndarray]:
    """Batches from one permutation of the rows after another."""
    random, left = np.random.default_rng(seed), np.empty(0, int)
    while True:
        while left.size < BATCH:
            left = np.concatenate([left, random.permutation(y.size)])
        yield left[:BATCH]
        left = left[BATCH:]


def trained(setup: Setup, rows: Mapping[str, np.ndarray], seed: int, stream: Stream) -> dict:
    """Logits of the tune and the test rows after the last step."""
    torch.manual_seed(seed)
    x = {part: torch.from_numpy(rows[f"x_{part}"]).float() for part in PARTS}
    y = torch.from_numpy(rows["y_train"])
    model = perceptron(x["train"].shape[1])
    step, slower = setup(model, y)
    batches = stream(rows["y_train"], seed)
    for done in range(STEPS):
        if done in (STEPS // 2, 3 * STEPS // 4):
            slower()
        index = torch.from_numpy(next(batches))
        step(x["train"][index], y[index], index)
    model.eval()
    with torch.no_grad():
        return {part: model(x[part]).double().numpy() for part in ("tune", "test")}


def by_gradient(loss: Callable, model: nn.Module, optimizer: torch.optim.Optimizer):
    """A step and a slower() of a loss(logits, y, index) with one optimiser."""

    def step(x: Tensor, y: Tensor, index: Tensor) -> None:
        optimizer.zero_grad(set_to_none=True)
        loss(model(x), y, index).backward()
        optimizer.step()

    def slower() -> None:
        for group in optimizer.param_groups:
            group["lr"] /= 10

    return step, slower


def by_adam(make: Callable[[], Callable]) -> Setup:
    """A setup of a fresh loss(logits, y) with Adam."""

    def setup(model: nn.Module, y: Tensor):
        loss = make()
        optimizer = torch.optim.Adam(model.parameters(), lr=RATE)
        return by_gradient(lambda z, y, index: loss(z, y), model, optimizer)

    return setup


def everybody(folder: Path, setups: Mapping[str, tuple[Setup, Stream]]) -> None:
    """Train every setup on every ``<case>.npz``; logits go to ``<case>.out.npz`` beside it."""
    torch.set_num_threads(1)
    for path in sorted(folder.glob("*.npz")):
        with np.load(path) as held:
            rows = {key: held[key] for key in held.files}
        made = {}
        for name, (setup, stream) in setups.items():
            for part, logits in trained(setup, rows, int(rows["seed"]), stream).items():
                made[f"{name}|{part}"] = logits
        np.savez(path.with_suffix(".out.npz"), **made)
