"""Confidences rank as the textbook does in exact arithmetic, at scales where floats saturate."""

from fractions import Fraction
from importlib import import_module

import mpmath as mp
import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import softmax

from setpoint import DataError, KindError
from setpoint.rules.confidence_scores import CONFIDENCES, confidence, from_probabilities

NAMES = list(CONFIDENCES)
SOFTMAX = ["sr_max", "sr_ent", "sr_doctor"]
MARGINS = ["rl_conf_m", "rl_geo_m"]
DTYPES = [np.float16, np.float32, np.float64]
SCALES = [1e-3, 1e-2, 0.1, 1.0, 4.0, 20.0, 1e2, 1e3]
RANDOM = np.random.default_rng(0)
Z = 2 * RANDOM.normal(size=(60, 5))
NORMS = RANDOM.uniform(0.5, 2, 5)


def head_for(name):
    return NORMS if CONFIDENCES[name].needs_head else None


def score(name, logits):
    return confidence(name, logits, head_for(name))[0]


def scaled(scale, dtype):
    """Logits times a scale, as the type holds them: what is rounded is rounded before the score."""
    return (Z * scale).astype(dtype)


# --- the textbook, in as many digits as it takes -----------------------------------------------


def probabilities(row):
    top = max(row)
    powers = [mp.exp(mp.mpf(float(z)) - mp.mpf(float(top))) for z in row]
    return [x / mp.fsum(powers) for x in powers]


def textbook(name, row):
    p = probabilities(row)
    if name == "sr_max":
        return max(p)
    if name == "sr_ent":
        return mp.fsum(x * mp.log(x) for x in p)
    return 1 - 1 / mp.fsum(x * x for x in p)


def in_logit_space(name, row):
    """The stated monotone function of the textbook's value."""
    value = textbook(name, row)
    if name == "sr_max":
        return mp.log(value / (1 - value))
    if name == "sr_ent":
        return -mp.log(-value)
    return -mp.log(1 - 1 / (1 - value))


def digits(rows):
    """1 − p₁ may be as small as exp(−range)."""
    return 40 + int(np.ptp(np.asarray(rows, float), axis=1).max() / 2.3)


def signs(values):
    """The order of all pairs: −1, 0 or 1."""
    return np.array([[int(a > b) - int(a < b) for b in values] for a in values])


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", SOFTMAX)
def test_softmax_scores_rank_as_the_textbook_in_exact_arithmetic(name, dtype, scale):
    logits = scaled(scale, dtype)[:12, :4]
    with mp.workdps(digits(logits)):
        truth = signs([textbook(name, row) for row in logits])
    assert np.array_equal(signs(score(name, logits)), truth)


@st.composite
def rows(draw):
    width = draw(st.sampled_from([16, 32, 64]))
    size = draw(st.integers(2, 6))
    entry = st.floats(-300, 300, width=width) | st.sampled_from([0.0, 1.0, -1.0, 2.0**-10])
    return draw(st.lists(entry, min_size=size, max_size=size))


@settings(max_examples=150, deadline=None)
@given(rows())
def test_softmax_scores_have_their_stated_value(row):
    for name in SOFTMAX:
        with mp.workdps(digits([row])):
            truth = float(in_logit_space(name, row))
        assert confidence(name, [row])[0][0] == pytest.approx(truth, rel=1e-14, abs=1e-15)


def test_softmax_scores_equal_a_plain_softmax_where_that_is_accurate():
    p = softmax(Z, axis=1)
    top = p.max(1)
    np.testing.assert_allclose(score("sr_max", Z), np.log(top / (1 - top)), rtol=1e-10)
    np.testing.assert_allclose(score("sr_ent", Z), -np.log(-(p * np.log(p)).sum(1)), rtol=1e-10)
    np.testing.assert_allclose(score("sr_doctor", Z), -np.log(1 - (p**2).sum(1)), rtol=1e-10)


@pytest.mark.parametrize("name", SOFTMAX)
def test_nothing_is_tied_where_float32_probabilities_are(name):
    logits = scaled(100, np.float32)
    assert np.unique(softmax(logits, axis=1).max(1)).size < 30
    assert np.unique(score(name, logits)).size == 60


@pytest.mark.parametrize("library", [np.asarray, torch.tensor])
@pytest.mark.parametrize("name", NAMES)
def test_the_order_of_the_classes_does_not_matter(name, library):
    logits, norms = RANDOM.normal(size=(40, 301)), RANDOM.uniform(0.5, 2, 301)
    head = (lambda order: norms[order]) if CONFIDENCES[name].needs_head else lambda order: None
    value, predicted = confidence(name, library(logits), head(slice(None)))
    for _ in range(3):
        order = RANDOM.permutation(301)
        moved, column = confidence(name, library(logits[:, order]), head(order))
        assert moved.tolist() == value.tolist()
        assert order[np.asarray(column)].tolist() == predicted.tolist()


