"""Pairwise losses against the sums written out over all pairs, in float64."""

import warnings
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import average_precision_score

from setpoint._core.errors import DataError, GoalError, KindError
from setpoint.methods.pair_sums import TAILS, Decay, auroc_loss, average_precision_loss

SURROGATES = ("squared-hinge", "laplace", "logistic")
TOLERANCE = {"squared-hinge": 1e-11, "laplace": 1e-11, "logistic": 1e-9, "ap": 1e-10}


def surrogate_of(kind, d, margin=1.0, temperature=1.0):
    t = -d / temperature
    if kind == "squared-hinge":
        return (margin - d).clamp(min=0) ** 2
    if kind == "logistic":
        return torch.nn.functional.softplus(t, threshold=50)
    return torch.where(t <= 0, 0.5 * t.clamp(max=0).exp(), t + 0.5 * (-t.clamp(min=0)).exp())


def hardest(scores, weight, share):
    """Weights of the negatives in the highest ``share`` of them, ties in equal parts."""
    room = share * weight.sum()
    kept = torch.zeros_like(weight)
    for score in scores.detach().unique().flip(0):
        tied = scores == score
        mass = weight[tied].sum()
        if mass > 0:
            kept[tied] = weight[tied] * (room / mass).clamp(max=1)
        room = (room - mass).clamp(min=0)
    return kept


def all_pairs_auroc(s, y, w, kind, max_fpr=1.0, min_tpr=0.0, **options):
    p = y > 0
    negative = hardest(s[~p], w[~p], max_fpr) if max_fpr < 1 else w[~p]
    positive = hardest(-s[p], w[p], 1 - min_tpr) if min_tpr > 0 else w[p]
    pairs = positive[:, None] * negative
    if pairs.sum() == 0:
        return 0.0 * s.sum()
    return (pairs * surrogate_of(kind, s[p][:, None] - s[~p], **options)).sum() / pairs.sum()


def all_pairs_ap(s, y, w, temperature):
    p = y > 0
    if w[p].sum() == 0:
        return 0.0 * s.sum()
    t = (s - s[p][:, None]) / temperature  # (positives, n)
    above = torch.where(t <= 0, 0.5 * t.clamp(max=0).exp(), 1 - 0.5 * (-t.clamp(min=0)).exp())
    itself = torch.nn.functional.one_hot(p.nonzero().squeeze(1), len(s)).bool()
    counts = torch.where(itself, torch.ones_like(above), above) * w
    ratio = (counts * p).sum(1) / torch.where(counts.sum(1) > 0, counts.sum(1), 1.0)
    return (w[p] * (1 - ratio)).sum() / w[p].sum()


def with_gradient(loss, s, *arguments, **options):
    leaf = s.clone().requires_grad_()
    value = loss(leaf, *arguments, **options)
    value.backward()
    return value.detach(), leaf.grad


def assert_same(ours, truth, tolerance):
    for a, b in zip(ours, truth, strict=True):
        assert torch.isfinite(a).all()
        scale = max(1e-4, float(b.abs().max()))  # below that, what counts is that it is nearly 0
        assert float((a - b).abs().max()) <= tolerance * scale


def rows(n, seed, scale=1.0, rate=0.3, decimals=None):
    g = torch.Generator().manual_seed(seed)
    s = scale * torch.randn(n, generator=g, dtype=torch.float64)
    if decimals is not None:
        s = s.round(decimals=decimals)
    y = (torch.rand(n, generator=g) < rate).long()
    y[0], y[-1] = 1, 0
    return s, y, torch.rand(n, generator=g, dtype=torch.float64)


@pytest.mark.parametrize("kind", SURROGATES)
@pytest.mark.parametrize("max_fpr", [1.0, 0.37, 0.05, 1e-4])
@pytest.mark.parametrize("scale", [0.1, 3.0, 1e4])
def test_auroc_equals_all_pairs(kind, max_fpr, scale):
    option = {"margin": 0.7} if kind == "squared-hinge" else {"temperature": 0.6}
    sizes = ((2, None), (31, 0), (33, 1), (200, None), (1100, 1))
    for n, decimals in sizes if max_fpr == 1 else sizes[:-1]:
        s, y, w = rows(n, n, scale, decimals=decimals)
        ours = with_gradient(auroc_loss, s, y, w, surrogate=kind, max_fpr=max_fpr, **option)
        truth = with_gradient(all_pairs_auroc, s, y, w, kind, max_fpr, **option)
        assert_same(ours, truth, TOLERANCE[kind])


