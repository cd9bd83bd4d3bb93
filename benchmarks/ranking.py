"""``python -m benchmarks.ranking [--seeds N] [--splits N] [--json FILE] [--record]``.

Ranking by query: networks trained on precision@5 and on ndcg@5 by one implicit threshold for every
query and rank, beside pointwise losses and LightGBM.

Data
    letor-ohsumed (106 queries, 16,140 documents, 25 features, relevance 0 – 2) on its own split,
    ``--seeds`` times, and, because 22 test queries say little, on ``--splits`` random ones: 60 % of
    the queries to train on, 20 % to choose on, 20 % to judge on. lightgbm-rank (251 queries, 3,773
    documents, 218 features, relevance 0 – 4) on random splits alone. Every feature is scaled to
    0 … 1 within its query, as is usual for LETOR, and then standardised by the training rows. From
    ``$SETPOINT_DATA``, else ``../shared/data``.
Ways
    A line and a network of 64 and 32 hidden units, by Adam, 30 epochs of 16 queries a batch, on
    squared error to the relevance, logistic loss of relevance > 0, and the two goals through
    ``GoalLoss(goal, "implicit", correction="soft", memory=0, warmup=0)``. LightGBM (step size .05,
    200 rounds at most) on squared error and on LambdaRank, with 7 or 31 leaves. Everybody may
    choose on the validation queries: the networks their step size (.001, .01) and epoch, the trees
    their leaves and number of rounds (a multiple of 5); once for each figure that is judged. The
    trees draw nothing: on letor-ohsumed's own split their runs are one and the same.
Figures
    precision@5, ndcg@5 and ndcg@5 with exponential gain on the test queries; the last at the epoch
    chosen for ndcg@5.
"""

from __future__ import annotations

import argparse
import os
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import torch
from rich.console import Console
from torch import Tensor, nn
from torch.nn import functional

import setpoint as sp
from benchmarks.harness import new_table, one_thread, write_json
from benchmarks.results.figures import number, spread, values
from benchmarks.results.recording import record
from setpoint.losses import GoalLoss
from setpoint.methods.implicit.query_ranking import query_program
from setpoint.training import RunningLoss
from setpoint.training.batches import TrainingRows
from setpoint.training.query_batches import ByQuery

NAME = "ranking"
COMMAND = "python -m benchmarks.ranking --record"
RANKING = sp.Task.ranking()
FIGURES = {
    "p5": sp.precision_at_k(5, by="query"),
    "ndcg5": sp.ndcg(5),
    "ndcg5 exp": sp.ndcg(5, gain="exponential"),
}
CHOSEN = ("p5", "ndcg5")  #: figures to choose by; the last one follows the second
EPOCHS, QUERIES, STEPS = 30, 16, (1e-3, 1e-2)
ROUNDS, LEAVES = range(5, 201, 5), (7, 31)
PRECISION, NDCG = "implicit precision@5", "implicit ndcg@5"

Loss = Callable[[Tensor, Tensor, Tensor], Tensor]


class Part(NamedTuple):
    """Rows of some queries."""

    x: np.ndarray
    y: np.ndarray
    query: np.ndarray


class Case(NamedTuple):
    """A table, how it was split, and the parts."""

    table: str
    split: str
    seed: int
    train: Part
    valid: Part
    test: Part


# --- data ------------------------------------------------------------------------------------


def cases(folder: Path, seeds: int, splits: int) -> Iterator[Case]:
    """The published split with several seeds, then random ones; of the other table those alone."""
    for table in ("letor-ohsumed", "lightgbm-rank"):
        rows = pd.read_parquet(folder / f"{table}.parquet")
        part = rows.pop("split").to_numpy(str)
        query, y = rows.pop("qid").to_numpy(int), rows.pop("target").to_numpy(int)
        x = by_query_scaled(rows.to_numpy(float), query)
        if table == "letor-ohsumed":
            where = [part == name for name in ("train", "valid", "test")]
            for seed in range(seeds):
                yield Case(table, "own", seed, *parts(x, y, query, where))
        for seed in range(splits):
            order = np.random.default_rng(seed).permutation(np.unique(query))
            cut = np.split(order, [int(0.6 * order.size), int(0.8 * order.size)])
            where = [np.isin(query, codes) for codes in cut]
            yield Case(table, "random", seed, *parts(x, y, query, where))


