"""``python -m benchmarks.bridging``: the tables of "Bridging the Gap" with the soft-set loss.

Tsoi et al., Bridging the Gap: Unifying the Training and Evaluation of Neural Network Binary
Classifiers, NeurIPS 2022, judge a classifier by the mean of a metric over the thresholds
.1, .2, …, .9. Its tables are trained and printed anew here:

Table 1
    Three tables of data; losses F1, accuracy and AUROC by soft sets, F1 by costs, and
    cross-entropy; also with the pairs of the cocktail party split by time.
Table 2
    Two tasks of CIFAR-10 (a subset of 8,000 + 2,000 + 2,000 images), a small convolutional network;
    "2-hidden": the same with a layer of 64 units before the logit.
Table 4
    F1, F2 and F3 by soft sets on mammography: recall against precision.
Options
    Validation figures of the options among which those of the tables were chosen, on seeds that
    the tables do not use. Figures of test rows are not shown.

Protocol
    One split a seed, the same for all losses, 64/16/20, stratified by class. Numbers are
    standardised and categories become 0/1 columns, by what the training rows show. The network is
    32–16–1 with ReLU and dropout ½ after both hidden layers; Adam, batches of 1,024. Every loss
    starts from the same weights. Each network is validated every :data:`EVERY` steps by the value
    of its own loss on the validation rows (costs: 1 − F1 at ½), stops after :data:`PATIENCE` steps
    without a better one, and goes back to the best. Cross-entropy is also shown with the step kept
    that has the best F1 at the threshold tuned on the validation rows. "Tuned" is
    ``setpoint.tune("maximize f1")`` on the validation rows. A precision or F1 with nothing decided
    is 0. AUROC is that of the scores.
"""

from __future__ import annotations

import argparse
import copy
import logging
import multiprocessing
import os
import sys
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from rich.console import Console
from rich.progress import Progress
from sklearn.metrics import roc_auc_score
from torch import Tensor, nn
from torch.nn import functional

import setpoint as sp
from benchmarks.bridging_data import BY_TIME, IMAGES, TABLES, Rows, files, folder, split
from benchmarks.harness import machine, new_table, write_json

GRID = np.arange(1, 10) / 10
BATCH = 1024
EVERY, PATIENCE, STEPS = 20, 1500, 8000
IMAGE_BATCH, IMAGE_EVERY, IMAGE_PATIENCE, IMAGE_STEPS = 512, 16, 400, 1600
PAIRED = "Mean difference ± standard error over the seeds, on the same splits."
FIRST_OTHER_SEED = 100  #: of the options


@dataclass(frozen=True)
class Loss:
    """A loss and how it is trained."""

    name: str
    goal: str | None = None
    method: str = "soft-set"
    rate: float = 3e-3
    options: dict[str, Any] = field(default_factory=dict)
    keep: str = "loss"  #: the step kept: least "loss", or greatest "tuned f1", on validation rows
    hidden: int = 0  #: units of a layer before the logit, of the image networks

    def module(self, **more: Any) -> nn.Module:
        """A fresh one; with ``memory=0`` its value is that of the batch at hand."""
        if self.goal is None:
            return nn.BCEWithLogitsLoss()
        return sp.GoalLoss(self.goal, self.method, guard=False, **{**self.options, **more})

    def judge(self) -> Callable[[Tensor, Tensor], float]:
        """What is least at the step that is kept, of the validation rows."""
        if self.keep == "tuned f1":
            return lambda z, y: -scores(_array(y), _array(z)[None] >= tuned(z, y))["f1"]
        module = self.module(**({"memory": 0, "warmup": 0} if self.goal else {}))
        return lambda z, y: float(module.to(z.device)(z, y if self.goal else y.float()))