@pytest.mark.parametrize("kind", SURROGATES)
@pytest.mark.parametrize(("max_fpr", "min_tpr"), [(0.3, 0.7), (1.0, 0.4), (0.05, 0.99), (0.9, 0.1)])
@pytest.mark.parametrize("scale", [0.1, 3.0, 1e4])
def test_two_way_auroc_equals_all_pairs(kind, max_fpr, min_tpr, scale):
    option = {"margin": 0.7} if kind == "squared-hinge" else {"temperature": 0.6}
    option |= {"max_fpr": max_fpr, "min_tpr": min_tpr}
    for n, decimals in ((2, None), (31, 0), (33, 1), (200, None)):
        s, y, w = rows(n, n, scale, rate=0.4, decimals=decimals)
        ours = with_gradient(auroc_loss, s, y, w, surrogate=kind, **option)
        assert_same(ours, with_gradient(all_pairs_auroc, s, y, w, kind, **option), TOLERANCE[kind])


@pytest.mark.parametrize("kind", SURROGATES)
def test_two_way_gradients_are_those_of_finite_differences(kind):
    s, y, w = rows(40, 3, 1.0, rate=0.5)
    loss = partial(auroc_loss, surrogate=kind, max_fpr=0.35, min_tpr=0.55)
    _, gradient = with_gradient(loss, s, y, w)
    step = 1e-6
    for i in range(40):
        near = torch.zeros(40, dtype=torch.float64)
        near[i] = step
        slope = (loss(s + near, y, w) - loss(s - near, y, w)) / (2 * step)
        assert float(gradient[i]) == pytest.approx(float(slope), abs=1e-7)
    assert (gradient == 0).any(), "rows that do not count are left alone"


@pytest.mark.parametrize("temperature", [0.01, 0.1, 1.0, 30.0])
@pytest.mark.parametrize("scale", [0.1, 3.0, 1e4])
def test_average_precision_equals_all_pairs(temperature, scale):
    for n, decimals in ((2, None), (31, 0), (33, 1), (1100, 1)):
        s, y, w = rows(n, n, scale, decimals=decimals)
        ours = with_gradient(average_precision_loss, s, y, w, temperature=temperature)
        truth = with_gradient(all_pairs_ap, s, y, w, temperature)
        assert_same(ours, truth, TOLERANCE["ap"])


@pytest.mark.parametrize("seed", range(5))
def test_cold_average_precision_is_scikit_learns(seed):
    s, y, w = rows(200, seed)
    s = s.argsort().argsort().double()  # no ties, gaps of 1
    truth = average_precision_score(y, s, sample_weight=w)
    loss = average_precision_loss(s, y, w, temperature=0.01)
    assert 1 - float(loss) == pytest.approx(truth, abs=1e-12)


def test_the_polynomial_of_the_logistic_tail():
    z = torch.linspace(1e-9, 1, 10_001, dtype=torch.float64)
    powers = torch.arange(1, len(TAILS["logistic"]) + 1)
    c = torch.tensor(TAILS["logistic"], dtype=torch.float64)
    tail = z[:, None] ** powers
    assert float((tail @ c / torch.log1p(z) - 1).abs().max()) < 2.3e-10
    assert float((tail @ (c * powers) / (z / (1 + z)) - 1).abs().max()) < 2.3e-10


small = st.integers(-4, 4).map(float) | st.floats(-50, 50)
batches = st.lists(
    st.tuples(small, st.integers(0, 1), st.sampled_from([0.0, 1e-3, 1.0, 2.0, 1e6])),
    min_size=1,
    max_size=40,
)


def columns(batch):
    s, y, w = zip(*batch, strict=True)
    return (
        torch.tensor(s, dtype=torch.float64),
        torch.tensor(y),
        torch.tensor(w, dtype=torch.float64),
    )


@given(batches, st.sampled_from(SURROGATES), st.sampled_from([1.0, 0.5, 0.1]))
@settings(max_examples=100, deadline=None)
def test_auroc_of_any_batch(batch, kind, max_fpr):
    s, y, w = columns(batch)
    ours = with_gradient(auroc_loss, s, y, w, surrogate=kind, max_fpr=max_fpr)
    assert_same(ours, with_gradient(all_pairs_auroc, s, y, w, kind, max_fpr), 1e-8)


@given(batches, st.sampled_from([0.1, 1.0]))
@settings(max_examples=100, deadline=None)
def test_average_precision_of_any_batch(batch, temperature):
    s, y, w = columns(batch)
    ours = with_gradient(average_precision_loss, s, y, w, temperature=temperature)
    assert_same(ours, with_gradient(all_pairs_ap, s, y, w, temperature), 1e-8)
    assert 0 <= float(ours[0]) <= 1