def by_query_scaled(x: np.ndarray, query: np.ndarray) -> np.ndarray:
    """Each feature from 0 to 1 within each query; 0 where it does not vary."""
    place = np.unique(query, return_inverse=True)[1]
    order = np.argsort(place, kind="stable")
    starts = np.searchsorted(place[order], np.arange(place.max() + 1))
    low, high = (way.reduceat(x[order], starts)[place] for way in (np.minimum, np.maximum))
    return (x - low) / np.where(high > low, high - low, 1)


def parts(x: np.ndarray, y: np.ndarray, query: np.ndarray, where: list) -> list[Part]:
    """Standardised by the training rows."""
    mean, deviation = x[where[0]].mean(0), x[where[0]].std(0)
    x = (x - mean) / np.where(deviation > 0, deviation, 1)
    return [Part(x[w], y[w], query[w]) for w in where]


# --- ways ------------------------------------------------------------------------------------


def squared(scores: Tensor, y: Tensor, query: Tensor) -> Tensor:
    """Mean squared distance from the relevance."""
    del query
    return functional.mse_loss(scores, y.to(scores.dtype))


def logistic(scores: Tensor, y: Tensor, query: Tensor) -> Tensor:
    """Log loss of relevance > 0."""
    del query
    return functional.binary_cross_entropy_with_logits(scores, (y > 0).to(scores.dtype))


def implicit(figure: str) -> Loss:
    """A goal by query."""
    loss = GoalLoss(
        FIGURES[figure], "implicit", correction="soft", task=RANKING, memory=0, warmup=0
    )
    return lambda scores, y, query: loss(scores, y, group=query)


LOSSES: dict[str, Callable[[], Loss]] = {
    "squared error": lambda: squared,
    "logistic": lambda: logistic,
    PRECISION: lambda: implicit("p5"),
    NDCG: lambda: implicit("ndcg5"),
}
NETWORKS: dict[str, Callable[[int], nn.Module]] = {
    "linear": lambda d: nn.Linear(d, 1),
    "MLP": lambda d: nn.Sequential(
        nn.Linear(d, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1)
    ),
}


def trained(case: Case, network: str, way: str) -> Iterator[Callable[[np.ndarray], np.ndarray]]:
    """The model after each epoch, at each step size."""
    train = case.train
    columns = [torch.tensor(c) for c in (train.x.astype(np.float32), train.y, train.query)]
    batches = ByQuery(TrainingRows(columns[0], columns[1], None, columns[2]), QUERIES)
    for step in STEPS:
        torch.manual_seed(case.seed)
        model, loss = NETWORKS[network](train.x.shape[1]), LOSSES[way]()
        optimiser = torch.optim.Adam(model.parameters(), step)

        def scores(x: np.ndarray, model: nn.Module = model) -> np.ndarray:
            with torch.no_grad():
                return model(torch.tensor(x, dtype=torch.float32))[:, 0].numpy()

        for epoch in range(EPOCHS):
            for rows in batches.epoch(case.seed, epoch):
                optimiser.zero_grad()
                loss(model(rows.inputs)[:, 0], rows.target, rows.group).backward()
                optimiser.step()
            yield scores


def boosted(case: Case, way: str) -> Iterator[Callable[[np.ndarray], np.ndarray]]:
    """The trees after every fifth round, with each number of leaves."""
    import lightgbm

    order = np.argsort(case.train.query, kind="stable")
    x, y, query = (column[order] for column in case.train)
    sizes = np.unique(query, return_counts=True)[1]
    for leaves in LEAVES:
        settings: dict[str, Any] = {
            "objective": "lambdarank" if way == "LambdaRank" else "regression",
            "num_leaves": leaves,
            "learning_rate": 0.05,
            "seed": case.seed,
            "num_threads": 1,
            "verbosity": -1,
        }
        data = lightgbm.Dataset(x, y, group=sizes)
        model = lightgbm.train(settings, data, max(ROUNDS))
        for rounds in ROUNDS:
            yield lambda x, rounds=rounds, model=model: np.asarray(
                model.predict(x, num_iteration=rounds)
            )