# Chosen by ``--table options``: see docs/results/soft-set.md
SOFT = {"thresholds": "grid", "cross_entropy": 0.1}
BCE = Loss("BCE", rate=3e-3)
BCE_KEPT = replace(BCE, name="BCE, kept by F1", keep="tuned f1")
F1 = Loss("F1, soft set", "maximize f1", rate=1e-2, options=SOFT)
F2 = replace(F1, name="F2, soft set", goal="maximize f_beta(2)")
F3 = replace(F1, name="F3, soft set", goal="maximize f_beta(3)")
ACCURACY = replace(F1, name="accuracy, soft set", goal="maximize accuracy")
AUROC = replace(F1, name="AUROC, soft set", goal="maximize auroc")
COSTS = Loss("F1, costs", "maximize f1", "costs", rate=1e-2)
F1_ALONE = replace(F1, rate=1e-3, options={**SOFT, "cross_entropy": 0.0})
ACCURACY_MIXED = replace(ACCURACY, rate=1e-3, options={**SOFT, "cross_entropy": 0.3})
IMAGE_LOSSES = [F1_ALONE, ACCURACY_MIXED, replace(BCE, rate=1e-3), replace(BCE_KEPT, rate=1e-3)]
HIDDEN_LOSSES = [
    replace(loss, hidden=64, rate=3e-3 if loss is ACCURACY_MIXED else 1e-3) for loss in IMAGE_LOSSES
]

RATES = (1e-3, 3e-3, 1e-2)


def choices(loss: Loss, rates: Iterable[float], mixes: Iterable[float]) -> list[Loss]:
    """The loss at every rate and with every share of cross-entropy."""
    return [
        replace(loss, rate=rate, options={**loss.options, "cross_entropy": mix})
        for rate in rates
        for mix in mixes
    ]


CHOICES = [
    *(replace(loss, rate=rate) for loss in (BCE, BCE_KEPT, COSTS) for rate in RATES),
    *choices(F1, RATES, (0.0, 0.1, 0.3, 0.5)),
    *choices(replace(F1, options={**SOFT, "memory": 0}), RATES, (0.0,)),
]
IMAGE_CHOICES = [
    *(replace(BCE, rate=rate) for rate in (3e-4, 1e-3)),
    *choices(F1, (1e-3,), (0.0, 0.3)),
    *choices(ACCURACY, (1e-3,), (0.0, 0.3)),
    *(replace(BCE, rate=rate, hidden=64) for rate in (3e-4, *RATES)),
    *choices(replace(F1, hidden=64), (1e-3, 3e-3), (0.0, 0.3)),
    *choices(replace(ACCURACY, hidden=64), (1e-3, 3e-3), (0.0, 0.3)),
]


# --- one run --------------------------------------------------------------------------------------


def perceptron(inputs: int) -> nn.Module:
    """The paper's network for tables; a logit a row."""
    return nn.Sequential(
        nn.Linear(inputs, 32), nn.ReLU(), nn.Dropout(0.5),
        nn.Linear(32, 16), nn.ReLU(), nn.Dropout(0.5),
        nn.Linear(16, 1), nn.Flatten(0),
    )  # fmt: skip


def convolutional(hidden: int) -> nn.Module:
    """Three blocks of convolution, normalisation, ReLU and pooling; a logit an image."""
    blocks: list[nn.Module] = []
    for before, after in ((3, 32), (32, 64), (64, 128)):
        blocks += [nn.Conv2d(before, after, 3, padding=1, bias=False), nn.BatchNorm2d(after)]
        blocks += [nn.ReLU(), nn.MaxPool2d(2)]
    blocks += [nn.Flatten(), nn.Dropout(0.5)]
    if hidden:
        blocks += [nn.Linear(2048, hidden), nn.ReLU(), nn.Dropout(0.5)]
    return nn.Sequential(*blocks, nn.Linear(hidden or 2048, 1), nn.Flatten(0))


