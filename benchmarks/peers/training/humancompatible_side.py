"""humancompatible-train's side, by its own Python; the module takes the folder of the cases.

Its documented loop: Adam for the network, ``forward_update(loss, constraints)`` of a dual optimizer
for the rest. Three of them: ALM, PBM (the SPBM of its papers) and nuPI, at their defaults but for
the numbers of the grid. Prints version and times. Apache-2.0; its public API only.
"""

from __future__ import annotations

import json
import sys
from importlib import metadata
from pathlib import Path

import torch
from humancompatible.train.dual_optim import ALM, PBM, nuPI

from benchmarks.peers.networks import BATCH, shuffled
from benchmarks.peers.training.batch_rates import BatchGoal
from benchmarks.peers.training.loop import Training, everybody


def alm(rows, rate):
    """The multiplier's step size; no augmentation, which was worse where it was tried."""
    del rows
    return ALM(m=1, lr=rate, is_ineq=True)


def pbm(rows, start, gamma, penalties):
    """The multiplier's start (it only ever changes by a factor), its smoothing, the penalties."""
    steps = -(-rows // BATCH)
    return PBM(m=1, init_duals=start, gamma=gamma, penalty_update=penalties, epoch_length=steps)


def nupi(rows, ki, kp):
    """Integral and proportional gain."""
    del rows
    return nuPI(m=1, ki=ki, kp=kp, is_ineq=True)


def lagrangian(aim, make, surrogate, rate, *numbers):
    """A setup."""

    def setup(model, y):
        goal = BatchGoal.of(aim, surrogate, y)
        optimizer = torch.optim.Adam(model.parameters(), lr=rate)
        dual = make(len(y), *numbers)

        def step(x, y, index):
            del index
            z = model(x)
            loss = dual.forward_update(goal.objective(z, y), goal.violation(z, y))
            optimizer.zero_grad(set_to_none=True)
            loss.backward()
            optimizer.step()

        def slower():
            for group in optimizer.param_groups:
                group["lr"] /= 10

        return Training(step, slower)

    return setup, shuffled


#: aim and name -> dual optimizer, and surrogate, step size of the network, the optimizer's numbers:
#: the best of 8 to 17 on seeds that the comparison does not use
CHOICES = {
    ("floor", "ALM"): (
        alm,
        [
            ("hinge", 1e-3, 0.01),
            ("hinge", 3e-3, 0.01),
            ("ratio", 1e-3, 1.0),
            ("log", 1e-3, 0.1),
        ],
    ),
    ("cap", "ALM"): (
        alm,
        [("log", 1e-3, 1.0), ("log", 3e-3, 1.0), ("log", 1e-3, 10.0), ("hinge", 1e-3, 1.0)],
    ),
    ("floor", "SPBM"): (
        pbm,
        [
            ("ratio", 1e-3, 0.01, 0.9, "const"),
            ("ratio", 3e-3, 0.01, 0.9, "const"),
            ("ratio", 1e-3, None, 0.1, "const"),
            ("ratio", 1e-3, 0.1, 0.9, "dimin_adapt"),
        ],
    ),
    ("cap", "SPBM"): (
        pbm,
        [
            ("log", 1e-3, 0.01, 0.9, "const"),
            ("log", 3e-3, 0.01, 0.9, "const"),
            ("log", 1e-3, None, 0.9, "const"),
            ("hinge", 1e-3, 0.01, 0.9, "const"),
        ],
    ),
    ("floor", "nuPI"): (
        nupi,
        [
            ("hinge", 1e-3, 0.01, 1.0),
            ("hinge", 3e-3, 0.01, 1.0),
            ("hinge", 1e-3, 0.01, 0.1),
            ("log", 1e-3, 0.1, 1.0),
        ],
    ),
    ("cap", "nuPI"): (
        nupi,
        [
            ("log", 1e-3, 1.0, 10.0),
            ("log", 1e-3, 10.0, 100.0),
            ("hinge", 1e-3, 1.0, 10.0),
            ("hinge", 3e-3, 1.0, 10.0),
        ],
    ),
}
WAYS = {
    (aim, f"humancompatible-train, {name}"): {
        " ".join(map(str, choice)): lagrangian(aim, make, *choice) for choice in choices
    }
    for (aim, name), (make, choices) in CHOICES.items()
}

if __name__ == "__main__":
    paces = everybody(Path(sys.argv[1]), WAYS)
    version = metadata.version("humancompatible-train")
    json.dump({"version": version, "paces": paces}, sys.stdout)
