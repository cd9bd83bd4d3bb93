"""What the demo does before it prints: train, tune for each goal, judge on other rows, prove."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from setpoint.datasets import Dataset, load
from setpoint.decisions import DecisionRule, Evaluation, Plan, evaluate, plan, tune

GOALS = {
    "f1": "maximize f1",
    "recall": "maximize recall subject to precision >= 0.9",
    "cost": "minimize cost(fp=1, fn=20)",
    "infeasible": "maximize recall subject to precision >= 0.99",
}
RETRIED = "recall"  #: the goal whose rows are shuffled and split again
PROVEN = "maximize recall subject to precision >= 0.8"  #: the goal that is chosen with proof
CONFIDENCE = 0.95
SHUFFLES = 50
SEED = 0
MODEL = "logistic regression on squares and products of rank-normalised columns"


@dataclass(frozen=True, eq=False)
class Part:
    """Labels and scores of the rows with one job."""

    y: np.ndarray
    scores: np.ndarray

    def about(self) -> dict[str, int]:
        """Rows and positives."""
        return {"rows": len(self.y), "positives": int(self.y.sum())}


@dataclass(frozen=True, eq=False)
class Told:
    """One goal: its rule, and what the rule did on the tune rows and on the test rows."""

    name: str
    rule: DecisionRule
    tuned: Evaluation
    tested: Evaluation

    def broke(self) -> list[str]:
        """The constraints that held on the tune rows and broke on the test rows."""
        return [
            before.constraint
            for before, after in zip(self.tuned.kept, self.tested.kept, strict=True)
            if before.holds and not after.holds
        ]

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "name": self.name,
            "goal": str(self.rule.goal),
            "feasible": self.rule.feasible,
            "operating_point": self.rule.operating_point(),
            "threshold": self.rule.threshold,
            "sentence": self.rule.sentence(),
            "tune": _values(self.tuned),
            "test": _values(self.tested),
            "held_on_tune_broke_on_test": self.broke(),
        }


@dataclass(frozen=True, eq=False)
class Experiment:
    """The parts, the goals, how often a constraint broke on other splits of the same rows; a proof.

    ``proven`` is chosen and proven on the test rows, ``plan`` says what the goal that breaks takes.
    """

    train: Part
    tune: Part
    test: Part
    told: tuple[Told, ...]
    broken: int
    proven: DecisionRule
    plan: Plan

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {
            "data": "wilt",
            "model": MODEL,
            "seed": SEED,
            "parts": {n: getattr(self, n).about() for n in ("train", "tune", "test")},
            "goals": [t.to_json() for t in self.told],
            "other_splits": {
                "goal": GOALS[RETRIED],
                "splits": SHUFFLES,
                "broke_on_test": self.broken,
            },
            "proven": self.proven.to_json(),
            "plan": self.plan.to_json(),
        }


def run() -> Experiment:
    """Half of the rows train the model, a quarter tunes, a quarter tests."""
    train, rest = _trained(load("wilt"))
    tuning, testing = _halves(rest, SEED)
    told = tuple(_tell(name, tuning, testing) for name in GOALS)
    seeds = range(SEED + 1, SEED + 1 + SHUFFLES)
    broken = sum(bool(_tell(RETRIED, *_halves(rest, seed)).broke()) for seed in seeds)
    known = (tuning.y, tuning.scores)
    proven = tune(PROVEN, testing.y, testing.scores, prove=CONFIDENCE, reference=known)
    return Experiment(train, tuning, testing, told, broken, proven, plan(GOALS[RETRIED], *known))


def _trained(data: Dataset) -> tuple[Part, Part]:
    """Train on half of the rows, pooled; labels and scores of that half and of the rest."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import train_test_split
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import PolynomialFeatures, QuantileTransformer, StandardScaler

    x, y = data.X.to_numpy(), data.y
    first, second = train_test_split(
        np.arange(len(y)), train_size=0.5, stratify=y, random_state=SEED
    )
    model = make_pipeline(
        QuantileTransformer(n_quantiles=500, output_distribution="normal", random_state=SEED),
        PolynomialFeatures(degree=2),
        StandardScaler(),
        LogisticRegression(max_iter=2000),
    ).fit(x[first], y[first])
    scores = model.predict_proba(x)[:, 1]
    return Part(y[first], scores[first]), Part(y[second], scores[second])


def _halves(rest: Part, seed: int) -> tuple[Part, Part]:
    """Half of the rows to tune on, half to test on, with the same share of positives."""
    from sklearn.model_selection import train_test_split

    first, second = train_test_split(
        np.arange(len(rest.y)), train_size=0.5, stratify=rest.y, random_state=seed
    )
    return Part(rest.y[first], rest.scores[first]), Part(rest.y[second], rest.scores[second])


def _tell(name: str, tuning: Part, testing: Part) -> Told:
    rule = tune(GOALS[name], tuning.y, tuning.scores)
    tuned, tested = (evaluate(rule, part.y, part.scores) for part in (tuning, testing))
    return Told(name, rule, tuned, tested)


def _values(found: Evaluation) -> dict[str, Any]:
    return {"objective": found.value, "constraints": [asdict(kept) for kept in found.kept]}