def train(loss: Loss, data: str, seed: int, where: Path, device: str) -> dict[str, Any]:
    """Train one network and judge it on the validation and the test rows."""
    start = time.perf_counter()
    image = data in IMAGES
    rows = split(data, seed, where).to(device)
    torch.manual_seed(seed)
    net = (convolutional(loss.hidden) if image else perceptron(rows.train.x.shape[1])).to(device)
    criterion, judge = loss.module().to(device), loss.judge()
    optimiser = torch.optim.Adam(net.parameters(), lr=loss.rate)
    every, patience, steps = (
        (IMAGE_EVERY, IMAGE_PATIENCE, IMAGE_STEPS) if image else (EVERY, PATIENCE, STEPS)
    )
    best, kept, at, step = float("inf"), None, 0, 0
    for x, y in batches(rows.train, IMAGE_BATCH if image else BATCH, seed, flip=image):
        optimiser.zero_grad(set_to_none=True)
        criterion(net(x), y if loss.goal else y.float()).backward()
        optimiser.step()
        step += 1
        if step % every == 0:
            value = judge(outputs(net, rows.valid.x), rows.valid.y)
            if value < best:
                best, kept, at = value, copy.deepcopy(net.state_dict()), step
            if step - at >= patience or step >= steps:
                break
    if kept is not None:
        net.load_state_dict(kept)
    return {
        "data": data,
        "loss": loss.name,
        "rate": loss.rate,
        "hidden": loss.hidden,
        "options": loss.options,
        "seed": seed,
        "step": at,
        **judged(net, rows.valid, rows.test),
        "seconds": time.perf_counter() - start,
    }


def batches(rows: Rows, size: int, seed: int, *, flip: bool) -> Iterable[tuple[Tensor, Tensor]]:
    """Batches of one size without end, from one permutation of the rows after another."""
    device = rows.y.device
    chance = torch.Generator(device=device).manual_seed(seed)
    left = torch.empty(0, dtype=torch.long, device=device)
    while True:
        while len(left) < size:
            order = torch.randperm(len(rows.y), generator=chance, device=device)
            left = torch.cat([left, order])
        taken, left = left[:size], left[size:]
        x = rows.x[taken]
        if flip:
            mirrored = torch.rand(size, 1, 1, 1, generator=chance, device=device) < 0.5
            x = torch.where(mirrored, x.flip(3), x)
        yield x, rows.y[taken]


def outputs(net: nn.Module, x: Tensor) -> Tensor:
    """Logits without dropout."""
    net.eval()
    with torch.no_grad():
        logits = torch.cat([net(part) for part in x.split(8192)])
    net.train()
    return logits


def judged(net: nn.Module, valid: Rows, test: Rows) -> dict[str, float]:
    """Figures on the test rows, and those on the validation rows by which options are chosen."""
    z_valid, z = outputs(net, valid.x), outputs(net, test.x)
    threshold = tuned(z_valid, valid.y)
    figures = {}
    for part, given, rows in (("", z, test), ("valid ", z_valid, valid)):
        y, raw, p = _array(rows.y), _array(given)[None], _array(given.double().sigmoid())[None]
        for way, decided in (
            ("mean", p >= GRID[:, None]),
            ("half", raw >= 0),
            ("tuned", raw >= threshold),
        ):
            for name, value in scores(y, decided).items():
                figures[f"{part}{name} {way}"] = value
        figures[f"{part}largest"] = float(p.max())
        figures[f"{part}auroc"] = float(roc_auc_score(y, raw[0]))
        entropy = functional.binary_cross_entropy_with_logits(given, rows.y.float())
        figures[f"{part}log loss"] = float(entropy)
    return figures


def tuned(z: Tensor, y: Tensor) -> float:
    """The threshold of the greatest F1 on these rows."""
    return sp.tune("maximize f1", _array(y), _array(z)).threshold


def _array(x: Tensor) -> np.ndarray:
    return x.cpu().numpy()


