"""The tables of the stress runs, as standardised numbers: at most 6,000 rows to train on.

``prepare`` makes one small file a table in ``.data/stress``, which a machine without parquet reads.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.portfolio import tables

TRAIN = 6_000
REST = 4_000  #: rows of each of the two other parts, at most
SHARES = (0.6, 0.2, 0.2)  #: train, tune, test
LEVELS = 25  #: categories of a column that become columns of their own
CACHE = Path(__file__).parents[2] / ".data" / "stress"

#: floors of precision for tables that ``benchmarks.portfolio`` does not name, by the same rule
FLOORS = {
    **tables.P0,
    "adult": 0.8,
    "celeba_bald": 0.5,
    "communities-crime": 0.8,
    "covtype_2v4": 0.9,
    "ijcnn1": 0.95,
    "webpage_w7a": 0.9,
}
#: binary tables of the collection with at least 100 positives
NAMES = (
    "abalone_7",
    "adult",
    "annthyroid",
    "breast-cancer-wisc",
    "celeba_bald",
    "communities-crime",
    "compas",
    "creditcard-fraud_sample",
    "ijcnn1",
    "letter",
    "mammography",
    "ozone_eighthr",
    "phoneme",
    "satimage",
    "spambase",
    "thyroid_sick",
    "webpage_w7a",
    "wilt",
)


@dataclass(frozen=True)
class Part:
    """Standardised features (float32) and 0/1 labels."""

    x: np.ndarray
    y: np.ndarray


@dataclass(frozen=True)
class Table:
    """Rows to train on, to choose a threshold on, and to judge by."""

    name: str
    train: Part
    tune: Part
    test: Part


def prepare(where: Path, cache: Path = CACHE, names: Iterable[str] = NAMES) -> None:
    """One file a table, of plain numbers."""
    cache.mkdir(parents=True, exist_ok=True)
    for name in names:
        x, y = _table(name, where)
        np.savez_compressed(cache / f"{name}.npz", x=x, y=y)


def _table(name: str, where: Path) -> tuple[np.ndarray, np.ndarray]:
    import pandas

    table = pandas.read_parquet(where / f"{name}.parquet")
    y = table["target"].to_numpy().astype(np.int8)
    limit = round(TRAIN / SHARES[0])
    if y.size > limit:
        kept = _stratified(y, limit, np.random.default_rng(0))
        table, y = table.iloc[kept], y[kept]
    return numbers(table), y


def numbers(table: Any) -> np.ndarray:
    """Features as numbers: categories as columns of their own, gaps left as they are."""
    import pandas

    x = table.drop(columns=[c for c in tables.NOT if c in table])
    columns = []
    for column in x.columns:
        values = x[column]
        if pandas.api.types.is_numeric_dtype(values):
            columns.append(values.to_numpy(np.float32)[:, None])
        else:
            levels = values.astype(str).value_counts().index[:LEVELS]
            columns.append(np.stack([(values.astype(str) == c).to_numpy() for c in levels], 1))
    return np.concatenate(columns, 1).astype(np.float32)


def read(name: str, seed: int, cache: Path = CACHE) -> Table:
    """A table, split by class with this seed and standardised on the rows to train on."""
    with np.load(cache / f"{name}.npz") as file:
        x, y = file["x"], file["y"].astype(np.int64)
    rng = np.random.default_rng([7, seed])
    parts: list[list[np.ndarray]] = [[], [], []]
    for label in (0, 1):
        rows = rng.permutation(np.flatnonzero(y == label))
        ends = np.round(np.cumsum(SHARES) * rows.size).astype(int)
        for part, some in zip(parts, np.split(rows, ends[:-1]), strict=True):
            part.append(some)
    train, tune, test = (rng.permutation(np.concatenate(part)) for part in parts)
    mean, spread = np.nanmean(x[train], 0), np.nanstd(x[train], 0)
    spread = np.where(spread > 1e-9, spread, 1.0)
    z = np.clip(np.nan_to_num((x - mean) / spread), -10, 10).astype(np.float32)
    return Table(name, *(Part(z[rows], y[rows]) for rows in (train, tune[:REST], test[:REST])))


def _stratified(y: np.ndarray, size: int, rng: np.random.Generator) -> np.ndarray:
    share = size / y.size
    kept = [
        rng.permutation(rows)[: round(share * rows.size)]
        for rows in (np.flatnonzero(y == label) for label in np.unique(y))
    ]
    return np.sort(np.concatenate(kept))
