"""Risk and coverage equal brute force over all orders of tied rows, in exact fractions."""

from fractions import Fraction
from itertools import pairwise, permutations
from math import ceil

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import roc_auc_score

from setpoint import DataError, KindError
from setpoint.decisions.plots import plot_risk_coverage
from setpoint.decisions.risk_coverage import RiskCoverage, risk_coverage, selective_errors

ALPHAS = {0.1: Fraction(1, 10), 0.5: Fraction(1, 2), 1.0: Fraction(1)}
RANDOM = np.random.default_rng(0)
C = RANDOM.integers(0, 40, 300)
WRONG = RANDOM.random(300) < 0.5 - C / 100
W = RANDOM.uniform(0.5, 2, 300)


@st.composite
def cases(draw, most=6):
    n = draw(st.integers(1, most))
    confidence = draw(st.lists(st.integers(-2, 2), min_size=n, max_size=n))
    loss = (
        st.sampled_from([0.0, 1.0])
        if draw(st.booleans())
        else st.integers(0, 8).map((0.25).__mul__)
    )
    return confidence, draw(st.lists(loss, min_size=n, max_size=n))


def orders(confidence):
    """All orders of the rows in which the confidence does not rise."""
    for order in permutations(range(len(confidence))):
        if all(confidence[a] >= confidence[b] for a, b in pairwise(order)):
            yield order


def risks(order, loss):
    """Selective risk after the first row, the first two, …"""
    total, out = Fraction(0), []
    for i, row in enumerate(order, 1):
        total += Fraction(loss[row])
        out.append(total / i)
    return out


def mean(values):
    values = list(values)
    return sum(values, Fraction(0)) / len(values)


def area(order, loss, alpha):
    return mean(risks(order, loss)[: max(1, ceil(alpha * len(order)))])


@settings(max_examples=80, deadline=None)
@given(cases())
def test_areas_equal_the_mean_over_all_orders_of_tied_rows(case):
    confidence, loss = case
    curve, n = risk_coverage(confidence, loss), len(loss)
    allowed = list(orders(confidence))
    for alpha, exact in ALPHAS.items():
        truth = mean(area(order, loss, exact) for order in allowed)
        assert curve.aurc(alpha) == pytest.approx(float(truth), rel=1e-13, abs=1e-15)
        least = min(area(order, loss, exact) for order in permutations(range(n)))
        excess = float(truth - least)
        assert curve.excess_aurc(alpha) == pytest.approx(excess, rel=1e-12, abs=1e-15)
        assert curve.excess_aurc(alpha) >= 0
    joint = mean(
        mean(Fraction(i, n) * r for i, r in enumerate(risks(order, loss), 1)) for order in allowed
    )
    assert curve.augrc() == pytest.approx(float(joint), rel=1e-13, abs=1e-15)


@given(cases(30))
def test_each_threshold_accepts_the_rows_at_or_above_it(case):
    confidence, loss = map(np.array, case)
    curve = risk_coverage(confidence, loss)
    assert curve.thresholds.tolist() == sorted(set(confidence), reverse=True)
    assert curve.n == loss.size
    points = zip(curve.thresholds, curve.coverages, curve.risks, curve.wrong, strict=True)
    for threshold, coverage, risk, wrong in points:
        accepted = confidence >= threshold
        assert coverage == accepted.mean()
        assert wrong == loss[accepted].sum()
        assert risk == pytest.approx(loss[accepted].mean(), rel=1e-13)
        assert curve.risk_at(coverage) == pytest.approx(risk, rel=1e-13)


@given(cases(30))
def test_only_the_order_of_the_confidence_counts(case):
    confidence, loss = np.array(case[0], float), case[1]
    curve = risk_coverage(confidence, loss)
    for transform in (np.exp, lambda c: c**3 - 5, lambda c: np.where(c == 2, np.inf, c)):
        moved = risk_coverage(transform(confidence), loss)
        assert np.array_equal(moved.coverages, curve.coverages)
        assert np.array_equal(moved.wrong, curve.wrong)
        for alpha in ALPHAS:
            assert moved.aurc(alpha) == curve.aurc(alpha)
            assert moved.excess_aurc(alpha) == curve.excess_aurc(alpha)
        assert moved.augrc() == curve.augrc()


