"""LibAUC's side, by its own Python: ``python -m benchmarks.peers.training.libauc_side FOLDER``.

Its losses of average precision and of partial areas with the optimizers it pairs them with, on the
sigmoid of the logits, with DualSampler (half positives, or a fifth where fewer rows than that are
positive), as its tutorials do. Its tutorials recommend starting partial areas from cross-entropy:
settings named "after" spend the first third of the steps on that. The settings are the best of 6
to 8 on seeds that the comparison does not use. Prints version and times.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
from pathlib import Path

import libauc
import torch
from libauc.losses import APLoss
from libauc.losses.auc import pAUC_CVaR_Loss, pAUC_DRO_Loss, tpAUC_CVaR_loss, tpAUC_KL_Loss
from libauc.optimizers import SOAP, SOPA, STACO, SOPAs, SOTAs

from benchmarks.peers.libauc_networks import dual
from benchmarks.peers.networks import by_gradient
from benchmarks.peers.training.loop import STEPS, Training, cross_entropy, everybody
from benchmarks.peers.training.ranges import MAX_FPR, MIN_TPR, ONE_WAY_FPR

FIRST = 1 / 3  #: of the steps by cross-entropy, where a setting begins with it


def descent(make, optimizer, rate, first=0.0):
    """A setup: ``make(y)`` is a loss of (probabilities, y, index); ``first`` of cross-entropy."""

    def setup(model, y):
        loss = make(y)
        moved = optimizer(model.parameters(), loss_fn=loss, lr=rate, verbose=False)
        step, _ = by_gradient(lambda z, y, index: loss(torch.sigmoid(z), y, index), model, moved)
        plain, done = cross_entropy(model, y).step, 0

        def turn(*rows):
            nonlocal done
            done += 1
            (plain if done <= first * STEPS else step)(*rows)

        return Training(turn, lambda: moved.update_lr(decay_factor=10))

    return setup, dual


def area(loss, **options):
    """A loss that keeps a number for each row."""
    return lambda y: loss(data_len=len(y), **options)


def cvar(y):
    """The exact one-way range."""
    return pAUC_CVaR_Loss(data_len=len(y), pos_len=int((y == 1).sum()), beta=ONE_WAY_FPR)


def both(y):
    """The exact two-way range."""
    return tpAUC_CVaR_loss(data_length=len(y), theta_0=1 - MIN_TPR, theta_1=MAX_FPR)


AP = {
    f"margin {margin:g}, {rate:g}": descent(area(APLoss, margin=margin, gamma=0.1), SOAP, rate)
    for margin in (0.3, 0.6)
    for rate in (1e-3, 3e-3)
}
WIDE = area(pAUC_DRO_Loss, margin=0.6, gamma=0.1, Lambda=1.0)
NARROW = area(pAUC_DRO_Loss, margin=0.6, gamma=0.1, Lambda=0.1)
ONE_WAY = {
    "SOPAs, Λ 0.1": descent(NARROW, SOPAs, 1e-3),
    "SOPAs, Λ 0.1, 0.003": descent(NARROW, SOPAs, 3e-3),
    "SOPAs, Λ 1, after": descent(WIDE, SOPAs, 1e-3, FIRST),
    "SOPA, after": descent(cvar, SOPA, 1e-3, FIRST),
}
BROAD = area(tpAUC_KL_Loss, Lambda=0.5, tau=1.0, gammas=(0.5, 0.5))
SHARP = area(tpAUC_KL_Loss, Lambda=0.1, tau=1.0, gammas=(0.5, 0.5))
TWO_WAY = {
    "SOTAs, Λ 0.1": descent(SHARP, SOTAs, 1e-3),
    "SOTAs, Λ 0.1, 0.003": descent(SHARP, SOTAs, 3e-3),
    "SOTAs, Λ 0.5, after": descent(BROAD, SOTAs, 1e-3, FIRST),
    "STACO, after": descent(both, STACO, 1e-3, FIRST),
}
WAYS = {
    ("ap", "LibAUC"): AP,
    ("one-way", "LibAUC"): ONE_WAY,
    ("two-way", "LibAUC"): TWO_WAY,
}

if __name__ == "__main__":
    with contextlib.redirect_stdout(io.StringIO()):  # its optimizers speak
        paces = everybody(Path(sys.argv[1]), WAYS)
    json.dump({"version": libauc.__version__, "paces": paces}, sys.stdout)