LOSSES = {
    "squared-hinge": lambda s, y, w=None: auroc_loss(s, y, w),
    "laplace": lambda s, y, w=None: auroc_loss(s, y, w, surrogate="laplace"),
    "logistic": lambda s, y, w=None: auroc_loss(s, y, w, surrogate="logistic"),
    "partial": lambda s, y, w=None: auroc_loss(s, y, w, max_fpr=0.2),
    "partial laplace": lambda s, y, w=None: auroc_loss(s, y, w, max_fpr=0.2, surrogate="laplace"),
    "average precision": average_precision_loss,
}
each_loss = pytest.mark.parametrize("loss", LOSSES.values(), ids=LOSSES)


@given(batches, st.randoms(use_true_random=False), st.sampled_from(sorted(LOSSES)))
@settings(max_examples=60, deadline=None)
def test_row_order_does_not_matter(batch, random, name):
    s, y, w = columns(batch)
    order = torch.tensor(random.sample(range(len(s)), len(s)))
    value, gradient = with_gradient(LOSSES[name], s, y, w)
    again = with_gradient(LOSSES[name], s[order], y[order], w[order])
    assert_same(again, (value, gradient[order]), 1e-9)


@given(batches, st.sampled_from([1.0, -7.0, 1e4]), st.sampled_from(sorted(LOSSES)))
@settings(max_examples=60, deadline=None)
def test_a_shift_of_all_scores_does_not_matter(batch, shift, name):
    s, y, w = columns(batch)
    s = (s * 1024).round() / 1024  # the shift is exact
    ours = with_gradient(LOSSES[name], s + shift, y, w)
    assert_same(ours, with_gradient(LOSSES[name], s, y, w), 1e-9)
    assert float(ours[1].sum().abs()) <= 1e-9 * max(1.0, float(ours[1].abs().sum()))


@each_loss
def test_a_weight_of_two_is_a_row_twice(loss):
    s, y, _ = rows(60, 3, decimals=1)
    twice = torch.arange(60) % 3 == 0
    if loss is average_precision_loss:  # a row counts fully for itself and half for its double
        twice &= y == 0
    value, gradient = with_gradient(loss, s, y, 1.0 + twice)
    again, parts = with_gradient(loss, torch.cat((s, s[twice])), torch.cat((y, y[twice])))
    joined = parts[:60].clone()
    joined[twice] += parts[60:]
    assert_same((again, joined), (value, gradient), 1e-10)


@each_loss
def test_weights_of_one_and_kinds_of_target(loss):
    s, y, _ = rows(50, 4)
    value, gradient = with_gradient(loss, s, y)
    for target in (y.bool(), y.float(), y.to(torch.uint8), y[:, None], 2 * y - 1):
        assert_same(with_gradient(loss, s, target), (value, gradient), 1e-15)
    assert_same(with_gradient(loss, s, y, torch.full((50,), 3.0)), (value, gradient), 1e-13)
    column = with_gradient(loss, s[:, None], y)
    assert column[1].shape == (50, 1)
    assert_same((column[0], column[1][:, 0]), (value, gradient), 1e-15)


@each_loss
def test_gradcheck(loss):
    s, y, w = rows(45, 5)
    assert torch.autograd.gradcheck(lambda s: loss(s, y, w), s.requires_grad_(), atol=1e-6)


HOSTILE = {
    "one row": ([0.3], [1]),
    "one class": ([0.3, 1.0, -2.0], [0, 0, 0]),
    "the other class": ([0.3, 1.0, -2.0], [1, 1, 1]),
    "constant": ([0.5] * 40, [0, 1] * 20),
    "far apart": ([1e4, -1e4] * 40, [0, 1] * 40),
    "far apart, in order": ([1e4, -1e4] * 40, [1, 0] * 40),
    "far steps": ([100.0 * i for i in range(400)], [0, 1] * 200),
    "the ends of float16": ([65504.0, -65504.0], [0, 1]),
}


@each_loss
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("case", HOSTILE)
def test_hostile_batches_are_finite(loss, dtype, case):
    s, y = (torch.tensor(x) for x in HOSTILE[case])
    every_third = (torch.arange(len(y)) % 3 > 0).float()
    for w in (None, 0 * every_third, 0 * every_third + 1e6, 1e6 * every_third):
        value, gradient = with_gradient(loss, s.to(dtype), y, w)
        assert value.isfinite()
        assert gradient.isfinite().all()
        assert gradient.dtype == dtype
        assert value.dtype == (torch.float64 if dtype == torch.float64 else torch.float32)
        if (w is not None and not w.any()) or "class" in case or case == "one row":
            assert float(value) == 0
            assert not gradient.any()


@each_loss
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_the_ends_of_the_dtype_are_finite(loss, dtype):
    most = torch.finfo(dtype).max
    s = torch.tensor([most, -most, 0.0, 1.0, -most, most], dtype=dtype)
    value, gradient = with_gradient(loss, s, torch.tensor([0, 1, 0, 1, 0, 1]))
    assert value.isfinite()
    assert gradient.isfinite().all()


