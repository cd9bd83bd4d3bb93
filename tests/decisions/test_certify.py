"""Certificates equal binomial tests on hand-counted rows, and no false promise is proven too often.

The size of a test is exact: every outcome there can be is certified once, and their probabilities
are summed over a grid of laws that break (or keep) the promise.
"""

import json
import math
import warnings
from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
import pytest
import torch
from scipy.stats import binom, binomtest

import setpoint as sp
from setpoint.rules.abstention import ScoreBand
from setpoint.rules.class_offsets import ClassOffsets
from setpoint.rules.one_threshold import OneThreshold
from setpoint.rules.threshold_blocks import LabelThresholds

POINT = OneThreshold(task=sp.Task.binary(), threshold=0.5)
PROVEN, OPEN, REFUTED = "PROVEN", "NOT PROVEN", "REFUTED"
GOAL = "maximize recall subject to precision >= 0.7"


def table_rows(tp, fp, fn, tn):
    """Labels and scores of a table of decisions at 0.5."""
    y = np.repeat([1, 0, 1, 0], [tp, fp, fn, tn])
    return y, np.repeat([0.9, 0.8, 0.2, 0.1], [tp, fp, fn, tn])


def told(constraints, y, scores, confidence=0.95, objective="maximize accuracy", **more):
    """Certify at 0.5; a plain operating point remembers no rows, so that it may be asked again."""
    goal = f"{objective} subject to {constraints}"
    return sp.certify(goal, POINT, y, scores, confidence, **more)


def draw(random, n, separation=1.5):
    y = (random.random(n) < 0.4).astype(int)
    y[:2] = (0, 1)
    return y, random.normal(size=n) + separation * y


# --- pure rates ----------------------------------------------------------------------------------

# metric -> (k, n) of a table, the share at a value, the value at a share
IDENTITY = (lambda v: v, lambda p: p)
RATES = {
    "precision": (lambda tp, fp, fn, tn: (tp, tp + fp), *IDENTITY),
    "recall": (lambda tp, fp, fn, tn: (tp, tp + fn), *IDENTITY),
    "specificity": (lambda tp, fp, fn, tn: (tn, tn + fp), *IDENTITY),
    "fpr": (lambda tp, fp, fn, tn: (fp, tn + fp), *IDENTITY),
    "fnr": (lambda tp, fp, fn, tn: (fn, tp + fn), *IDENTITY),
    "npv": (lambda tp, fp, fn, tn: (tn, tn + fn), *IDENTITY),
    "fdr": (lambda tp, fp, fn, tn: (fp, tp + fp), *IDENTITY),
    "false_omission_rate": (lambda tp, fp, fn, tn: (fn, tn + fn), *IDENTITY),
    "accuracy": (lambda tp, fp, fn, tn: (tp + tn, tp + fp + fn + tn), *IDENTITY),
    "error_rate": (lambda tp, fp, fn, tn: (fp + fn, tp + fp + fn + tn), *IDENTITY),
    "positive_rate": (lambda tp, fp, fn, tn: (tp + fp, tp + fp + fn + tn), *IDENTITY),
    "prevalence": (lambda tp, fp, fn, tn: (tp + fn, tp + fp + fn + tn), *IDENTITY),
    "jaccard": (lambda tp, fp, fn, tn: (tp, tp + fp + fn), *IDENTITY),
    "f1": (
        lambda tp, fp, fn, tn: (tp, tp + fp + fn),
        lambda c: c / (2 - c),
        lambda p: 2 * p / (1 + p),
    ),
    "1 - fpr": (lambda tp, fp, fn, tn: (tn, tn + fp), *IDENTITY),
    "2 * precision": (lambda tp, fp, fn, tn: (tp, tp + fp), lambda v: v / 2, lambda p: 2 * p),
    "cost(fn=3)": (
        lambda tp, fp, fn, tn: (fn, tp + fp + fn + tn),
        lambda v: v / 3,
        lambda p: 3 * p,
    ),
}


def by_hand(metric, table, op, asked, delta):
    """(verdict, value, bound) from binomtest."""
    count, share, value = RATES[metric]
    k, n = count(*table)
    if n == 0:
        return OPEN, None, value(0.0) if op == ">=" else value(1.0)
    way, other = ("greater", "less") if op == ">=" else ("less", "greater")
    interval = binomtest(k, n, alternative=way).proportion_ci(1 - delta, "exact")
    bound = value(interval.low if op == ">=" else interval.high)
    proven = binomtest(k, n, share(asked), alternative=way).pvalue <= delta
    against = binomtest(k, n, share(asked), alternative=other).pvalue <= delta
    wrong = k / n < share(asked) if op == ">=" else k / n > share(asked)
    verdict = PROVEN if proven else REFUTED if against and wrong else OPEN
    return verdict, value(k / n), bound


@pytest.mark.parametrize("metric", RATES)
def test_a_pure_rate_equals_binomtest(metric):
    random = np.random.default_rng(list(RATES).index(metric))
    count, _, value = RATES[metric]
    seen = dict.fromkeys((PROVEN, OPEN, REFUTED), 0)
    for i in range(30):
        table = random.integers(0, random.choice([2, 6, 40]), 4)
        table[random.integers(4)] += 1
        y, scores = table_rows(*table)
        op = (">=", "<=")[i % 2]
        asked = value(float(random.choice([0.05, 0.2, 0.5, 0.75, 0.9, 0.99])))
        confidence = float(random.choice([0.6, 0.8, 0.9, 0.95, 0.99]))
        found = told(f"{metric} {op} {asked!r}", y, scores, confidence)
        (finding,) = found.findings
        verdict, seen_value, bound = by_hand(metric, table, op, asked, 1 - confidence)
        assert found.verdict == finding.verdict == verdict
        assert finding.value == (None if seen_value is None else pytest.approx(seen_value))
        assert finding.bound == pytest.approx(bound, abs=1e-9)
        assert finding.asked == pytest.approx(asked)
        assert finding.exact
        k, n = count(*table)
        (evidence,) = finding.evidence
        assert (evidence.k, evidence.n) in {(k, n), (n - k, n)}
        assert found.rows == table.sum()
        seen[verdict] += 1
    assert min(seen.values()) > 0


@pytest.mark.parametrize("metric", RATES)
def test_the_interval_of_the_objective_is_clopper_pearson(metric):
    random = np.random.default_rng(1)
    count, _, value = RATES[metric]
    for _ in range(5):
        table = random.integers(1, 30, 4)
        y, scores = table_rows(*table)
        for confidence in (0.8, 0.95):
            found = sp.certify(f"maximize {metric}", POINT, y, scores, confidence)
            ends = binomtest(*map(int, count(*table))).proportion_ci(confidence, "exact")
            expected = (value(ends.low), value(ends.high))
            assert found.interval == pytest.approx(expected, abs=1e-9)
            assert found.verdict == OPEN
            assert found.findings == ()
            assert "promises nothing" in str(found)
            assert not found.proven
            assert found.needed is None


def test_constraints_are_proven_together_at_the_full_level():
    random = np.random.default_rng(2)
    proven = 0
    for _ in range(40):
        table = random.integers(0, 60, 4)
        table[0] += 20
        y, scores = table_rows(*table)
        asked = {"precision": 0.5, "recall": 0.6, "f1": 0.55}
        found = told(", ".join(f"{m} >= {c}" for m, c in asked.items()), y, scores, 0.9)
        each = [by_hand(m, table, ">=", c, 0.1)[0] for m, c in asked.items()]
        assert found.proven == all(v == PROVEN for v in each)
        assert [f.verdict == PROVEN for f in found.findings] == [v == PROVEN for v in each]
        # that one of three is broken costs a share of the level each
        strict = [by_hand(m, table, ">=", c, 0.1 / 3)[0] for m, c in asked.items()]
        assert (found.verdict == REFUTED) == (REFUTED in strict)
        proven += found.proven
    assert 5 < proven < 35