def scores(y: np.ndarray, decided: np.ndarray) -> dict[str, float]:
    """Metrics of decisions (thresholds, rows), averaged over the thresholds."""
    tp, fp = decided @ y, decided @ (1 - y)
    fn, n = y.sum() - tp, len(y)
    figures = {
        "precision": tp / np.maximum(tp + fp, 1),
        "recall": tp / y.sum(),
        "accuracy": 1 - (fp + fn) / n,
    }
    for beta in (1, 2, 3):
        figures[f"f{beta}"] = (1 + beta**2) * tp / ((1 + beta**2) * tp + beta**2 * fn + fp)
    return {key: float(value.mean()) for key, value in figures.items()}


# --- all runs -------------------------------------------------------------------------------------

Run = dict[str, Any]

#: data sets and losses of each table
PLANS: dict[str, list[tuple[tuple[str, ...], list[Loss]]]] = {
    "1": [((*TABLES, BY_TIME), [F1, COSTS, ACCURACY, AUROC, BCE, BCE_KEPT])],
    "2": [(tuple(IMAGES), IMAGE_LOSSES)],
    "2-hidden": [(tuple(IMAGES), HIDDEN_LOSSES)],
    "4": [(("mammography",), [F1, F2, F3, BCE])],
    "options": [(TABLES, CHOICES), (tuple(IMAGES), IMAGE_CHOICES)],
}


def jobs_of(name: str, seeds: int, where: Path, device: str) -> list[tuple]:
    """What is trained for a table."""
    first = FIRST_OTHER_SEED if name == "options" else 0
    return [
        (loss, data, seed, where, device if data in IMAGES else "cpu")
        for names, losses in PLANS[name]
        for seed in range(first, first + seeds)
        for data in names
        for loss in losses
    ]


def run(
    jobs: list[tuple], workers: int, console: Console, each: Callable[[dict[str, Run]], None]
) -> dict[str, Run]:
    """Every job's figures; ``each`` gets those there are whenever one more is done.

    What occurs in two tables is trained once. When a job fails, those not begun are given up.
    """
    todo = {repr(job): job for job in jobs}
    small, large = ([k for k, job in todo.items() if (job[1] in IMAGES) == i] for i in (0, 1))
    # the images' jobs are spread over the others', so that few share the device at a time
    order = sorted(
        [((i + 0.5) / len(part), key) for part in (small, large) for i, key in enumerate(part)]
    )
    found: dict[str, Run] = {}
    context = multiprocessing.get_context("spawn")
    with (
        Progress(console=console) as progress,
        ProcessPoolExecutor(workers, context, initializer=_alone) as pool,
    ):
        bar = progress.add_task("training", total=len(todo))
        futures = {pool.submit(train, *todo[key]): key for _, key in order}
        try:
            for future in as_completed(futures):
                found[futures[future]] = future.result()
                each(found)
                progress.advance(bar)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    return found


def _alone() -> None:
    """One thread: a process for each network is faster. What a loss advises is known here."""
    torch.set_num_threads(1)
    logging.getLogger("setpoint").setLevel(logging.ERROR)


def of(runs: list[Run], key: str, **where: Any) -> np.ndarray:
    """One figure, seed by seed."""
    chosen = [r for r in runs if all(r[k] == v for k, v in where.items())]
    return np.array([r[key] for r in sorted(chosen, key=lambda r: r["seed"])])


def spread(x: np.ndarray) -> str:
    """Mean ± standard deviation."""
    return f"{x.mean():.3f} ± {x.std(ddof=1) if len(x) > 1 else 0:.3f}"


def paired(x: np.ndarray, y: np.ndarray) -> str:
    """Mean difference ± its standard error over the seeds."""
    d = x - y
    error = d.std(ddof=1) / len(d) ** 0.5 if len(d) > 1 else float("nan")
    return f"{d.mean():+.3f} ± {error:.3f}"


# --- tables ---------------------------------------------------------------------------------------


