"""The rows of a table and seed: to train, to choose thresholds, to test.

56/19/25, stratified; monks-3 by its published parts, ade-corpus-v2 by article. Numbers are
standardised by what the training rows show, a missing one is their mean; the categories of monks-3
become 0/1 columns.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
from sklearn.model_selection import GroupShuffleSplit, train_test_split

from benchmarks.exact.features import MONKS, TEXT
from benchmarks.exact.generator import small
from benchmarks.implicit.rows import Part, Split, Table, encoded, read

TABLES = ("wilt", MONKS, "breast-cancer-wisc", "mammography", "phoneme", TEXT)
DRAWN = "drawn, 6,000 rows"  #: that no linear head fits
QUARTER = 0.25


@lru_cache(maxsize=4)
def split(name: str, seed: int, where: Path) -> Split:
    """The same for everybody."""
    table = drawn(seed) if name == DRAWN else read(name, where)
    table = replace(table, numbers=table.numbers.astype(np.float32))
    parts = indices(name, table, seed)
    x = encoded(table, parts[0], binned=False)
    return Split(*(_part(x, table, rows) for rows in parts))


def indices(name: str, table: Table, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The rows of each part."""
    every = np.arange(table.target.size)
    if name == MONKS:
        rest, test = every[table.group == 0], every[table.group == 1]
    else:
        rest, test = _parted(every, table, seed, by_article=name == TEXT)
    train, tune = _parted(rest, table, seed, by_article=name == TEXT)
    return train, tune, test


def drawn(seed: int) -> Table:
    """A table of the generator."""
    x, y = small(6000, seed)
    return Table(x, np.zeros((len(y), 0), int), y, np.zeros(len(y)))


def _parted(rows: np.ndarray, table: Table, seed: int, *, by_article: bool):
    if by_article:
        parts = GroupShuffleSplit(1, test_size=QUARTER, random_state=seed)
        first, second = next(parts.split(rows, groups=table.group[rows]))
        return rows[first], rows[second]
    first, second = train_test_split(
        rows, test_size=QUARTER, random_state=seed, stratify=table.target[rows]
    )
    return np.asarray(first), np.asarray(second)


def _part(x: np.ndarray, table: Table, rows: np.ndarray) -> Part:
    y = torch.from_numpy(table.target[rows])
    return Part(torch.from_numpy(np.ascontiguousarray(x[rows])), y, torch.zeros_like(y))
