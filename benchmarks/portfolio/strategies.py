"""The strategies of :mod:`benchmarks.portfolio`: rows given in, records of the test rows out.

LR, MLP, LightGBM, HGB-balanced
    Two uses each. "60/20": trained on three quarters of the given rows, the threshold tuned exactly
    for the goal (``setpoint.tune``) on the other quarter. "cv": the threshold tuned exactly on
    pooled 5-fold out-of-fold scores, the model trained anew on all given rows.
TTCV
    scikit-learn's TunedThresholdClassifierCV of LightGBM at its defaults (5 folds, 100 thresholds,
    trained anew on all given rows). Its score of decisions, as a user would write it: the objective
    where the constraint holds, else −violation. "TTCV merit": the merit of this benchmark.
MAPIE
    BinaryClassificationController at its defaults on LightGBM: trained on three quarters,
    calibrated on the other, confidence 90 % (its default); "MAPIE .95": 95 %.
ours
    ``GoalClassifier(goal, random_state=split).fit(X, y).predict(X_test)``.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from sklearn.model_selection import StratifiedKFold, cross_val_predict, train_test_split

import setpoint as sp
from benchmarks.portfolio.judge import judged
from benchmarks.portfolio.models import MODELS, lightgbm
from benchmarks.portfolio.tables import Aim, Rows

Record = dict[str, Any]
FOLDS = 5
OURS = "ours"


def single(name: str, given: Rows, test: Rows, aims: tuple[Aim, ...], seed: int) -> Iterator:
    """One model, both uses, all goals."""
    start = time.perf_counter()
    train, held = _three_to_one(given, seed)
    model = MODELS[name](seed).fit(train.x, train.y)
    seconds = time.perf_counter() - start
    yield from _tuned(f"{name} 60/20", model, held.y, _scores(model, held), test, aims, seconds)
    start = time.perf_counter()
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
    fresh = MODELS[name](seed)
    outside = np.asarray(
        cross_val_predict(fresh, given.x, given.y, cv=folds, method="predict_proba")
    )[:, 1]
    model = MODELS[name](seed).fit(given.x, given.y)
    seconds = time.perf_counter() - start
    yield from _tuned(f"{name} cv", model, given.y, outside, test, aims, seconds)


def tuned_by_sklearn(
    name: str, given: Rows, test: Rows, aims: tuple[Aim, ...], seed: int
) -> Iterator:
    """TunedThresholdClassifierCV with both scores."""
    from sklearn.metrics import make_scorer
    from sklearn.model_selection import TunedThresholdClassifierCV

    for aim in aims:
        for strategy, score in ((name, _feasible_or_not), (f"{name} merit", _merit)):
            if aim.bounded is None and score is _merit:
                continue  # the same score
            start = time.perf_counter()
            folds = StratifiedKFold(FOLDS, shuffle=True, random_state=seed)
            scorer: Any = make_scorer(score(aim))
            model = TunedThresholdClassifierCV(lightgbm(seed), scoring=scorer, cv=folds)
            model.fit(given.x, given.y)
            seconds = time.perf_counter() - start
            record = judged(aim, test.y, model.predict(test.x)) | {"seconds": seconds}
            yield {"strategy": strategy, "goal": aim.name, **record}
            if aim.bounded is None:
                yield {"strategy": f"{name} merit", "goal": aim.name, **record}


def mapie(name: str, given: Rows, test: Rows, aims: tuple[Aim, ...], seed: int) -> Iterator:
    """Whether MAPIE returns a threshold, and what that is worth."""
    from mapie.risk_control import BinaryClassificationController

    train, held = _three_to_one(given, seed)
    start = time.perf_counter()
    model = lightgbm(seed).fit(train.x, train.y)
    fitted = time.perf_counter() - start
    for aim in aims:
        if aim.bounded is None:
            continue
        for strategy, more in ((name, {}), (f"{name} .95", {"confidence_level": 0.95})):
            start = time.perf_counter()
            maker: Any = BinaryClassificationController
            controller = maker(model.predict_proba, aim.bounded, aim.bound, **more)
            controller.calibrate(held.x, held.y)
            best = controller.best_predict_param
            seconds = fitted + time.perf_counter() - start
            decided = np.zeros(test.y.size) if best is None else _scores(model, test) >= best
            record = judged(aim, test.y, decided) | {"proven": best is not None}
            yield {"strategy": strategy, "goal": aim.name, **record, "seconds": seconds}


def ours(name: str, given: Rows, test: Rows, aims: tuple[Aim, ...], seed: int) -> Iterator:
    """One fit a goal; a failure is the worst merit and is shown."""
    for aim in aims:
        start = time.perf_counter()
        try:
            maker: Any = sp.GoalClassifier
            clf = maker(aim.text, random_state=seed).fit(given.x, given.y)
            seconds = time.perf_counter() - start
            record = judged(aim, test.y, clf.predict(test.x))
            certificate = clf.certificate_
            told = {
                "proven": bool(certificate is not None and certificate.proven),
                "verdict": None if certificate is None else str(certificate.verdict),
                "comparison": str(clf.comparison_),
            }
        except Exception as error:  # anything: the table shall be completed and name it
            seconds, told = time.perf_counter() - start, {"proven": False}
            record = judged(aim, test.y, np.zeros(test.y.size)) | {"merit": -1.0}
            record["error"] = f"{type(error).__name__}: {error}"
        predicted = time.perf_counter() - start - seconds
        record |= told | {"seconds": seconds, "predict seconds": predicted}
        yield {"strategy": name, "goal": aim.name, **record}


STRATEGIES: dict[str, Callable[..., Iterator[Record]]] = {
    **dict.fromkeys(MODELS, single),
    "TTCV": tuned_by_sklearn,
    "MAPIE": mapie,
    OURS: ours,
}


def _three_to_one(given: Rows, seed: int) -> tuple[Rows, Rows]:
    train, held = train_test_split(
        np.arange(given.y.size), test_size=0.25, random_state=seed, stratify=given.y
    )
    return given.take(np.asarray(train)), given.take(np.asarray(held))


def _scores(model: Any, rows: Rows) -> np.ndarray:
    return model.predict_proba(rows.x)[:, 1]


def _tuned(
    strategy: str,
    model: Any,
    y: np.ndarray,
    scores: np.ndarray,
    test: Rows,
    aims: tuple[Aim, ...],
    fitted: float,
) -> Iterator[Record]:
    """The threshold tuned for each goal on these scores."""
    on_test = _scores(model, test)
    for aim in aims:
        start = time.perf_counter()
        rule = sp.tune(aim.text, y, scores)
        seconds = fitted + time.perf_counter() - start
        record = judged(aim, test.y, rule.decide(on_test))
        yield {"strategy": strategy, "goal": aim.name, **record, "seconds": seconds}


def _feasible_or_not(aim: Aim) -> Callable[[np.ndarray, np.ndarray], float]:
    def score(y: np.ndarray, decided: np.ndarray) -> float:
        found = judged(aim, y, decided)
        if not found["broken"]:
            return found[aim.gain]
        return -abs(found[aim.bounded or ""] - aim.bound)

    return score


def _merit(aim: Aim) -> Callable[[np.ndarray, np.ndarray], float]:
    return lambda y, decided: judged(aim, y, decided)["merit"]