def table_1(runs: list[Run], console: Console) -> None:
    """Losses by data set, and the differences that matter."""
    columns = {
        "F1\nmean over τ": "f1 mean",
        "F1\nat ½": "f1 half",
        "F1\ntuned": "f1 tuned",
        "AUROC": "auroc",
        "accuracy\nmean over τ": "accuracy mean",
    }
    _by_loss("Table 1", runs, columns, console)
    differences = new_table(
        "Table 1, F1 by soft sets − BCE",
        PAIRED,
        ["data", "BCE"],
        ["F1\nmean over τ", "F1\ntuned", "F1 at ½ −\nBCE tuned", "AUROC"],
    )
    for data in dict.fromkeys(r["data"] for r in runs):
        soft = {key: of(runs, key, data=data, loss=F1.name) for key in columns.values()}
        for loss in (BCE, BCE_KEPT):
            base = {key: of(runs, key, data=data, loss=loss.name) for key in columns.values()}
            differences.add_row(
                data,
                loss.name,
                paired(soft["f1 mean"], base["f1 mean"]),
                paired(soft["f1 tuned"], base["f1 tuned"]),
                paired(soft["f1 half"], base["f1 tuned"]),
                paired(soft["auroc"], base["auroc"]),
            )
    console.print(differences, "")


def table_2(runs: list[Run], console: Console) -> None:
    """Losses by image task."""
    columns = {
        "F1\nmean over τ": "f1 mean",
        "accuracy\nmean over τ": "accuracy mean",
        "F1\nat ½": "f1 half",
        "F1\ntuned": "f1 tuned",
        "accuracy\nat ½": "accuracy half",
        "AUROC": "auroc",
    }
    _by_loss("Table 2", runs, columns, console)
    differences = new_table(
        "Table 2, soft sets − BCE",
        PAIRED,
        ["data", "loss", "BCE"],
        ["F1\nmean over τ", "accuracy\nmean over τ", "F1\ntuned", "accuracy\nat ½", "AUROC"],
    )
    keys = ("f1 mean", "accuracy mean", "f1 tuned", "accuracy half", "auroc")
    for data in dict.fromkeys(r["data"] for r in runs):
        for loss in (F1, ACCURACY):
            for base in (BCE, BCE_KEPT):
                pairs = [[of(runs, k, data=data, loss=x.name) for x in (loss, base)] for k in keys]
                differences.add_row(data, loss.name, base.name, *(paired(*pair) for pair in pairs))
    console.print(differences, "")


def table_4(runs: list[Run], console: Console) -> None:
    """Precision against recall."""
    names = {"f1": "F1", "f2": "F2", "f3": "F3", "precision": "precision", "recall": "recall"}
    _by_loss("Table 4", runs, {v: f"{k} mean" for k, v in names.items()}, console)


def table_options(runs: list[Run], console: Console) -> None:
    """Validation figures of every choice."""
    columns = {
        "F1\nmean over τ": "valid f1 mean",
        "F1\nat ½": "valid f1 half",
        "F1\ntuned": "valid f1 tuned",
        "AUROC": "valid auroc",
        "log loss": "valid log loss",
        "accuracy\nmean over τ": "valid accuracy mean",
        "step": "step",
    }
    for names in (TABLES, tuple(IMAGES)):
        rows = [r for r in runs if r["data"] in names]
        keys = dict.fromkeys(_key(r) for r in rows)
        table = new_table(
            f"Options: {', '.join(names)}",
            "Means over the data sets and the seeds, validation rows only.",
            ["loss", "options"],
            ["rate", *columns],
        )
        for key in keys:
            same = [r for r in rows if _key(r) == key]
            first, figures = same[0], [np.mean([r[k] for r in same]) for k in columns.values()]
            shown = [f"{k} {v}" for k, v in first["options"].items() if k != "thresholds"]
            shown += [f"hidden {first['hidden']}"] if first["hidden"] else []
            cells = [f"{x:.4f}" for x in figures[:-1]] + [f"{figures[-1]:.0f}"]
            table.add_row(first["loss"], ", ".join(shown), f"{first['rate']:g}", *cells)
        console.print(table, "")


