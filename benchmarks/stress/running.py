"""One plain PyTorch loop, as a README would have it: a loader, Adam, the loss with its defaults."""

from __future__ import annotations

import logging
import time
from typing import Any

import numpy as np
import torch
from torch import nn

import setpoint as sp
from benchmarks.stress.draws import METHODS, Aim, Setting, aims
from benchmarks.stress.judging import Scored, judged, rates
from benchmarks.stress.tables import Table, read

EPOCHS, STEPS = 6, 1_500  #: a run takes the longer of the two


def network(kind: str, columns: int, seed: int) -> nn.Module:
    """A linear model, or a network of 64 and 32 units; the same start for every method."""
    torch.manual_seed(seed)
    if kind == "linear":
        return nn.Linear(columns, 1)
    return nn.Sequential(
        nn.Linear(columns, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1)
    )


def train(
    loss: Any, setting: Setting, table: Table, steps: int | None = None
) -> tuple[nn.Module, float]:
    """The model after its steps, and the seconds they took."""
    model = network(setting.network, table.train.x.shape[1], setting.seed)
    optimiser = torch.optim.Adam(model.parameters(), lr=setting.rate)
    x = torch.from_numpy(table.train.x)
    y = torch.from_numpy(table.train.y.astype(np.float32))
    rows, rng = len(y), torch.Generator().manual_seed(setting.seed)
    total = steps or max(STEPS, EPOCHS * -(-rows // setting.batch))
    start, done = time.perf_counter(), 0
    while done < total:
        for index in torch.randperm(rows, generator=rng).split(setting.batch):
            optimiser.zero_grad()
            loss(model(x[index]).squeeze(1), y[index]).backward()
            optimiser.step()
            done += 1
            if done == total:
                break
    return model, time.perf_counter() - start


def scored(model: nn.Module, table: Table) -> Scored:
    """Logits of all rows."""
    with torch.no_grad():
        parts = (table.train, table.tune, table.test)
        return Scored(*(model(torch.from_numpy(p.x)).squeeze(1).double().numpy() for p in parts))


def own_threshold(loss: Any) -> float:
    """The threshold of the logit that the loss says it decides by; 0 where it says none."""
    return loss.threshold


def run(setting: Setting, methods: tuple[str, ...] = METHODS, steps: int | None = None) -> list:
    """Every method on one setting, and cross-entropy: a record each."""
    torch.set_num_threads(1)
    logging.getLogger("setpoint").setLevel(logging.ERROR)
    table, aim = read(setting.table, setting.seed), aims(setting.table)[setting.aim]
    model, seconds = train(nn.BCEWithLogitsLoss(), setting, table, steps)
    plain = scored(model, table)
    head = setting.record()
    records = [
        {**head, "method": "cross-entropy", "seconds": seconds, **judged(aim, table, plain, plain)}
    ]
    for method in methods:
        record = {**head, "method": method}
        try:
            name, _, guard = method.partition(" ")
            loss = sp.GoalLoss(aim.text, name, guard=bool(guard))
        except sp.SetpointError as error:
            records.append({**record, "refused": str(error)})
            continue
        model, seconds = train(loss, setting, table, steps)
        own = scored(model, table).less(own_threshold(loss))
        record |= {"seconds": seconds, **judged(aim, table, own, plain)}
        if guard and aim.bounded is not None:
            record |= window(loss, aim, table, own)
        records.append(record)
    return records


def window(loss: Any, aim: Aim, table: Table, own: Scored) -> dict[str, Any]:
    """Whether the status's interval of the constraint holds its value on all training rows."""
    (status,) = loss.status().constraints
    value = rates(table.train.y, own.train >= 0)[aim.bounded]
    return {"covered": bool(status.low <= value <= status.high), "said_held": status.held}