def outcome(case: Case, models: Iterator[Callable[[np.ndarray], np.ndarray]]) -> dict[str, float]:
    """Test figures of the models that are best on the validation queries."""
    judges = {name: Judge(name, case.valid) for name in CHOSEN}
    best: dict[str, tuple[float, np.ndarray]] = {name: (-1.0, np.empty(0)) for name in CHOSEN}
    for scores in models:
        valid = scores(case.valid.x)
        found = {name: judge(valid) for name, judge in judges.items()}
        better = [name for name in CHOSEN if found[name] > best[name][0]]
        test = scores(case.test.x) if better else np.empty(0)
        best.update({name: (found[name], test) for name in better})
    chosen = {name: best["p5" if name == "p5" else "ndcg5"][1] for name in FIGURES}
    test = case.test
    return {
        name: metric(test.y, chosen[name], query=test.query, task=RANKING)
        for name, metric in FIGURES.items()
    }


class Judge:
    """A figure of one part, many times: the loss reads it faster than the metric."""

    def __init__(self, figure: str, part: Part) -> None:
        program = query_program(sp.maximize(FIGURES[figure]), RANKING, correction="exact")
        self.loss = RunningLoss(program, memory=0, warmup=0)
        self.y, self.query = torch.tensor(part.y), torch.tensor(part.query)

    def __call__(self, scores: np.ndarray) -> float:
        return 1 - float(self.loss(torch.tensor(scores).double(), self.y, group=self.query))


# --- report ----------------------------------------------------------------------------------


def lines_of(case: Case) -> Iterator[dict[str, Any]]:
    """One line for each model and way."""
    about = {
        "table": case.table,
        "split": case.split,
        "seed": case.seed,
        "test queries": np.unique(case.test.query).size,
    }
    for network in NETWORKS:
        for way in LOSSES:
            found = outcome(case, trained(case, network, way))
            yield {**about, "model": network, "way": way, **found}
    for way in ("squared error", "LambdaRank"):
        yield {**about, "model": "LightGBM", "way": way, **outcome(case, boosted(case, way))}


def show(console: Console, lines: list[dict[str, Any]]) -> None:
    """Means ± s.e., and paired differences from the same model on squared error."""
    for data, split in dict.fromkeys((x["table"], x["split"]) for x in lines):
        chosen = [x for x in lines if (x["table"], x["split"]) == (data, split)]
        table = new_table(
            f"{data}, {'its own split' if split == 'own' else 'random splits'}",
            f"{len({x['seed'] for x in chosen})} seeds, mean ± s.e.; − squared error: paired",
            ("model", "trained on"),
            ("precision@5", "ndcg@5", "exponential gain", "p@5 − sq. err.", "ndcg@5 − sq. err."),
        )
        for model, way in dict.fromkeys((x["model"], x["way"]) for x in chosen):
            cells = [spread(values(chosen, key, model=model, way=way)) for key in FIGURES]
            for key in CHOSEN:
                own = values(chosen, key, model=model, way=way)
                base = values(chosen, key, model=model, way="squared error")
                cells.append("" if way == "squared error" else paired(own, base))
            table.add_row(model, way, *cells)
        console.print(table)


def paired(a: np.ndarray, b: np.ndarray) -> str:
    """Mean difference ± its standard error."""
    return f"{number(float((a - b).mean()), signed=True)} ± {spread(a - b).split(' ± ')[1]}"


def main(arguments: list[str] | None = None) -> int:
    """Parse the command line, run, report."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ranking")
    parser.add_argument("--seeds", type=int, default=5, help="on letor-ohsumed's own split")
    parser.add_argument("--splits", type=int, default=8, help="random splits of each table")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures there")
    parser.add_argument("--record", action="store_true", help="keep the figures for the page")
    options = parser.parse_args(arguments)
    warnings.simplefilter("ignore")
    one_thread()
    console = Console(width=140)
    folder = Path(os.environ.get("SETPOINT_DATA") or "../shared/data")
    lines: list[dict[str, Any]] = []
    for case in cases(folder, options.seeds, options.splits):
        lines += lines_of(case)
        console.log(f"{case.table}, {case.split} split, seed {case.seed}")
        if options.json:
            write_json(options.json, lines)
    show(console, lines)
    if options.record:
        packages = ("numpy", "scikit-learn", "torch", "lightgbm")
        record(NAME, COMMAND, lines, packages=packages, epochs=EPOCHS, queries=QUERIES)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
