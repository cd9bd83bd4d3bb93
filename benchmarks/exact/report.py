"""The tables in Markdown, from recorded lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import product
from typing import Any

import numpy as np

from benchmarks.exact.ablation import VARIANTS
from benchmarks.exact.aims import AIMS, feasible, merit, rates
from benchmarks.exact.rows import TABLES
from benchmarks.exact.scale import ceiling
from benchmarks.exact.start import MODELS
from benchmarks.exact.ways import LAGRANGIAN, ON, ORDER, PLAIN, RELABEL, TREES, TRIM
from benchmarks.results.figures import number, share, table

Lines = Sequence[Any]
HELD = {"own": "at the own threshold", "train": "tuned on train rows"}


def pick(lines: Lines, **where: Any) -> list[Any]:
    """The lines that match; trees are the same for both models."""
    return [x for x in lines if all(x[k] == v for k, v in where.items())]


def figures(line: Any, key: str, rate: str) -> np.ndarray:
    """A rate of each seed."""
    positives = line[f"positives {key.split()[1]}"]
    return np.array([rates(c, p)[rate] for c, p in zip(line[key], positives, strict=True)])


def merits(line: Any, key: str) -> np.ndarray:
    """The merit of each seed."""
    aim, positives = AIMS[line["goal"]], line[f"positives {key.split()[1]}"]
    return np.array([merit(aim, c, p) for c, p in zip(line[key], positives, strict=True)])


def holds(line: Any, key: str) -> np.ndarray:
    """Whether the constraint holds, by seed."""
    aim, positives = AIMS[line["goal"]], line[f"positives {key.split()[1]}"]
    return np.array([feasible(aim, c, p) for c, p in zip(line[key], positives, strict=True)])


def sd(x: np.ndarray) -> str:
    """Mean ± standard deviation over the seeds."""
    spread = f" ± {number(float(x.std(ddof=1)), 2)}" if x.size > 1 else ""
    return number(float(x.mean())) + spread


def table1(lines: Lines) -> str:
    """What holds on train rows; then every figure, as in the paper's table; then test merits."""
    parts = [claims(lines), on_test(lines), *(figures_of(lines, goal) for goal in AIMS)]
    return "\n".join(parts)


def claims(lines: Lines) -> str:
    """Cell by cell (a table and a seed) on the training rows."""
    rows = []
    for goal, model, way in _each(AIMS, MODELS, (TRIM, RELABEL)):
        aim = AIMS[goal]
        mine = pick(lines, goal=goal, model=model, way=way)
        if not mine:
            continue
        held = np.concatenate([holds(x, "own train") for x in mine])
        gains = np.concatenate([figures(x, "own train", aim.gain) for x in mine])
        cells = []
        for other, key in ((PLAIN, "train train"), (ON, "train train"), (LAGRANGIAN, "own train")):
            theirs = [pick(lines, **_cell(x), way=other) for x in mine]
            if not all(theirs):
                cells.append("–")
                continue
            base = np.concatenate([figures(x[0], key, aim.gain) for x in theirs])
            ok = np.concatenate([holds(x[0], key) for x in theirs])
            # an infeasible baseline is beaten by what is feasible
            least = held & ((gains >= base - 1e-12) | ~ok)
            more = held & ((gains > base + 1e-12) | ~ok)
            both = held & ok
            gap = float((gains - base)[both].mean()) if both.any() else float("nan")
            cells.append(f"{share(least)}, {share(more)}, {number(gap, signed=True)}")
        rows.append([goal, model, way, share(held), *cells])
    head = ["goal", "model", "way", "feasible at its own threshold"]
    head += ["v cross-entropy, tuned on train", f"v {ON}, tuned on train", f"v {LAGRANGIAN}, own"]
    text = (
        "**Training rows**, cells of a table and a seed: in how many exact is feasible at its own "
        "threshold, and against each other way in how many it is feasible with at least the "
        "objective, in how many with more, and the mean difference of the objective where both are "
        "feasible.\n\n"
    )
    return text + table(head, rows)


def on_test(lines: Lines) -> str:
    """Means of the merit over the tables, and how often the constraint is broken there."""
    keys = {"own test": "own", "train test": "tuned on train", "tune test": "tuned on tune rows"}
    rows = []
    for goal, model, way in _each(AIMS, MODELS, ORDER):
        mine = pick(lines, goal=goal, model=model, way=way)
        if mine:
            cells = []
            for key in keys:
                value = np.mean([merits(x, key).mean() for x in mine])
                broken = np.concatenate([~holds(x, key) for x in mine])
                held = f" ({share(broken)})" if AIMS[goal].bounded else ""
                cells.append(f"{number(float(value))}{held}")
            rows.append([goal, "–" if way == TREES else model, way, *cells])
    text = (
        "**Test rows**: merit, the objective less 5 times what the constraint is broken by, by "
        "threshold; means over the tables (and in how many cells the constraint is broken).\n\n"
    )
    return text + table(["goal", "model", "way", *keys.values()], rows)