# --- margins and scale -------------------------------------------------------------------------


def exact_margin(name, row):
    divisors = [Fraction(x) for x in NORMS] if name == "rl_geo_m" else [1] * len(row)
    first, second = sorted(Fraction(float(z)) / d for z, d in zip(row, divisors, strict=True))[
        :-3:-1
    ]
    return first - second


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", MARGINS)
def test_margins_rank_as_exact_arithmetic_on_the_logits_given(name, dtype, scale):
    logits = scaled(scale, dtype)
    truth = signs([exact_margin(name, row) for row in logits])
    assert np.array_equal(signs(score(name, logits)), truth)


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_margins_of_short_floats_tie_exactly_where_they_are_equal(dtype):
    logits = RANDOM.integers(-4, 5, (60, 5)).astype(dtype) * dtype(0.1)
    margins = [exact_margin("rl_conf_m", row) for row in logits]
    assert len(set(margins)) < 60
    assert score("rl_conf_m", logits).tolist() == [float(m) for m in margins]


@pytest.mark.parametrize("power", range(-10, 11))
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", [*MARGINS, "rl_max"])
def test_margins_scale_exactly_by_powers_of_two(name, dtype, power):
    logits = np.copysign(np.clip(abs(Z), 0.25, 8), Z).astype(dtype)  # nothing leaves float16
    moved = logits * dtype(2.0**power)
    assert np.array_equal(moved.astype(float), logits.astype(float) * 2.0**power)
    assert np.array_equal(score(name, moved), 2.0**power * score(name, logits))


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", MARGINS)
def test_scaling_keeps_the_order_of_margins_that_rounding_leaves_apart(name, dtype, scale):
    # Times 1e-3 is not exact in any of the types: pairs nearer than the rounding may be exchanged.
    before, after = score(name, Z.astype(dtype)), score(name, scaled(scale, dtype))
    kind = np.finfo(dtype)
    rounding = 4 * kind.eps * abs(Z).max() + 4 * kind.smallest_subnormal / scale
    rounding /= NORMS.min() if name == "rl_geo_m" else 1
    apart = abs(before[:, None] - before) > rounding
    assert apart.sum() > 0.9 * (60 * 59)
    assert np.array_equal(signs(after)[apart], signs(before)[apart])


def test_the_softmax_scores_are_not_scale_invariant():
    for name in SOFTMAX:
        assert not np.array_equal(signs(score(name, 0.1 * Z)), signs(score(name, Z)))


def test_the_margin_is_the_limit_of_sr_max_at_large_scale():
    np.testing.assert_allclose(score("sr_max", 1e4 * Z) / 1e4, score("rl_conf_m", Z), rtol=1e-12)


# --- predictions, libraries, blocks --------------------------------------------------------------


def test_rl_geo_m_predicts_by_its_own_argmax():
    logits = [[3.0, 2.0], [3.0, 1.0]]
    value, predicted = confidence("rl_geo_m", logits, [2.0, 1.0])
    assert (value.tolist(), predicted.tolist()) == ([0.5, 0.5], [1, 0])
    for name in NAMES[:-1]:
        assert confidence(name, logits)[1].tolist() == [0, 0]


def test_a_head_is_a_matrix_or_its_norms():
    weight = RANDOM.normal(size=(5, 7))
    norms = np.linalg.norm(weight, axis=1)
    expected = confidence("rl_geo_m", Z, norms)[0]
    for head in (
        weight,
        weight.tolist(),
        norms.tolist(),
        torch.tensor(weight),
        torch.tensor(norms),
    ):
        for logits in (Z, torch.tensor(Z)):
            np.testing.assert_allclose(
                confidence("rl_geo_m", logits, head)[0], expected, rtol=1e-14
            )
    layer = torch.nn.Linear(7, 5).bfloat16()
    assert confidence("rl_geo_m", torch.tensor(Z), layer.weight)[0].isfinite().all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("name", NAMES)
def test_tensors_give_the_same(name, dtype):
    logits = torch.tensor(30 * Z).to(dtype).requires_grad_()
    value, predicted = confidence(name, logits, head_for(name))
    assert value.dtype == torch.float64
    assert not value.requires_grad
    ours, theirs = confidence(name, logits.detach().double().numpy(), head_for(name))
    np.testing.assert_allclose(value.numpy(), ours, rtol=1e-14)
    assert predicted.tolist() == theirs.tolist()


