"""The main job on adult (48,842 rows, 14 columns): time, memory, and the overhead of predicting.

Fit
    ``GoalClassifier(goal).fit(X, y)`` at its defaults against one LightGBM fitted and scored on
    five folds, in turn, same threads. Target: 12 ×.
Memory
    The peak of a fit above what the process holds once everything is imported and the table is
    read, over the size of the table as read from CSV (``memory_usage(deep=True)``). Target: 6 ×.
Predict
    ``predict`` on a million rows (the table repeated) against the fitted models' own predict on
    rows that are already encoded. Target: 1.3 ×.

The table is read from ``$SETPOINT_DATA``, else ``../shared/data``.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from benchmarks import memory
from benchmarks.harness import Check, new_table, verdict
from benchmarks.harness import verdict_cell as cell

GOAL = "maximize recall subject to precision >= 0.8"
FIT, MEMORY, PREDICT = 12.0, 6.0, 1.3
MILLION = 1_000_000


def adult(folder: Path | None = None) -> tuple[Any, np.ndarray]:
    """The table as read from a CSV file, and the labels."""
    import pandas as pd

    import setpoint as sp

    data = Path(os.environ.get("SETPOINT_DATA") or "../shared/data") / "adult.parquet"
    with tempfile.TemporaryDirectory() as temporary:
        path = (folder or Path(temporary)) / "adult.csv"
        if not path.exists():
            pd.read_parquet(data).drop(columns=["split", "group"]).to_csv(path, index=False)
        table = sp.datasets.read_table(path)
    y = table.pop("target").to_numpy()
    return table, y


def lightgbm_folds(X: Any, y: np.ndarray) -> None:
    """What a fit is measured by: LightGBM, five folds, fitted and scored."""
    from lightgbm import LGBMClassifier
    from sklearn.model_selection import StratifiedKFold, cross_val_predict

    coded = X.copy()
    for name in coded.columns:
        if coded[name].dtype.kind not in "biuf":
            coded[name] = coded[name].astype("category")
    folds = StratifiedKFold(5, shuffle=True, random_state=0)
    model = LGBMClassifier(verbose=-1, n_jobs=int(os.environ.get("OMP_NUM_THREADS", "2")))
    cross_val_predict(model, coded, y, cv=folds, method="predict_proba")


def run(console: Console, repeats: int, rows: int) -> list[dict]:
    """Measure all three; the rows of the table."""
    del rows
    import setpoint as sp

    X, y = adult()
    times: dict[str, list[float]] = {"lightgbm": [], "fit": []}
    clf: Any = None
    for _ in range(max(1, min(repeats, 3))):
        times["lightgbm"].append(_seconds(lambda: lightgbm_folds(X, y)))
        start = time.perf_counter()
        clf = sp.GoalClassifier(GOAL).fit(X, y)
        times["fit"].append(time.perf_counter() - start)
    base, whole = (float(np.median(times[k])) for k in ("lightgbm", "fit"))
    memory_of_fit = memory.peak("resident", "main_job", {})
    table = float(X.memory_usage(deep=True).sum())
    own, ours = predicting(clf, X)
    rows_of = {
        "fit": (whole, base, "s", FIT),
        "memory of a fit": (memory_of_fit / 1e6, table / 1e6, "MB", MEMORY),
        "predict a million rows": (ours, own, "s", PREDICT),
    }
    caption = "against: LightGBM on five folds; the table; the models on encoded rows"
    shown = new_table(
        "The main job on adult", caption, ["", "target"], ["ours", "against", "ratio"]
    )
    found = []
    for name, (a, b, unit, limit) in rows_of.items():
        check = Check(a / b, limit)
        word = verdict([check])
        shown.add_row(name, cell(word), f"{a:.1f} {unit}", f"{b:.1f} {unit}", check.cell())
        found.append({"name": name, "ours": a, "against": b, "ratio": a / b, "verdict": word})
    console.print(shown)
    return found


def predicting(clf: Any, X: Any) -> tuple[float, float]:
    """Seconds of the models' own predict on encoded rows, and of ours, on a million rows."""
    import pandas as pd

    many = pd.concat([X] * (MILLION // len(X) + 1), ignore_index=True).iloc[:MILLION]
    own, ours = [], []
    for _ in range(2):
        rows = clf.encoder_.encode(many)
        _ = rows.numbers, rows.codes
        start = time.perf_counter()
        for name in clf.stack_.used:
            for model in clf.members_[name]:
                model.outputs(rows.rows(model.form))
        own.append(time.perf_counter() - start)
        del rows
        start = time.perf_counter()
        clf.predict(many)
        ours.append(time.perf_counter() - start)
    return float(np.median(own)), float(np.median(ours))


def prepare() -> tuple[Any, Any]:
    """For :mod:`benchmarks.memory`: a small fit that loads everything, and the fit itself."""
    import setpoint as sp

    X, y = adult()

    def warm() -> None:
        sp.GoalClassifier(GOAL).fit(X.iloc[:500], y[:500])

    return warm, lambda: sp.GoalClassifier(GOAL).fit(X, y)


def _seconds(does: Any) -> float:
    start = time.perf_counter()
    does()
    return time.perf_counter() - start