@given(cases(30), st.randoms(use_true_random=False))
def test_the_order_of_the_rows_does_not_count(case, random):
    pairs = list(zip(*case, strict=True))
    curve = risk_coverage(*case)
    random.shuffle(pairs)
    again = risk_coverage(*zip(*pairs, strict=True))
    assert [again.aurc(a) for a in ALPHAS] == [curve.aurc(a) for a in ALPHAS]


def test_a_constant_confidence_has_the_mean_loss_everywhere():
    curve = risk_coverage(np.zeros(300), WRONG)
    assert all(curve.aurc(a) == pytest.approx(WRONG.mean()) for a in ALPHAS)
    assert curve.risk_at(0.37) == pytest.approx(WRONG.mean())


def test_the_best_order_leaves_no_excess():
    curve = risk_coverage(-1.0 * WRONG, WRONG)
    assert curve.excess_aurc() == 0
    assert curve.best is not None
    assert curve.best.best is None
    assert curve.best.excess_aurc() == 0
    assert risk_coverage(1.0 * WRONG, WRONG).excess_aurc() > 0.1


def test_augrc_follows_from_the_auroc_of_telling_right_from_wrong():
    # Σᵢ errors among the first i = e (e + 1) / 2 + e (n − e) (1 − AUROC), tied pairs counting half.
    n, e = WRONG.size, int(WRONG.sum())
    pairs = e * (n - e) * (1 - roc_auc_score(~WRONG, C))
    assert risk_coverage(C, WRONG).augrc() == pytest.approx((e * (e + 1) / 2 + pairs) / n**2)


def test_the_last_row_is_divided_by_all_rows_and_the_first_by_one():
    curve = risk_coverage([3, 2, 1], [1, 0, 0])
    assert curve.aurc() == pytest.approx((1 + 1 / 2 + 1 / 3) / 3)
    assert curve.aurc(1e-9) == 1


@pytest.mark.parametrize(("alpha", "n", "m"), [(0.7, 10, 7), (0.1, 30, 3), (0.1, 31, 4), (1, 7, 7)])
def test_alpha_is_taken_as_it_is_written(alpha, n, m):
    loss = RANDOM.random(n)
    curve = risk_coverage(-np.arange(n), loss)
    assert curve.aurc(alpha) == pytest.approx((loss.cumsum() / np.arange(1, n + 1))[:m].mean())


# --- weights -------------------------------------------------------------------------------------


def test_weights_count_as_repeated_rows_along_the_curve():
    weight = RANDOM.integers(0, 4, 300)
    curve = risk_coverage(C, WRONG, sample_weight=weight)
    again = risk_coverage(C.repeat(weight), WRONG.repeat(weight))
    for name in ("thresholds", "coverages", "risks", "wrong"):
        assert np.array_equal(getattr(curve, name), getattr(again, name))
    assert curve.n == (weight > 0).sum()
    for alpha in ALPHAS:
        grid = np.arange(1, ceil(round(alpha * curve.n, 6)) + 1) / curve.n
        assert curve.aurc(alpha) == pytest.approx(again.risk_at(grid).mean())
        assert curve.excess_aurc(alpha) == pytest.approx(
            (again.risk_at(grid) - again.best.risk_at(grid)).mean()
        )


def test_the_scale_of_the_weights_does_not_matter():
    plain, weighted = risk_coverage(C, WRONG), risk_coverage(C, WRONG, sample_weight=W)
    ones = risk_coverage(C, WRONG, sample_weight=np.full(300, 8.0))
    more = risk_coverage(C, WRONG, sample_weight=1e-3 * W)
    for alpha in ALPHAS:
        assert ones.aurc(alpha) == plain.aurc(alpha)
        assert more.aurc(alpha) == pytest.approx(weighted.aurc(alpha), rel=1e-12)
    assert weighted.aurc() != plain.aurc()


@given(cases(12), st.data())
def test_the_excess_is_not_negative_with_weights(case, data):
    n = len(case[0])
    weight = data.draw(st.lists(st.floats(0.01, 100), min_size=n, max_size=n))
    curve = risk_coverage(*case, sample_weight=weight)
    assert curve.best is not None
    for alpha in ALPHAS:
        assert curve.best.aurc(alpha) <= curve.aurc(alpha) + 1e-12


# --- tensors, labels, plots ----------------------------------------------------------------------


