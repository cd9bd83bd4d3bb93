"""The loop of torch-btg's authors: a network 32–16 with dropout, the best epoch by the own loss.

As in their repository: ReLU, dropout of a half after both hidden layers, Adam, batches of 1,024,
and the epoch kept whose loss on the validation rows is least, given up after 100 epochs without a
better one. Theirs runs 5,000 epochs at most, this one :data:`EPOCHS`. Needs torch and numpy.
"""

from __future__ import annotations

import copy
import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.peers.networks import PARTS

BATCH = 1024
EPOCHS, PATIENCE = 300, 100
RATES = (1e-3, 1e-2)  #: of Adam, for everybody; theirs is the first
ROUNDS = 200

#: a fresh loss(logits, y) to train on, and its value on other rows
Make = Callable[[], tuple[Callable[[Tensor, Tensor], Tensor], Callable[[Tensor, Tensor], Tensor]]]


def network(inputs: int) -> nn.Module:
    """A logit a row."""
    return nn.Sequential(
        nn.Linear(inputs, 32), nn.ReLU(), nn.Dropout(0.5),
        nn.Linear(32, 16), nn.ReLU(), nn.Dropout(0.5),
        nn.Linear(16, 1), nn.Flatten(0),
    )  # fmt: skip


def cross_entropy():
    """Mean log loss."""

    def loss(z: Tensor, y: Tensor) -> Tensor:
        return functional.binary_cross_entropy_with_logits(z, y.to(z.dtype))

    return loss, loss


def fitted(make: Make, rows: Mapping[str, np.ndarray], rate: float) -> dict[str, np.ndarray]:
    """Logits of the three parts after the best epoch, and how many were run."""
    seed = int(rows["seed"])
    torch.manual_seed(seed)
    x = {part: torch.from_numpy(rows[f"x_{part}"]).float() for part in PARTS}
    y = {part: torch.from_numpy(rows[f"y_{part}"]) for part in PARTS}
    model = network(x["train"].shape[1])
    loss, value = make()
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    least, kept, at, epoch = float("inf"), model.state_dict(), 0, 0
    random = np.random.default_rng(seed)
    while epoch < EPOCHS and epoch - at < PATIENCE:
        epoch += 1
        for index in epoch_of(random, y["train"].numel()):
            optimizer.zero_grad(set_to_none=True)
            loss(model(x["train"][index]), y["train"][index]).backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            now = float(value(model(x["tune"]), y["tune"]))
        model.train()
        if now < least:
            least, kept, at = now, copy.deepcopy(model.state_dict()), epoch
    model.load_state_dict(kept)
    model.eval()
    with torch.no_grad():
        logits = {part: model(x[part]).double().numpy() for part in PARTS}
    return {**logits, "epochs": np.array(epoch)}


def epoch_of(random: np.random.Generator, rows: int) -> Iterator[Tensor]:
    """One permutation of the rows in batches."""
    return iter(torch.from_numpy(random.permutation(rows)).split(BATCH))


def everybody(folder: Path, losses: Mapping[str, Make]) -> dict[str, float]:
    """Train every loss at every rate on every case, and time their steps.

    Logits go to ``<case>.f1.npz`` beside the case, under ``way|rate|part``.
    """
    torch.set_num_threads(1)
    cases = sorted(folder.glob("case???.npz"))
    for path in cases:
        rows, made = _held(path), {}
        for way, make in losses.items():
            for rate in RATES:
                for part, values in fitted(make, rows, rate).items():
                    made[f"{way}|{rate:g}|{part}"] = values
        np.savez(path.with_suffix(".f1.npz"), **made)
    return paces(losses, _held(cases[0]))


def paces(losses: Mapping[str, Make], rows: Mapping[str, np.ndarray]) -> dict[str, float]:
    """Milliseconds of a step, medians over rounds in turn; cross-entropy beside everybody."""
    x, y = torch.from_numpy(rows["x_train"]).float(), torch.from_numpy(rows["y_train"])
    running = {}
    for name, make in {**losses, "cross-entropy": cross_entropy}.items():
        model = network(x.shape[1])
        running[name] = make()[0], model, torch.optim.Adam(model.parameters())
    seconds: dict[str, list[float]] = {name: [] for name in running}
    random = np.random.default_rng(0)
    for turn in range(ROUNDS + ROUNDS // 4):
        index = next(epoch_of(random, len(y)))
        some, labels = x[index], y[index]
        for name, (loss, model, optimizer) in running.items():
            start = time.perf_counter()
            optimizer.zero_grad(set_to_none=True)
            loss(model(some), labels).backward()
            optimizer.step()
            if turn >= ROUNDS // 4:
                seconds[name].append(time.perf_counter() - start)
    return {name: 1e3 * statistics.median(values) for name, values in seconds.items()}


def _held(path: Path) -> dict[str, np.ndarray]:
    with np.load(path) as held:
        return {key: held[key] for key in held.files}
