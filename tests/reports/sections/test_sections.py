"""What a report measures, against scikit-learn, scipy, counting by hand and simulation."""

import numpy as np
import pytest
from scipy.stats import binomtest
from sklearn import metrics as sk
from tests.reports import cases

import setpoint as sp
from setpoint.goals import Goal
from setpoint.reports import ScoredRows
from setpoint.reports.sections.confusion import confusion
from setpoint.reports.sections.groups import affected
from setpoint.reports.sections.key_figures import key_figures
from setpoint.reports.sections.score_distribution import distribution, reliability
from setpoint.reports.sections.threshold_curves import curves, thinned
from setpoint.reports.sections.tradeoff import tradeoff
from setpoint.statistics.confidence_intervals import (
    auroc_interval,
    precision_interval,
    share_interval,
)


@pytest.fixture(scope="module")
def decided():
    y, s = cases.rows(2000, 5, share=0.2)
    rule = sp.tune("maximize recall subject to precision >= 0.8", y, s)
    return y, s, rule, ScoredRows("certify", y, s).decided_by(rule)


@pytest.mark.parametrize(("k", "n"), [(0, 7), (7, 7), (3, 10), (912, 1000)])
def test_shares_have_clopper_and_pearsons_interval(k, n):
    low, high = share_interval(k, n)
    theirs = binomtest(k, n).proportion_ci(0.95, "exact")
    assert (low, high) == (pytest.approx(theirs.low), pytest.approx(theirs.high))


def test_an_empty_share_knows_nothing():
    assert share_interval(0, 0) == (0, 1)


def test_weighted_shares_cover_about_as_often_as_they_say():
    random = np.random.default_rng(0)
    inside = 0
    for _ in range(400):
        w = random.exponential(size=300)
        hit = random.random(300) < 0.3
        n = w.sum() ** 2 / (w**2).sum()
        low, high = share_interval((w * hit).sum() / w.sum() * n, n)
        inside += low <= 0.3 <= high
    assert inside / 400 > 0.93


def test_auroc_intervals_cover():
    random = np.random.default_rng(1)
    truth = 0.7602499389065233  # Φ(1/√2): two normal classes one deviation apart
    inside = 0
    for _ in range(300):
        y = np.repeat([True, False], [40, 160])
        low, high = auroc_interval(y, y + random.normal(size=200))
        inside += low <= truth <= high
    assert 0.90 < inside / 300 < 0.985
    assert auroc_interval(np.array([True, True, False, False]), np.array([3.0, 2, 1, 0])) is None


def test_precision_interval_is_symmetric_in_the_logit():
    low, high = precision_interval(0.6, 50)
    logit = [np.log(x / (1 - x)) for x in (low, 0.6, high)]
    assert logit[1] - logit[0] == pytest.approx(logit[2] - logit[1])
    assert logit[1] - logit[0] == pytest.approx(1.959964 / np.sqrt(50 * 0.24))
    assert precision_interval(1.0, 50) is None


def test_key_figures_equal_scikit_learn(decided):
    y, s, rule, columns = decided
    p = s >= rule.threshold
    found = {f.name: f for f in key_figures(rule.goal, columns)}
    theirs = {
        "recall": sk.recall_score(y, p),
        "precision": sk.precision_score(y, p),
        "f1": sk.f1_score(y, p),
        "accuracy": sk.accuracy_score(y, p),
        "auroc": sk.roc_auc_score(y, s),
        "average_precision": sk.average_precision_score(y, s),
    }
    for name, value in theirs.items():
        assert found[name].value == pytest.approx(value)
        assert found[name].low < value < found[name].high
    exact = binomtest(int((y & p).sum()), int(p.sum())).proportion_ci(0.95, "exact")
    assert found["precision"].low == pytest.approx(exact.low)
    assert (found["precision"].k, found["precision"].n) == ((y & p).sum(), p.sum())
    assert [f.role for f in key_figures(rule.goal, columns)][:3] == ["objective", "limit", "also"]
    assert found["precision"].asked == 0.8


def test_weighted_key_figures_equal_scikit_learn(decided):
    y, s, rule, _ = decided
    w = np.random.default_rng(0).uniform(0.2, 3, len(y))
    p = s >= rule.threshold
    columns = ScoredRows("certify", y, s, weight=w).decided_by(rule)
    found = {f.name: f for f in key_figures(rule.goal, columns)}
    assert found["recall"].value == pytest.approx(sk.recall_score(y, p, sample_weight=w))
    assert found["precision"].value == pytest.approx(sk.precision_score(y, p, sample_weight=w))
    assert found["f1"].value == pytest.approx(sk.f1_score(y, p, sample_weight=w))
    assert "effective" in found["recall"].how
    assert found["recall"].low < found["recall"].value < found["recall"].high


