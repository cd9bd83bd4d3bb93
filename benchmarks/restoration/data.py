"""Images in [0, 1], shape (N, C, H, W): test images for tables, training images for tuning.

They are read from ``$SETPOINT_DATA`` (default: ``../shared/data``), or from ``.data`` where they
were packed. mnist is padded by 2 with zeros to 32×32, as the bundled priors were trained.
``digits``, 8×8, is for a dry run.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from benchmarks.restoration.packing import pack, unpack

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / ".data"
PICTURES = ROOT / "docs" / "images"  #: where the contact sheets go
PACKED = FOLDER / "restoration" / "packed"
FILES = {"mnist": "mnist.npz", "cifar10": "cifar10_10k2k.npz"}
TUNING = 2000  #: of the last training images, from which those for tuning are drawn


@dataclass(frozen=True)
class Dataset:
    """Where a set lies, which priors are its own, and how many images a table takes."""

    name: str
    images: int
    prior: str
    flow: str
    tuning: int = TUNING


NAMES = {"mnist": "mnist", "cifar10": "CIFAR-10", "digits": "digits"}
DATASETS = {
    "mnist": Dataset("mnist", 100, "mnist", "mnist-flow"),
    "cifar10": Dataset("cifar10", 50, "cifar10", "cifar10-flow", 500),
    "digits": Dataset("digits", 4, "", "", 300),
}


def images(name: str, part: str, count: int) -> Tensor:
    """So many images of ``test`` or ``tune``, the same ones for everybody; fewer are a prefix."""
    train, test = _parts(name)
    if part == "test":
        pool, seed = test, 0
    elif part == "tune":
        pool, seed = train[-DATASETS[name].tuning :], 1
    else:
        raise ValueError(f"part is {part!r}: test or tune")
    if count > len(pool):
        raise ValueError(f"{name} has {len(pool)} images to {part}, not {count}")
    order = np.random.default_rng(seed).permutation(len(pool))[:count]
    return pool[torch.from_numpy(order)].float() / 255


def bank(name: str, *, without_tuning: bool) -> Tensor:
    """The training images among which the nearest is sought; in tuning without its own pool."""
    train = _parts(name)[0]
    return (train[: -DATASETS[name].tuning] if without_tuning else train).float() / 255


@lru_cache(maxsize=2)
def _parts(name: str) -> tuple[Tensor, Tensor]:
    """Training and test images as bytes, (N, C, H, W)."""
    path = PACKED / f"{name}.xz"
    # on a machine to which the packed ones alone were carried
    read = LOADERS[name] if _file(name).is_file() or not path.is_file() else lambda: unpack(path)
    train, test = read()
    return torch.from_numpy(train), torch.from_numpy(test)


def pack_all() -> list[Path]:
    """Write the packed files, for ``carry``; what is there is left."""
    paths = [PACKED / f"{name}.xz" for name in FILES]
    for name, path in zip(FILES, paths, strict=True):
        if not path.is_file():
            pack(path, *LOADERS[name]())
    return paths


def _file(name: str) -> Path:
    return Path(os.environ.get("SETPOINT_DATA") or "../shared/data") / FILES.get(name, "none")


def _mnist() -> tuple[np.ndarray, ...]:
    with np.load(_file("mnist")) as held:
        return tuple(
            np.pad(held[f"x_{part}"], ((0, 0), (2, 2), (2, 2)))[:, None]
            for part in ("train", "test")
        )


def _cifar10() -> tuple[np.ndarray, ...]:
    with np.load(_file("cifar10")) as held:
        return tuple(
            np.ascontiguousarray(held[f"x_{part}"].transpose(0, 3, 1, 2))
            for part in ("train", "test")
        )


def _digits() -> tuple[np.ndarray, ...]:
    # imported here: a table of mnist does not need scikit-learn
    from sklearn.datasets import load_digits

    x = np.asarray(load_digits(return_X_y=True)[0]).reshape(-1, 1, 8, 8)
    x = np.round(x * (255 / 16)).astype(np.uint8)
    return x[:1500], x[1500:]


LOADERS: dict[str, Callable[[], tuple[np.ndarray, ...]]] = {
    "mnist": _mnist,
    "cifar10": _cifar10,
    "digits": _digits,
}
