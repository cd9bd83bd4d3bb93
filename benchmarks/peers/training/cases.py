"""The rows of every run: tables of ``benchmarks.stress``, at most 6,000 rows to train on, 60/20/20.

A file a table and seed, which each side reads with numpy alone.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.bridging_data import folder as data
from benchmarks.stress import tables as stress

TABLES = ("mammography", "adult", "wilt", "phoneme")
SEEDS = range(5)


@dataclass(frozen=True)
class Case:
    """A table and seed."""

    seed: int
    rows: stress.Table


def prepare(
    where: Path, tables: Collection[str] = TABLES, seeds: Iterable[int] = SEEDS
) -> dict[str, Case]:
    """Write the cases; file name without ending -> case."""
    cases: dict[str, Case] = {}
    numbers = where / "tables"
    stress.prepare(data(), numbers, tables)
    for table in tables:
        for seed in seeds:
            rows = stress.read(table, seed, numbers)
            key = f"case{len(cases):03d}"
            cases[key] = Case(seed, rows)
            np.savez(
                where / f"{key}.npz",
                seed=np.array(seed),
                x_train=rows.train.x,
                y_train=rows.train.y,
                x_tune=rows.tune.x,
                y_tune=rows.tune.y,
                x_test=rows.test.x,
                y_test=rows.test.y,
            )
    return cases
