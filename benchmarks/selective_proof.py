"""A certified selective goal on real tables: whether the promised risk holds, and drift shows.

Goal: maximize coverage subject to selective_risk <= 0.02. A small network is trained once on
letter_multiclass and on mnist (``$SETPOINT_DATA``, default ``../shared/data``); the rows it has not
seen stand for the whole population. 200 times, reference rows and certify rows are drawn from them
with replacement, a rule is chosen with proof at 95 %, and its risk is read on the whole population.

Drift: the monitor of a proven rule is fed 3000 rows like those and then rows that have changed
(letters: noise on every feature; digits: moved by three pixels, and noise on every pixel). Reported
is the row of the alarm after the change, and the share of runs without change that ever alarm.
``python -m benchmarks.selective_proof FILE.svg`` draws them.
"""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

import setpoint as sp

GOAL = "maximize coverage subject to selective_risk <= 0.02"
CONFIDENCE, BOUND = 0.95, 0.02
DRAWS, RUNS = 200, 40
REFERENCE, CERTIFY = 2000, 3000
GOOD, BATCH, MOST = 3000, 50, 8000


@dataclass(frozen=True)
class Population:
    """Rows that no model has seen, and the same rows after a change, as labels and logits."""

    name: str
    y: np.ndarray
    logits: np.ndarray
    changed: dict[str, np.ndarray]

    @property
    def task(self) -> sp.Task:
        """The classes, by number."""
        return sp.Task.multiclass(list(range(self.logits.shape[1])), score="logit")


def run(console: Console, repeats: int, rows: int) -> list[dict]:
    """Both tables; held where the promise is kept in at least 95 % of the draws."""
    del repeats, rows
    records, _ = _study(console)
    return records


def _study(console: Console) -> tuple[list[dict], dict[str, np.ndarray]]:
    folder = Path(os.environ.get("SETPOINT_DATA", "../shared/data"))
    promises = Table("data", "proven", "broken", "coverage", "risk", "of all", box=box.SIMPLE_HEAD)
    alarms = Table("data", "change", "risk", "alarmed", "rows until", box=box.SIMPLE_HEAD)
    records: list[dict] = []
    waits: dict[str, np.ndarray] = {}
    for load in (_letters, _digits):
        try:
            population = load(folder)
        except FileNotFoundError as error:
            console.print(f"{error.filename} is not there: left out")
            continue
        record, rule = _promises(population)
        promises.add_row(
            population.name,
            f"{record['proven']:.3f}",
            f"{record['broken']:.3f}",
            f"{record['coverage']:.3f}",
            f"{record['risk']:.4f}",
            f"{record['risk_of_all']:.4f}",
        )
        records.append(record)
        for change in ("none", *population.changed):
            wait, risk = _alarms(population, rule, change)
            waits[f"{population.name}, {change}"] = wait
            alarmed = np.isfinite(wait)
            middle = f"{np.median(wait[alarmed]):.0f}" if alarmed.any() else "–"
            alarms.add_row(population.name, change, f"{risk:.3f}", f"{alarmed.mean():.2f}", middle)
            false = (
                change == "none" and alarmed.sum() > 6
            )  # of 40 runs at 5 %: a chance of 1 in 300
            records.append(
                {"data": population.name, "change": change, "alarmed": float(alarmed.mean())}
                | {"median_rows": float(np.median(wait)), "risk": risk}
                | {"verdict": "MISSED" if false else "ok" if change == "none" else ""}
            )
    console.print(f"{GOAL}, {DRAWS} draws of {REFERENCE:,} + {CERTIFY:,} rows")
    console.print(promises)
    console.print(f"Monitor: {RUNS} runs, {GOOD:,} good rows, then at most {MOST:,} changed ones")
    console.print(alarms)
    return records, waits


def _promises(population: Population) -> tuple[dict, Any]:
    found, rule = [], None
    for draw in range(DRAWS):
        random = np.random.default_rng(draw)
        drawn = random.integers(0, population.y.size, REFERENCE + CERTIFY)
        first, rest = drawn[:REFERENCE], drawn[REFERENCE:]
        # rows drawn twice are rows of the population that came twice: no second look at any
        jitter = 1e-9 * random.normal(size=(drawn.size, 1))
        made = sp.tune(
            GOAL,
            population.y[rest],
            population.logits[rest] + jitter[REFERENCE:],
            task=population.task,
            prove=CONFIDENCE,
            reference=(population.y[first], population.logits[first] + jitter[:REFERENCE]),
        )
        truth = sp.evaluate(made, population.y, population.logits)
        risk = truth.kept[0].value
        broken = made.proven and risk is not None and risk > BOUND
        coverage = truth.value if made.proven else 0.0
        found.append((made.proven, broken, coverage or 0.0, risk or 0.0))
        rule = made if rule is None and made.proven else rule
    proven, broken, coverage, risk = np.mean(found, axis=0)
    everything = float((population.logits.argmax(1) != population.y).mean())
    return {
        "data": population.name,
        "proven": proven,
        "broken": broken,
        "coverage": coverage,
        "risk": risk,
        "risk_of_all": everything,
        "verdict": "ok" if broken <= 0.05 else "MISSED",
    }, rule


