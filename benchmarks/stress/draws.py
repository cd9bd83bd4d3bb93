"""Settings drawn at random; every method runs each of them, and cross-entropy beside them."""

from __future__ import annotations

from dataclasses import asdict, dataclass

import numpy as np

from benchmarks.stress.tables import FLOORS, NAMES

METHODS = ("soft-set", "costs", "implicit", "lagrangian", "exact")
GUARDED = tuple(f"{name} guarded" for name in METHODS)
BATCHES = (32, 256)
RATES = (3e-4, 1e-3, 1e-2)
NETWORKS = ("64-32", "linear")
CAP, RECALL = 0.01, 0.9


@dataclass(frozen=True)
class Aim:
    """A goal: what is gained, what is bounded, and what a run pays for each unit of violation."""

    name: str
    text: str
    gain: str
    bounded: str | None = None
    bound: float = 0.0
    penalty: float = 0.0

    @property
    def is_cap(self) -> bool:
        """Whether the bound is from above."""
        return self.bounded == "fpr"


def aims(table: str) -> dict[str, Aim]:
    """The four goals on a table."""
    return aims_with(FLOORS[table])


def aims_with(p0: float) -> dict[str, Aim]:
    """The four goals with a floor of precision."""
    every = (
        Aim("f1", "maximize f1", "f1"),
        Aim("floor", f"maximize recall subject to precision >= {p0}", "recall", "precision", p0, 5),
        Aim("cap", f"minimize fnr subject to fpr <= {CAP}", "recall", "fpr", CAP, 50),
        Aim(
            "recall",
            f"maximize precision subject to recall >= {RECALL}",
            "precision",
            "recall",
            RECALL,
            5,
        ),
    )
    return {aim.name: aim for aim in every}


@dataclass(frozen=True)
class Setting:
    """One plain loop, but for the method."""

    number: int
    table: str
    aim: str
    batch: int
    rate: float
    network: str
    seed: int

    def record(self) -> dict[str, object]:
        """Its fields."""
        return asdict(self)


def draw(count: int, seed: int = 0, names: tuple[str, ...] = NAMES) -> list[Setting]:
    """Settings: tables and goals in turn (each pair as often as any other), the rest by chance."""
    rng = np.random.default_rng(seed)
    pairs = [(table, aim) for aim in ("f1", "floor", "cap", "recall") for table in names]
    settings: list[Setting] = []
    while len(settings) < count:
        for place in rng.permutation(len(pairs)):
            table, aim = pairs[place]
            settings.append(
                Setting(
                    number=len(settings),
                    table=table,
                    aim=aim,
                    batch=int(rng.choice(BATCHES)),
                    rate=float(rng.choice(RATES)),
                    network=str(rng.choice(NETWORKS)),
                    seed=int(rng.integers(1_000)),
                )
            )
    return settings[:count]
