"""A second look: how often a threshold that was only tuned breaks its limit on other rows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from setpoint.datasets import Dataset
from setpoint.decisions import evaluate, tune

SHUFFLES = 50
MODEL = "logistic regression on squares and products of rank-normalised columns"


@dataclass(frozen=True)
class SecondLook:
    """One model, one goal; the rows to tune and to test on shuffled many times.

    Attributes
    ----------
    goal : str
    met : int
        Shuffles in which the goal was met on the rows the threshold was tuned on.
    broken : int
        Those of them in which a constraint broke on the other rows.
    """

    goal: str
    met: int
    broken: int

    def sentence(self) -> str:
        """What was seen, in words."""
        return (
            f"With a threshold tuned on half of the rows and tested on the other half ({MODEL}), "
            f'"{self.goal}" was met on the tune rows in {self.met} of {SHUFFLES} shuffles, and '
            f"broken on the test rows in {self.broken} of these: rows flatter the threshold that "
            "was chosen on them."
        )

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "goal": self.goal,
            "model": MODEL,
            "shuffles": SHUFFLES,
            "met_on_tune": self.met,
            "broken_on_test": self.broken,
            "sentence": self.sentence(),
        }


def second_look(data: Dataset, goal: str, seed: int) -> SecondLook:
    """Train on half of the rows; tune and test on shuffled halves of the rest."""
    y, scores = _scored(data, seed)
    met = broken = 0
    for shuffle in range(seed + 1, seed + 1 + SHUFFLES):
        first, second = _halves(y, shuffle)
        rule = tune(goal, y[first], scores[first])
        if rule.feasible:
            met += 1
            broken += not evaluate(rule, y[second], scores[second]).holds
    return SecondLook(goal, met, broken)


def _scored(data: Dataset, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Labels and scores of the rows that the model was not trained on."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import PolynomialFeatures, QuantileTransformer, StandardScaler

    x, y = data.X.to_numpy(), data.y
    first, second = _halves(y, seed)
    model = make_pipeline(
        QuantileTransformer(n_quantiles=500, output_distribution="normal", random_state=seed),
        PolynomialFeatures(degree=2),
        StandardScaler(),
        LogisticRegression(max_iter=2000),
    ).fit(x[first], y[first])
    return y[second], model.predict_proba(x[second])[:, 1]


def _halves(y: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Two halves of the rows with the same share of positives."""
    from sklearn.model_selection import train_test_split

    halves = train_test_split(np.arange(len(y)), train_size=0.5, stratify=y, random_state=seed)
    return np.asarray(halves[0]), np.asarray(halves[1])
