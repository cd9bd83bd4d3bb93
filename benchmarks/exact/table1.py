"""``table1``: the three goals on six tables, linear heads and perceptrons."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from benchmarks.exact.aims import AIMS, PARTS, outcome
from benchmarks.exact.exactly import STEPS, by_exact
from benchmarks.exact.rows import TABLES, split
from benchmarks.exact.start import MODELS, continued, started
from benchmarks.exact.ways import (
    LAGRANGIAN,
    ON,
    PLAIN,
    RELABEL,
    TREES,
    TRIM,
    WEIGHTED,
    Scored,
    by_lagrangian,
    by_net,
    by_trees,
)
from benchmarks.implicit.rows import Split
from benchmarks.implicit.running import Line
from benchmarks.portfolio.tables import Aim

NAME = "exact-table1"
KEYS = ("goal", "table", "model", "way")
BASELINES = "baselines"
SLOW = ("ade-corpus-v2", "mammography", "phoneme", "wilt", "breast-cancer-wisc", "monks-3")
QUICK = ("breast-cancer-wisc", "monks-3")


def jobs(seeds: int, where: Path, *, quick: bool = False) -> list[tuple[Any, ...]]:
    """Every run, the slow ones first."""
    assert set(SLOW) == set(TABLES)
    return [
        (name, model, seed, what, where)
        for name in (QUICK if quick else SLOW)
        for model in reversed(MODELS)
        for what in (*AIMS, *(f"{LAGRANGIAN} {goal}" for goal in AIMS), BASELINES)
        for seed in range(seeds)
    ]


def work(name: str, model: str, seed: int, what: str, where: Path) -> list[Line]:
    """The baselines, which serve every goal; or exact, or the Lagrangian, on one goal."""
    rows = split(name, seed, where)
    about = {"table": name, "model": model, "seed": seed}
    if what == BASELINES:
        return [
            {"goal": aim.name, **about, "way": way, **told(aim, rows, scored)}
            for way, scored in baselines(name, model, seed, where).items()
            for aim in AIMS.values()
        ]
    other, _, goal = what.rpartition(" ")
    aim, start, lines = AIMS[goal], started(name, model, seed, where), []
    for way in (other,) if other else (TRIM, RELABEL):
        begun = time.perf_counter()
        if way == LAGRANGIAN:
            scored = by_lagrangian(aim, model, start, rows, seed)
        else:
            scored = by_exact(aim, start, rows, seed, regulariser=way.removeprefix("exact, "))
        line = {**told(aim, rows, scored), "seconds": time.perf_counter() - begun}
        lines.append({"goal": goal, **about, "way": way, **line})
    return lines


def baselines(name: str, model: str, seed: int, where: Path) -> dict[str, Scored]:
    """Cross-entropy in three ways; trees once a split, under linear."""
    rows = split(name, seed, where)
    start = started(name, model, seed, where)
    found = {
        PLAIN: by_net(start, rows),
        WEIGHTED: by_net(started(name, model, seed, where, balanced=True), rows),
    }
    if model == "linear":
        return {**found, TREES: by_trees(rows, seed)}
    return {**found, ON: by_net(continued(start, rows.train, STEPS, 3e-3), rows)}


def told(aim: Aim, rows: Split, scored: Scored) -> dict[str, Any]:
    """The counts, and what the way says of itself."""
    y = {key: getattr(rows, key).y.numpy() for key in PARTS}
    return {**outcome(aim, y, scored.scores, scored.own), **(scored.more or {})}


def select(lines: list[Line]) -> list[Line]:
    """One line for each cell, with a list over the seeds in place of each figure."""
    cells: dict[tuple[Any, ...], list[Line]] = {}
    for line in sorted(lines, key=lambda x: x["seed"]):
        cells.setdefault(tuple(line[k] for k in KEYS), []).append(line)
    return [
        dict(zip(KEYS, key, strict=True))
        | {k: [x[k] for x in found] for k in found[0] if k not in (*KEYS, "job")}
        for key, found in sorted(cells.items())
    ]
