"""The checks find what was planted, and leave clean data alone at the rate they promise."""

import numpy as np
import pandas as pd
import pytest
from tests.reports import cases

import setpoint as sp
from setpoint.reports import Check, ScoredRows
from setpoint.reports.checks.drift import drift
from setpoint.reports.checks.duplicates import duplicates
from setpoint.reports.checks.leakage import leakage
from setpoint.reports.checks.stability import few_positives, unstable_threshold


def table(n=2000, seed=0, missing=0.1):
    """Numbers, strings, categories, dates, booleans and gaps, none of them about the label."""
    random = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "amount": random.lognormal(size=n),
            "age": random.integers(18, 90, n),
            "town": random.choice(["ulm", "bonn", "trier", "jena"], n),
            "kind": pd.Categorical(random.choice(["p", "q", "r"], n)),
            "when": pd.Timestamp("2024-01-01") + pd.to_timedelta(random.integers(0, 900, n), "h"),
            "new": random.random(n) < 0.3,
        }
    )
    frame.loc[random.random(n) < missing, "amount"] = np.nan
    frame.loc[random.random(n) < missing, "town"] = None
    return frame, random.random(n) < 0.15


def test_a_check_has_one_of_three_words():
    with pytest.raises(sp.KindError, match="not 'fine'"):
        Check("SP101", "t", "fine", "s")


# --- leakage ---------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(10))
def test_clean_tables_pass(seed):
    X, y = table(seed=seed)
    found = leakage(X, y)
    assert (found.code, found.status) == ("SP101", "passed")


LEAKS = {
    "number": lambda y, r: y * 10.0 + r.normal(size=len(y)),
    "falling number": lambda y, r: y * -10.0 + r.normal(size=len(y)),
    "words": lambda y, r: np.where(y, "closed", r.choice(["open", "new"], len(y))),
    "codes out of order": lambda y, r: np.where(y, 2, r.choice([1, 3], len(y))),
    "only missing tells": lambda y, r: np.where(y, np.nan, r.normal(size=len(y))),
    "date": lambda y, r: (
        pd.Timestamp("2024-01-01") + pd.to_timedelta(y * 900 + r.random(len(y)), "D")
    ),
}


@pytest.mark.parametrize("kind", LEAKS)
def test_a_planted_leak_is_named(kind):
    X, y = table()
    X["outcome_note"] = LEAKS[kind](y, np.random.default_rng(1))
    found = leakage(X, np.where(y, "fraud", "fine"))
    assert found.status == "look"
    assert '"outcome_note"' in found.sentence
    assert '"amount"' not in found.sentence


def test_a_good_column_is_no_leak():
    X, y = table()
    X["strong"] = y * 2.0 + np.random.default_rng(1).normal(size=len(y))  # AUROC about 0.92
    found = leakage(X, y)
    assert found.status == "passed"
    assert '"strong"' in found.sentence


def test_ids_are_named():
    X, y = table()
    X["order"] = [f"A-{i:05d}" for i in range(len(X))]
    X["number"] = np.random.default_rng(0).permutation(len(X)) + 1000
    found = leakage(X, y)
    assert found.status == "look"
    assert '"order"' in found.sentence
    assert '"number"' in found.sentence
    X["number"] = np.random.default_rng(0).integers(0, 10**9, len(X))  # an amount in cents
    assert '"number"' not in leakage(X, y).sentence


def test_leaks_among_several_classes():
    random = np.random.default_rng(0)
    y = random.integers(0, 4, 2000)
    X = np.c_[random.normal(size=2000), y + random.normal(size=2000)]
    assert leakage(X, y).status == "passed"
    X = np.c_[X, (y * 7) % 5]  # knows the class, in no order
    found = leakage(X, y)
    assert found.status == "look"
    assert '"column 2" (1.0000)' in found.sentence
    both = np.c_[y == 1, y == 2].astype(int)
    assert leakage(X, both).status == "look"
    assert leakage(X[:, :2], both).status == "passed"


def test_too_few_rows_for_suspicion():
    assert leakage(np.arange(20.0)[:, None], np.arange(20) > 10).status == "not applicable"
    assert leakage(np.arange(500.0)[:, None], np.arange(500) > 497).status == "not applicable"


# --- duplicates ------------------------------------------------------------------------------


def test_planted_duplicates_are_counted():
    X, _ = table()
    train, certify = np.arange(1500), np.arange(1500, 2000)
    assert duplicates(X, {"train": train, "certify": certify}).status == "passed"
    X.iloc[1500:1550] = X.iloc[:50].to_numpy()
    found = duplicates(X, {"train": train, "certify": certify})
    assert found.status == "look"
    assert "10.00% of the certify rows" in found.sentence
    mask = np.arange(2000) >= 1500
    assert duplicates(X, {"train": ~mask, "certify": mask}).sentence == found.sentence


