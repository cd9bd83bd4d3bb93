"""Cross-entropy as well as it can be had: the baseline, and the warm start of the other ways.

linear
    Logistic regression by Newton steps to convergence (C = 10⁴: next to no ridge), so that what
    another way gains is not more training.
perceptron
    32–32 with ReLU, Adam, batches of 256; the epoch of the least log loss on the rows that choose
    thresholds, at most 150 of them, patience 20. Training can go on from there, so
    :func:`continued` does.
"""

from __future__ import annotations

import copy
import math
import warnings
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from scipy.linalg import LinAlgWarning
from sklearn.linear_model import LogisticRegression
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits

from benchmarks.exact.rows import split
from benchmarks.implicit.rows import Part, Split
from setpoint.training import networks

MODELS = ("linear", "perceptron")
HIDDEN = (32, 32)
RATE, BATCH, EPOCHS, PATIENCE = 3e-3, 256, 150, 20
WIDE = 10**7  #: numbers that are worth being doubled in width


@lru_cache(maxsize=4)
def started(name: str, model: str, seed: int, where: Path, *, balanced: bool = False) -> nn.Module:
    """Cross-entropy on a split, or class-weighted cross-entropy; to be copied, not changed."""
    return entropy(model, split(name, seed, where), seed, balanced=balanced)


def entropy(model: str, rows: Split, seed: int, *, balanced: bool = False) -> nn.Module:
    """The same on rows given."""
    if model == "linear":
        return logistic(rows.train.x.numpy(), rows.train.y.numpy(), balanced=balanced)
    return _perceptron(rows, seed, balanced=balanced)


def logistic(x: np.ndarray, y: np.ndarray, *, balanced: bool = False) -> nn.Module:
    """A linear head with the coefficients of logistic regression."""
    weight = "balanced" if balanced else None
    wide = x.astype(float) if x.size < WIDE else x
    with warnings.catch_warnings():
        # columns of categories sum to one: it says so and takes another solver
        warnings.simplefilter("ignore", LinAlgWarning)
        found = LogisticRegression(
            C=1e4, solver="newton-cholesky", class_weight=weight, max_iter=2000, tol=1e-6
        ).fit(wide, y)
    net = networks.linear(x.shape[1], 1)
    weights, bias = net.parameters()
    with torch.no_grad():
        weights.copy_(torch.from_numpy(found.coef_))
        bias.copy_(torch.from_numpy(found.intercept_))
    return net


def _perceptron(rows: Split, seed: int, *, balanced: bool) -> nn.Module:
    torch.manual_seed(seed)
    x, y = rows.train.x, rows.train.y.float()
    net = networks.mlp(x.shape[1], 1, hidden=HIDDEN, dropout=0.0)
    dearer = (1 - y).sum() / y.sum() if balanced else torch.ones(())
    stepper = torch.optim.Adam(net.parameters(), RATE)
    best, kept, waited = math.inf, net.state_dict(), 0
    for _ in range(EPOCHS):
        for batch in torch.randperm(len(y)).split(BATCH):
            stepper.zero_grad(set_to_none=True)
            loss = binary_cross_entropy_with_logits(net(x[batch]), y[batch], pos_weight=dearer)
            loss.backward()
            stepper.step()
        now = _loss(net, rows.tune, dearer)
        if now < best:
            best, kept, waited = now, copy.deepcopy(net.state_dict()), 0
        elif (waited := waited + 1) >= PATIENCE:
            break
    net.load_state_dict(kept)
    return net


def continued(start: nn.Module, rows: Part, steps: int, rate: float) -> nn.Module:
    """So many further steps of cross-entropy on all training rows, the rate falling to 0."""
    net, y = copy.deepcopy(start), rows.y.float()
    stepper = torch.optim.Adam(net.parameters(), rate)
    for step in range(steps):
        stepper.param_groups[0]["lr"] = rate * 0.5 * (1 + math.cos(math.pi * step / steps))
        stepper.zero_grad(set_to_none=True)
        binary_cross_entropy_with_logits(net(rows.x), y).backward()
        stepper.step()
    return net


def shifted(start: nn.Module, threshold: float) -> nn.Module:
    """A copy whose decisions at logit 0 are those at the threshold."""
    net = copy.deepcopy(start)
    with torch.no_grad():
        *_, bias = net.parameters()
        bias -= threshold
    return net


def _loss(net: nn.Module, rows: Part, dearer: torch.Tensor) -> float:
    with torch.no_grad():
        y = rows.y.float()
        return float(binary_cross_entropy_with_logits(net(rows.x), y, pos_weight=dearer))
