"""``python -m benchmarks.peers proving``: MAPIE's risk control beside ``setpoint.tune(prove=0.9)``.

The same two untuned models, trained on 60 % of the rows; precision >= 0.8 is to be proven at 90 %
on the other 20 % that are given, with as much recall as can be had. MAPIE:
BinaryClassificationController at its defaults (100 thresholds, Bonferroni–Holm), and with
``fwer_method="fixed_sequence"`` and the thresholds from .99 down. Ours has out-of-fold scores of
the training rows as reference, which MAPIE has no place for. A way that returns no threshold has
recall 0. ``refuted``: the test rows reject the promise by an exact binomial test at 5 %.
"""

from __future__ import annotations

import time
import warnings
from typing import Any

import numpy as np
from rich.console import Console

import setpoint as sp
from benchmarks.peers.rows import (
    CONSTRAINED,
    FLOOR,
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

NAME = "peers-proving"
CONFIDENCE = 0.9
LEVEL = 0.05


def unproven(model: Any, fitted: Any, rows: Split) -> float | None:
    """Tuned on the same rows; nothing is proven."""
    del model
    return sp.tune(CONSTRAINED, rows.tune.y, scores(fitted, rows.tune.x)).threshold


def mapie(model: Any, fitted: Any, rows: Split, **options: Any) -> float | None:
    """The threshold that MAPIE returns."""
    from mapie.risk_control import BinaryClassificationController

    del model
    controller = BinaryClassificationController(
        predict_function=fitted.predict_proba,
        risk="precision",
        target_level=FLOOR,
        confidence_level=CONFIDENCE,
        **options,
    )
    controller.calibrate(rows.tune.x, rows.tune.y)
    best: Any = controller.best_predict_param
    return None if best is None else float(best)


def mapie_sequence(model: Any, fitted: Any, rows: Split) -> float | None:
    """The same by a fixed sequence from the highest threshold down."""
    descending = np.linspace(0.99, 0, 100)
    options = {"list_predict_params": descending, "fwer_method": "fixed_sequence"}
    return mapie(model, fitted, rows, **options)


def ours(model: Any, fitted: Any, rows: Split) -> float | None:
    """The threshold of a proven rule."""
    rule = sp.tune(
        CONSTRAINED,
        rows.tune.y,
        scores(fitted, rows.tune.x),
        prove=CONFIDENCE,
        reference=(rows.train.y, out_of_fold(model, rows.train)),
    )
    return rule.threshold if rule.proven else None


WAYS = {
    "tuned, nothing proven": unproven,
    "MAPIE, defaults": mapie,
    "MAPIE, fixed sequence": mapie_sequence,
    "setpoint.tune(prove=0.9)": ours,
}


def outcome(y: np.ndarray, p: np.ndarray, threshold: float | None) -> dict[str, Any]:
    """Figures of the test rows; without a threshold nothing is decided."""
    from scipy.stats import binom

    decided = np.zeros(y.size, bool) if threshold is None else p >= threshold
    right, n = int((decided & (y == 1)).sum()), int(decided.sum())
    refuted = bool(n and binom.cdf(right, n, FLOOR) < LEVEL)
    return {"returned": threshold is not None, "refuted": refuted, **judged(y, decided)}


def run(console: Console) -> None:
    """Every table, seed, model and way; recorded."""
    lines = []
    for table in TABLES:
        for seed in SEEDS:
            rows = split(table, seed)
            for name, model in models(seed).items():
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    fitted = trained(model, rows.train)
                    p = scores(fitted, rows.test.x)
                    for way, choose in WAYS.items():
                        start = time.perf_counter()
                        threshold = choose(model, fitted, rows)
                        lines.append(
                            {"table": table, "seed": seed, "model": name, "way": way}
                            | outcome(rows.test.y, p, threshold)
                            | {"n": rows.tune.y.size, "n test": rows.test.y.size}
                            | {"seconds": time.perf_counter() - start}
                        )
        console.print(f"{NAME}: {table}")
    record(
        NAME,
        "python -m benchmarks.peers proving",
        lines,
        packages=("mapie", "scikit-learn", "lightgbm", "numpy"),
        seeds=len(SEEDS),
    )


if __name__ == "__main__":
    run(Console())