def test_curves_lie_on_scikit_learns(decided):
    y, s, *_, columns = decided
    made = curves(columns)
    fpr, tpr, _ = sk.roc_curve(y, s, drop_intermediate=False)
    roc = made.roc
    for x, z in zip(roc.x, roc.y, strict=True):
        assert np.min(abs(fpr - x) + abs(tpr - z)) < 1e-12
    precision, recall, _ = sk.precision_recall_curve(y, s)
    pr = made.pr
    for x, z in zip(pr.x, pr.y, strict=True):
        assert np.min(abs(recall - x) + abs(precision - z)) < 1e-12
    assert len(pr.x) <= 200
    assert (roc.x[0], roc.y[0]) == (0, 0)
    assert (roc.x[-1], roc.y[-1]) == (1, 1)
    # thinned, they lose nothing that can be seen
    whole = np.interp(np.linspace(0, 1, 500), fpr, tpr)
    assert np.mean(abs(np.interp(np.linspace(0, 1, 500), roc.x, roc.y) - whole)) < 0.005


def test_band_is_the_exact_interval_at_each_threshold(decided):
    y, *_, columns = decided
    pr, roc = curves(columns).pr, curves(columns).roc
    P = int(y.sum())
    for i in (0, 50, len(pr.x) - 1):
        hits = round(pr.x[i] * P)
        flagged = round(hits / pr.y[i]) if pr.y[i] else 1
        exact = binomtest(hits, flagged).proportion_ci(0.95, "exact")
        assert pr.low[i] == pytest.approx(exact.low)
        assert pr.high[i] == pytest.approx(exact.high)
        exact = binomtest(hits, P).proportion_ci(0.95, "exact")
        assert roc.low_y[i + 1] == pytest.approx(exact.low)
        assert roc.high_y[i + 1] == pytest.approx(exact.high)
    assert (roc.high_x <= roc.x + 1e-12).all()
    assert (roc.low_x >= roc.x - 1e-12).all()


def test_integer_weights_count_rows_twice(decided):
    y, s, rule, _columns = decided
    w = np.random.default_rng(0).integers(1, 4, len(y)).astype(float)
    weighted = curves(ScoredRows("certify", y, s, weight=w).decided_by(rule))
    many = np.repeat(np.arange(len(y)), w.astype(int))
    plain = curves(ScoredRows("certify", y[many], s[many]).decided_by(rule))
    at = np.linspace(0, 1, 50)
    a, b = (np.interp(at, c.roc.x, c.roc.y) for c in (weighted, plain))
    assert np.allclose(a, b, atol=0.01)
    assert "effective" in weighted.how
    # heavier rows are no more rows: the band is not narrower than that of the rows there are
    i = len(weighted.pr.x) - 1
    j = len(plain.pr.x) - 1
    assert weighted.pr.high[i] - weighted.pr.low[i] > (plain.pr.high[j] - plain.pr.low[j])


def test_one_class_has_no_curve():
    y, s = np.zeros(50, bool), np.arange(50.0)
    rule = sp.tune(cases.GOAL, *cases.rows(500, 1))
    columns = ScoredRows("certify", y, s).decided_by(rule)
    assert curves(columns) is None
    assert reliability(columns) is None
    assert confusion(columns).people[1].value is None


@pytest.mark.parametrize("size", [1, 2, 150, 201, 5000])
def test_thinning_keeps_the_ends(size):
    tp = np.cumsum(np.random.default_rng(0).random(size) < 0.3)
    places = thinned(tp, np.arange(size) + 1 - tp)
    assert places[0] == 0
    assert places[-1] == size - 1
    assert len(places) <= 200
    assert (np.diff(places) > 0).all()


def test_confusion_counts_rows(decided):
    y, s, rule, columns = decided
    p = s >= rule.threshold
    table = confusion(columns)
    (tn, fp), (fn, tp) = sk.confusion_matrix(y, p)
    assert (table.tp, table.fp, table.fn, table.tn) == (tp, fp, fn, tn)
    assert [part.value for part in table.people] == [
        pytest.approx(x) for x in (tp / (tp + fp), tp / (tp + fn), fp / (fp + tn))
    ]


