"""How tight and how true are 90 % lower bounds of F1? Ours beside bets and the bootstrap.

Rows are tp, fp, fn, tn with probabilities .07, .03, .03, .87: 10 % positives, F1 = .70 exactly. For
n = 1000, 4000, 20000: the mean lower bound over many samples and the share of samples in which it
lies above the truth. The binomial reading is what ``certify`` uses for F1, bets are what it uses
for other ratios; the percentile bootstrap guarantees nothing.
"""

from __future__ import annotations

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

from setpoint.statistics import betting_test as betting
from setpoint.statistics import binomial as bounds

LAW = np.array([0.07, 0.03, 0.03, 0.87])
TRUTH = 0.7
TARGETS = {1000: 0.644, 4000: 0.674, 20_000: 0.689}
DELTA = 0.1
DRAWS, FEWER = 20_000, 400
_PAIRS = np.array([[2.0, 2.0], [0.0, 1.0]])


def run(console: Console, repeats: int, rows: int) -> list[dict]:
    """Simulate; held where the mean bound reaches its target and is true often enough."""
    del repeats, rows
    random = np.random.default_rng(0)
    table = Table("rows", "bound", "mean", "target", "above the truth", box=box.SIMPLE_HEAD)
    records = []
    for n, target in TARGETS.items():
        counts = random.multinomial(n, LAW, DRAWS)
        for name, values in (
            ("exact binomial", _binomial(counts)),
            ("bets", np.array([_bets(c, random) for c in counts[:FEWER]])),
            ("bootstrap", np.array([_bootstrap(c, n, random) for c in counts[:FEWER]])),
        ):
            false = float(np.mean(values > TRUTH))
            allowed = DELTA + 2.5 * np.sqrt(DELTA * (1 - DELTA) / values.size)
            held = values.mean() >= target and false <= allowed
            judged = name == "exact binomial"
            verdict = ("ok" if held else "MISSED") if judged else ""
            table.add_row(
                f"{n:,}",
                name,
                f"{values.mean():.4f}",
                f"{target}" if judged else "",
                f"{100 * false:.1f}%",
            )
            records.append(
                {"rows": n, "bound": name, "mean": float(values.mean()), "false": false}
                | {"draws": values.size, "verdict": verdict}
            )
    console.print(f"90 % lower bounds of F1 where it is .70 ({DRAWS:,} samples; {FEWER} for bets)")
    console.print(table)
    return records


def _binomial(counts: np.ndarray) -> np.ndarray:
    share = bounds.lower(counts[:, 0], counts[:, :3].sum(1), DELTA)
    return 2 * share / (1 + share)


def _bets(counts: np.ndarray, random: np.random.Generator) -> float:
    which = np.repeat([0, 1], [counts[0], counts[1] + counts[2]])
    rows = betting.BoundedRows.counted(_PAIRS, random.permutation(which))
    low, high = 0.0, 1.0
    for _ in range(4):
        points = np.linspace(low, high, 17)
        proven = betting.wins(rows, points, 1, points, DELTA)
        proven[0] = True
        first = int(np.argmin(proven)) if not proven.all() else 16
        low, high = float(points[first - 1]), float(points[first])
    return low


def _bootstrap(counts: np.ndarray, n: int, random: np.random.Generator) -> float:
    again = random.multinomial(n, counts / n, 500)
    f1 = 2 * again[:, 0] / (2 * again[:, 0] + again[:, 1] + again[:, 2])
    return float(np.quantile(f1, DELTA))
