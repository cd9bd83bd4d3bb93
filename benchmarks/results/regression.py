"""Regression goals (``python -m benchmarks.regression --record``)."""

from __future__ import annotations

import numpy as np

from benchmarks.results.figures import difference, spread, table, values
from benchmarks.results.recording import Recording
from benchmarks.results.section import Finding, Section, how

GOALS = {
    "balanced": "`minimize balanced(mae)`: mean over bins of the absolute error",
    "worst": '`minimize worst(mae, by="bin")`: absolute error of the worst bin',
}
OTHERS = {
    "mse": "plain MSE",
    "mae": "plain MAE",
    "density": "inverse density",
    "LightGBM l2": "LightGBM l2",
    "LightGBM l1": "LightGBM l1",
}
Cell = tuple[str, str]


def regression(recording: Recording) -> Section:
    """Each goal by table and model, the others less ours; then the bounded goal."""
    cells = list(dict.fromkeys((x["table"], x["model"]) for x in recording.lines))
    parts = [
        how(
            recording,
            "60/20/20 splits, the same for everybody; the tune rows choose the epoch. Test rows; "
            "lower is better. ± s.e. over splits, which share rows.",
        )
    ]
    for goal, text in GOALS.items():
        heads = [f"{name} − errors" for name in OTHERS.values()]
        rows = [_row(recording, goal, cell) for cell in cells]
        parts.append(f"{text}\n\n" + table(["table", "model", "errors", *heads], rows))
    parts.append(
        'The same under `minimize rmse subject to worst(mae, by="bin") <= B`, B 0.8 × what the '
        "plain MSE network has on the tune rows; over B: the worst bin, share of B\n\n"
        + table(
            ["table", "model", "trained on", "rmse", "over B"],
            [row for cell in cells for row in _bounded(recording, cell)],
        )
    )
    return Section("Errors by bins of the target", "\n".join(parts), _findings(recording, cells))


def _figures(recording: Recording, cell: Cell, goal: str, way: str, key: str) -> np.ndarray:
    return values(recording.lines, key, goal=goal, way=way, table=cell[0], model=cell[1])


def _row(recording: Recording, goal: str, cell: Cell) -> list[str]:
    ours = _figures(recording, cell, goal, "errors", goal)
    others = (_figures(recording, cell, goal, way, goal) for way in OTHERS)
    return [*cell, spread(ours), *(difference(x, ours) for x in others)]


def _bounded(recording: Recording, cell: Cell) -> list[list[str]]:
    return [
        [
            *cell,
            OTHERS.get(way, way),
            spread(_figures(recording, cell, "bounded", way, "rmse")),
            spread(_figures(recording, cell, "bounded", way, "short")),
        ]
        for way in ("errors", *OTHERS)
    ]


def _findings(recording: Recording, cells: list[Cell]) -> tuple[Finding, ...]:
    """Over tables and models, in units of the plain MSE network's error."""
    found = []
    for goal, name in (("balanced", "mean over bins"), ("worst", "worst bin")):
        unit = _means(recording, cells, goal, "mse")
        ours = -_means(recording, cells, goal, "errors") / unit
        for way in ("mse", "density", "LightGBM l2"):
            other = -_means(recording, cells, goal, way) / unit
            question = "Errors by bins, two tables, linear and MLP"
            figure = f"− {name}, plain MSE = 1"
            found.append(Finding.of(question, "errors", OTHERS[way], figure, ours, other))
    return tuple(found)


def _means(recording: Recording, cells: list[Cell], goal: str, way: str) -> np.ndarray:
    return np.array([_figures(recording, cell, goal, way, goal).mean() for cell in cells])