def figures_of(lines: Lines, goal: str) -> str:
    """One goal: precision and recall (or F1) of every way, mean ± standard deviation."""
    aim = AIMS[goal]
    shown = [aim.bounded, aim.gain] if aim.bounded else [aim.gain]
    rows = []
    for name, model, way in _each(TABLES, MODELS, ORDER):
        for x in pick(lines, goal=goal, table=name, model=model, way=way):
            cells = []
            for rate in shown:
                own, again = (figures(x, key, rate) for key in ("own train", "train train"))
                cells.append(f"{sd(own)} ({sd(again)})")
            for rate in shown:
                own, tr, tu = (
                    figures(x, key, rate) for key in ("own test", "train test", "tune test")
                )
                cells.append(f"{sd(own)} ({sd(tr)}) [{sd(tu)}]")
            rows.append([name, "–" if way == TREES else model, way, *cells])
    head = ["table", "model", "way", *(f"train {r}" for r in shown), *(f"test {r}" for r in shown)]
    text = (
        f"**{goal}**: {aim.text}. Own threshold (tuned on train) [tuned on tune rows], "
        "mean ± standard deviation over the seeds.\n\n"
    )
    return text + table(head, rows)


def _cell(line: Any) -> dict[str, Any]:
    return {key: line[key] for key in ("goal", "table", "model")}


def _each(*lists: Iterable[Any]) -> Iterable[tuple[Any, ...]]:
    return product(*lists)


# --- ablation -------------------------------------------------------------------------------------


def ablation(lines: Lines) -> str:
    """Means over the tables of a model, variant by variant."""
    rows = []
    for model, variant in _each(MODELS, VARIANTS):
        mine = pick(lines, model=model, variant=variant)
        if mine:
            rows.append([model, variant, *_ended(mine), *_kept(mine)])
    head = ["model", "variant", "rows within .02", "ties broken", "greatest tie"]
    head += ["precision promised", "precision decided", "recall decided", "holds"]
    head += ["kept: recall, train", "holds", "kept: test precision / recall"]
    return (
        "Where the penalty ends, at its own threshold and before anything is tuned; then the "
        "iterate that is kept. Means over the tables of a model and the seeds.\n\n"
    ) + table(head, rows)


def _ended(mine: Lines) -> list[str]:
    def mean(key: str) -> float:
        return float(np.mean([x[key] for x in mine]))

    held = np.array([x["own precision"] >= 0.8 - 1e-9 for x in mine])
    return [
        f"{100 * mean('near'):.1f} %",
        f"{100 * mean('ties'):.2f} %",
        number(mean("greatest tie")),
        *(number(mean(key)) for key in ("promised precision", "own precision", "own recall")),
        share(held),
    ]


def _kept(mine: Lines) -> list[str]:
    found = {k: np.array([x[k] for x in mine]) for k in mine[0] if k.startswith(("train", "test"))}
    test = " / ".join(number(float(found[f"test {r}"].mean())) for r in ("precision", "recall"))
    held = share(found["train precision"] >= 0.8 - 1e-9)
    return [number(float(found["train recall"].mean())), held, test]


# --- scale ----------------------------------------------------------------------------------------


def scale(lines: Lines) -> str:
    """How good, how fast, how large."""
    parts = [_quality(pick(lines, what="quality")), _times(pick(lines, what="time"))]
    return "\n".join([*parts, _peaks(pick(lines, what="memory"))])


def _quality(lines: Lines) -> str:
    rows = []
    for n, way in dict.fromkeys((x["rows"], x["way"]) for x in lines):
        mine = pick(lines, rows=n, way=way)
        cells = [
            sd(np.array([x[key] for x in mine]))
            for key in ("test recall", "test precision", "best recall", "own recall")
        ]
        cells.append(sd(np.array([x["own precision"] for x in mine])))
        rows.append([f"{n:,}", way, len(mine), *cells])
    head = ["rows", "way", "draws", "test recall, tuned on tune rows", "precision there"]
    head += ["recall at its best test threshold", "own recall", "own precision"]
    text = "**Quality**, mean ± standard deviation over draws. "
    text += f"No linear head has more than {number(ceiling())} in the population.\n\n"
    return text + table(head, rows)


def _times(lines: Lines) -> str:
    rows = [
        [f"{x['rows']:,}", x["batch"], x["way"], f"{x['seconds_median']:.2f}", f"{x['ratio']:.2f}"]
        for x in lines
    ]
    head = ["rows", "batch", "way", "seconds an epoch", "of cross-entropy's"]
    return "**Time**, medians of rounds in turn, one thread.\n\n" + table(head, rows)


def _peaks(lines: Lines) -> str:
    rows = []
    for n in dict.fromkeys(x["rows"] for x in lines):
        base = pick(lines, rows=n, way="cross-entropy")[0]["peak"]
        for x in pick(lines, rows=n):
            above = (x["peak"] - base) / n
            rows.append([f"{n:,}", x["way"], f"{above:.2f}", f"{x['kept'] / n:.2f}"])
    head = ["rows", "way", "peak above cross-entropy's", "kept by the loss"]
    return "**Memory**, bytes a row over an epoch.\n\n" + table(head, rows)


REPORTS: dict[str, Callable[[Lines], str]] = {
    "table1": table1,
    "ablation": ablation,
    "scale": scale,
}
