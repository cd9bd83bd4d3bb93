"""LibAUC's networks, by its own Python: ``python -m benchmarks.peers.libauc_networks FOLDER``.

AUCMLoss with PESG and APLoss with SOAP at their default options, on the sigmoid of the logits, with
DualSampler, as its tutorials do; PESG also with ``mode="adam"`` at 1e-3, which learns
faster. The share of positives in a batch is a fifth where fewer rows than that are positive, else a
half (LibAUC: "slightly higher than the proportion"). When the step size changes PESG takes a new
reference point (``update_regularizer``). Prints the version.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys
from pathlib import Path

import libauc
import numpy as np
import torch
from libauc.losses import APLoss, AUCMLoss
from libauc.optimizers import PESG, SOAP
from libauc.sampler import DualSampler

from benchmarks.peers.networks import BATCH, RATE, by_gradient, everybody


def dual(y, seed):
    """Batches with a fixed share of positives."""
    rate = 0.2 if y.mean() < 0.2 else 0.5
    sampler = DualSampler(None, BATCH, labels=y, sampling_rate=rate, random_seed=seed)
    while True:
        yield from np.fromiter(sampler, int).reshape(-1, BATCH)


def aucm(mode, rate):
    """AUC margin loss."""

    def setup(model, y):
        del y
        loss = AUCMLoss()
        optimizer = PESG(model.parameters(), loss_fn=loss, lr=rate, mode=mode, verbose=False)
        step, _ = by_gradient(lambda z, y, index: loss(torch.sigmoid(z), y), model, optimizer)
        return step, lambda: optimizer.update_regularizer(decay_factor=10)

    return setup


def average_precision(model, y):
    """Average precision loss."""
    loss = APLoss(data_len=len(y))
    optimizer = SOAP(model.parameters(), lr=1e-3, verbose=False)
    step, _ = by_gradient(lambda z, y, index: loss(torch.sigmoid(z), y, index), model, optimizer)
    return step, lambda: optimizer.update_lr(decay_factor=10)


SETUPS = {
    "LibAUC AUCM, PESG": (aucm("sgd", 0.1), dual),
    "LibAUC AUCM, PESG mode adam": (aucm("adam", RATE), dual),
    "LibAUC AP, SOAP": (average_precision, dual),
}

if __name__ == "__main__":
    with contextlib.redirect_stdout(io.StringIO()):  # its optimizers speak
        everybody(Path(sys.argv[1]), SETUPS)
    json.dump({"version": libauc.__version__}, sys.stdout)