def _alarms(population: Population, rule: Any, change: str) -> tuple[np.ndarray, float]:
    """Rows from the change to the alarm (inf where there is none), and the risk after it."""
    after = population.logits if change == "none" else population.changed[change]
    risk = sp.evaluate(rule, population.y, after).kept[0].value
    waits = np.full(RUNS, np.inf)
    for run_ in range(RUNS):
        random = np.random.default_rng(10_000 + run_)
        monitor = sp.Monitor(rule.certificate)
        for start in range(0, GOOD + MOST, BATCH):
            rows = random.integers(0, population.y.size, BATCH)
            logits = (population.logits if start < GOOD else after)[rows]
            logits = logits + 1e-9 * random.normal(size=(BATCH, 1))
            if monitor.update(population.y[rows], logits).alarm is not None:
                waits[run_] = (monitor.alarm or 0) - GOOD
                break
    return waits, float(risk or 0.0)


# --- data ------------------------------------------------------------------------------------


def _letters(folder: Path) -> Population:
    import pandas as pd

    table = pd.read_parquet(folder / "letter_multiclass.parquet")
    X = table.drop(columns="target").to_numpy(float)
    y = np.unique(table["target"].to_numpy(), return_inverse=True)[1]
    X = (X - X.mean(0)) / X.std(0)
    order = np.random.default_rng(0).permutation(y.size)
    train, rest = order[:8000], order[8000:]
    score = _network(X[train], y[train])
    noise = np.random.default_rng(1).normal(size=X[rest].shape)
    changed = {
        "noise .2": score(X[rest] + 0.2 * noise),
        "noise .4": score(X[rest] + 0.4 * noise),
    }
    return Population("letter_multiclass", y[rest], score(X[rest]), changed)


def _digits(folder: Path) -> Population:
    with np.load(folder / "mnist.npz") as file:
        names = {name.lower(): name for name in file.files}
        images, y = (file[names[k]] for k in ("x_train", "y_train"))
        test, labels = (file[names[k]] for k in ("x_test", "y_test"))
    score = _network(images[:10_000].reshape(10_000, -1) / 255.0, y[:10_000].astype(int))
    flat: Callable[[np.ndarray], np.ndarray] = lambda x: x.reshape(len(x), -1) / 255.0  # noqa: E731
    moved = np.roll(test, 3, axis=2)
    noise = np.random.default_rng(1).normal(size=(len(test), 784))
    changed = {
        "moved by 3 pixels": score(flat(moved)),
        "noise .3": score(np.clip(flat(test) + 0.3 * noise, 0, 1)),
    }
    return Population("mnist", labels.astype(int), score(flat(test)), changed)


def _network(X: np.ndarray, y: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Train one hidden layer; gives a function to logits (up to a constant a row)."""
    from sklearn.neural_network import MLPClassifier

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = MLPClassifier((128,), max_iter=30, random_state=0).fit(X, y)

    def logits(x: np.ndarray) -> np.ndarray:
        (w1, w2), (b1, b2) = model.coefs_, model.intercepts_
        return np.maximum(x @ w1 + b1, 0) @ w2 + b2

    return logits


def draw(waits: dict[str, np.ndarray], path: Path) -> None:
    """The share of runs that have alarmed, over the rows since the change."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 4), layout="constrained")
    ax = figure.subplots()
    for name, wait in waits.items():
        known = np.sort(wait[np.isfinite(wait)])
        x = np.r_[0, known, MOST]
        shares = np.r_[0, np.arange(1, known.size + 1), known.size] / wait.size
        ax.step(x, shares, where="post", linewidth=1.6, label=name)
    ax.set_xlabel("labelled rows since the change")
    ax.set_ylabel("share of runs with an alarm")
    ax.set_xscale("symlog", linthresh=10)
    ax.grid(alpha=0.25)
    ax.legend(frameon=False)
    figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)


if __name__ == "__main__":
    drawn = _study(Console(width=100))[1]
    if len(sys.argv) > 1:
        draw(drawn, Path(sys.argv[1]))
