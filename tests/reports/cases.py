"""Reports of known cases, small and quick, for the tests and for the browser."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import setpoint as sp
from setpoint.decisions.comparison import Comparison, Contender, Difference
from setpoint.decisions.evaluate import ConstraintValue
from setpoint.goals import Goal
from setpoint.reports import Check, RunFacts, ScoredRows, make_report

GOAL = "maximize recall subject to precision >= 0.8"


def facts(**changed):
    made = RunFacts(
        source="trees.csv",
        target="wilted",
        positive="yes",
        rows=4839,
        columns={"numeric": 5, "category": 1, "ignored": 1},
        fingerprint="3f9ac41be0d27755",
        parts={"train": (3226, 175), "certify": (1613, 86)},
        plan=("5-fold out-of-fold", "linear, trees, mlp, stacked", "about 20 s"),
        notes=("The stack was kept: it is separated from the linear model.",),
        settings={"effort": "standard", "confidence": 0.95, "random_state": 0},
        versions={"setpoint": sp.__version__, "numpy": np.__version__},
        usage=(
            "setpoint predict run/ new.csv --out decisions.csv",
            "setpoint evaluate run/ labelled.csv",
            "setpoint monitor run/ labelled.csv",
        ),
        seconds=21.4,
        finished=True,
    )
    return replace(made, **changed)


def rows(n, seed=0, share=0.1, shift=2.0):
    """Labels and scores of two normal classes: what is true of them is known."""
    random = np.random.default_rng(seed)
    y = random.random(n) < share
    return y, np.where(y, shift, 0.0) + random.normal(size=n)


def rival(name, value, precision, holds=True):
    kept = (ConstraintValue("precision >= 0.8", precision, holds),)
    return Contender(name, "score >= 0.5", value, kept, 0.5)


def comparison(goal=GOAL):
    return Comparison(
        Goal.parse(goal),
        "stack",
        (
            rival("stack", 0.41, 0.82),
            rival("cross-entropy + tuned threshold", 0.33, 0.79, holds=False),
            rival("LightGBM + tuned threshold", 0.38, 0.81),
        ),
        (
            Difference("cross-entropy + tuned threshold", 0.08, 0.02, 0.14, 0.08, 0.02, 0.14),
            Difference("LightGBM + tuned threshold", 0.03, -0.01, 0.07, 0.03, -0.01, 0.07),
        ),
        3000,
        5,
        "stack won: recall 0.410 against 0.380, difference +0.030 [-0.010, +0.070].",
    )


class Diagnosis:
    """What the report asks of a diagnosis."""

    def lines(self):
        return ["precision >= 0.8 binds.", "One point of precision costs 1.4 points of recall."]

    def to_json(self):
        return {"binding": ["precision >= 0.8"]}


CHECKS = (
    Check("SP101", "Leakage", "passed", "No column ranks the label almost perfectly."),
    Check("SP102", "Duplicates", "look", "3% of the certify rows stand in train as well."),
    Check("SP104", "Few positives", "not applicable", "The task is not binary."),
)


def binary(goal=GOAL, *, certify=True, prove=True, groups=True, weights=False, n=3000, **more):
    """A report of a binary task, with everything in it unless told otherwise."""
    y, s = rows(n, 1)
    fresh_y, fresh_s = rows(n, 2)
    random = np.random.default_rng(3)
    region = random.choice(["north", "south", "isle"], n, p=[0.6, 0.38, 0.02])
    w = random.uniform(0.5, 2.0, n) if weights else None
    if prove and certify:
        rule = sp.tune(goal, fresh_y, fresh_s, prove=0.95, reference=(y, s))
    else:
        rule = sp.tune(goal, y, s)
    scored = [ScoredRows("out-of-fold", y, s, fold=np.arange(n) % 5)]
    if certify:
        own = {"region": region} if groups else None
        scored.insert(0, ScoredRows("certify", fresh_y, fresh_s, own, w))
    given = {
        "goal": goal,
        "rule": rule,
        "scored": scored,
        "facts": facts(),
        "comparison": comparison(goal),
        "diagnosis": Diagnosis(),
        "plan": sp.plan(goal, y, s) if "subject" in goal else None,
        "checks": CHECKS,
    }
    return make_report(**{**given, **more})


def several(classes=3, n=1500, kind="multiclass", goal="maximize macro(f1)", **more):
    """A report of a multiclass or multilabel task."""
    random = np.random.default_rng(0)
    names = [f"class {chr(97 + i % 26)}{i // 26 or ''}" for i in range(classes)]
    codes = random.integers(0, classes, n)
    scores = np.eye(classes)[codes] * 1.5 + random.normal(size=(n, classes))
    if kind == "multiclass":
        y, task = np.array(names)[codes], sp.Task.multiclass(names)
    else:
        y, task = (np.eye(classes)[codes] + (random.random((n, classes)) < 0.1)) > 0, None
        y, task = y.astype(int), sp.Task.multilabel(names)
    rule = sp.tune(goal, y, scores, task=task, kind=more.pop("rule_kind", None))
    given = {
        "goal": goal,
        "rule": rule,
        "scored": [ScoredRows("out-of-fold", y, scores)],
        "facts": facts(positive=None),
    }
    return make_report(**{**given, **more})
