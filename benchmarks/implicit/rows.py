"""Tables and splits: 50/25/25 by seed, features scaled by what the training rows show.

A folder holds a ``NAME.parquet`` for each table, or a ``NAME.npz`` of the same that :func:`pack`
wrote, which needs numpy alone to be read.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.model_selection import train_test_split
from torch import Tensor

NOT = ("target", "split", "group", "qid", "fnlwgt", "decile_score", "target_reg")
BINNED = ("adult",)  #: numbers become indicators of their fifths, as in the common a9a version
NEGATIVES = {"covtype_2v4": 57_253}  #: at most; with its 2,747 positives 60,000 rows
SENSITIVE = {"adult": "sex", "compas": "race"}  #: no features where fairness is at stake


@dataclass(frozen=True)
class Table:
    """Numbers (n, a), codes of categories (n, b) with −1 for a missing one, 0/1 target, group."""

    numbers: np.ndarray
    codes: np.ndarray
    target: np.ndarray
    group: np.ndarray


@dataclass(frozen=True)
class Part:
    """Features (n, d), labels (n,) and the number of each row's group (n,)."""

    x: Tensor
    y: Tensor
    group: Tensor

    def to(self, device: str) -> Part:
        """The same on a device."""
        return Part(self.x.to(device), self.y.to(device), self.group.to(device))


@dataclass(frozen=True)
class Split:
    """To train, to choose, to test."""

    train: Part
    tune: Part
    test: Part

    def to(self, device: str) -> Split:
        """The same on a device."""
        return Split(self.train.to(device), self.tune.to(device), self.test.to(device))


def read(name: str, where: Path) -> Table:
    """A table from its packed file, or from the parquet."""
    packed = where / f"{name}.npz"
    if packed.is_file():
        with np.load(packed) as held:
            return Table(**{key: held[key] for key in held.files})
    import pandas

    base = name.removesuffix(" fair")
    frame: Any = pandas.read_parquet(where / f"{base}.parquet")
    if base == "ijcnn1":
        frame = frame[frame["split"] == "train"]
    if base == "compas":
        frame = frame[frame["group"].isin(("African-American", "Caucasian"))]
    if base in NEGATIVES:
        negatives = frame[frame["target"] == 0].sample(NEGATIVES[base], random_state=0)
        frame = pandas.concat([negatives, frame[frame["target"] == 1]]).sort_index()
    group = frame["group"].astype(str).to_numpy("U") if "group" in frame else np.zeros(len(frame))
    dropped = [*NOT, SENSITIVE[base]] if name != base else [*NOT]
    features = frame.drop(columns=[c for c in dropped if c in frame])
    words = [c for c in features if not pandas.api.types.is_numeric_dtype(features[c])]
    codes = [features[c].astype("category").cat.codes.to_numpy() for c in words]
    return Table(
        numbers=features.drop(columns=words).to_numpy("float32"),
        codes=np.stack(codes, axis=1) if codes else np.zeros((len(frame), 0), int),
        target=frame["target"].to_numpy("int64"),
        group=np.unique(group, return_inverse=True)[1],
    )


def pack(names: tuple[str, ...], where: Path, into: Path) -> None:
    """Write the tables as files that need numpy alone."""
    for name in names:
        np.savez_compressed(into / f"{name}.npz", **vars(read(name, where)))


@lru_cache(maxsize=2)
def split(name: str, seed: int, where: Path) -> Split:
    """The rows of one seed, the same for everybody; stratified by label and group."""
    table = read(name, where)
    strata = 2 * table.group + table.target if name.endswith(" fair") else table.target
    rest, test = train_test_split(
        np.arange(strata.size), test_size=0.25, random_state=seed, stratify=strata
    )
    train, tune = train_test_split(
        np.asarray(rest), test_size=1 / 3, random_state=seed, stratify=strata[rest]
    )
    x = encoded(table, train, name.removesuffix(" fair") in BINNED)
    return Split(*(_part(x, table, rows) for rows in (train, tune, test)))


def encoded(table: Table, train: np.ndarray, binned: bool) -> np.ndarray:
    """Numbers standardised (a missing one is the mean) or in fifths; categories as 0/1 columns."""
    shown = table.numbers[train]
    if binned:
        cuts = [np.unique(np.nanquantile(c, (0.2, 0.4, 0.6, 0.8))) for c in shown.T]
        codes = [np.searchsorted(c, v) for c, v in zip(cuts, table.numbers.T, strict=True)]
        table = Table(shown[:, :0], np.column_stack([*codes, table.codes]), *_labels(table))
        numbers = np.zeros((len(table.target), 0))
    else:
        mean, sd = np.nanmean(shown, axis=0), np.nanstd(shown, axis=0)
        numbers = np.nan_to_num((table.numbers - mean) / np.where(sd > 0, sd, 1))
    levels = [c[:, None] == np.unique(c[train])[None] for c in table.codes.T]
    return np.concatenate([numbers, *levels], axis=1).astype("float32")


def _labels(table: Table) -> tuple[np.ndarray, np.ndarray]:
    return table.target, table.group


def _part(x: np.ndarray, table: Table, rows: np.ndarray) -> Part:
    held = (x[rows], table.target[rows], table.group[rows])
    return Part(*(torch.from_numpy(np.ascontiguousarray(a)) for a in held))
