"""fairlearn's side, run by its own Python: ``python -m benchmarks.implicit.fairlearn_side FILE``.

The file holds ``x``, ``y`` and ``group`` of train, tune and test rows and the scores ``s`` of a
model on the last two. ThresholdOptimizer (knows the group of a row it decides) is fitted on the
tune rows' scores, ExponentiatedGradient (does not) on the training rows with logistic regression.
Written beside it, ``FILE.out.npz``: the chance with which each tune and test row is decided
positive (the latter's on training rows too). Prints the version.
"""

from __future__ import annotations

import json
import sys
import warnings

import fairlearn
import numpy as np
from fairlearn.postprocessing import ThresholdOptimizer
from fairlearn.reductions import DemographicParity, ExponentiatedGradient, TruePositiveRateParity
from sklearn.linear_model import LogisticRegression

from benchmarks.peers.fairlearn_runs import Given

CONSTRAINTS = {
    "recall": ("true_positive_rate_parity", TruePositiveRateParity),
    "positive_rate": ("demographic_parity", DemographicParity),
}


def thresholds(rows, constraint, bound):
    """The chances of tune and test rows by a threshold for each group."""
    optimizer = ThresholdOptimizer(
        estimator=Given().fit(None, rows["y_tune"]),
        constraints=constraint,
        objective="accuracy_score",
        prefit=True,
        predict_method="predict_proba",
        tol=bound,
    )
    optimizer.fit(rows["s_tune"][:, None], rows["y_tune"], sensitive_features=rows["group_tune"])
    return [
        optimizer._pmf_predict(
            rows[f"s_{part}"][:, None], sensitive_features=rows[f"group_{part}"]
        )[:, 1]
        for part in ("tune", "test")
    ]


def reduction(rows, moment, bound):
    """The chances of train, tune and test rows by a mixture of reweighted models."""
    y, group = rows["y_train"], rows["group_train"]
    counted = group[y == 1] if moment is TruePositiveRateParity else group
    largest = np.unique(counted, return_counts=True)[1].max() / counted.size
    # its bound is on the distance of a group's rate from that of all rows: with two groups, the gap
    # between them times the share of the larger one at most
    fair = ExponentiatedGradient(
        LogisticRegression(max_iter=300), constraints=moment(difference_bound=bound * largest)
    )
    fair.fit(rows["x_train"], y, sensitive_features=group)
    return [fair._pmf_predict(rows[f"x_{part}"])[:, 1] for part in ("train", "tune", "test")]


def main(file: str) -> None:
    """Both ways."""
    warnings.simplefilter("ignore")
    with np.load(file) as held:
        rows = {key: held[key] for key in held.files}
    name, moment = CONSTRAINTS[str(rows["constraint"])]
    bound = float(rows["bound"])
    made = {}
    made["thresholds tune"], made["thresholds test"] = thresholds(rows, name, bound)
    for part, chance in zip(("train", "tune", "test"), reduction(rows, moment, bound), strict=True):
        made[f"reduction {part}"] = chance
    np.savez(f"{file}.out.npz", **made)


if __name__ == "__main__":
    main(sys.argv[1])
    json.dump({"version": fairlearn.__version__}, sys.stdout)
