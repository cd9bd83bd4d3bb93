"""LibAUC's side, run by its own Python: ``python -m benchmarks.peers.libauc_runs ROWS REPEATS``.

Prints JSON: seconds of its losses and of the written-out squared hinge, values beside ours, and the
ends of training runs under hostile conditions. Its predictions go through a sigmoid first, as in
its tutorials; AUCMLoss is trained by PESG and APLoss by SOAP, the optimizers made for them.
"""

from __future__ import annotations

import contextlib
import io
import json
import sys

import libauc
import torch
from libauc.losses import APLoss, AUCMLoss, PairwiseAUCLoss
from libauc.optimizers import PESG, SOAP

from benchmarks.peers.hostile import outcomes
from benchmarks.peers.written_out import batch, forward_backward, medians, squared_hinge


def speed(rows: int, repeats: int) -> dict:
    """Seconds of forward and backward, and the values, on the common batch."""
    logits, target = batch(rows)
    index = torch.arange(rows)
    average_precision = APLoss(data_len=rows)
    losses = {
        "written out squared hinge": squared_hinge,
        "PairwiseAUCLoss squared_hinge": PairwiseAUCLoss("squared_hinge"),
        "PairwiseAUCLoss logistic": PairwiseAUCLoss("logistic"),
        "APLoss squared_hinge": lambda s, y: average_precision(s, y, index),
        "AUCMLoss v1": AUCMLoss(),
        "AUCMLoss v2": AUCMLoss(version="v2"),
    }
    calls = {name: forward_backward(loss, logits, target) for name, loss in losses.items()}
    seconds = medians(calls, repeats)
    values = {name: loss(logits, target).item() for name, loss in losses.items()}
    return {"seconds": seconds, "values": values}


def extremes() -> dict:
    """Value and largest gradient of the logistic loss for logits far apart."""
    found = {}
    for far in (10.0, 100.0, 1e4):
        gradient = forward_backward(
            PairwiseAUCLoss("logistic"), torch.tensor([-far, far]), torch.tensor([1, 0])
        )()
        found[f"{far:g}"] = str(gradient.abs().max().item())
    return found


def _aucm(version: str, mode: str):
    def setup(model):
        loss = AUCMLoss(version=version)
        with contextlib.redirect_stdout(io.StringIO()):
            lr = 0.1 if mode == "sgd" else 1e-3
            optimizer = PESG(model.parameters(), loss_fn=loss, lr=lr, mode=mode)
        return lambda s, y, i: loss(torch.sigmoid(s), y), optimizer, [loss.a, loss.b, loss.alpha]

    return setup


def _aucm_adam(model):
    """AUCMLoss with torch's Adam, which descends in α too (its sign is turned to climb)."""
    loss = AUCMLoss()
    loss.alpha.register_hook(torch.neg)
    more = [loss.a, loss.b, loss.alpha]
    optimizer = torch.optim.Adam([*model.parameters(), *more], lr=1e-3)
    return lambda s, y, i: loss(torch.sigmoid(s), y), optimizer, more


def _pairwise(surrogate: str, squash):
    def setup(model):
        loss = PairwiseAUCLoss(surrogate)
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
        return lambda s, y, i: loss(squash(s), y), optimizer, []

    return setup


def _average_precision(model):
    loss = APLoss(data_len=600)
    with contextlib.redirect_stdout(io.StringIO()):
        optimizer = SOAP(model.parameters(), lr=1e-3, mode="adam")
    return lambda s, y, i: loss(torch.sigmoid(s), y, i), optimizer, []


SETUPS = {
    "AUCMLoss v1, PESG": _aucm("v1", "sgd"),
    "AUCMLoss v2, PESG": _aucm("v2", "sgd"),
    "AUCMLoss v1, PESG mode adam": _aucm("v1", "adam"),
    "AUCMLoss v1, Adam": _aucm_adam,
    "PairwiseAUCLoss squared_hinge, Adam": _pairwise("squared_hinge", torch.sigmoid),
    "PairwiseAUCLoss logistic, no sigmoid, Adam": _pairwise("logistic", lambda s: s),
    "APLoss, SOAP": _average_precision,
}


if __name__ == "__main__":
    torch.set_num_threads(1)
    figures = {"version": libauc.__version__, **speed(int(sys.argv[1]), int(sys.argv[2]))}
    figures |= {"gradient of logistic far apart": extremes(), "training": outcomes(SETUPS)}
    json.dump(figures, sys.stdout, indent=2)
