"""The tables of the second line-up: binary ones with a group column, several classes, labels.

Every one is split and standardised as in :mod:`benchmarks.stress.tables`. The labels are made up:
four of different shares, each from a direction of eight normal features with noise.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.stress.tables import CACHE, REST, SHARES, TRAIN, numbers

#: table -> the groups whose rows are taken, in the order of their codes
GROUPS = {
    "adult": ("Female", "Male"),
    "communities-crime": ("high_black_share", "other"),
    "compas": ("African-American", "Caucasian"),
}
CLASSES = ("page-blocks", "satimage", "thyroid-ann", "winequality-white")
MADE_UP = "made-up labels"
RARE = 80  #: classes of fewer rows are left out: a fifth of them would be 15
NAMES = (*GROUPS, *CLASSES, MADE_UP)
SHIFTS = (0.0, 0.8, 1.4, 2.0)  #: of the made-up labels: about 50, 26, 13 and 6 % positives


@dataclass(frozen=True)
class Rows:
    """Standardised features, labels (n,) or (n, L), and the code of each row's group (or 0)."""

    x: np.ndarray
    y: np.ndarray
    group: np.ndarray


@dataclass(frozen=True)
class SeveralTable:
    """Rows to train on, to choose a threshold on, and to judge by."""

    name: str
    kind: str  #: "groups", "classes" or "labels"
    size: int  #: groups, classes or labels
    train: Rows
    tune: Rows
    test: Rows


def prepare(where: Path, cache: Path = CACHE) -> None:
    """One file a table, of plain numbers."""
    cache.mkdir(parents=True, exist_ok=True)
    for name in NAMES:
        np.savez_compressed(cache / f"several-{name}.npz", **_plain(name, where))


def _plain(name: str, where: Path) -> dict[str, np.ndarray]:
    import pandas

    if name == MADE_UP:
        rng = np.random.default_rng(0)
        x = rng.normal(size=(8_000, 8))
        directions = rng.normal(size=(8, 4)) / np.sqrt(8)
        noise = 0.5 * rng.normal(size=(8_000, 4))
        return {"x": x.astype(np.float32), "y": (x @ directions + noise > SHIFTS) * 1}
    file = name if name in GROUPS else f"{name}_multiclass"
    table = pandas.read_parquet(where / f"{file}.parquet")
    if name in GROUPS:
        table = table[table["group"].isin(GROUPS[name])]
    else:
        table = table[table.groupby("target")["target"].transform("size") >= RARE]
    limit = round(TRAIN / SHARES[0])
    if len(table) > limit:
        table = table.sample(limit, random_state=0)
    y = np.unique(table["target"].to_numpy(), return_inverse=True)[1]
    x = numbers(table)
    if name not in GROUPS:
        return {"x": x, "y": y}
    group = np.array([GROUPS[name].index(g) for g in table["group"].astype(str)])
    return {"x": x, "y": y, "group": group}


def read(name: str, seed: int, cache: Path = CACHE) -> SeveralTable:
    """A table, split with this seed and standardised on the rows to train on."""
    with np.load(cache / f"several-{name}.npz") as file:
        x, y = file["x"], file["y"]
        group = file["group"] if "group" in file else np.zeros(len(y), int)
    stratum = group * 1000 + (y if y.ndim == 1 else y @ (1 << np.arange(y.shape[1])))
    rng = np.random.default_rng([11, seed])
    parts: list[list[np.ndarray]] = [[], [], []]
    for code in np.unique(stratum):
        rows = rng.permutation(np.flatnonzero(stratum == code))
        ends = np.round(np.cumsum(SHARES) * rows.size).astype(int)
        for part, some in zip(parts, np.split(rows, ends[:-1]), strict=True):
            part.append(some)
    train, tune, test = (rng.permutation(np.concatenate(part)) for part in parts)
    mean, spread = np.nanmean(x[train], 0), np.nanstd(x[train], 0)
    spread = np.where(spread > 1e-9, spread, 1.0)
    z = np.clip(np.nan_to_num((x - mean) / spread), -10, 10).astype(np.float32)
    kind = "groups" if name in GROUPS else "labels" if name == MADE_UP else "classes"
    size = {"groups": int(group.max()) + 1, "labels": y.shape[-1], "classes": int(y.max()) + 1}
    pieces = (Rows(z[r], y[r], group[r]) for r in (train, tune[:REST], test[:REST]))
    return SeveralTable(name, kind, size[kind], *pieces)