def test_the_p_values_of_mapie_prove_the_same():
    mapie = pytest.importorskip("mapie.risk_control")
    random = np.random.default_rng(3)
    seen = set()
    for i in range(40):
        n = int(random.integers(20, 400))
        y = (random.random(n) < 0.5).astype(int)
        p = np.clip(0.5 + 0.2 * (2 * y - 1) + 0.25 * random.normal(size=n), 0.01, 0.99)
        risk = ("precision", "recall", "accuracy", "fpr")[i % 4]
        target = float(random.choice([0.6, 0.7, 0.75, 0.8])) if risk != "fpr" else 0.3
        controller = mapie.BinaryClassificationController(
            lambda x: np.stack([1 - x, x], axis=1),
            risk=risk,
            target_level=target,
            confidence_level=0.9,
            list_predict_params=np.array([0.5]),
            fwer_method="bonferroni",
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of risks that cannot be controlled
            controller.calibrate(p, y)
        p_value = float(np.ravel(controller.p_values)[0])
        if abs(p_value - 0.1) < 1e-9:
            continue
        op = "<=" if risk == "fpr" else ">="
        found = told(f"{risk} {op} {target}", y, p, 0.9)
        assert found.proven == (p_value <= 0.1)
        seen.add((risk, found.proven))
    assert len(seen) == 8


# --- groups, classes, labels, abstaining ---------------------------------------------------------


@pytest.mark.parametrize("metric", ["recall", "precision", "accuracy", "f1", "fpr"])
def test_the_worst_group_is_every_group(metric):
    random = np.random.default_rng(4)
    op = "<=" if metric == "fpr" else ">="
    verdicts = set()
    for _ in range(18):
        groups = {g: random.integers(1, 60, 4) * random.choice([1, 4], 4) for g in ("a", "b", "c")}
        rows = [table_rows(*t) for t in groups.values()]
        y, scores = (np.concatenate(part) for part in zip(*rows, strict=True))
        group = np.repeat(list(groups), [t.sum() for t in groups.values()])
        asked = float(random.choice([0.1, 0.3, 0.6]))
        (finding,) = told(
            f'worst({metric}, by="group") {op} {asked}', y, scores, 0.9, group=group
        ).findings
        each = [by_hand(metric, t, op, asked, 0.1) for t in groups.values()]
        assert (finding.verdict == PROVEN) == all(v == PROVEN for v, *_ in each)
        ends = [bound for *_, bound in each]
        assert finding.bound == pytest.approx(min(ends) if op == ">=" else max(ends), abs=1e-9)
        strict = [by_hand(metric, t, op, asked, 0.1 / 3)[0] for t in groups.values()]
        if REFUTED in strict:
            assert finding.verdict == REFUTED
        if finding.verdict == REFUTED:
            assert REFUTED in [v for v, *_ in each]
        verdicts.add(finding.verdict)
        (one,) = told(f'{metric}.on(group="b") {op} {asked}', y, scores, 0.9, group=group).findings
        assert (one.verdict, one.value, one.bound) == pytest.approx(each[1], abs=1e-9)
    assert len(verdicts) == 3


def test_one_group_alone_is_the_whole():
    y, scores = table_rows(30, 3, 2, 40)
    group = np.array(["a"] * y.size)
    (finding,) = told('worst(recall, by="group") >= 0.8', y, scores, 0.9, group=group).findings
    verdict, value, bound = by_hand("recall", (30, 3, 2, 40), ">=", 0.8, 0.1)
    assert (finding.verdict, finding.value) == (verdict, value)
    assert finding.bound == pytest.approx(bound)


def test_classes_of_a_multiclass_task():
    random = np.random.default_rng(5)
    task = sp.Task.multiclass(["cat", "cow", "dog"])
    names = np.array(task.classes)
    point = ClassOffsets(task=task, offsets=(0.0, 0.2, 0.0))
    verdicts = set()
    for _ in range(20):
        n = int(random.integers(10, 300))
        index = random.integers(0, 3, n)
        scores = random.normal(size=(n, 3)) + 1.5 * np.eye(3)[index]
        y, decided = names[index], names[(scores + np.array([0, 0.2, 0])).argmax(1)]
        assert point.decide(scores).tolist() == decided.tolist()
        cases = {
            'recall.of("cat") >= 0.5': (
                np.sum((y == "cat") & (decided == "cat")),
                np.sum(y == "cat"),
                0.5,
            ),
            'precision.of("dog") >= 0.5': (
                np.sum((y == "dog") & (decided == "dog")),
                np.sum(decided == "dog"),
                0.5,
            ),
            'f1.of("cow") >= 0.5': (
                np.sum((y == "cow") & (decided == "cow")),
                np.sum((y == "cow") | (decided == "cow")),
                0.5 / 1.5,
            ),
            "accuracy >= 0.6": (np.sum(y == decided), n, 0.6),
            "micro(f1) >= 0.6": (np.sum(y == decided), n, 0.6),
            "micro(recall) >= 0.6": (np.sum(y == decided), n, 0.6),
        }
        for text, (k, m, share) in cases.items():
            (finding,) = sp.certify(
                f"maximize accuracy subject to {text}", point, y, scores, 0.9
            ).findings
            p = binomtest(int(k), int(m), share, alternative="greater").pvalue
            assert (finding.verdict == PROVEN) == (p <= 0.1), text
            assert finding.how == "exact binomial"
            verdicts.add(finding.verdict)
        # the worst class is every class; its recall is tested at the full level
        (finding,) = sp.certify(
            'maximize accuracy subject to worst(recall, by="class") >= 0.5', point, y, scores, 0.9
        ).findings
        p = [
            binomtest(int(np.sum(decided[y == c] == c)), int(np.sum(y == c)), 0.5, "greater").pvalue
            for c in names
        ]
        assert (finding.verdict == PROVEN) == (max(p) <= 0.1)
    assert verdicts == {PROVEN, OPEN, REFUTED} or verdicts == {PROVEN, OPEN}


def test_a_macro_average_is_bounded_by_its_parts():
    random = np.random.default_rng(6)
    task = sp.Task.multiclass(["cat", "cow", "dog"])
    names = np.array(task.classes)
    point = ClassOffsets(task=task, offsets=(0.0, 0.0, 0.0))
    index = random.integers(0, 3, 600)
    scores = random.normal(size=(600, 3)) + 2.5 * np.eye(3)[index]
    y, decided = names[index], names[scores.argmax(1)]
    lows = []
    for c in names:
        k, n = np.sum((y == c) & (decided == c)), np.sum((y == c) | (decided == c))
        p = binomtest(int(k), int(n), alternative="greater").proportion_ci(1 - 0.1 / 3, "exact").low
        lows.append(2 * p / (1 + p))
    for asked, verdict in ((np.mean(lows) - 0.005, PROVEN), (np.mean(lows) + 0.03, OPEN)):
        found = sp.certify(
            f"maximize accuracy subject to macro(f1) >= {asked}", point, y, scores, 0.9
        )
        (finding,) = found.findings
        assert finding.verdict == verdict
        assert finding.value == pytest.approx(sp.macro(sp.f1)(y, decided, task=task))
        # each of the three bounded at a third of the level (or better, if someone finds a way)
        assert finding.bound >= np.mean(lows) - 1e-9
        assert finding.bound < finding.value


def test_labels_of_a_multilabel_task():
    random = np.random.default_rng(7)
    task = sp.Task.multilabel(["cat", "dog"])
    point = LabelThresholds(task=task, thresholds=(("cat", 0.5), ("dog", 0.4)))
    y = (random.random((400, 2)) < 0.5).astype(int)
    scores = np.clip(0.5 + 0.3 * (2 * y - 1) + 0.3 * random.normal(size=(400, 2)), 0, 1)
    decided = scores >= [0.5, 0.4]
    for j, name in enumerate(task.classes):
        k, n = int((decided[:, j] & (y[:, j] == 1)).sum()), int(y[:, j].sum())
        for asked in (0.5, k / n - 0.02, k / n - 0.06):
            (finding,) = sp.certify(
                f'maximize micro(f1) subject to recall.of("{name}") >= {asked}', point, y, scores
            ).findings
            p = binomtest(k, n, asked, alternative="greater").pvalue
            assert (finding.verdict == PROVEN) == (p <= 0.05)
            assert finding.bound == pytest.approx(
                binomtest(k, n, alternative="greater").proportion_ci(0.95, "exact").low
            )
    whole = int((decided == (y == 1)).all(1).sum())
    (finding,) = sp.certify(
        "maximize micro(f1) subject to accuracy >= 0.5", point, y, scores
    ).findings
    low = binomtest(whole, 400, alternative="greater").proportion_ci(0.95, "exact").low
    assert finding.bound == pytest.approx(low)
    found = sp.certify("maximize micro(f1) subject to micro(f1) >= 0.7", point, y, scores)
    (finding,) = found.findings
    value = sp.micro(sp.f1)(y, decided, task=task)
    assert finding.value == found.value == pytest.approx(value)
    assert finding.verdict == PROVEN  # by bets: a row has several labels
    assert value - 0.1 < finding.bound < value


def test_rows_that_abstain():
    random = np.random.default_rng(8)
    point = ScoreBand(task=sp.Task.binary(), band=(0.3, 0.7))
    verdicts = set()
    for _ in range(20):
        n = int(random.integers(5, 400))
        y = random.integers(0, 2, n)
        scores = np.clip(0.5 + 0.2 * (2 * y - 1) + 0.3 * random.normal(size=n), 0, 1)
        high, low = scores >= 0.7, scores < 0.3
        kept = high | low
        wrong = (high & (y == 0)) | (low & (y == 1))
        tp = int((high & (y == 1)).sum())
        counts = {
            "coverage >= 0.6": (int(kept.sum()), n, 0.6, "greater"),
            "selective_risk <= 0.2": (int(wrong.sum()), int(kept.sum()), 0.2, "less"),
            "recall >= 0.4": (tp, int(y.sum()), 0.4, "greater"),
            "precision >= 0.7": (tp, int(high.sum()), 0.7, "greater"),
            "npv >= 0.7": (int((low & (y == 0)).sum()), int(low.sum()), 0.7, "greater"),
            "accuracy >= 0.5": (int((kept & ~wrong).sum()), n, 0.5, "greater"),
        }
        for text, (k, m, share, way) in counts.items():
            found = sp.certify(f"maximize coverage subject to {text}", point, y, scores, 0.9)
            (finding,) = found.findings
            if m == 0:
                assert (finding.verdict, finding.value) == (OPEN, None)
                continue
            proven = binomtest(k, m, share, alternative=way).pvalue <= 0.1
            assert (finding.verdict == PROVEN) == proven, text
            assert finding.value == pytest.approx(k / m)
            verdicts.add(finding.verdict)
    assert {PROVEN, OPEN} <= verdicts


# --- exact sizes ---------------------------------------------------------------------------------


def wrong_shares(findings, mass, truth, op, asked):
    """The largest probabilities that PROVEN, REFUTED and the bound are wrong, over laws.

    findings: one per outcome; mass (laws, outcomes); truth (laws,).
    """
    proven = np.array([f.verdict == PROVEN for f in findings])
    refuted = np.array([f.verdict == REFUTED for f in findings])
    bound = np.array([f.bound for f in findings])
    slack = 1e-12
    broken = truth < asked - slack if op == ">=" else truth > asked + slack
    missed = bound > truth[:, None] + 1e-9 if op == ">=" else bound < truth[:, None] - 1e-9
    return (
        float((mass @ proven)[broken].max(initial=0.0)),
        float((mass @ refuted)[~broken].max(initial=0.0)),
        float((mass * missed).sum(1).max()),
    )


def two_groups(n1, n2):
    """For every (k1, k2) the rows of two groups of positives, and the chances of all of them."""
    outcomes = list(product(range(n1 + 1), range(n2 + 1)))
    rows = []
    for k1, k2 in outcomes:
        one, two = table_rows(k1, 0, n1 - k1, 0), table_rows(k2, 0, n2 - k2, 0)
        y, scores = (np.concatenate(pair) for pair in zip(one, two, strict=True))
        rows.append((y, scores, np.repeat(["a", "b"], [n1, n2])))
    grid = np.linspace(0, 1, 41)
    p1, p2 = (g.ravel() for g in np.meshgrid(grid, grid))
    k1, k2 = np.array(outcomes).T
    mass = binom.pmf(k1, n1, p1[:, None]) * binom.pmf(k2, n2, p2[:, None])
    return rows, mass, p1, p2


GROUP_CASES = {
    "gap": ('gap(recall, by="group") <= 0.6', lambda a, b: abs(a - b), "<=", 0.6),
    "ratio": (
        'ratio(recall, by="group") >= 0.4',
        lambda a, b: np.minimum(a, b) / np.maximum(np.maximum(a, b), 1e-300),
        ">=",
        0.4,
    ),
    "difference": (
        'recall.on(group="a") - recall.on(group="b") >= -0.4',
        lambda a, b: a - b,
        ">=",
        -0.4,
    ),
    "quotient": (
        'recall.on(group="a") / recall.on(group="b") <= 2',
        lambda a, b: np.where(b > 0, a / np.where(b > 0, b, 1), np.where(a > 0, np.inf, 0.0)),
        "<=",
        2.0,
    ),
}


@pytest.mark.parametrize(
    ("name", "n1", "n2"),
    [
        ("gap", 4, 4),
        ("ratio", 5, 4),
        ("difference", 4, 4),
        ("quotient", 4, 5),
        pytest.param("gap", 12, 12, marks=pytest.mark.slow),
        pytest.param("gap", 9, 3, marks=pytest.mark.slow),
        pytest.param("ratio", 12, 12, marks=pytest.mark.slow),
        pytest.param("difference", 12, 7, marks=pytest.mark.slow),
        pytest.param("quotient", 12, 12, marks=pytest.mark.slow),
    ],
)
def test_comparisons_of_two_groups_keep_their_level(name, n1, n2):
    text, truth, op, asked = GROUP_CASES[name]
    rows, mass, p1, p2 = two_groups(n1, n2)
    delta = 0.2
    findings = [
        told(text, y, scores, 1 - delta, group=group).findings[0] for y, scores, group in rows
    ]
    false_proofs, false_alarms, missed = wrong_shares(findings, mass, truth(p1, p2), op, asked)
    assert any(f.verdict == PROVEN for f in findings)
    assert false_proofs <= delta + 1e-9
    assert false_alarms <= delta + 1e-9
    assert missed <= delta + 1e-9


def positives_and_negatives(positives, negatives):
    """For every count of caught positives and flagged negatives the rows, and their chances."""
    outcomes = list(product(range(positives + 1), range(negatives + 1)))
    rows = [table_rows(t, f, positives - t, negatives - f) for t, f in outcomes]
    grid = np.linspace(0, 1, 51)
    recall, fpr = (g.ravel() for g in np.meshgrid(grid, grid))
    t, f = np.array(outcomes).T
    mass = binom.pmf(t, positives, recall[:, None]) * binom.pmf(f, negatives, fpr[:, None])
    return rows, mass, recall, fpr


@pytest.mark.parametrize(
    ("op", "positives", "negatives"),
    [
        (">=", 5, 4),
        pytest.param(">=", 12, 12, marks=pytest.mark.slow),
        pytest.param("<=", 9, 7, marks=pytest.mark.slow),
    ],
)
def test_youden_keeps_its_level(op, positives, negatives):
    rows, mass, recall, fpr = positives_and_negatives(positives, negatives)
    findings = [told(f"youden {op} 0.3", *r, 0.8).findings[0] for r in rows]
    shares = wrong_shares(findings, mass, recall - fpr, op, 0.3)
    assert any(f.verdict == PROVEN for f in findings)
    assert max(shares) <= 0.2 + 1e-9


def at(pi, recall, fpr, metric):
    tp, fn, fp, tn = pi * recall, pi * (1 - recall), (1 - pi) * fpr, (1 - pi) * (1 - fpr)
    with np.errstate(invalid="ignore", divide="ignore"):
        return {
            "precision": tp / (tp + fp),
            "npv": tn / (tn + fn),
            "f1": 2 * tp / (2 * tp + fp + fn),
            "accuracy": tp + tn,
        }[metric]


@pytest.mark.parametrize(
    ("metric", "asked", "span", "sizes"),
    [
        ("precision", 0.2, (0.2, 0.4), (4, 5)),
        pytest.param("precision", 0.2, (0.1, 0.3), (12, 12), marks=pytest.mark.slow),
        pytest.param("precision", 0.5, 0.5, (6, 6), marks=pytest.mark.slow),
        pytest.param("npv", 0.7, (0.2, 0.5), (8, 5), marks=pytest.mark.slow),
        pytest.param("f1", 0.4, (0.2, 0.5), (6, 6), marks=pytest.mark.slow),
        pytest.param("accuracy", 0.6, (0.2, 0.6), (7, 7), marks=pytest.mark.slow),
    ],
)
def test_promises_over_a_range_of_prevalences_keep_their_level(metric, asked, span, sizes):
    rows, mass, recall, fpr = positives_and_negatives(*sizes)
    findings = [told(f"{metric} >= {asked}", *r, 0.8, prevalence=span).findings[0] for r in rows]
    ends = np.linspace(*(span if isinstance(span, tuple) else (span, span)), 9)
    worst = np.min([at(pi, recall, fpr, metric) for pi in ends], axis=0)
    defined = np.isfinite(worst)
    shares = wrong_shares(findings, mass[defined], worst[defined], ">=", asked)
    assert any(f.verdict == PROVEN for f in findings)
    assert max(shares) <= 0.2 + 1e-9


def phi(tp, fp, fn, tn):
    """The correlation of decided and actual."""
    cells = (tp + fp) * (tp + fn) * (tn + fp) * (tn + fn)
    return (tp * tn - fp * fn) / np.sqrt(cells)


def cohen(tp, fp, fn, tn):
    """Agreement beyond chance."""
    chance = (tp + fp) * (tp + fn) + (tn + fp) * (tn + fn)
    return (tp + tn - chance) / (1 - chance)


TREES = {
    "balanced_accuracy >= 0.6": lambda tp, fp, fn, tn: (tp / (tp + fn) + tn / (tn + fp)) / 2,
    "g_mean >= 0.5": lambda tp, fp, fn, tn: np.sqrt(tp / (tp + fn) * tn / (tn + fp)),
    "abs(precision - recall) <= 0.5": lambda tp, fp, fn, tn: abs(tp / (tp + fp) - tp / (tp + fn)),
    "precision - recall >= -0.3": lambda tp, fp, fn, tn: tp / (tp + fp) - tp / (tp + fn),
    "min(precision, recall) >= 0.4": lambda tp, fp, fn, tn: np.minimum(
        tp / (tp + fp), tp / (tp + fn)
    ),
    "min(precision, recall) <= 0.6": lambda tp, fp, fn, tn: np.minimum(
        tp / (tp + fp), tp / (tp + fn)
    ),
    "max(fpr, fnr) <= 0.5": lambda tp, fp, fn, tn: np.maximum(fp / (fp + tn), fn / (fn + tp)),
    "precision * recall >= 0.2": lambda tp, fp, fn, tn: tp / (tp + fp) * tp / (tp + fn),
    "precision * recall <= 0.6": lambda tp, fp, fn, tn: tp / (tp + fp) * tp / (tp + fn),
    "fpr / precision <= 1.5": lambda tp, fp, fn, tn: fp / (fp + tn) * (tp + fp) / tp,
    "2 * precision - recall >= 0.3": lambda tp, fp, fn, tn: 2 * tp / (tp + fp) - tp / (tp + fn),
    "f1 >= 0.5": lambda tp, fp, fn, tn: 2 * tp / (2 * tp + fp + fn),
    "mcc >= 0.2": phi,
    "mcc <= 0.5": phi,
    "kappa >= 0.2": cohen,
    "kappa <= 0.5": cohen,
    "macro(recall) >= 0.6": lambda tp, fp, fn, tn: (tp / (tp + fn) + tn / (tn + fp)) / 2,
    "macro(f1) >= 0.5": lambda tp, fp, fn, tn: tp / (2 * tp + fp + fn) + tn / (2 * tn + fp + fn),
    "weighted(recall) >= 0.5": lambda tp, fp, fn, tn: tp + tn,
    "precision ** 2 >= 0.3": lambda tp, fp, fn, tn: (tp / (tp + fp)) ** 2,
    "fp / tp <= 1": lambda tp, fp, fn, tn: fp / tp,
    "recall / (1 - precision) >= 1": lambda tp, fp, fn, tn: tp / (tp + fn) * (tp + fp) / fp,
}


def tables(n):
    """Every table of n rows."""
    return [
        (a, b, c, n - a - b - c)
        for a in range(n + 1)
        for b in range(n + 1 - a)
        for c in range(n + 1 - a - b)
    ]


@cache
def laws_of_tables(n):
    """Every table of n rows, some hundred laws, and the chances of each table under each."""
    random = np.random.default_rng(9)
    laws = np.r_[random.dirichlet([1] * 4, 150), random.dirichlet([0.4] * 4, 100)]
    laws = np.maximum(laws, 1e-6)
    laws /= laws.sum(1, keepdims=True)
    outcomes = tables(n)
    ways = [math.factorial(n) // math.prod(map(math.factorial, t)) for t in outcomes]
    mass = ways * np.prod(laws[:, None, :] ** np.array(outcomes), axis=2)
    assert np.allclose(mass.sum(1), 1)
    return outcomes, laws, mass


@pytest.mark.parametrize("rows", [5, pytest.param(9, marks=pytest.mark.slow)])
@pytest.mark.parametrize("text", TREES)
def test_trees_of_rates_keep_their_level(text, rows):
    outcomes, laws, mass = laws_of_tables(rows)
    delta = 0.3
    findings = [
        told(text, *table_rows(*t), 1 - delta, objective="maximize recall").findings[0]
        for t in outcomes
    ]
    op = ">=" if ">=" in text else "<="
    asked = float(text.split(op)[1])
    shares = wrong_shares(findings, mass, TREES[text](*laws.T), op, asked)
    assert all(f.exact for f in findings)
    assert max(shares) <= delta + 1e-9


@pytest.mark.parametrize(("metric", "formula"), [("mcc", phi), ("kappa", cohen)])
def test_agreement_is_bounded_over_a_box_of_three_rates(metric, formula):
    """Recall, FPR and both ends of the prevalence at δ/4 each: the least and greatest by a grid."""
    random = np.random.default_rng(18)
    for i in range(30):
        table = random.integers(1, 80, 4) * np.array([3, 1, 1, 3])
        tp, fp, fn, tn = map(int, table)
        op = (">=", "<=")[i % 2]
        (finding,) = told(f"{metric} {op} 0.2", *table_rows(*table), 0.9).findings
        counts = ((tp, tp + fn), (fp, fp + tn), (tp + fn, tp + fp + fn + tn))
        ends = [binomtest(k, n).proportion_ci(1 - 2 * 0.1 / 4, "exact") for k, n in counts]
        recall, fpr, share = (np.linspace(e.low, e.high, 21) for e in ends)
        recall = recall[:1] if op == ">=" else recall[-1:]  # the other end is not bounded
        fpr = fpr[-1:] if op == ">=" else fpr[:1]
        t, f, pi = np.meshgrid(recall, fpr, share)
        values = formula(pi * t, (1 - pi) * f, pi * (1 - t), (1 - pi) * (1 - f))
        assert finding.value == pytest.approx(formula(*(table / table.sum())))
        if op == ">=":
            low = values.min() if recall[0] > fpr[0] else -1.0
            assert finding.bound == pytest.approx(low, abs=1e-9)
        else:
            assert values.max() - 1e-9 <= finding.bound <= max(values.max(), 0) + 1e-3
        assert finding.verdict == PROVEN or not (
            finding.bound >= 0.2 if op == ">=" else finding.bound <= 0.2
        )


@pytest.mark.parametrize(
    ("text", "z"),
    [
        ("f_beta(2) >= 0.5", lambda tp, fp, fn: 5 * tp / (5 * tp + fp + 4 * fn)),
        ("cost(fp=1, fn=3) <= 1", lambda tp, fp, fn: fp + 3 * fn),
    ],
)
def test_bets_keep_their_level(text, z):
    """Every sequence of five rows: bets depend on the order, which is fixed and told nobody."""
    random = np.random.default_rng(10)
    laws = np.r_[random.dirichlet([1] * 3, 200), random.dirichlet([0.3] * 3, 100)]
    n, delta = 5, 0.4
    sequences = np.array(list(product(range(3), repeat=n)))
    label, score = np.array([1, 0, 1]), np.array([0.9, 0.8, 0.2])  # tp, fp, fn
    findings = [
        told(text, label[s], score[s], 1 - delta, objective="maximize recall").findings[0]
        for s in sequences
    ]
    mass = np.prod(laws[:, sequences], axis=2)
    op = ">=" if ">=" in text else "<="
    shares = wrong_shares(findings, mass, z(*laws.T), op, float(text.split(op)[1]))
    assert any(f.verdict == PROVEN for f in findings)
    assert all(f.how == "betting" for f in findings)
    assert max(shares) <= delta + 1e-9


# --- what is never proven ------------------------------------------------------------------------

RANDOM = np.random.default_rng(11)
Y, S = draw(RANDOM, 400, separation=3.0)
YF, SF = draw(RANDOM, 400, separation=3.0)


@pytest.mark.parametrize(
    "text",
    [
        "auroc >= 0.5",
        "average_precision >= 0.3",
        "recall_at_k(50) >= 0.01",
        "tp >= 3",
        "accuracy == 0.5",
        "recall == precision",
        "recall == 1",
    ],
)
def test_what_has_no_exact_bound_is_never_proven(text):
    rule = sp.tune("maximize f1", Y, S)
    found = sp.certify(f"maximize accuracy subject to {text}", rule, YF, SF, 0.6)
    assert found.verdict != PROVEN
    assert not found.proven
    (finding,) = found.findings
    assert finding.verdict != PROVEN
    if "==" not in text:
        assert not finding.exact
        assert finding.verdict == OPEN
        assert "guarantee" in finding.sentence()


def test_an_equality_can_be_refuted():
    y, scores = table_rows(90, 10, 5, 95)
    assert told("accuracy == 0.5", y, scores).verdict == REFUTED
    near = told("accuracy == 0.92", y, scores)
    assert near.verdict == OPEN
    assert "state a range" in str(near)


def test_a_top_k_rule_proves_nothing():
    rule = sp.tune("maximize precision_at_k(20) subject to recall >= 0.01", Y, S)
    found = sp.certify(
        "maximize precision_at_k(20) subject to recall >= 0.001, precision >= 0.01",
        rule,
        YF,
        SF,
        0.6,
    )
    assert found.verdict == OPEN
    assert "another rule" in found.assumption
    query = np.sort(RANDOM.integers(0, 20, 400))
    goal = 'maximize precision_at_k(2, by="query")'
    rule = sp.tune(goal, Y, S, query=query, task="ranking")
    assert sp.certify(goal, rule, YF, SF, query=query).verdict == OPEN


def test_out_of_fold_rows_prove_nothing():
    y, scores = table_rows(300, 1, 1, 300)
    found = told("recall >= 0.5", y, scores, out_of_fold=True)
    assert found.verdict == OPEN
    assert not found.findings[0].exact
    assert "out-of-fold" in str(found)
    assert sp.Certificate.from_json(found.to_json()) == found


def test_weights_without_a_bound_prove_nothing():
    y, scores = table_rows(80, 1, 1, 80)
    weight = np.ones(y.size)
    for text in ("recall >= 0.5", "f_beta(2) >= 0.5", "youden >= 0.1", "macro(f1) >= 0.3"):
        found = told(text, y, scores, sample_weight=weight)
        assert found.verdict == OPEN
        assert told(text, y, scores, sample_weight=weight, weight_bound=1).verdict == PROVEN


def test_weights_with_a_bound_bracket_the_truth():
    random = np.random.default_rng(12)
    right, broken = 0, 0
    for _ in range(12):
        weight = random.choice([0.5, 1.0, 4.0], 200)
        y = np.ones(200, int)
        scores = np.where(random.random(200) < np.where(weight == 4, 0.6, 0.9), 0.9, 0.1)
        # share caught, by weight: (.5 · .9 + 1 · .9 + 4 · .6) / 5.5
        truth = (0.45 + 0.9 + 2.4) / 5.5
        (finding,) = told(
            "recall >= 0.5", y, scores, 0.8, sample_weight=weight, weight_bound=4
        ).findings
        assert finding.value == pytest.approx(weight[scores > 0.5].sum() / weight.sum())
        right += finding.bound <= truth
        broken += finding.verdict != PROVEN
    assert right >= 12 * 0.8 - 3 * math.sqrt(12 * 0.16)
    assert broken < 6


@pytest.mark.parametrize(
    ("more", "sentence"),
    [
        ({"sample_weight": [2.0, 1, 1, 1], "weight_bound": 1.5}, "weighs 2, more than"),
        ({"sample_weight": [1.0, 1, 1, 1], "weight_bound": 0}, "largest weight"),
        ({"sample_weight": [1.0, 1, 1, 1], "weight_bound": float("inf")}, "largest weight"),
        ({"sample_weight": [1.0, 1, 1, 1], "weight_bound": "1"}, "largest weight"),
        ({"weight_bound": 2.0}, "belongs to sample_weight"),
        ({"confidence": 95}, r"did you mean 0\.95"),
        ({"confidence": 1.0}, "confidence is a number"),
        ({"prevalence": (0.5, 0.1)}, "prevalence is a share"),
        ({"prevalence": 1.5}, "prevalence is a share"),
        ({"prevalence": (0.1, 0.2, 0.3)}, "prevalence is a share"),
        ({"prevalence": "low"}, "prevalence is a share"),
        ({"prevalence": (0.1, 0.2), "sample_weight": [1.0] * 4}, "do not go together"),
        ({"seen": "rule.json"}, "takes certificates, rules"),
        ({"seen": [None]}, "takes certificates, rules"),
        ({"seen": 3}, "takes certificates, rules"),
    ],
)
def test_bad_options_are_answered_with_a_sentence(more, sentence):
    with pytest.raises(sp.SetpointError, match=sentence):
        sp.certify(GOAL, POINT, [0, 1, 0, 1], [0.1, 0.9, 0.6, 0.7], **more)


def test_bad_rules_are_answered_with_a_sentence():
    for wrong in (None, 0.5, "rule.json", GOAL):
        with pytest.raises(sp.KindError, match="a DecisionRule is needed"):
            sp.certify(GOAL, wrong, [0, 1], [0.1, 0.9])
    for text in ('worst(recall, by="group") >= 0.5, mcc >= 0.1', "mcc >= 0.1"):
        with pytest.raises(sp.GoalError, match="prevalence"):
            told(text, *table_rows(5, 5, 5, 5), prevalence=0.3, group=["a", "b"] * 10)


# --- single cases --------------------------------------------------------------------------------


def test_one_row():
    for label, score in product([0, 1], [0.1, 0.9]):
        found = told("recall >= 0.5, precision >= 0.5, accuracy >= 0.7", [label], [score], 0.5)
        assert found.rows == 1
        recall, precision, accuracy = found.findings
        right = (score > 0.5) == (label == 1)
        alone = told("accuracy >= 0.7", [label], [score], 0.5)
        assert alone.verdict == (OPEN if right else REFUTED)  # P(Bin(1, 0.7) = 0) = 0.3
        assert accuracy.value == right
        assert recall.value == (None if label == 0 else float(score > 0.5))
        assert precision.value == (None if score < 0.5 else float(label))
        assert sp.Certificate.from_json(found.to_json()) == found
        assert str(found)
    assert told("accuracy >= 0.4", [1], [0.9], 0.6).verdict == PROVEN  # 0.4 <= 1 − 0.6


def test_single_rows_are_told_apart():
    rule = sp.tune(GOAL, Y, S)
    prints = {sp.certify(GOAL, rule, YF[i : i + 1], SF[i : i + 1]).fingerprint for i in range(5)}
    assert len({p.digest for p in prints}) == 5
    sp.certify(GOAL, rule, YF[:1], SF[:1])  # one row that looks like another is nothing strange


def test_the_least_confidence_there_is():
    """At 0.5 the normal quantile that plans are made with is 0."""
    found = told("youden >= 0.6", *table_rows(9, 2, 2, 9), 0.5)
    assert found.verdict == OPEN
    assert sp.Certificate.from_json(found.to_json()) == found


def test_metrics_of_scores_on_few_rows():
    """A resample may lack a class; that is no reason to fail."""
    random = np.random.default_rng(13)
    for n in (4, 8, 12):
        y, scores = draw(random, n)
        assert told("auroc >= 0.5", y, scores).verdict == OPEN
        assert sp.certify("maximize average_precision", POINT, y, scores).verdict == OPEN


def test_a_rule_that_decides_nothing():
    y, scores = table_rows(0, 0, 50, 50)
    for more in ({}, {"prevalence": (0.1, 0.3)}, {"prevalence": 0.2}):
        found = told("precision >= 0.5", y, scores, **more)
        (finding,) = found.findings
        assert (finding.verdict, finding.value) == (OPEN, None)
        assert sp.Certificate.from_json(json.loads(json.dumps(found.to_json()))) == found
        assert "nan" not in str(found)


@pytest.mark.parametrize(
    "text",
    ['recall.on(group="a") / recall.on(group="b") >= 0.5', 'ratio(recall, by="group") >= 0.5'],
)
def test_a_quotient_of_two_rates_that_are_zero(text):
    y, scores = table_rows(0, 0, 20, 0)
    (finding,) = told(text, y, scores, group=np.repeat(["a", "b"], 10)).findings
    assert finding.verdict == OPEN
    assert finding.value is None  # 0 / 0


def test_recall_and_fpr_do_not_move_with_the_prevalence():
    """So that a range of prevalences costs them nothing (or little)."""
    y, scores = table_rows(95, 4, 5, 96)
    for text in ("recall >= 0.8", "fnr <= 0.2", "fpr <= 0.2", "specificity >= 0.8"):
        plain, ranged = (told(text, y, scores, **m) for m in ({}, {"prevalence": (0.05, 0.2)}))
        assert plain.verdict == PROVEN
        assert ranged.verdict == PROVEN, text
        assert "from 5% to 20%" in ranged.assumption
        assert abs(ranged.findings[0].bound - plain.findings[0].bound) < 0.05


def test_precision_at_another_prevalence():
    y, scores = table_rows(190, 10, 10, 190)
    found = told("precision >= 0.5", y, scores, prevalence=0.1)
    (finding,) = found.findings
    assert finding.value == pytest.approx(0.1 * 0.95 / (0.1 * 0.95 + 0.9 * 0.05))
    assert finding.verdict == PROVEN
    assert told("precision >= 0.5", y, scores, prevalence=(0.01, 0.5)).verdict == REFUTED
    assert told("precision >= 0.5", y, scores).findings[0].value == pytest.approx(0.95)
    assert found.findings[0].bound < finding.value


def test_other_bounds_than_the_rules_own():
    rule = sp.tune(GOAL, Y, S)
    tp = int(np.sum(rule.decide(SF) & (YF == 1)))
    n = int(np.sum(rule.decide(SF)))
    low = binomtest(tp, n, alternative="greater").proportion_ci(0.9, "exact").low
    for asked, verdict in ((low - 0.01, PROVEN), (low + 0.002, OPEN)):
        fresh = replace(rule, touched=[])
        goal = f"maximize f1 subject to precision >= {asked}"
        found = sp.certify(goal, fresh, YF, SF, 0.9)
        assert found.verdict == verdict
        assert str(found.goal) == str(sp.Goal.parse(goal))
    goal = sp.maximize(sp.recall).subject_to(sp.fpr <= 0.5)
    assert sp.certify(goal, replace(rule, touched=[]), YF, SF).verdict == PROVEN
    best = sp.certify("maximize recall_at_precision(0.3)", replace(rule, touched=[]), YF, SF)
    assert best.findings[0].constraint == "precision >= 0.3"


def test_a_rule_that_fits_no_task():
    rule = sp.tune(GOAL, Y, S)
    with pytest.raises(sp.GoalError):
        sp.certify("minimize mae", rule, YF, SF)
    with pytest.raises(sp.DataError, match="y_true has 399"):
        sp.certify(GOAL, rule, YF[1:], SF)
    with pytest.raises(sp.DataError, match='speaks of the column "group"'):
        sp.certify('maximize recall subject to gap(recall, by="group") <= 0.1', rule, YF, SF)
    assert rule.touched == []  # a call that failed has not used the rows up
    sp.certify(GOAL, rule, YF, SF)


def test_labels_with_names():
    names = np.where(Y == 1, "fraud", "fine"), np.where(YF == 1, "fraud", "fine")
    rule = sp.tune(GOAL, names[0], S, positive="fraud")
    found = sp.certify(GOAL, rule, names[1], SF)
    plain = sp.certify(GOAL, sp.tune(GOAL, Y, S), YF, SF)
    assert found.findings == plain.findings
    assert found.interval == plain.interval
    assert sp.Certificate.from_json(found.to_json()) == found


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_tensors_equal_arrays(dtype):
    s, sf = (torch.as_tensor(x, dtype=dtype) for x in (S, SF))
    rule = sp.tune(GOAL, torch.as_tensor(Y), s)
    same = sp.tune(GOAL, Y, s.numpy())
    found = sp.certify(GOAL, rule, torch.as_tensor(YF), sf)
    assert found == sp.certify(GOAL, same, YF, sf.numpy())
    for again in ((YF, sf.numpy()), (torch.as_tensor(YF), sf), (YF.tolist(), sf.tolist())):
        with pytest.raises(sp.DataError, match="already used"):
            sp.certify(GOAL, rule, *again)


# --- labels needed -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "table", "place"),
    [
        ("accuracy >= 0.8", (20, 3, 3, 20), "all"),
        ("accuracy >= 0.9", (24, 1, 1, 24), "all"),
        ("error_rate <= 0.3", (20, 5, 5, 20), "all"),
        ("recall >= 0.6", (24, 0, 8, 0), "all"),
        ("fpr <= 0.2", (0, 4, 0, 30), "all"),
        ("f1 >= 0.7", (12, 3, 3, 0), "all"),
        ("jaccard >= 0.5", (12, 4, 4, 0), "all"),
        ("precision >= 0.7", (16, 4, 10, 30), "part"),
        ("recall >= 0.6", (15, 5, 5, 15), "part"),
    ],
)
def test_the_rows_needed_prove_it_four_times_in_five(text, table, place):
    first = told(text, *table_rows(*table))
    (finding,) = first.findings
    assert finding.verdict == OPEN
    assert finding.needed == first.needed
    assert f"{finding.needed:,} fresh" in str(first)
    random = np.random.default_rng(14)
    share = np.array(table) / sum(table)
    op = ">=" if ">=" in text else "<="
    metric, asked = text.split(f" {op} ")
    count, to_share, _ = RATES[metric]
    way = "greater" if op == ">=" else "less"

    @cache
    def proven(k, n):
        return binomtest(k, n, to_share(float(asked)), alternative=way).pvalue <= 0.05

    def power(rows):
        drawn = random.multinomial(rows, share, 400).tolist()
        return sum(proven(*count(*table)) for table in drawn) / 400

    reached = power(finding.needed)
    assert 0.74 <= reached <= 0.9
    if place == "all":  # fewer rows lack the power
        assert power(int(0.7 * finding.needed)) < reached


def test_rows_needed_where_none_would_do():
    assert told("accuracy >= 0.8", *table_rows(40, 10, 10, 40)).needed is None  # at the bound
    assert told("accuracy >= 0.8", *table_rows(40, 12, 10, 40)).needed is None  # below
    found = told("accuracy >= 0.8", *table_rows(40, 10, 10, 40))
    assert "not above the limit; more rows prove it only if the true value is" in str(found)
    assert told("accuracy >= 0.5", *table_rows(40, 1, 1, 40)).needed is None  # proven
    none = told("precision >= 0.8", *table_rows(0, 0, 10, 10))
    assert none.needed is None  # nothing decided, nothing to plan by


def test_the_smallest_plans():
    """No error seen: δ = floor^n, so that 59, 299, 2995 rows do."""
    for asked, n in ((0.05, 59), (0.01, 299), (0.001, 2995)):
        found = told(f"fpr <= {asked}", *table_rows(0, 0, 0, 20))
        assert found.needed == n
    found = told("fpr <= 0.05", *table_rows(20, 0, 0, 20))  # half of the rows are negatives
    assert found.needed == 118


def test_the_rows_needed_for_several_groups_and_constraints_are_the_most():
    y, scores = table_rows(50, 6, 8, 50)
    group = np.resize(["a", "b"], y.size)
    each = [
        told(f'recall.on(group="{g}") >= 0.75', y, scores, group=group).needed for g in ("a", "b")
    ]
    both = told('worst(recall, by="group") >= 0.75', y, scores, group=group)
    assert both.needed == max(each)
    found = told("recall >= 0.8, precision >= 0.83", y, scores)
    needed = [f.needed for f in found.findings]
    assert found.needed == max(needed)


# --- rows that were seen -------------------------------------------------------------------------


def again(rule, y, scores, **more):
    return sp.certify(GOAL, rule, y, scores, **more)


@pytest.mark.parametrize("n", [20, 60, 300, 5000])
def test_rows_are_used_once(n):
    random = np.random.default_rng(n)
    (y, s), (yf, sf), (yn, sn) = (draw(random, n) for _ in range(3))
    rule = sp.tune(GOAL, y, s)
    with pytest.raises(sp.DataError, match="to choose the rule"):
        again(rule, y, s)
    first = again(rule, yf, sf)
    order = random.permutation(n)
    half = order[: n // 2]
    for label, score, what in (
        (yf, sf, "the certify rows were already used to certify this rule"),
        (yf[order], sf[order], "the certify rows were already used"),
        (yf[half], sf[half], "some of the certify rows"),
        (np.r_[yf, yn], np.r_[sf, sn], "some of the certify rows"),
        (np.r_[yn, yf][::-1], np.r_[sn, sf][::-1], "some of the certify rows"),
        (np.r_[y[half], yn], np.r_[s[half], sn], "to choose the rule"),
    ):
        with pytest.raises(sp.DataError, match=what):
            again(rule, label, score)
    assert first.fingerprint in rule.seen
    again(rule, yn, sn)  # fresh rows are fine
    with pytest.raises(sp.DataError, match="already used"):
        again(rule, yn, sn)


def test_seen_rows_of_others(tmp_path):
    random = np.random.default_rng(15)
    (y, s), (yf, sf), (yn, sn), (yz, sz) = (draw(random, 200) for _ in range(4))
    one, two = sp.tune(GOAL, y, s), sp.tune(GOAL, yn, sn)
    first = again(one, yf, sf)
    again(replace(two, touched=[]), yf, sf)  # another rule does not know
    loaded = sp.Certificate.load(first.save(tmp_path / "first.json"))
    kept = sp.DecisionRule.load(one.save(tmp_path / "one.json"))
    for seen in (first, [first], (loaded,), one, [one], kept, [kept], first.fingerprint):
        with pytest.raises(sp.DataError, match="already used before"):
            again(two, yf, sf, seen=seen)
    for seen in (one, kept):  # the rows it was chosen on are used up as well
        with pytest.raises(sp.DataError, match="already used before"):
            again(two, y, s, seen=seen)
    with pytest.raises(sp.DataError, match="already used"):
        again(kept, yf, sf)  # a rule remembers across files
    assert again(two, yz, sz, seen=[first, one, kept, loaded]).rows == 200


@pytest.mark.parametrize("decimals", [0, 1, 2, 3, 4, 5])
@pytest.mark.parametrize("n", [80, 300, 1000])
def test_scores_with_few_digits_give_no_false_alarm(decimals, n):
    """Rounded probabilities, of one law: fresh rows often equal old ones by accident."""
    for seed in range(6):
        random = np.random.default_rng(seed)
        rows = []
        for _ in range(2):
            y, z = draw(random, n)
            rows.append((y, np.round(1 / (1 + np.exp(-z)), decimals)))
        rule = sp.tune(GOAL, *rows[0])
        again(rule, *rows[1])
        with pytest.raises(sp.DataError, match="already used"):
            again(rule, rows[1][0][::-1], rows[1][1][::-1])


def test_half_precision_scores_give_no_false_alarm():
    alarms = 0
    for seed in range(20):
        random = np.random.default_rng(seed)
        (y, z), (yf, zf) = (draw(random, 500) for _ in range(2))
        s, sf = (torch.sigmoid(torch.as_tensor(x)).half() for x in (z, zf))
        rule = sp.tune(GOAL, y, s)
        try:
            again(rule, yf, sf)
        except sp.DataError:
            alarms += 1
    assert alarms == 0


def test_rows_of_classes_are_known_again():
    random = np.random.default_rng(16)
    task = sp.Task.multiclass(["a", "b", "c"])
    index = random.integers(0, 3, 400)
    scores = random.normal(size=(400, 3)) + np.eye(3)[index]
    y = np.array(["a", "b", "c"])[index]
    goal = 'maximize accuracy subject to recall.of("a") >= 0.3'
    rule = sp.tune(goal, y[:200], scores[:200], task=task)
    sp.certify(goal, rule, y[200:], scores[200:])
    for rows in (slice(0, 200), slice(200, 400), slice(100, 300), slice(250, 380)):
        with pytest.raises(sp.DataError, match="already used"):
            sp.certify(goal, rule, y[rows], scores[rows])


# --- words and files -----------------------------------------------------------------------------


def certificates():
    random = np.random.default_rng(17)
    group = random.choice(["a", "b"], 400)
    rule = sp.tune(GOAL, Y, S)
    weight = random.uniform(0.5, 2, 400)

    def made(goal, rule=rule, y=YF, s=SF, **more):
        return sp.certify(goal, replace(rule, touched=[]), y, s, **more)

    task = sp.Task.multiclass(["x", "y", "z"], score="logit")
    index = random.integers(0, 3, 400)
    logits = random.normal(size=(400, 3)) + 2 * np.eye(3)[index]
    names = np.array(["x", "y", "z"])[index]
    sure = "maximize coverage subject to selective_risk <= 0.2"
    return {
        "one": made(GOAL),
        "several": made("maximize f1 subject to precision >= 0.99, recall >= 0.2, fpr <= 0.3"),
        "none": made("maximize f1"),
        "groups": made('maximize f1 subject to gap(recall, by="group") <= 0.3', group=group),
        "integer groups": made(
            'maximize f1 subject to worst(recall, by="age") >= 0.3',
            group={"age": (group == "a") * 10},
        ),
        "weights": made(GOAL, sample_weight=weight, weight_bound=2),
        "weights without a bound": made(GOAL, sample_weight=weight),
        "prevalence": made(GOAL, prevalence=(0.1, 0.4)),
        "bootstrap": made("maximize auroc subject to mcc >= 0.2"),
        "unbounded": made("maximize f1 subject to fp / tp <= 0.5"),
        "per group": made(
            GOAL,
            sp.tune(GOAL, Y, S, group=group, kind="per-group"),
            group=group,
        ),
        "band": made(sure, sp.tune(sure, Y, S)),
        "classes": made(
            'maximize accuracy subject to recall.of("x") >= 0.5, macro(f1) >= 0.5',
            sp.tune("maximize accuracy", names[:200], logits[:200], task=task),
            names[200:],
            logits[200:],
        ),
        "classes that abstain": made(
            sure, sp.tune(sure, names[:200], logits[:200], task=task), names[200:], logits[200:]
        ),
        "top-k": made("maximize precision_at_k(9)", sp.tune("maximize precision_at_k(9)", Y, S)),
    }


CERTIFICATES = certificates()


@pytest.mark.parametrize("name", CERTIFICATES)
def test_json_and_file_round_trip(name, tmp_path):
    found = CERTIFICATES[name]
    text = json.dumps(found.to_json(), allow_nan=False)
    assert sp.Certificate.from_json(json.loads(text)) == found
    read = sp.Certificate.load(found.save(tmp_path / "certificate.json"))
    assert read == found
    assert str(read) == str(found)
    assert read.to_json() == found.to_json()


@pytest.mark.parametrize("name", CERTIFICATES)
def test_words(name):
    found = CERTIFICATES[name]
    text = str(found)
    assert text.startswith(f"{found.verdict} at 95% confidence")
    assert "random sample of the rows to come" in text
    assert f"Tested on {found.rows:,} rows" in text
    assert str(found.goal.objective) in text
    assert found.point.describe() in text
    assert not any(word in text for word in ("nan", "None", "np.float"))
    for finding in found.findings:
        assert finding.sentence() in text
        assert finding.constraint in finding.sentence()
        if len(finding.evidence) == 1 and finding.evidence[0].k is not None:
            evidence = finding.evidence[0]
            assert f"{evidence.k:,} of {evidence.n:,}" in text


def test_the_words_count_by_hand():
    text = str(told("precision >= 0.5, recall >= 0.99", *table_rows(1200, 60, 30, 5)))
    assert "1,200 of 1,260" in text
    assert "1,200 of 1,230" in text
    assert "precision >= 0.5" in text
    assert "does not cover drift" in text


@pytest.mark.parametrize("name", ["one", "groups", "weights", "prevalence", "unbounded"])
def test_a_missing_part_is_damage(name):
    whole = CERTIFICATES[name].to_json()
    for key in whole:
        part = {k: v for k, v in whole.items() if k != key}
        with pytest.raises(sp.FileError, match=r"damaged|not a certificate|lacks"):
            sp.Certificate.from_json(part)


WRONG = {
    "verdict": ["proven", None, 3],
    "confidence": ["high", None, 95, -1, [0.9]],
    "findings": [3, None, [1], [{}], [{"verdict": "PROVEN"}]],
    "value": ["abc", [1], {}],
    "interval": [[1], None, "ab", ["a", "b"], [1, 2, 3]],
    "rows": ["many", None, -3],
    "point": [None, {}, {"kind": "threshold"}],
    "fingerprint": [None, {}, {"rows": 1, "digest": "x", "sketch": ["zz"]}, {"rows": 1}],
    "weight_bound": ["heavy", [1], -1],
    "prevalence": ["ab", 3, [0.1], [1, 2], None],
}


def accepted(changes):
    """The changed certificates that are read as if nothing had happened."""
    wrong = []
    for data, what in changes:
        try:
            sp.Certificate.from_json(data)
        except sp.FileError as error:
            if len(str(error).split()) < 5:
                wrong.append(error)  # no sentence
        else:
            wrong.append(what)
    return wrong


@pytest.mark.parametrize("key", WRONG)
def test_a_damaged_certificate_is_refused_with_a_sentence(key):
    whole = CERTIFICATES["one"].to_json()
    assert accepted((whole | {key: value}, value) for value in WRONG[key]) == []


def test_a_damaged_finding_is_refused_with_a_sentence():
    whole = CERTIFICATES["one"].to_json()
    (finding,) = whole["findings"]
    changes = [
        ("verdict", "maybe"),
        ("value", "abc"),
        ("bound", None),
        ("asked", "x"),
        ("op", ">"),
        ("evidence", [{"k": 1}]),
        ("evidence", None),
        ("needed", "many"),
        ("surprise", 1),
    ]
    changed = ((whole | {"findings": [finding | {k: v}]}, (k, v)) for k, v in changes)
    assert accepted(changed) == []


def test_other_files_are_refused(tmp_path):
    rule = sp.tune(GOAL, Y, S)
    path = tmp_path / "file.json"
    for text, sentence in (
        ("", "not a certificate"),
        ("{", "not a certificate"),
        ("[]", "not a certificate"),
        ("{}", "not a certificate"),
        ("\x00\x01", "not a certificate"),
        (json.dumps(rule.to_json()), "not a certificate"),
        (json.dumps(CERTIFICATES["one"].to_json())[:-40], "not a certificate"),
    ):
        path.write_text(text)
        with pytest.raises(sp.FileError, match=sentence):
            sp.Certificate.load(path)
    path.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(sp.FileError, match="not a certificate"):
        sp.Certificate.load(path)
    with pytest.raises(sp.FileError, match="cannot read"):
        sp.Certificate.load(tmp_path / "nowhere.json")
    with pytest.raises(sp.FileError, match="Nothing was written"):
        CERTIFICATES["one"].save(tmp_path / "no" / "folder.json")


def test_a_certificate_file_is_data_only():
    data = CERTIFICATES["one"].to_json() | {"goal": "maximize __import__('os').system('true')"}
    with pytest.raises(sp.SetpointError):
        sp.Certificate.from_json(data)