@pytest.mark.parametrize("name", NAMES)
def test_blocks_of_rows_give_the_same_as_all_at_once(name, monkeypatch):
    expected = confidence(name, Z, head_for(name))
    room = import_module("setpoint.rules.confidence_scores")  # the function may bear its name
    monkeypatch.setattr(room, "BLOCK", 35)
    for a, b in zip(confidence(name, Z, head_for(name)), expected, strict=True):
        assert np.array_equal(a, b)


@pytest.mark.parametrize("name", NAMES)
def test_extremes_stay_finite(name):
    logits = np.array([[1e150, -1e150], [0, 0], [-1e150, -1e150], [1e-320, 0], [800, 0]])
    head = [1.0, 2.0] if CONFIDENCES[name].needs_head else None
    assert np.isfinite(confidence(name, logits, head)[0]).all()


# --- probabilities -------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [*SOFTMAX, "rl_conf_m"])
def test_probabilities_give_the_scores_of_their_logits(name):
    p = softmax(Z, axis=1)
    np.testing.assert_allclose(score(name, from_probabilities(p)), score(name, Z), rtol=1e-10)
    tensor = from_probabilities(torch.tensor(p))
    np.testing.assert_allclose(tensor.numpy(), from_probabilities(p), rtol=1e-14)


def test_a_probability_of_zero_is_below_all_others():
    p = [[1.0, 0.0], [1.0, 5e-324], [1 - 1e-9, 1e-9], [0.5, 0.5]]
    for name in SOFTMAX:
        value = confidence(name, from_probabilities(p))[0]
        assert value[0] == value[1] > value[2] > value[3]
    kept = from_probabilities(np.array([[0.75, 0.25, 0.0]], np.float16))
    assert np.exp(kept).round(4).tolist() == [[0.75, 0.25, 0.0]]


# --- bad input -----------------------------------------------------------------------------------

TWO = [[0.0, 1.0], [2.0, 3.0]]
BAD = [
    ("unknown name", lambda: confidence("sr_mx", TWO), KindError, "did you mean sr_max?"),
    ("no name", lambda: confidence(3, TWO), KindError, "choose from sr_max, sr_ent"),
    ("nan", lambda: confidence("sr_max", [[0, 1], [np.nan, 1]]), DataError, "nan at row 1, col"),
    ("inf", lambda: confidence("sr_max", [[0, np.inf]]), DataError, "inf at row 0, column 1"),
    ("-inf", lambda: confidence("rl_max", torch.tensor([[0, -np.inf]])), DataError, "-inf at"),
    ("huge", lambda: confidence("rl_max", [[0, 1e200]]), DataError, "scale them down"),
    ("one column", lambda: confidence("sr_max", [[1.0], [2.0]]), DataError, "1 column;"),
    ("one dimension", lambda: confidence("sr_max", [1.0, 2.0]), DataError, "shape is (2,)"),
    ("no rows", lambda: confidence("sr_max", np.empty((0, 3))), DataError, "no rows"),
    ("booleans", lambda: confidence("sr_max", [[True, False]]), KindError, "booleans"),
    ("text", lambda: confidence("sr_max", [["a", "b"]]), KindError, "must be numbers"),
    ("no head", lambda: confidence("rl_geo_m", TWO), KindError, "pass head="),
    ("a head too many", lambda: confidence("sr_max", TWO, [1, 1]), KindError, "leave head= out"),
    ("short head", lambda: confidence("rl_geo_m", TWO, [1, 1, 1]), DataError, "head has 3 rows"),
    ("zero norm", lambda: confidence("rl_geo_m", TWO, [1, 0]), DataError, "norm 0 for class 1"),
    ("nan norm", lambda: confidence("rl_geo_m", TWO, [np.nan, 1]), DataError, "norm nan for"),
    ("p > 1", lambda: from_probabilities([[0.5, 1.5]]), DataError, "1.5 at row 0, column 1"),
    ("p < 0", lambda: from_probabilities([*TWO, [-1, 2]]), DataError, "2 at row 1, column 0"),
    ("p nan", lambda: from_probabilities([[np.nan, 1]]), DataError, "nan at row 0"),
    ("sums", lambda: from_probabilities([[0.5, 0.5], [0.6, 0.5]]), DataError, "row 1 sum to 1.1"),
    ("one probability", lambda: from_probabilities([[0.5]]), DataError, "1 - p and p"),
]  # fmt: skip


@pytest.mark.parametrize(("call", "error", "words"), [b[1:] for b in BAD], ids=[b[0] for b in BAD])
def test_bad_input_is_answered_with_a_sentence(call, error, words):
    with pytest.raises(error) as caught:
        call()
    assert words in str(caught.value)


def test_each_row_of_the_table_is_held():
    assert sorted([*SOFTMAX, *MARGINS, "rl_max"]) == sorted(CONFIDENCES)
    assert all(name == row.name and row.formula for name, row in CONFIDENCES.items())
