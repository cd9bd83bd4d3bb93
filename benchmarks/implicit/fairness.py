"""``fairness``: accuracy under a bound on the gap between groups, beside fairlearn.

Goal: maximize accuracy subject to gap(recall, by="group") <= 0.05 (equal opportunity), and the same
with positive_rate (demographic parity). Linear models; the sensitive column is no feature, so a way
either knows the group when it decides (a threshold for each) or does not (one threshold). All
thresholds are chosen on validation rows. fairlearn's rules decide some rows by lot: their figures
are expectations over it; its reduction holds the bound on the training rows.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

import setpoint as sp
from benchmarks.implicit.rows import Part, Split, split
from benchmarks.implicit.running import Line, chosen
from benchmarks.implicit.training import Kept, Pace, linear, trained
from benchmarks.implicit.ways import IMPLICIT, LAGRANGIAN, PLAIN
from benchmarks.peers import ROOT
from setpoint.losses import GoalLoss
from setpoint.methods import METHODS

NAME = "implicit-fairness"
TABLES = {"compas, race": "compas fair", "adult, sex": "adult fair"}
RATES = {"recall": "equal opportunity", "positive_rate": "demographic parity"}
BOUND = 0.05
PACE = Pace(300, 20)
FREE = "maximize accuracy"
KEYS = ("table", "constraint", "seed", "way")
KNOWN = "a threshold for each group"
ONE = "one threshold"
PEER = ".peers/fairlearn/bin/python"
ABOUT = {"peer": "fairlearn 0.15.0", "setup": "sh benchmarks/peers/setup_fairlearn.sh"}


def goal(rate: str) -> str:
    """Accuracy under the bound."""
    return f'{FREE} subject to gap({rate}, by="group") <= {BOUND}'


def jobs(splits: int, where: Path) -> list[tuple[Any, ...]]:
    """A job trains by one method, or asks fairlearn."""
    methods = ["cross-entropy", *(m for m in ("implicit", "lagrangian") if m in METHODS)]
    methods += ["fairlearn"] if (ROOT / PEER).exists() else []
    return [
        (name, rate, seed, method, where)
        for method in reversed(methods)
        for name in reversed(TABLES)
        for rate in RATES
        for seed in range(splits)
    ]


def work(name: str, rate: str, seed: int, method: str, where: Path) -> list[Line]:
    """Lines of one method."""
    rows = split(TABLES[name], seed, where)
    about = {"table": name, "constraint": rate, "seed": seed, "n test": len(rows.test.y)}
    made = fairlearn(rows, rate, seed) if method == "fairlearn" else ours(rows, rate, seed, method)
    return [{**about, **line} for line in made]


# --- ours -----------------------------------------------------------------------------------------

#: method -> way -> the goal its threshold is tuned for (None: that of the bound), and by what kind
WAYS: dict[str, dict[str, tuple[str | None, str]]] = {
    "cross-entropy": {
        f"{PLAIN}, no bound": (FREE, "threshold"),
        f"{PLAIN}, {KNOWN}": (None, "per-group"),
        f"{PLAIN}, {ONE}": (None, "threshold"),
    },
    "implicit": {f"{IMPLICIT}, {KNOWN}": (None, "per-group")},
    "lagrangian": {f"{LAGRANGIAN}, {ONE}": (None, "threshold")},
}
#: method -> options that are tried; every one with each step size
GRIDS: dict[str, list[dict[str, Any]]] = {
    "cross-entropy": [{}],
    "implicit": [{"by": "group", "sharpness": k} for k in (1.0, 5.0, 10.0)],
    "lagrangian": [{"sharpness": k, "rate": rate} for k in (1.0, 5.0) for rate in (0.3, 3.0)],
}
STEPS = (("adam", 0.03), ("adam", 0.1))


def ours(rows: Split, rate: str, seed: int, method: str) -> list[Line]:
    """Every configuration of a method; the step kept of each way is the best tuned accuracy's."""
    lines, group = [], rows.tune.group.numpy()
    for options in GRIDS[method]:
        for optimiser in STEPS:
            torch.manual_seed(seed)
            net = linear(rows.train.x.shape[1])
            task = sp.Task.binary(groups={"group": (0, 1)})
            more = {"memory": 0, "warmup": 0, **options}
            loss = GoalLoss(goal(rate), method, task=task, guard=False, **more)
            judges = {
                way: _judge(aim or goal(rate), kind, group)
                for way, (aim, kind) in WAYS[method].items()
            }
            kept = trained(net, loss, rows, judges, PACE, optimiser, seed, groups=True)
            config = ", ".join(f"{k} {v}" for k, v in {**options, "adam": optimiser[1]}.items())
            for way, (aim, kind) in WAYS[method].items():
                found = outcome(rows, rate, kept[way], aim or goal(rate), kind)
                lines.append({"way": way, "config": config, "step": kept[way].step, **found})
    return lines