def _key(r: Run) -> str:
    return repr([r[k] for k in ("loss", "rate", "hidden", "options")])


def _by_loss(title: str, runs: list[Run], columns: dict[str, str], console: Console) -> None:
    seeds = len({r["seed"] for r in runs})
    caption = f"Mean ± standard deviation over {seeds} seeds, test rows."
    for data in dict.fromkeys(r["data"] for r in runs):
        table = new_table(f"{title}: {data}", caption, ["loss"], columns)
        for loss in dict.fromkeys(r["loss"] for r in runs):
            figures = [of(runs, key, data=data, loss=loss) for key in columns.values()]
            table.add_row(loss, *(spread(x) for x in figures))
        console.print(table, "")


SHOWN = {"1": table_1, "2": table_2, "2-hidden": table_2, "4": table_4, "options": table_options}


# --- command line ---------------------------------------------------------------------------------


def main(arguments: list[str] | None = None) -> int:
    """Parse the command line, train, print."""
    options = _options(arguments)
    console = Console()
    if console.width < 140:
        console = Console(width=140)
    where = folder(options.data).absolute()
    plans = {name: jobs_of(name, options.seeds, where, options.device) for name in options.table}
    start = time.perf_counter()
    about = {"machine": machine(), "seeds": options.seeds, "workers": options.workers}

    def tables(found: dict[str, Run]) -> dict[str, list[Run]]:
        return {
            name: [found[repr(job)] for job in jobs if repr(job) in found]
            for name, jobs in plans.items()
        }

    def write(found: dict[str, Run]) -> None:
        if options.json:
            seconds = time.perf_counter() - start
            write_json(options.json, {**about, "seconds": seconds, "tables": tables(found)})

    jobs = [job for jobs in plans.values() for job in jobs]
    found = run(jobs, options.workers, console, write)
    seconds, runs = time.perf_counter() - start, tables(found)
    for name in options.table:
        SHOWN[name](runs[name], console)
    console.print(f"{len(found)} networks, {options.workers} at a time: {seconds:.0f} s")
    return 0


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.bridging",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--table",
        action="append",
        choices=list(PLANS),
        help="which; may be said several times (default 1, 2 and 4)",
    )
    parser.add_argument("--seeds", type=int, default=10, metavar="N", help="default 10")
    parser.add_argument(
        "--workers",
        type=int,
        default=os.cpu_count() or 1,
        metavar="N",
        help="networks trained at once, one thread each (default: all processors)",
    )
    parser.add_argument(
        "--data", type=Path, metavar="DIR", help="default $SETPOINT_DATA, else ../shared/data"
    )
    parser.add_argument(
        "--device",
        choices=("cpu", "cuda"),
        default="cuda" if torch.cuda.is_available() else "cpu",
        help="of the image networks; those of tables are trained on the CPU (default cuda, if any)",
    )
    parser.add_argument(
        "--json", type=Path, metavar="FILE", help="write every run's figures there as they come"
    )
    options = parser.parse_args(arguments)
    options.table = list(dict.fromkeys(options.table or ("1", "2", "4")))
    if options.seeds < 1 or options.workers < 1:
        parser.error("--seeds and --workers must be at least 1")
    if options.json and not options.json.absolute().parent.is_dir():
        parser.error(f"the folder of {options.json} does not exist")
    names = [data for name in options.table for plan in PLANS[name] for data in plan[0]]
    missing = [f for f in sorted(files(tuple(names))) if not (folder(options.data) / f).is_file()]
    if missing:
        parser.error(f"{folder(options.data)} holds no {', '.join(missing)}; say --data DIR")
    return options


if __name__ == "__main__":
    sys.exit(main())
