"""Regression goals, trained on and not: ``python -m benchmarks.regression [--splits N]``.

Two tables of ``$SETPOINT_DATA`` (default ``../shared/data``): abalone (rings) and communities and
crime (the crime rate; its 0/1 target and its group are no features). Splits 60/20/20 by seed, the
same for everybody. Target bins are declared: abalone 6, 9, 12, 16, 20; crime .1, .2, .4, .6, .8.

Goals
    balanced(mae); worst(mae, by="bin"); rmse subject to worst(mae, by="bin") <= B, where B is 0.8
    times the worst-bin error of the plain MSE network of the same kind on the tune rows.
Ways
    A linear model and an mlp, each trained by method "errors" (on the goal), plain MSE, plain MAE,
    and MSE with rows weighed by the inverse frequency of their bin; LightGBM on l2 and l1 at its
    defaults. The tune rows pick a network's epoch by the goal, whatever it was trained on.
Figures
    On test. Differences are paired over splits, ± the standard error over them; splits of one table
    share rows, so the error is on the small side.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console

from benchmarks.harness import new_table, one_thread
from benchmarks.results.recording import record
from setpoint.fit.fold_models import built
from setpoint.fit.network.goal_network import NetworkSettings, TensorRows
from setpoint.fit.regression.regression_members import RegressionTrainingData, RegressionTrees
from setpoint.fit.regression.regression_network import RegressionTraining
from setpoint.fit.regression.regression_targets import Scale, columns_of
from setpoint.fit.training_data import Encoder
from setpoint.goals import Goal, Task
from setpoint.methods import Errors
from setpoint.rules.goal_on_rows import GoalOnRows
from setpoint.training.validation_rows import evaluate_outputs

TABLES = {
    "abalone": ("abalone_regression", "target", (6.0, 9.0, 12.0, 16.0, 20.0)),
    "crime": ("communities-crime", "target_reg", (0.1, 0.2, 0.4, 0.6, 0.8)),
}
NOT = ("target", "target_reg", "group", "split", "qid")
WORST = 'worst(mae, by="bin")'
GOALS = {
    "balanced": "minimize balanced(mae)",
    "worst": f"minimize {WORST}",
    "bounded": "minimize rmse subject to " + WORST + " <= {bound}",
}
WAYS = ("errors", "mse", "mae", "density")
TREES = {"LightGBM l2": "mse", "LightGBM l1": "mae"}
SHARE = 0.8  #: of the plain network's worst-bin error, the bound
COMMAND = "python -m benchmarks.regression"


def table_of(name: str) -> tuple[Any, np.ndarray, Task]:
    """Features, targets and the task of a table."""
    import pandas as pd

    file, target, edges = TABLES[name]
    folder = Path(os.environ.get("SETPOINT_DATA") or "../shared/data")
    frame = pd.read_parquet(folder / f"{file}.parquet")
    X = frame.drop(columns=[c for c in NOT if c in frame])
    return X, frame[target].to_numpy(np.float64), Task.regression(edges)


def parts_of(n: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Rows of train, tune and test."""
    order = np.random.default_rng(seed).permutation(n)
    return tuple(map(np.sort, np.split(order, [int(0.6 * n), int(0.8 * n)])))  # type: ignore[return-value]


