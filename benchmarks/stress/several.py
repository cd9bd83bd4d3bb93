"""Plain loops on goals over groups, several classes and labels: each method bare and guarded."""

from __future__ import annotations

import logging
import time
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

import setpoint as sp
from benchmarks.stress.several_judging import SeveralAim, aims, judged
from benchmarks.stress.several_tables import GROUPS, NAMES, SeveralTable, read

METHODS = ("soft-set", "costs", "lagrangian", "exact")
SEVERAL = (*METHODS, *(f"{name} guarded" for name in METHODS))
BATCHES, RATES, NETWORKS = (32, 256), (1e-3, 1e-2), ("64-32", "linear")
STEPS = 1_500


@dataclass(frozen=True)
class SeveralSetting:
    """One plain loop, but for the method."""

    number: int
    table: str
    aim: str
    batch: int
    rate: float
    network: str
    seed: int


def draw(count: int, seed: int = 0) -> list[SeveralSetting]:
    """Settings: tables and goals in turn (each pair as often as any other), the rest by chance."""
    rng = np.random.default_rng(seed)
    pairs = [(name, aim.name) for name in NAMES for aim in aims(name)]
    settings: list[SeveralSetting] = []
    while len(settings) < count:
        for place in rng.permutation(len(pairs)):
            table, aim = pairs[place]
            batch, rate = int(rng.choice(BATCHES)), float(rng.choice(RATES))
            network, seed = str(rng.choice(NETWORKS)), int(rng.integers(1_000))
            settings.append(SeveralSetting(len(settings), table, aim, batch, rate, network, seed))
    return settings[:count]


def task_of(table: SeveralTable) -> sp.Task:
    """The task, with classes and groups by their codes."""
    if table.kind == "groups":
        return sp.Task.binary(groups={"group": GROUPS[table.name]})
    make = sp.Task.multilabel if table.kind == "labels" else sp.Task.multiclass
    return make(range(table.size))


def train(loss: Any, setting: SeveralSetting, table: SeveralTable) -> tuple[nn.Module, float]:
    """The model after its steps, and the seconds they took."""
    torch.manual_seed(setting.seed)
    columns, width = table.train.x.shape[1], 1 if table.kind == "groups" else table.size
    if setting.network == "linear":
        model: nn.Module = nn.Linear(columns, width)
    else:
        hidden = (nn.Linear(columns, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU())
        model = nn.Sequential(*hidden, nn.Linear(32, width))
    optimiser = torch.optim.Adam(model.parameters(), lr=setting.rate)
    x, group = torch.from_numpy(table.train.x), torch.from_numpy(table.train.group)
    y = torch.from_numpy(table.train.y)
    y = y.long() if table.kind == "classes" else y.float()
    rng, start, done = torch.Generator().manual_seed(setting.seed), time.perf_counter(), 0
    while done < STEPS:
        for index in torch.randperm(len(y), generator=rng).split(setting.batch)[: STEPS - done]:
            optimiser.zero_grad()
            loss(_logits(model, x[index]), y[index], group[index]).backward()
            optimiser.step()
            done += 1
    return model, time.perf_counter() - start


def _logits(model: nn.Module, x: torch.Tensor) -> torch.Tensor:
    z = model(x)
    return z[:, 0] if z.shape[1] == 1 else z


def scores(model: nn.Module, table: SeveralTable) -> tuple[np.ndarray, ...]:
    """Logits of the three parts."""
    with torch.no_grad():
        parts = (table.train, table.tune, table.test)
        return tuple(_logits(model, torch.from_numpy(p.x)).double().numpy() for p in parts)


def _plain(table: SeveralTable) -> Any:
    loss = nn.CrossEntropyLoss() if table.kind == "classes" else nn.BCEWithLogitsLoss()
    return lambda z, y, group: loss(z, y)


def _goal(loss: sp.GoalLoss, table: SeveralTable) -> Any:
    if table.kind == "groups":
        return lambda z, y, group: loss(z, y, group=group)
    return lambda z, y, group: loss(z, y)


def run(setting: SeveralSetting, methods: tuple[str, ...] = SEVERAL) -> list[dict[str, Any]]:
    """Every method on one setting, and cross-entropy: a record each."""
    torch.set_num_threads(1)
    logging.getLogger("setpoint").setLevel(logging.ERROR)
    table = read(setting.table, setting.seed)
    aim: SeveralAim = next(a for a in aims(setting.table) if a.name == setting.aim)
    model, seconds = train(_plain(table), setting, table)
    plain = scores(model, table)
    head = asdict(setting)
    records = [
        {**head, "method": "cross-entropy", "seconds": seconds}
        | judged(table, aim, plain, plain, 0.0)
    ]
    for method in methods:
        record: dict[str, Any] = {**head, "method": method}
        name, _, guard = method.partition(" ")
        try:
            loss = sp.GoalLoss(aim.text, name, task=task_of(table), guard=bool(guard))
        except sp.SetpointError as error:
            records.append({**record, "refused": str(error)})
            continue
        model, seconds = train(_goal(loss, table), setting, table)
        shift = loss.threshold if table.kind == "groups" else 0.0
        record |= {"seconds": seconds, **judged(table, aim, scores(model, table), plain, shift)}
        records.append(record)
    return records
