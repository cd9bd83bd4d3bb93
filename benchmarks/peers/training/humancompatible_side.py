"""humancompatible-train's side: ``python -m benchmarks.peers.training.humancompatible_side FOLDER``.

Its documented loop: Adam for the network, ``forward_update(loss, constraints)`` of a dual optimizer
for the rest. Three of them: ALM, PBM (the SPBM of its papers) and nuPI, at their defaults but for
the rates of the grid. Prints version and times. Apache-2.0; its public API only.
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


def alm(rows, rate, penalty):
    """Multiplier's step size, and weight of the augmentation."""
    del rows
    return ALM(m=1, lr=rate, penalty=penalty, is_ineq=True)


def pbm(rows, start, gamma):
    """The multiplier's start (it only ever changes by a factor), and its smoothing."""
    return PBM(m=1, init_duals=start, gamma=gamma, epoch_length=-(-rows // BATCH))


def nupi(rows, ki, kp):
    """Integral and proportional gain."""
    del rows
    return nuPI(m=1, ki=ki, kp=kp, is_ineq=True)


def lagrangian(aim, make, surrogate, rate, a, b):
    """A setup."""

    def setup(model, y):
        goal = BatchGoal.of(aim, surrogate, y)
        optimizer = torch.optim.Adam(model.parameters(), lr=rate)
        dual = make(len(y), a, b)

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


#: name -> dual optimizer, and (surrogate, step size of the network, its two numbers)
CHOICES = {
    "ALM": (alm, [(s, r, a, b) for s in ("sigmoid", "hinge", "log") for r in (1e-3, 3e-3)
                  for a, b in ((0.01, 0.0), (0.1, 0.0), (0.01, 1.0), (0.1, 1.0))]),
    "SPBM": (pbm, [(s, r, a, b) for s in ("sigmoid", "hinge", "log") for r in (1e-3, 3e-3)
                   for a, b in ((0.1, 0.1), (1.0, 0.1), (0.1, 0.9), (1.0, 0.9))]),
    "nuPI": (nupi, [(s, r, a, b) for s in ("sigmoid", "hinge", "log") for r in (1e-3, 3e-3)
                    for a, b in ((0.01, 1.0), (0.1, 1.0), (0.01, 0.1), (0.1, 0.1))]),
}  # fmt: skip
WAYS = {
    (aim, f"humancompatible {name}"): {
        " ".join([c[0], *(f"{x:g}" for x in c[1:])]): lagrangian(aim, make, *c) for c in choices
    }
    for aim in ("floor", "cap")
    for name, (make, choices) in CHOICES.items()
}

if __name__ == "__main__":
    paces = everybody(Path(sys.argv[1]), WAYS)
    version = metadata.version("humancompatible-train")
    json.dump({"version": version, "paces": paces}, sys.stdout)
