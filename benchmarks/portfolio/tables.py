"""The tables, the goals and the splits of :mod:`benchmarks.portfolio`.

A folder holds one parquet file a table: every column is a feature except those of :data:`NOT`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.model_selection import train_test_split

NOT = ("target", "split", "group", "qid", "target_reg")  #: compas's group repeats its feature race
ROWS = 10_000  #: of larger tables, that many by a fixed stratified draw
TEST = 0.2

#: p₀ of the first goal: the greatest of :data:`FLOORS` at which 5-fold LightGBM at its defaults on
#: the whole table (pooled out-of-fold scores) has a recall of at least 0.4 (:func:`floor_of`)
FLOORS = (0.95, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3)
P0 = {
    "abalone_7": 0.3,
    "abalone_19": 0.3,  # 0.3 is not reached either
    "annthyroid": 0.9,
    "breast-cancer-wisc": 0.95,
    "compas": 0.7,
    "creditcard-fraud_sample": 0.95,
    "letter": 0.95,
    "mammography": 0.95,
    "oil_spill": 0.5,
    "ozone_eighthr": 0.5,
    "phoneme": 0.9,
    "satimage": 0.9,
    "spambase": 0.95,
    "thyroid_sick": 0.95,
    "wilt": 0.95,
    "yeast_me2": 0.3,
}
#: run unless told otherwise: sizes of 699 to 10,000, chosen before any merit was seen
DEFAULT = (
    "abalone_7",
    "annthyroid",
    "breast-cancer-wisc",
    "compas",
    "creditcard-fraud_sample",
    "letter",
    "mammography",
    "oil_spill",
    "phoneme",
    "satimage",
    "spambase",
    "thyroid_sick",
    "yeast_me2",
)


@dataclass(frozen=True)
class Aim:
    """A goal and how a run is paid for it: max(−1, gain − penalty · violation)."""

    name: str
    text: str
    gain: str  #: the rate that is gained
    bounded: str | None = None  #: the rate that is bounded
    bound: float = 0.0
    penalty: float = 0.0

    @property
    def is_cap(self) -> bool:
        """Whether the bound is from above."""
        return self.bounded == "fpr"


def aims(table: str) -> tuple[Aim, ...]:
    """The four goals on a table."""
    p0 = P0[table]
    return (
        Aim("G1", f"maximize recall subject to precision >= {p0}", "recall", "precision", p0, 5),
        Aim("G2", "maximize f1", "f1"),
        Aim("G3", "maximize precision subject to recall >= 0.9", "precision", "recall", 0.9, 5),
        Aim("G4", "minimize fnr subject to fpr <= 0.02", "recall", "fpr", 0.02, 50),
    )


@dataclass(frozen=True)
class Rows:
    """Features (a data frame) and 0/1 targets."""

    x: Any
    y: np.ndarray

    def take(self, rows: np.ndarray) -> Rows:
        """Some of them."""
        return Rows(self.x.iloc[rows], self.y[rows])


def read(name: str, where: Path) -> Rows:
    """A table, of at most :data:`ROWS` rows."""
    import pandas

    table = pandas.read_parquet(where / f"{name}.parquet")
    y = table["target"].to_numpy().astype(np.int64)
    if y.size > ROWS:
        kept, _ = train_test_split(np.arange(y.size), train_size=ROWS, random_state=0, stratify=y)
        table, y = table.iloc[np.sort(kept)], y[np.sort(kept)]
    x = table.drop(columns=[c for c in NOT if c in table]).reset_index(drop=True)
    return Rows(x, y)


def split(rows: Rows, seed: int) -> tuple[Rows, Rows]:
    """80 % given to the strategies, 20 % test; stratified."""
    given, test = train_test_split(
        np.arange(rows.y.size), test_size=TEST, random_state=seed, stratify=rows.y
    )
    return rows.take(np.asarray(given)), rows.take(np.asarray(test))


def floor_of(y: np.ndarray, scores: np.ndarray, floors: Sequence[float] = FLOORS) -> float:
    """p₀ by the rule above, from out-of-fold scores."""
    from sklearn.metrics import precision_recall_curve

    precision, recall, _ = precision_recall_curve(y, scores)
    return next((p for p in floors if recall[precision >= p].max() >= 0.4), floors[-1])
