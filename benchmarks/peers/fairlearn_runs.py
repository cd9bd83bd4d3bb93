"""fairlearn's side, run by its own Python: ``python -m benchmarks.peers.fairlearn_runs FOLDER``.

For each ``<case>.npz`` of the folder (``y_tune``, ``s_tune``, ``group_tune``, ``s_test``,
``group_test``; s are the scores of a model) ThresholdOptimizer under true positive rate parity,
with and without a tolerance, is fitted on the tune rows. Written beside it: ``<case>.out.npz`` with
its decisions on the test rows and the chance with which each is made. Prints the version.
"""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path

import fairlearn
import numpy as np
from fairlearn.postprocessing import ThresholdOptimizer
from sklearn.base import BaseEstimator, ClassifierMixin

WAYS = {"tol=None": None, "tol=0.05": 0.05}


class Given(ClassifierMixin, BaseEstimator):
    """A model whose score is its only feature: it was trained elsewhere."""

    def fit(self, x, y):
        """Nothing to learn."""
        del x
        self.classes_ = np.unique(y)
        return self

    def predict_proba(self, x):
        """The feature, as the chance of the second class."""
        score = np.asarray(x)[:, 0]
        return np.stack([1 - score, score], axis=1)

    def predict(self, x):
        """At ½."""
        return (self.predict_proba(x)[:, 1] >= 0.5).astype(int)


def decisions(rows, tolerance):
    """Decisions on the test rows, drawn with seed 0, and the chance of each."""
    given = Given().fit(None, rows["y_tune"])
    optimizer = ThresholdOptimizer(
        estimator=given,
        constraints="true_positive_rate_parity",
        objective="accuracy_score",
        prefit=True,
        predict_method="predict_proba",
        tol=tolerance,
    )
    optimizer.fit(rows["s_tune"][:, None], rows["y_tune"], sensitive_features=rows["group_tune"])
    x, group = rows["s_test"][:, None], rows["group_test"]
    decided = optimizer.predict(x, sensitive_features=group, random_state=0)
    chance = optimizer._pmf_predict(x, sensitive_features=group)[:, 1]
    return np.asarray(decided), np.asarray(chance)


def main(folder: Path) -> None:
    """Every case."""
    warnings.simplefilter("ignore")
    for path in sorted(folder.glob("*.npz")):
        with np.load(path) as rows:
            rows = {key: rows[key] for key in rows.files}
        made = {}
        for name, tolerance in WAYS.items():
            made[name], made[f"chance {name}"] = decisions(rows, tolerance)
        np.savez(path.with_suffix(".out.npz"), **made)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
    json.dump({"version": fairlearn.__version__}, sys.stdout)