def test_confusion_of_classes_equals_scikit_learn():
    report = cases.several(5, 1200)
    table = report.record["confusion"]
    assert np.sum(table["table"]) == 1200
    per_class = {k["name"]: k for k in table["classes"]}
    for i, label in enumerate(table["labels"]):
        row, column = table["table"][i], [line[i] for line in table["table"]]
        assert per_class[label]["recall"]["value"] == pytest.approx(row[i] / sum(row))
        assert per_class[label]["precision"]["value"] == pytest.approx(row[i] / sum(column))


def test_spread_of_scores_adds_up_and_shows_the_threshold(decided):
    y, s, rule, columns = decided
    made = distribution(columns, rule)
    assert sum(made.positive) == pytest.approx(1)
    assert sum(made.other) == pytest.approx(1)
    assert made.cuts == (rule.threshold,)
    assert made.edges[0] < rule.threshold < made.edges[-1]
    flagged = np.array(made.edges[:-1]) >= rule.threshold
    assert made.positive[flagged].sum() == pytest.approx((s[y] >= rule.threshold).mean(), abs=0.1)


def test_calibration_of_true_probabilities_holds():
    random = np.random.default_rng(2)
    p = random.beta(0.5, 2, 20_000)
    y = random.random(20_000) < p
    rule = sp.tune(cases.GOAL, y, p, task=sp.Task.binary(score="probability"))
    made = reliability(ScoredRows("certify", y, p).decided_by(rule))
    assert made.probability
    assert sum(made.rows) == 20_000
    inside = [lo <= x <= hi for x, lo, hi in zip(made.x, made.low, made.high, strict=True)]
    assert np.mean(inside) >= 0.8
    assert len(inside) == 12
    assert (np.diff(made.x) > 0).all()


def test_equal_scores_stand_in_one_group():
    y = np.tile([True, False, False], 100)
    s = np.repeat([0.1, 0.9], 150)
    rule = sp.tune(cases.GOAL, *cases.rows(500, 1))
    made = reliability(ScoredRows("certify", y, s).decided_by(rule))
    assert made.x == pytest.approx([0.1, 0.9])
    assert made.y == pytest.approx([1 / 3] * 2)


def test_groups_equal_counting_by_hand(decided):
    y, s, rule, _ = decided
    region = np.where(np.arange(len(y)) % 50 == 0, "isle", np.where(y, "a", "b"))
    (table,) = affected(ScoredRows("certify", y, s, {"region": region}).decided_by(rule))
    assert table.column == "region"
    by = {g.value: g for g in table.groups}
    p = s >= rule.threshold
    own = region == "isle"
    assert by["isle"].rows == own.sum()
    assert by["isle"].positives == (own & y).sum()
    assert by["isle"].shares["recall"].value == pytest.approx(p[own & y].mean())
    assert by["isle"].shares["fpr"].value == pytest.approx(p[own & ~y].mean())
    assert by["isle"].small
    assert by["b"].shares["recall"].value is None  # no positive there
    assert [g.rows for g in table.groups] == sorted((g.rows for g in table.groups), reverse=True)


def test_many_groups_are_capped(decided):
    y, s, rule, _ = decided
    many = {"shop": np.array([f"s{i % 45}" for i in range(len(y))])}
    (table,) = affected(ScoredRows("certify", y, s, many).decided_by(rule))
    assert len(table.groups) == 30
    assert table.left_out == 15


@pytest.mark.parametrize(
    ("goal", "panels"),
    [
        ("maximize recall subject to precision >= 0.8", 1),
        ("maximize recall subject to precision >= 0.6, fpr <= 0.1", 2),
        ("maximize f1", 1),
        ("minimize cost(fp=1, fn=5)", 1),
    ],
)
def test_tradeoff_passes_through_the_rule(goal, panels):
    y, s = cases.rows(1500, 7, share=0.3)
    rule = sp.tune(goal, y, s)
    columns = ScoredRows("out-of-fold", y, s).decided_by(rule)
    goal = Goal.parse(goal).lowered
    made = tradeoff(goal, rule, [("out-of-fold", columns)], key_figures(goal, columns), [])
    assert len(made.panels) == panels
    for panel in made.panels:
        x, z = panel.curves[0].x, panel.curves[0].y
        point = panel.point
        scale = max(1, np.nanmax(abs(z)))
        near = np.nanmin(abs(x - point.x) + abs(z - point.y) / scale)
        assert near < 0.03
        assert point.y == pytest.approx(rule.value)


def test_tradeoff_of_a_goal_on_scores_is_left_out():
    report = cases.binary(
        "maximize recall subject to precision >= 0.8", comparison=None, plan=None, n=600
    )
    assert report.record["tradeoff"]["panels"]
    several = cases.several(n=400)
    assert several.record["tradeoff"] is None
