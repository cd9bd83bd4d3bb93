"""The data of :mod:`benchmarks.bridging`: three tables, two image tasks, their splits.

A folder holds one parquet file a table (every column is a feature except ``target``, 0 or 1, and
those in :data:`DROPPED`) and ``cifar10_10k2k.npz`` (``x_train``, ``y_train``, ``x_test``,
``y_test``; 10,000 + 2,000 images of CIFAR-10, uint8, classes 0 … 9).
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from sklearn.model_selection import GroupShuffleSplit, train_test_split
from torch import Tensor

from setpoint.datasets.columns.features import Features

TABLES = ("adult", "mammography", "cocktail-party-pairs")
BY_TIME = "cocktail-party-pairs by time"
BLOCKS = 20  #: stretches of consecutive frames
DROPPED = ("target", "split", "group", "qid", "fnlwgt")  #: adult's weights are no feature
IMAGES = {"cifar10-transportation": (0, 1, 8, 9), "cifar10-frog": (6,)}
CIFAR = "cifar10_10k2k.npz"
MEAN, SD = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)


@dataclass(frozen=True)
class Rows:
    """Inputs and 0/1 targets."""

    x: Tensor
    y: Tensor

    def to(self, device: str) -> Rows:
        """The same on a device."""
        return Rows(self.x.to(device), self.y.to(device))


@dataclass(frozen=True)
class Split:
    """Train, validation and test rows of one seed."""

    train: Rows
    valid: Rows
    test: Rows

    def to(self, device: str) -> Split:
        """The same on a device."""
        return Split(self.train.to(device), self.valid.to(device), self.test.to(device))


def folder(given: Path | None = None) -> Path:
    """The folder given, or that of ``$SETPOINT_DATA``, or ``../shared/data``."""
    return given or Path(os.environ.get("SETPOINT_DATA") or "../shared/data")


def files(names: tuple[str, ...]) -> set[str]:
    """The files that these data sets are read from."""
    return {CIFAR if name in IMAGES else f"{name.split(' ')[0]}.parquet" for name in names}


@lru_cache(maxsize=8)
def split(name: str, seed: int, where: Path) -> Split:
    """Rows of a data set for a seed: the same whatever is trained on them."""
    return _images(name, seed, where) if name in IMAGES else _table(name, seed, where)


def _table(name: str, seed: int, where: Path) -> Split:
    """64/16/20 by rows, stratified; or by time, so that no stretch of frames is in two parts."""
    import pandas

    table = pandas.read_parquet(where / f"{name.split(' ')[0]}.parquet")
    y = table["target"].to_numpy().astype(np.int64)
    x = table.drop(columns=[c for c in DROPPED if c in table])
    if name == BY_TIME:
        order = np.unique(table["qid"].to_numpy(), return_inverse=True)[1]
        frames = order * BLOCKS // (order.max() + 1)
        rest, test = _by_group(np.arange(len(y)), frames, 0.2, seed)
        train, valid = _by_group(rest, frames, 0.2, seed)
    else:
        rest, test = train_test_split(
            np.arange(len(y)), test_size=0.2, random_state=seed, stratify=y
        )
        train, valid = train_test_split(rest, test_size=0.2, random_state=seed, stratify=y[rest])
    features = Features.fit(x.iloc[train], tails="plain")
    return Split(
        *(
            Rows(torch.from_numpy(features.transform(x.iloc[part])), torch.from_numpy(y[part]))
            for part in (train, valid, test)
        )
    )


def _by_group(rows: np.ndarray, groups: np.ndarray, share: float, seed: int):
    parts = GroupShuffleSplit(1, test_size=share, random_state=seed)
    first, second = next(parts.split(rows, groups=groups[rows]))
    return rows[first], rows[second]


def _images(name: str, seed: int, where: Path) -> Split:
    """8,000 and 2,000 of the training images, stratified by class; the test images are given."""
    x_train, y_train, x_test, y_test = _cifar(where)
    train, valid = train_test_split(
        np.arange(len(y_train)), test_size=0.2, random_state=seed, stratify=y_train
    )
    positive = IMAGES[name]
    parts = ((x_train[train], y_train[train]), (x_train[valid], y_train[valid]), (x_test, y_test))
    return Split(
        *(Rows(x, torch.from_numpy(np.isin(y, positive).astype(np.int64))) for x, y in parts)
    )


@lru_cache(maxsize=1)
def _cifar(where: Path):
    with np.load(where / CIFAR) as held:
        arrays = {key: held[key] for key in ("x_train", "y_train", "x_test", "y_test")}
    mean, sd = torch.tensor(MEAN).view(3, 1, 1), torch.tensor(SD).view(3, 1, 1)

    def images(key: str) -> Tensor:
        return (torch.from_numpy(arrays[key]).permute(0, 3, 1, 2).float() / 255 - mean) / sd

    y_train, y_test = (arrays[key].reshape(-1) for key in ("y_train", "y_test"))
    return images("x_train"), y_train, images("x_test"), y_test
