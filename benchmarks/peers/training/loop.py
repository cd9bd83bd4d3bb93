"""The plain loop of every side: a network 64–32, batches of 256, the last step kept.

:data:`STEPS` steps; all step sizes are divided by ten after half and after three quarters of them,
as LibAUC's tutorials do.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from benchmarks.peers.networks import PARTS, RATE, Stream, by_gradient, shuffled

STEPS = 1200
ROUNDS = 200  #: steps of each way whose time is taken


@dataclass(frozen=True)
class Training:
    """One model under one loss."""

    step: Callable[[Tensor, Tensor, Tensor], None]  #: of rows x, labels y and their numbers
    slower: Callable[[], None]  #: divides the step sizes by ten
    threshold: Callable[[], float] = lambda: 0.0  #: of the logit, that the loss decides by


#: (model, labels of the training rows) -> training
Setup = Callable[[nn.Module, Tensor], Training]
#: setting -> how it is set up, and its batches
Settings = Mapping[str, tuple[Setup, Stream]]
#: (aim, way) -> its settings
Ways = Mapping[tuple[str, str], Settings]


def network(inputs: int) -> nn.Module:
    """A logit a row."""
    return nn.Sequential(
        nn.Linear(inputs, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1),
        nn.Flatten(0),
    )  # fmt: skip


def by_adam(loss: Callable, model: nn.Module, rate: float = RATE, **more: Callable) -> Training:
    """Adam on loss(logits, y, index)."""
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    return Training(*by_gradient(loss, model, optimizer), **more)


def cross_entropy(model: nn.Module, y: Tensor, rate: float = RATE) -> Training:
    """Mean log loss."""
    del y
    plain = functional.binary_cross_entropy_with_logits
    return by_adam(lambda z, y, index: plain(z, y.to(z.dtype)), model, rate)


def trained(
    setup: Setup, stream: Stream, rows: Mapping[str, np.ndarray], steps: int = STEPS
) -> dict[str, np.ndarray]:
    """Logits of the three parts after the last step, and the loss's own threshold."""
    seed = int(rows["seed"])
    torch.manual_seed(seed)
    x = {part: torch.from_numpy(rows[f"x_{part}"]).float() for part in PARTS}
    y = torch.from_numpy(rows["y_train"])
    model = network(x["train"].shape[1])
    training = setup(model, y)
    batches = stream(rows["y_train"], seed)
    for done in range(steps):
        if done in (steps // 2, 3 * steps // 4):
            training.slower()
        index = torch.from_numpy(next(batches))
        training.step(x["train"][index], y[index], index)
    model.eval()
    with torch.no_grad():
        logits = {part: model(x[part]).double().numpy() for part in PARTS}
    return {**logits, "threshold": np.array(training.threshold())}


def everybody(folder: Path, ways: Ways) -> dict[str, float]:
    """Train every setting on every ``<case>.npz``, and time a step of each way.

    Logits go to ``<case>.out.npz`` beside the case, under ``aim|way|setting|part``.
    """
    torch.set_num_threads(1)
    paths = sorted(folder.glob("case???.npz"))
    for path in paths:
        rows, made = _held(path), {}
        for (aim, way), settings in ways.items():
            for setting, (setup, stream) in settings.items():
                for part, values in trained(setup, stream, rows).items():
                    made[f"{aim}|{way}|{setting}|{part}"] = values
        np.savez(path.with_suffix(".out.npz"), **made)
    return paces(ways, _held(paths[0]))


def paces(ways: Ways, rows: Mapping[str, np.ndarray], rounds: int = ROUNDS) -> dict[str, float]:
    """Milliseconds of a step: medians over rounds in which each way takes a step in turn.

    The first setting of each way; cross-entropy runs beside them under its own name, so that a
    ratio to it does not depend on the hour or the process.
    """
    first = {f"{aim}|{way}": next(iter(s.values())) for (aim, way), s in ways.items()}
    first["|cross-entropy"] = (cross_entropy, shuffled)
    x, y = torch.from_numpy(rows["x_train"]).float(), torch.from_numpy(rows["y_train"])
    running: dict[str, tuple[Training, Iterator[np.ndarray]]] = {}
    for name, (setup, stream) in first.items():
        torch.manual_seed(0)
        training = setup(network(x.shape[1]), y)
        running[name] = training, stream(rows["y_train"], 0)
    seconds: dict[str, list[float]] = {name: [] for name in running}
    for turn in range(rounds + rounds // 4):
        for name, (training, batches) in running.items():
            index = torch.from_numpy(next(batches))
            some = x[index], y[index], index
            start = time.perf_counter()
            training.step(*some)
            if turn >= rounds // 4:  # the first ones warm caches and optimizers up
                seconds[name].append(time.perf_counter() - start)
    return {name: 1e3 * statistics.median(values) for name, values in seconds.items()}


def _held(path: Path) -> dict[str, np.ndarray]:
    with np.load(path) as held:
        return {key: held[key] for key in held.files}