@each_loss
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_low_precision_is_computed_in_high(loss, dtype):
    s, y, w = rows(500, 6)
    s = s.to(dtype)
    value, gradient = with_gradient(loss, s.double(), y, w)
    ours = with_gradient(loss, s, y, w)
    assert float(ours[0]) == pytest.approx(float(value), rel=1e-6)
    torch.testing.assert_close(ours[1], gradient.to(dtype))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert torch.equal(with_gradient(loss, s, y, w)[1], ours[1])


@each_loss
def test_nan_is_seen(loss):
    y = torch.tensor([1.0, 0.0, 1.0, 0.0])
    s = torch.tensor([0.1, 0.2, -0.3, 0.4])
    bad = torch.tensor([1.0, float("nan"), 1.0, 1.0])
    assert loss(s * bad, y).isnan()
    assert loss(s, y * bad).isnan()
    assert loss(s, y, bad).isnan()


@each_loss
def test_no_rows(loss):
    s = torch.empty(0, requires_grad=True)
    value = loss(s, torch.empty(0))
    value.backward()
    assert float(value.detach()) == 0
    assert s.grad.shape == (0,)


@each_loss
def test_the_graph_scales_and_ends(loss):
    s, y, _ = rows(20, 7)
    _, gradient = with_gradient(loss, s, y)
    scaled = with_gradient(lambda s: -3.0 * loss(2.0 * s, y), 0.5 * s)[1]
    assert_same((scaled,), (-6.0 * gradient,), 1e-12)
    with torch.no_grad():
        assert not loss(s.requires_grad_(), y).requires_grad
    with pytest.raises(KindError, match="differentiated once"):
        torch.autograd.grad(loss(s, y), s, create_graph=True)


@pytest.mark.filterwarnings("ignore:.*torch.jit:DeprecationWarning")  # torch's own import
@pytest.mark.parametrize("name", ["squared-hinge", "partial laplace", "average precision"])
def test_it_compiles_without_a_break(name):
    loss = LOSSES[name]
    s, y, w = rows(100, 8)
    torch.compiler.reset()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the compiler's own modules
        compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
        ours = with_gradient(compiled, s, y, w)
    assert_same(ours, with_gradient(loss, s, y, w), 1e-12)


def test_decay_against_the_recurrence():
    g = torch.Generator().manual_seed(0)
    for n in (1, 2, 15, 16, 17, 33, 257, 1025):
        gaps = torch.rand(n - 1, generator=g, dtype=torch.float64) ** 8 * 79
        values = torch.rand(2, n, generator=g, dtype=torch.float64)
        up, down = Decay(gaps).sums(values)
        x = torch.cat((torch.zeros(1, dtype=torch.float64), gaps.cumsum(0)))
        kernel = torch.exp(-(x[:, None] - x).abs())
        torch.testing.assert_close(up, values @ kernel.triu(), rtol=1e-11, atol=0)
        torch.testing.assert_close(down, values @ kernel.tril(), rtol=1e-11, atol=0)


def test_wrong_arguments_are_told_in_a_sentence():
    s, y = torch.zeros(3), torch.tensor([0, 1, 0])
    for arguments, error, words in (
        ((s.tolist(), y), KindError, "logits is a list; pass a torch tensor"),
        ((y, y), KindError, "logits are of torch.int64"),
        ((s, np.zeros(3)), KindError, "target is a ndarray"),
        ((torch.zeros(3, 2), y), DataError, r"shape \(3, 2\)"),
        ((torch.zeros(()), y), DataError, r"shape \(\)"),
        ((s, y[:2]), DataError, r"target has shape \(2,\) and the logits are of 3 rows"),
        ((s, y, torch.ones(1)), DataError, r"weight has shape \(1,\)"),
        ((s, y, torch.ones(3, requires_grad=True)), KindError, "weight.detach()"),
    ):
        for loss in (auroc_loss, average_precision_loss):
            with pytest.raises(error, match=words):
                loss(*arguments)
    for option in (
        {"surrogate": "hinge"},
        {"margin": -1.0},
        {"max_fpr": 0.0},
        {"max_fpr": 1.5},
        {"min_tpr": 1.0},
        {"min_tpr": -0.1},
        {"temperature": 0},
        {"temperature": float("nan")},
        {"margin": "1"},
    ):
        with pytest.raises(GoalError, match=next(iter(option))):
            auroc_loss(s, y, **option)
    with pytest.raises(GoalError, match="temperature"):
        average_precision_loss(s, y, temperature=-1.0)