def test_tensors_are_read():
    curve = risk_coverage(torch.tensor(C, dtype=torch.bfloat16), torch.tensor(WRONG))
    assert curve.aurc() == risk_coverage(C, WRONG).aurc()


def test_a_class_that_the_model_lacks_is_always_an_error():
    assert selective_errors([0, 1, -1], [0, -1, -1]).tolist() == [False, True, True]
    assert selective_errors(["a", "b"], ["a", "?"], unknown="?").tolist() == [False, True]
    assert selective_errors(["a", "b"], ["a", "a"]).tolist() == [False, True]
    assert selective_errors(torch.tensor([2, 3]), [2, 9], unknown=2).tolist() == [True, True]


def test_plots_draw_the_data():
    curve = risk_coverage(C, WRONG)
    ax = plot_risk_coverage(curve)
    x, y = ax.lines[0].get_data()
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("coverage", "selective risk")
    assert set(curve.coverages) <= set(x)
    np.testing.assert_allclose(y[np.isin(x, curve.coverages)], curve.risks, rtol=1e-12)
    assert ax.get_legend() is None
    again = plot_risk_coverage({"own": curve, "best": curve.best}, ax, linewidth=1)
    assert again is ax
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["own", "best"]


def test_plots_bend_within_a_tie():
    curve = risk_coverage([1, 0, 0, 0], [0, 1, 1, 1])
    x, y = plot_risk_coverage(curve).lines[0].get_data()
    np.testing.assert_allclose(y, (x - 0.25) / x, atol=1e-12)


BAD = [
    ("lengths", lambda: risk_coverage([1, 2], [True]), DataError, "2 rows and wrong has 1"),
    ("weights", lambda: risk_coverage([1, 2], [0, 1], sample_weight=[1]), DataError, "has 1;"),
    ("nan", lambda: risk_coverage([1, np.nan], [0, 1]), DataError, "nan at row 1"),
    ("nan loss", lambda: risk_coverage([1, 2], [0, np.nan]), DataError, "wrong is nan at row 1"),
    ("negative loss", lambda: risk_coverage([1, 2], [-1, 0]), DataError, "wrong is -1 at row 0"),
    ("no weight", lambda: risk_coverage([1], [0], sample_weight=[0]), DataError, "sums to zero"),
    ("empty", lambda: risk_coverage([], []), DataError, "empty"),
    ("booleans", lambda: risk_coverage([True], [True]), KindError, "look like decisions"),
    ("text", lambda: risk_coverage(["a"], [True]), KindError, "must be numbers"),
    ("a matrix", lambda: risk_coverage([[1, 2]], [True]), DataError, "one-dimensional"),
    ("alpha 0", lambda: risk_coverage([1], [0]).aurc(0), DataError, "alpha=0"),
    ("alpha 2", lambda: risk_coverage([1], [0]).aurc(2), DataError, "alpha=2"),
    ("alpha text", lambda: risk_coverage([1], [0]).aurc("x"), DataError, "alpha='x'"),
    ("excess alpha", lambda: risk_coverage([1], [0]).excess_aurc(-1), DataError, "alpha=-1"),
    ("coverage 0", lambda: risk_coverage([1], [0]).risk_at(0), DataError, "coverage=0"),
    ("coverage text", lambda: risk_coverage([1], [0]).risk_at("x"), DataError, "coverage='x'"),
    ("label rows", lambda: selective_errors([1], [1, 2]), DataError, "1 rows and actual 2"),
    ("label kinds", lambda: selective_errors([1], ["1"]), KindError, "same labels"),
    ("label gaps", lambda: selective_errors([1], [np.nan]), DataError, "missing value"),
    ("a plot of a number", lambda: plot_risk_coverage(3), KindError, "a curve is needed"),
    ("a plot of names", lambda: plot_risk_coverage({"a": 3}), KindError, "for 'a'"),
    ("a plot of nothing", lambda: plot_risk_coverage({}), KindError, "empty mapping"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "words"), [b[1:] for b in BAD], ids=[b[0] for b in BAD])
def test_bad_input_is_answered_with_a_sentence(call, error, words):
    with pytest.raises(error) as caught:
        call()
    assert words in str(caught.value)


def test_the_curve_is_frozen():
    curve = risk_coverage([1, 2], [0, 1])
    assert isinstance(curve, RiskCoverage)
    with pytest.raises(AttributeError):
        curve.n = 3
