"""``images``: partial AUROC at low false positive rates, by convolutional networks.

Shirts among the other clothes of Fashion-MNIST (25,000 images) and cats among the other classes of
CIFAR-10 (12,000 images): a tenth of the images are positive. The pairwise baseline is that of
Narasimhan and Agarwal: pairs of a positive with the highest-scoring share β of the negatives.
"""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.model_selection import train_test_split
from torch import nn

from benchmarks.implicit.lineup import Setup, available, entropies, greater, grid
from benchmarks.implicit.rows import Part, Split
from benchmarks.implicit.running import Line, chosen
from benchmarks.implicit.training import Pace, trained
from benchmarks.implicit.ways import IMPLICIT, LAGRANGIAN, PAIRWISE, WARM

NAME = "implicit-images"
DATA = {"cifar10, cat": ("cifar10_10k2k", 3), "fashion, shirt": ("fashion_mnist_20k5k", 6)}
RATES = (0.01, 0.02, 0.05, 0.1, 0.2)
PACE = Pace(800, 40, batch=512, decay=True)
KEYS = ("table", "fpr", "seed", "way")


def metric(rate: float) -> str:
    """The name of the judge, standardised so that chance is ½ (McClish)."""
    return f"auroc(max_fpr={rate:g})"


def setups() -> list[Setup]:
    """The line-up."""
    made = entropies((1e-3, 3e-3), (0.1, 1, 10))
    for rate in RATES:
        aim, goal = metric(rate), f"maximize {metric(rate)}"
        by = (("adam", 1e-3), ("adam", 3e-3))
        made += grid(PAIRWISE, "pairwise", goal, aim, by, {})
        made += grid(IMPLICIT, "implicit", goal, aim, by, {"points": 10}, sharpness=(1.0, 5.0))
        made += grid(LAGRANGIAN, "lagrangian", goal, aim, by, {"points": 10}, rate=(1.0, 3.0))
        warm = {"points": 10, "warmup": PACE.steps // 2}
        made += grid(WARM, "implicit", goal, aim, by, warm, sharpness=(5.0,))
    return available(made)


def jobs(splits: int, where: Path) -> list[tuple[Any, ...]]:
    """Every run."""
    return [
        (name, seed, setup, where) for seed in range(splits) for name in DATA for setup in setups()
    ]


@lru_cache(maxsize=2)
def split(name: str, seed: int, where: Path, device: str) -> Split:
    """50/25/25 of all images, stratified."""
    file, positive = DATA[name]
    with np.load(where / f"{file}.npz") as held:
        x = np.concatenate([held["x_train"], held["x_test"]])
        y = (np.concatenate([held["y_train"], held["y_test"]]).ravel() == positive).astype("int64")
    x = x.reshape(*x.shape[:3], -1).transpose(0, 3, 1, 2).astype("float32") / 255
    rest, test = train_test_split(np.arange(y.size), test_size=0.25, random_state=seed, stratify=y)
    train, tune = train_test_split(rest, test_size=1 / 3, random_state=seed, stratify=y[rest])
    x = (x - x[train].mean((0, 2, 3), keepdims=True)) / x[train].std((0, 2, 3), keepdims=True)
    parts = (
        Part(torch.from_numpy(x[i]), torch.from_numpy(y[i]), torch.zeros(len(i), dtype=torch.long))
        for i in (train, tune, test)
    )
    return Split(*parts).to(device)


def convolutional(channels: int) -> nn.Module:
    """Three blocks of convolution, normalisation, ReLU and pooling; a logit an image."""
    blocks: list[nn.Module] = []
    for before, after in ((channels, 32), (32, 64), (64, 128)):
        blocks += [nn.Conv2d(before, after, 3, padding=1, bias=False), nn.BatchNorm2d(after)]
        blocks += [nn.ReLU(), nn.MaxPool2d(2)]
    blocks += [nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Dropout(0.3), nn.Linear(512, 1)]
    return nn.Sequential(*blocks, nn.Flatten(0))


def work(name: str, seed: int, setup: Setup, where: Path) -> list[Line]:
    """One run; cross-entropy's is judged at every rate, the others' at their own."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    rows = split(name, seed, where, device)
    torch.manual_seed(seed)
    net = convolutional(rows.train.x.shape[1]).to(device)
    y = rows.train.y
    ratio = float((1 - y).sum() / y.sum())
    rates = [r for r in RATES if setup.aim in ("", metric(r))]
    judges = {metric(r): greater(metric(r), 1) for r in rates}
    loss = setup.loss(ratio).to(device)
    kept = trained(net, loss, rows, judges, PACE, setup.optimiser, seed, flip=True)
    about = {"table": name, "seed": seed, "way": setup.way, "config": setup.config}
    test = rows.test.y.cpu().numpy()
    return [
        {**about, "fpr": rate, "valid": best.value, "step": best.step, "n test": len(test)}
        | {"test": judges[metric(rate)](test, best.test)}
        for rate in rates
        for best in (kept[metric(rate)],)
    ]


def select(lines: list[Line]) -> list[Line]:
    """The configuration of each way, rate and seed."""
    return chosen(lines, KEYS)
