"""The speed of proof: certify on a million rows, and the monitor's updates, in CPU seconds."""

from __future__ import annotations

import time
from dataclasses import replace

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

import setpoint as sp

GOALS = {
    "exact tests": ("maximize recall subject to precision >= 0.8, fpr <= 0.05", False, 0.3),
    "bets, f_beta(2)": ("maximize recall subject to f_beta(2) >= 0.3", False, 3.0),
    "bets, weighted rows": ("maximize recall subject to precision >= 0.8", True, 3.0),
}
UPDATE = 1000


def run(console: Console, repeats: int, rows: int) -> list[dict]:
    """Median CPU seconds of ``repeats`` rounds; held where they stay within the stated ones."""
    random = np.random.default_rng(0)
    y, scores = _rows(random, rows)
    weight = random.random(rows)
    rule = sp.tune("maximize recall subject to precision >= 0.8", *_rows(random, 5000))
    table = Table("what", "CPU s", "at most", box=box.SIMPLE_HEAD)
    records = []

    def judge(what: str, seconds: list[float], most: float) -> None:
        median = float(np.median(seconds))
        held = "ok" if median <= most else "MISSED"
        table.add_row(what, f"{median:.4f}", f"{most:g}")
        records.append({"what": what, "cpu_seconds": median, "at_most": most, "verdict": held})

    for what, (goal, weighted, most) in GOALS.items():
        more = {"sample_weight": weight, "weight_bound": 1.0} if weighted else {}
        seconds = []
        for _ in range(repeats):
            fresh = replace(rule, touched=[])
            start = time.process_time()
            sp.certify(goal, fresh, y, scores, **more)
            seconds.append(time.process_time() - start)
        judge(f"certify {rows:,} rows, {what}", seconds, most)
    goal = "maximize recall subject to precision >= 0.8, f_beta(2) >= 0.3"
    monitor = sp.Monitor(sp.certify(goal, replace(rule, touched=[]), *_rows(random, 5000)))
    seconds = []
    for _ in range(20 * repeats):
        batch = _rows(random, UPDATE)
        start = time.process_time()
        monitor.update(*batch)
        seconds.append(time.process_time() - start)
    judge(f"monitor, an update of {UPDATE:,} rows", seconds, 0.01)
    console.print("Proof, in CPU seconds")
    console.print(table)
    return records


def _rows(random: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    y = random.random(n) < 0.1
    return y, 2 * y + random.normal(size=n)