def _judge(aim: str, kind: str, group: np.ndarray) -> Callable[[np.ndarray, np.ndarray], float]:
    def accuracy(y: np.ndarray, s: np.ndarray) -> float:
        rule = sp.tune(aim, y, s, group=group, kind=kind)
        return float(rule.value) if rule.feasible else -math.inf

    return accuracy


def outcome(rows: Split, rate: str, kept: Kept, aim: str, kind: str) -> dict[str, Any]:
    """Accuracy and gap on validation and test rows at the tuned threshold or thresholds."""
    if kept.tune is None:
        return {"valid": -1.0, "accuracy": None, "gap": None, "tune gap": None}
    given = rows.tune.group.numpy()
    rule = sp.tune(aim, rows.tune.y.numpy(), kept.tune, group=given, kind=kind)
    chances = []
    for part, scores in ((rows.tune, kept.tune), (rows.test, kept.test)):
        more = {"group": part.group.numpy()} if kind == "per-group" else {}
        chances.append(np.asarray(rule.decide(scores, **more)).astype(float))
    return figures(rows, rate, *chances)


def figures(rows: Split, rate: str, tune: np.ndarray, test: np.ndarray) -> dict[str, Any]:
    """Of the chances with which rows are decided positive."""
    accuracy, gap = _judged(rows.test, rate, test)
    valid, tune_gap = _judged(rows.tune, rate, tune)
    lot = float(((test > 1e-9) & (test < 1 - 1e-9)).mean())
    return {"valid": valid, "tune gap": tune_gap, "accuracy": accuracy, "gap": gap, "lot": lot}


def _judged(part: Part, rate: str, chance: np.ndarray) -> tuple[float, float]:
    y, group = part.y.numpy(), part.group.numpy()
    rows = (y == 1) if rate == "recall" else np.ones_like(y, bool)
    rates = [chance[rows & (group == g)].mean() for g in (0, 1)]
    return float(np.where(y == 1, chance, 1 - chance).mean()), float(abs(rates[0] - rates[1]))


# --- fairlearn ------------------------------------------------------------------------------------


def fairlearn(rows: Split, rate: str, seed: int) -> list[Line]:
    """Its two ways, in its own environment, on the rows and scores of cross-entropy."""
    torch.manual_seed(seed)
    net = linear(rows.train.x.shape[1])
    group = rows.tune.group.numpy()
    judge = {"": _judge(FREE, "threshold", group)}
    plain = GoalLoss(FREE, "cross-entropy", memory=0)
    kept = trained(net, plain, rows, judge, PACE, STEPS[-1], seed)[""]
    given: dict[str, Any] = {"constraint": rate, "bound": BOUND}
    for part in ("train", "tune", "test"):
        held: Part = getattr(rows, part)
        for key in ("x", "y", "group"):
            given[f"{key}_{part}"] = getattr(held, key).numpy()
    given |= {"s_tune": 1 / (1 + np.exp(-kept.tune)), "s_test": 1 / (1 + np.exp(-kept.test))}
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "rows.npz"
        np.savez(file, **given)
        command = [str(ROOT / PEER), "-m", "benchmarks.implicit.fairlearn_side", str(file)]
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"the side of fairlearn failed:\n{done.stderr}")
        version = json.loads(done.stdout)["version"]
        with np.load(f"{file}.out.npz") as made:
            found = {key: made[key] for key in made.files}
    return [
        {"way": f"fairlearn {name}", "config": f"fairlearn {version}", "step": 0}
        | figures(rows, rate, found[f"{key} tune"], found[f"{key} test"])
        | ({"train gap": _judged(rows.train, rate, found[of])[1]} if of in found else {})
        for name, key in (
            ("ThresholdOptimizer, " + KNOWN, "thresholds"),
            ("ExponentiatedGradient, group not known", "reduction"),
        )
        for of in (f"{key} train",)
    ]


def select(lines: list[Line]) -> list[Line]:
    """The configuration of each way, bound and split."""
    return chosen(lines, KEYS)
