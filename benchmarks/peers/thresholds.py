"""``python -m benchmarks.peers thresholds``: scikit-learn's tuned classifiers beside ``tune``.

Two models, untuned; every way gets the same rows. "Tune rows": the model is trained on 60 % and the
threshold chosen on the other 20 % that are given (TunedThresholdClassifierCV with ``cv="prefit",
refit=False``). "5 folds": the threshold is chosen on out-of-fold scores of the 80 %, the model
trained on all of them (TunedThresholdClassifierCV at its defaults: 5 folds, 100 thresholds, the
mean of the folds' scores). Its score for the constrained goal, as a user would write it: recall
where the precision reaches the floor, else precision − floor. The fixed threshold ½ is there for
comparison.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from rich.console import Console
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.metrics import f1_score, make_scorer
from sklearn.model_selection import FixedThresholdClassifier, TunedThresholdClassifierCV

import setpoint as sp
from benchmarks.peers.rows import (
    CONSTRAINED,
    FLOOR,
    GOALS,
    MOST,
    SEEDS,
    TABLES,
    Split,
    judged,
    models,
    out_of_fold,
    scores,
    split,
    trained,
)
from benchmarks.results.recording import record

NAME = "peers-thresholds"


def floored_recall(y: np.ndarray, decided: np.ndarray) -> float:
    """Recall where the precision reaches the floor, else how far it is below (negative)."""
    right, n = int((decided & y).sum()), int(decided.sum())
    precision = right / n if n else 0.0
    return right / int(y.sum()) if precision >= FLOOR else precision - FLOOR


SCORERS: dict[str, Any] = {
    CONSTRAINED: make_scorer(floored_recall),
    "maximize f1": make_scorer(f1_score),
}
HALF: Any = 0.5


def half(goal: str, model: Any, rows: Split) -> np.ndarray:
    """Decide at a probability of ½, on the 80 %."""
    del goal
    given = rows.train + rows.tune
    fixed = FixedThresholdClassifier(clone(model), threshold=HALF).fit(given.x, given.y)
    return fixed.predict(rows.test.x)


def sklearn_tune_rows(goal: str, model: Any, rows: Split) -> np.ndarray:
    """scikit-learn's search on the tune rows, the model trained beforehand."""
    fitted = FrozenEstimator(trained(model, rows.train))
    tuned = TunedThresholdClassifierCV(fitted, scoring=SCORERS[goal], cv="prefit", refit=False)
    return tuned.fit(rows.tune.x, rows.tune.y).predict(rows.test.x)


def sklearn_folds(goal: str, model: Any, rows: Split) -> np.ndarray:
    """scikit-learn's search at its defaults, on all rows given."""
    given = rows.train + rows.tune
    tuned = TunedThresholdClassifierCV(clone(model), scoring=SCORERS[goal])
    return tuned.fit(given.x, given.y).predict(rows.test.x)


def ours_tune_rows(goal: str, model: Any, rows: Split) -> np.ndarray:
    """Our search on the tune rows."""
    fitted = trained(model, rows.train)
    rule = sp.tune(goal, rows.tune.y, scores(fitted, rows.tune.x))
    return rule.decide(scores(fitted, rows.test.x))


def ours_folds(goal: str, model: Any, rows: Split) -> np.ndarray:
    """Our search on out-of-fold scores of all rows given."""
    given = rows.train + rows.tune
    rule = sp.tune(goal, given.y, out_of_fold(model, given))
    return rule.decide(scores(trained(model, given), rows.test.x))


WAYS: dict[str, Callable[[str, Any, Split], np.ndarray]] = {
    "threshold ½": half,
    "scikit-learn, tune rows": sklearn_tune_rows,
    "setpoint.tune, tune rows": ours_tune_rows,
    "scikit-learn, 5 folds": sklearn_folds,
    "setpoint.tune, 5 folds": ours_folds,
}


def run(console: Console) -> None:
    """Every table, seed, model, goal and way; recorded."""
    lines = []
    for table in TABLES:
        for seed in SEEDS:
            rows = split(table, seed)
            for name, model in models(seed).items():
                for goal in GOALS:
                    for way, decide in WAYS.items():
                        with warnings.catch_warnings():
                            warnings.simplefilter("ignore")
                            decided = decide(goal, model, rows)
                        lines.append(
                            {"table": table, "seed": seed, "model": name, "goal": goal, "way": way}
                            | judged(rows.test.y, decided)
                            | {"n": rows.tune.y.size, "n test": rows.test.y.size}
                        )
        console.print(f"{NAME}: {table}")
    record(
        NAME,
        "python -m benchmarks.peers thresholds",
        lines,
        packages=("scikit-learn", "lightgbm", "numpy"),
        most=MOST,
        seeds=len(SEEDS),
    )


if __name__ == "__main__":
    run(Console())