class Bench:
    """One split of one table."""

    def __init__(self, name: str, seed: int, epochs: int) -> None:
        X, self.y, self.task = table_of(name)
        self.name, self.seed = name, seed
        self.train, self.tune, self.test = parts_of(len(self.y), seed)
        encoder = Encoder.fit(X, self.train, None, None, {"numbers", "codes"})
        self.rows = encoder.encode(X)
        self.settings = NetworkSettings(epochs=epochs, patience=25, seed=seed, final=0.05)

    def job(self, goal: Goal) -> RegressionTrainingData:
        """The rows of this split under a goal."""
        return RegressionTrainingData(
            goal=goal, task=self.task, rows=self.rows, target=self.y, seed=self.seed
        )

    def network(self, model: str, way: str, goal: Goal) -> tuple[np.ndarray, np.ndarray]:
        """Predictions of a network on tune and test."""

        def part(rows: np.ndarray, weigh: bool = False) -> TensorRows:
            weight = self.job(goal).way_weights(rows, "density") if weigh else None
            return TensorRows(
                torch.tensor(self.rows.numbers[rows]),
                torch.tensor(self.y[rows]),
                None if weight is None else torch.tensor(weight),
            )

        shape = {
            "model": model,
            "inputs": self.rows.width,
            "outputs": 1,
            "hidden": [64, 32],
            "dropout": 0.1,
        }

        def build() -> torch.nn.Module:
            torch.manual_seed(self.seed)
            return built(shape)

        scale = Scale.of(self.y[self.train], None)
        pace = 3.0 if model == "linear" else 1.0
        plain = "mse" if way == "density" else way
        training = RegressionTraining(
            goal=goal,
            task=self.task,
            method=Errors() if way == Errors.name else plain,
            fit=part(self.train, way == "density"),
            tune=part(self.tune),
            scale=scale,
            settings=replace(self.settings, pace=pace),
        )
        module, _ = training.run(build)
        found = (
            evaluate_outputs(module, torch.tensor(self.rows.numbers[rows])).numpy()
            for rows in (self.tune, self.test)
        )
        tune, test = (scale.to_units(z.astype(np.float64).reshape(-1)) for z in found)
        return tune, test

    def trees(self, way: str, goal: Goal) -> np.ndarray:
        """Predictions of LightGBM on test."""
        fitted = RegressionTrees(way).fit(self.job(goal), self.train, self.test, fold=0)
        return fitted.model.outputs(self.rows.rows(fitted.model.form, self.test))

    def read(self, text: str, predicted: np.ndarray, rows: np.ndarray) -> float:
        """A metric of predictions on some rows."""
        columns = columns_of(self.task, self.y, predicted, None, {}, rows)
        point = GoalOnRows.ground(Goal.parse(f"minimize {text}"), columns).judge(columns)
        return float("nan") if point.value is None else point.value

    def lines(self) -> Iterator[dict[str, Any]]:
        """The figures of all goals and ways."""
        for model in ("linear", "mlp"):
            plain = Goal.parse(GOALS["worst"])
            bound = SHARE * self.read(WORST, self.network(model, "mse", plain)[0], self.tune)
            for kind, text in GOALS.items():
                goal = Goal.parse(text.format(bound=f"{bound:.4g}"))
                for way in WAYS:
                    predicted = self.network(model, way, goal)[1]
                    yield self._line(model, kind, way, predicted, bound)
                for way, loss in TREES.items():
                    yield self._line(model, kind, way, self.trees(loss, goal), bound)

    def _line(
        self, model: str, kind: str, way: str, predicted: np.ndarray, bound: float
    ) -> dict[str, Any]:
        figures = {
            short: self.read(text, predicted, self.test)
            for short, text in {
                "balanced": "balanced(mae)",
                "worst": WORST,
                "rmse": "rmse",
                "mae": "mae",
            }.items()
        }
        head = {"table": self.name, "model": model, "goal": kind, "way": way, "seed": self.seed}
        more = {"bound": bound, "short": max(0.0, figures["worst"] / bound - 1)}
        return {**head, **figures, **(more if kind == "bounded" else {})}


def show(console: Console, lines: list[dict[str, Any]]) -> None:
    """Means, and paired differences to "errors"."""
    table = new_table(
        "Regression goals: figures on test, lower is better",
        "difference: the way's figure minus that of errors, paired over splits, ± s.e.; "
        "shortfall: how far worst(mae) lies beyond its bound, relative to it",
        ("table", "model", "goal", "way"),
        ("figure", "difference", "shortfall", "difference"),
    )
    keys = dict.fromkeys((x["table"], x["model"], x["goal"]) for x in lines)
    for name, model, kind in keys:
        of = {
            way: [x for x in lines if (x["table"], x["model"], x["goal"]) == (name, model, kind)]
            for way in ("all",)
        }["all"]
        figure = "rmse" if kind == "bounded" else kind
        ours = sorted((x for x in of if x["way"] == "errors"), key=lambda x: x["seed"])
        for way in dict.fromkeys(x["way"] for x in of):
            theirs = sorted((x for x in of if x["way"] == way), key=lambda x: x["seed"])
            cells = [name, model, kind, way]
            for key in (figure, "short"):
                if key not in theirs[0]:
                    cells += ["", ""]
                    continue
                a, b = (np.array([x[key] for x in side]) for side in (theirs, ours))
                gap = a - b
                error = gap.std(ddof=1) / np.sqrt(len(gap)) if len(gap) > 1 else float("nan")
                same = way == "errors"
                cells += [f"{a.mean():.4g}", "" if same else f"{gap.mean():+.3g} ± {error:.2g}"]
            table.add_row(*cells)
    console.print(table)


def main() -> None:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--epochs", type=int, default=100)
    parser.add_argument("--table", choices=TABLES, action="append")
    parser.add_argument("--record", action="store_true", help="keep the figures for the page")
    parser.add_argument("--json", type=Path, help="write the figures, a line each")
    given = parser.parse_args()
    one_thread()
    console, lines = Console(width=120), []
    for name in given.table or TABLES:
        for seed in range(given.splits):
            lines += Bench(name, seed, given.epochs).lines()
    show(console, lines)
    about = {"splits": given.splits, "epochs": given.epochs}
    packages = ("numpy", "scikit-learn", "torch", "lightgbm")
    if given.json is not None:
        folder, name = given.json.parent, given.json.stem
        record(name, COMMAND, lines, packages=packages, folder=folder, **about)
    if given.record:
        record("regression", COMMAND, lines, packages=packages, **about)


if __name__ == "__main__":
    main()