def test_duplicates_of_matrices_and_strange_things():
    X = np.random.default_rng(0).normal(size=(100, 3))
    X[60] = X[3]
    found = duplicates(X, {"train": np.arange(60), "certify": np.arange(60, 100)})
    assert "2.50% of the certify rows" in found.sentence
    odd = pd.DataFrame({"a": [[1], [2], [1], [3]], "b": ["x", 5, "x", None]})
    found = duplicates(odd, {"train": [0, 1], "certify": [2, 3]})
    assert "50.00%" in found.sentence
    assert duplicates(X, {"train": np.arange(100), "certify": []}).status == "not applicable"


def test_one_value_apart_is_no_duplicate():
    X, _ = table(200, missing=0.0)
    both = pd.concat([X, X.assign(age=X["age"] + 1)], ignore_index=True)
    found = duplicates(both, {"train": np.arange(200), "certify": np.arange(200, 400)})
    assert found.status == "passed"
    swapped = pd.DataFrame({"a": [1, 2], "b": [2, 1]})  # the same values in other columns
    assert "0.00%" in duplicates(swapped, {"train": [0], "certify": [1]}).sentence


# --- drift -----------------------------------------------------------------------------------


def test_clean_splits_pass_as_often_as_they_should():
    alarms = 0
    for seed in range(100):
        X, _ = table(400, seed)
        alarms += drift(X, np.arange(300), np.arange(300, 400)).status == "look"
    assert alarms <= 4  # 1% of 100 is 1; more than 4 has a chance below 1 in 250


DRIFTS = {
    "amount": lambda X, rows: X.loc[rows, "amount"] * 1.8,
    "age": lambda X, rows: X.loc[rows, "age"] + 8,
    "town": lambda X, rows: X.loc[rows, "town"].where(X.loc[rows, "age"] % 2 == 0, "jena"),
    "kind": lambda X, rows: X.loc[rows, "kind"].where(X.loc[rows, "age"] % 3 > 0, "p"),
    "when": lambda X, rows: X.loc[rows, "when"] + pd.Timedelta(days=9),
    "new": lambda X, rows: ~X.loc[rows, "new"],
}


@pytest.mark.parametrize("name", DRIFTS)
def test_planted_drift_is_named(name):
    X, _ = table()
    certify = np.arange(1500, 2000)
    X.loc[certify, name] = DRIFTS[name](X, certify)
    found = drift(X, np.arange(1500), certify)
    assert found.status == "look"
    assert f'"{name}"' in found.sentence
    assert sum(f'"{other}"' in found.sentence for other in DRIFTS) == 1


def test_missing_values_that_move_are_named():
    X, _ = table()
    X.loc[1500:1800, "amount"] = np.nan
    found = drift(X, np.arange(1500), np.arange(1500, 2000))
    assert '"amount missing"' in found.sentence


def test_drift_needs_rows():
    X, _ = table(100)
    assert drift(X, np.arange(90), np.arange(90, 100)).status == "not applicable"


# --- positives and thresholds ----------------------------------------------------------------


def test_few_positives():
    assert few_positives({"train": (5000, 200), "certify": (1000, 40)}).status == "passed"
    found = few_positives({"train": (5000, 200), "certify": (1000, 9)})
    assert found.status == "look"
    assert "certify 30" in found.sentence
    assert few_positives({"train": (100, 95)}).status == "look"  # the rarer class counts
    assert few_positives({"train": (100, None)}).status == "not applicable"


@pytest.mark.parametrize("folds", [True, False])
def test_a_threshold_of_many_rows_is_stable_and_of_few_is_not(folds):
    def check(n, seed=0):
        y, s = cases.rows(n, seed, share=0.3)
        rule = sp.tune("maximize recall subject to precision >= 0.9", y, s)
        fold = np.arange(n) % 5 if folds else None
        return unstable_threshold(ScoredRows("out-of-fold", y, s, fold=fold), rule)

    assert check(20_000).status == "passed"
    assert [check(60, seed).status for seed in range(8)].count("look") >= 6
    assert "recall" in check(20_000).sentence


def test_a_jackknife_is_near_the_bootstrap():
    y, s = cases.rows(20_000, 0, share=0.3)
    rule = sp.tune("maximize recall subject to precision >= 0.9", y, s)
    both = [
        unstable_threshold(ScoredRows("out-of-fold", y, s, fold=fold), rule).sentence
        for fold in (np.arange(20_000) % 20, None)
    ]
    a, b = (float(text.split("standard error ")[1].rstrip(").")) for text in both)
    assert 1 / 3 < a / b < 3


def test_rules_without_one_threshold_have_no_threshold_to_move():
    y, s = cases.rows(500, 0)
    rule = sp.tune("maximize coverage subject to selective_risk <= 0.2", y, s)
    assert unstable_threshold(ScoredRows("out-of-fold", y, s), rule).status == "not applicable"
