"""One class of CIFAR-10 against the rest, by a small residual network in one plain loop.

Of 12,000 images a tenth are of the class; for 1 % its images are thinned by chance in each part.
The loop is that of a README: batches of 128, Adam, flips and crops, the loss with its defaults.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

import setpoint as sp
from benchmarks.stress.draws import Aim, aims_with
from benchmarks.stress.judging import Scored, judged
from benchmarks.stress.residual import augmented, residual_network
from benchmarks.stress.running import own_threshold, window
from benchmarks.stress.tables import SHARES, Part, Table

FILE, POSITIVE = "cifar10_10k2k.npz", 8  #: ships
#: share of positives -> floor of precision that cross-entropy's best threshold keeps on test rows:
#: with a recall of .8 after 20 epochs, and of .4 after 15
FLOORS = {0.1: 0.8, 0.01: 0.3}
BATCH, RATE, EPOCHS = 128, 1e-3, 20
AT_ONCE = 1_000  #: images scored in one call

Record = dict[str, Any]


class OutOfTime(Exception):
    """The time of the whole line-up is over; the run is given up."""


@dataclass(frozen=True)
class ImageSetting:
    """One plain loop, but for the method."""

    number: int
    share: float
    aim: str
    seed: int


@dataclass(frozen=True)
class Pace:
    """What all runs share: where the images lie, how to train and where, and when to stop."""

    where: Path
    device: str = "cpu"
    epochs: int = EPOCHS
    norm: str = "batch"
    until: float = float("inf")


def settings(seeds: int) -> list[ImageSetting]:
    """Every share and goal with each seed; a number stays a setting's when seeds are added."""
    every = [
        (share, aim, seed) for seed in range(seeds) for share in FLOORS for aim in aims_of(share)
    ]
    return [ImageSetting(number, *one) for number, one in enumerate(every)]


def aims_of(share: float) -> dict[str, Aim]:
    """The four goals at a share of positives."""
    return aims_with(FLOORS[share])


@lru_cache(maxsize=1)
def _images(where: Path) -> tuple[np.ndarray, np.ndarray]:
    with np.load(where / FILE) as file:
        x = np.concatenate([file["x_train"], file["x_test"]])
        y = np.concatenate([file["y_train"], file["y_test"]]).ravel() == POSITIVE
    return x.transpose(0, 3, 1, 2), y.astype(np.int64)


def parts_of(y: np.ndarray, share: float, seed: int) -> list[np.ndarray]:
    """Rows to train on, to choose a threshold on and to judge by, with that share of positives."""
    rng = np.random.default_rng([7, seed])
    negatives, positives = (
        np.split(rows, np.round(np.cumsum(SHARES[:-1]) * rows.size).astype(int))
        for rows in (rng.permutation(np.flatnonzero(y == label)) for label in (0, 1))
    )
    return [
        rng.permutation(np.concatenate([n, p[: round(n.size * share / (1 - share))]]))
        for n, p in zip(negatives, positives, strict=True)
    ]


@lru_cache(maxsize=2)
def read(share: float, seed: int, where: Path) -> Table:
    """The images, split by class with this seed and standardised on those to train on."""
    x, y = _images(where)
    train, tune, test = parts_of(y, share, seed)
    scaled = x[train] / np.float32(255)
    # summed in float64: seven million pixels of a channel add up to an error in float32
    mean, spread = (
        f(scaled, (0, 2, 3), dtype=float, keepdims=True).astype(np.float32)
        for f in (np.mean, np.std)
    )

    def part(rows: np.ndarray) -> Part:
        return Part(((x[rows] / np.float32(255) - mean) / spread), y[rows])

    return Table(FILE, part(train), part(tune), part(test))


@lru_cache(maxsize=2)
def _on(share: float, seed: int, where: Path, device: str) -> tuple[Tensor, ...]:
    """Images and labels to train on, then the images of the two other parts, on the device."""
    table = read(share, seed, where)
    y = table.train.y.astype(np.float32)
    arrays = (table.train.x, y, table.tune.x, table.test.x)
    return tuple(torch.from_numpy(a).to(device) for a in arrays)


def train(
    loss: Callable[..., Tensor], x: Tensor, y: Tensor, seed: int, pace: Pace
) -> tuple[nn.Module, int, float]:
    """The network after its epochs, their steps and the seconds they took.

    Raises
    ------
    OutOfTime
    """
    model = residual_network(seed, pace.norm).to(x.device).train()
    optimiser = torch.optim.Adam(model.parameters(), lr=RATE, fused=x.is_cuda)
    rng = torch.Generator(x.device).manual_seed(seed)
    start, steps = time.perf_counter(), 0
    for _ in range(pace.epochs):
        for index in torch.randperm(len(y), generator=rng, device=x.device).split(BATCH):
            optimiser.zero_grad()
            loss(model(augmented(x[index], rng)), y[index]).backward()
            optimiser.step()
            steps += 1
            if time.time() > pace.until:
                raise OutOfTime
    if x.is_cuda:
        torch.cuda.synchronize()
    return model, steps, time.perf_counter() - start


def scored(model: nn.Module, parts: tuple[Tensor, ...]) -> Scored:
    """Logits of whole images, in evaluation mode."""
    model.eval()
    with torch.no_grad():
        return Scored(
            *(
                torch.cat([model(some) for some in x.split(AT_ONCE)]).double().cpu().numpy()
                for x in parts
            )
        )


def plain_run(share: float, seed: int, pace: Pace) -> tuple[list[Record], Scored]:
    """Cross-entropy, which sees no goal: one run, judged by all four.

    Raises
    ------
    OutOfTime
    """
    _prepared()
    x, y, *rest = _on(share, seed, pace.where, pace.device)
    model, steps, seconds = train(nn.BCEWithLogitsLoss(), x, y, seed, pace)
    own, table = scored(model, (x, *rest)), read(share, seed, pace.where)
    shared = {"method": "cross-entropy", "seconds": seconds, "steps": steps}
    return [
        {**asdict(setting), **shared, **judged(aims_of(share)[setting.aim], table, own, own)}
        for setting in settings(seed + 1)
        if (setting.share, setting.seed) == (share, seed)
    ], own


def method_run(setting: ImageSetting, method: str, plain: Scored, pace: Pace) -> list[Record]:
    """One method on one setting, beside the scores of cross-entropy.

    Raises
    ------
    OutOfTime
    """
    _prepared()
    aim, record = aims_of(setting.share)[setting.aim], {**asdict(setting), "method": method}
    name, _, guard = method.partition(" ")
    try:
        loss = sp.GoalLoss(aim.text, name, guard=bool(guard)).to(pace.device)
    except sp.SetpointError as error:
        return [{**record, "refused": str(error)}]
    x, y, *rest = _on(setting.share, setting.seed, pace.where, pace.device)
    model, steps, seconds = train(loss, x, y, setting.seed, pace)
    table = read(setting.share, setting.seed, pace.where)
    own = scored(model, (x, *rest)).less(own_threshold(loss))
    record |= {"seconds": seconds, "steps": steps, **judged(aim, table, own, plain)}
    if guard and aim.bounded is not None:
        record |= window(loss, aim, table, own)
    return [record]


def _prepared() -> None:
    """One thread, and no notices of the library."""
    torch.set_num_threads(1)
    logging.getLogger("setpoint").setLevel(logging.ERROR)
