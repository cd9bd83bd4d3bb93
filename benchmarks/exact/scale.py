"""``scale``: one and ten million rows of a generator that no linear head fits.

Quality: recall at precision .8 on test rows, the threshold tuned on rows of its own. Cross-entropy
by logistic regression to convergence, from where exact starts with its threshold made ½; and by the
same loop as exact. No linear head can have more than :func:`ceiling`.

Time: an epoch of a plain loop over the same batches in the same order, one thread, the losses in
turn; the ratio to cross-entropy is the median over the rounds. Memory: what a loss keeps a row, and
by how much the peak of the process is above that of cross-entropy over an epoch.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy.stats import norm
from torch import Tensor, nn
from torch.nn.functional import binary_cross_entropy_with_logits

from benchmarks import memory
from benchmarks.exact.aims import AIMS, counted, rates, threshold
from benchmarks.exact.generator import large
from benchmarks.exact.start import logistic, shifted
from benchmarks.harness import interleave, seconds_of
from benchmarks.implicit.running import Line
from benchmarks.implicit.training import scores
from setpoint.goals import Goal, Task
from setpoint.losses import GoalLoss
from setpoint.methods import Exact
from setpoint.training import networks

NAME = "exact-scale"
AIM = AIMS["FPOR"]
GOAL, BINARY = Goal.of(AIM.text), Task.binary()
PLAIN, CONVERGED = "cross-entropy", "cross-entropy, converged"
ELIMINATED, TABLE = "exact, eliminated", "exact, table"
SIZES = {1_000_000: 5, 10_000_000: 2}  #: rows, seeds
SHARES = 0.5625, 0.75  #: where the rows that tune and those that test begin
RATE, MEMORY = 1e-2, 65_536
STEPS = 1500  #: of batches, or an epoch where that is more
EPOCHS = 10  #: of the table, whose rows must be visited a few times
BATCH = 4096
BATCHES = {1_000_000: (512, BATCH)}  #: that are timed; elsewhere BATCH alone
ROUNDS = {10_000_000: 3}  #: elsewhere 7
TIME, PEAK, QUALITY = "time", "memory", "quality"


def jobs(seeds: int, where: Path, *, quick: bool = False) -> list[tuple[Any, ...]]:
    """Clocks first, alone; then how good it is."""
    sizes = {200_000: 1} if quick else SIZES
    found: list[tuple[Any, ...]] = []
    for n, most in sizes.items():
        found += [(TIME, n, batch, where) for batch in BATCHES.get(n, (BATCH,))]
        found += [(PEAK, n, way, where) for way in (PLAIN, ELIMINATED, TABLE)]
        found += [(QUALITY, n, seed, where) for seed in range(min(seeds, most))]
    return found


def alone(job: tuple[Any, ...]) -> bool:
    """Whether a job is to have the machine to itself."""
    return job[0] != QUALITY


def work(what: str, n: int, which: Any, where: Path) -> list[Line]:
    """One job."""
    del where
    made = {TIME: timed, PEAK: peaks, QUALITY: quality}[what](n, which)
    return [{"what": what, "rows": n, **line} for line in made]


def select(lines: list[Line]) -> list[Line]:
    """As they are."""
    return [{k: v for k, v in line.items() if k != "job"} for line in lines]


# --- how good -------------------------------------------------------------------------------------


def quality(n: int, seed: int) -> list[Line]:
    """Cross-entropy to convergence and by the same loop, and from the first either form."""
    x, y, parts = drawn(n, seed)
    train = torch.from_numpy(x[parts["train"]]), torch.from_numpy(y[parts["train"]])
    begun = time.perf_counter()
    start = logistic(*(part.numpy() for part in train))
    lines = [judged(CONVERGED, start, x, y, parts, time.perf_counter() - begun)]
    for way in (PLAIN, ELIMINATED, TABLE):
        begun = time.perf_counter()
        first = networks.linear(x.shape[1], 1) if way == PLAIN else start
        net = trained(way, first, *train, seed)
        lines.append(judged(way, net, x, y, parts, time.perf_counter() - begun))
    return [{"seed": seed, **line} for line in lines]


def trained(way: str, start: nn.Module, x: Tensor, y: Tensor, seed: int) -> nn.Module:
    """The plain loop, the rate falling to 0."""
    n = len(y)
    steps = EPOCHS * math.ceil(n / BATCH) if way == TABLE else max(STEPS, math.ceil(n / BATCH))
    if way == PLAIN:
        net, loss = shifted(start, 0.0), loss_of(way, n, steps)
    else:
        z = scores(start, x)
        at = threshold(AIM, y.numpy(), z)
        net, loss = shifted(start, at), loss_of(way, n, steps, (z >= at, y.numpy(), at))
    stepper = torch.optim.Adam(net.parameters(), RATE)
    chance, target, step = torch.Generator().manual_seed(seed), y.float(), 0
    while step < steps:
        for batch in torch.randperm(n, generator=chance).split(BATCH):
            stepper.param_groups[0]["lr"] = RATE * (1 - step / steps)
            stepper.zero_grad(set_to_none=True)
            loss(net(x[batch]), target[batch], batch).backward()
            stepper.step()
            step += 1
            if step == steps:
                break
    return net


Loss = Callable[[Tensor, Tensor, Tensor], Tensor]


def loss_of(way: str, n: int, steps: int, start: Any = None) -> Loss:
    """loss(logits, labels, row numbers), multipliers settled where it starts."""
    if way == PLAIN:
        return lambda z, t, row: binary_cross_entropy_with_logits(z, t)
    made = goal_loss(way, n, steps, start)
    if way == TABLE:
        return lambda z, t, row: made(z, t, row=row)
    return lambda z, t, row: made(z, t)


def goal_loss(way: str, n: int, steps: int, start: Any = None) -> GoalLoss:
    """Either form, told how long it is trained; everything else is its default."""
    more: dict[str, Any] = {"form": "table", "rows": n} if way == TABLE else {"form": "eliminated"}
    if start is not None:
        decided, y, at = start
        cells = np.bincount(2 * y + decided, minlength=4)[None] / len(y)
        program: Any = Exact().lower(GOAL, BINARY)
        more["multipliers"] = program.multipliers_at(cells, 1 / (1 + math.exp(-at))).tolist()
    return GoalLoss(GOAL, Exact(anneal=steps, **more), memory=MEMORY, guard=False)


def judged(
    way: str, net: nn.Module, x: np.ndarray, y: np.ndarray, parts: Any, seconds: float
) -> Line:
    """Test rows at the threshold of the tune rows, at the own one, and at their own best."""
    z = scores(net, torch.from_numpy(x))
    there = {key: (y[part], z[part]) for key, part in parts.items()}
    at = {key: threshold(AIM, *there[key]) for key in ("train", "tune", "test")}
    line: Line = {"way": way, "seconds": seconds}
    for name, part, t in (
        ("own train", "train", 0.0),
        ("train", "train", at["train"]),
        ("own", "test", 0.0),
        ("test", "test", at["tune"]),
        ("best", "test", at["test"]),
    ):
        found = rates(counted(*there[part], t), int(there[part][0].sum()))
        line |= {f"{name} precision": found["precision"], f"{name} recall": found["recall"]}
    return line


def ceiling() -> float:
    """The greatest recall at precision .8 of any linear head on this generator, by quadrature.

    Only x₀ and x₁ tell the classes apart, so a head is an angle in their plane and a threshold.
    """
    best, at = 0.0, np.linspace(0, 6, 6001)
    for angle in np.linspace(-0.75, 0.75, 301):
        a, b = np.cos(angle), np.sin(angle)
        tp = 0.01 * (norm.sf(at - 3.2 * a) + norm.sf(at - 1.6 * b))
        fp = 0.98 * norm.sf(at / np.sqrt(a * a + 2.56 * b * b))
        held = tp >= 0.8 * (tp + fp)
        best = max(best, float(tp[held].max(initial=0.0)) / 0.02)
    return best


def drawn(n: int, seed: int) -> tuple[np.ndarray, np.ndarray, dict[str, slice]]:
    """Rows are independent, so their parts are stretches."""
    x, y = large(n, seed)
    first, second = (int(n * share) for share in SHARES)
    return x, y, {"train": slice(0, first), "tune": slice(first, second), "test": slice(second, n)}


# --- how fast, and how large ----------------------------------------------------------------------


def timed(n: int, batch: int) -> list[Line]:
    """An epoch by each loss, in turn."""
    ways = (PLAIN, ELIMINATED, TABLE)
    cases = {way: seconds_of(epoch(way, n, batch)) for way in ways}
    found = interleave(cases, ROUNDS.get(n, 7))
    base = found[PLAIN]
    return [
        {"way": way, "batch": batch, **found[way].figures(), "ratio": found[way].ratio_to(base)}
        for way in ways
    ]


def epoch(way: str, n: int, batch: int) -> Callable[[], None]:
    """A call that trains for one epoch, as anybody would; the loss is made when it is called."""

    def train() -> None:
        x, y, order = held(n)
        net = networks.linear(x.shape[1], 1)
        loss = loss_of(way, len(y), 10**4)
        stepper = torch.optim.Adam(net.parameters(), RATE)
        for rows in order.split(batch):
            stepper.zero_grad(set_to_none=True)
            loss(net(x[rows]), y[rows], rows).backward()
            stepper.step()

    return train


@lru_cache(maxsize=2)
def held(n: int) -> tuple[Tensor, Tensor, Tensor]:
    """Rows, labels and an order of them."""
    x, y = large(n, 0)
    order = torch.randperm(n, generator=torch.Generator().manual_seed(0))
    return torch.from_numpy(x), torch.from_numpy(y).float(), order


def peaks(n: int, way: str) -> list[Line]:
    """Peak of an epoch above what was there before, in a fresh process; and what is kept."""
    case = {"way": way, "rows": str(n)}
    peak = memory.peak("resident", "exact.scale", case)
    if way == PLAIN:
        return [{"way": way, "peak": peak, "kept": 0}]
    made = goal_loss(way, n, 10**4)
    kept = sum(x.nbytes for x in (*made.buffers(), *made.parameters()))
    kept += n * 4 if way == TABLE else 0  # its table is no buffer
    return [{"way": way, "peak": peak, "kept": kept}]


def prepare(way: str, rows: str) -> tuple[Callable[[], None], Callable[[], None]]:
    """For :mod:`benchmarks.memory`; rows and order are there before it measures."""
    torch.set_num_threads(1)
    held(int(rows))
    return epoch(way, 10_000, BATCH), epoch(way, int(rows), BATCH)
