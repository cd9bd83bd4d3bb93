"""Thresholds by query: values against the metrics, gradients against finite differences."""

import dataclasses
import functools
import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from scipy.special import expit

import setpoint as sp
from setpoint.methods.implicit.query_ranking import (
    exact_borders,
    hard_shares,
    listed,
    pull,
    query_objection,
    query_program,
    query_recovered,
    soft_borders,
)
from setpoint.training import RunningLoss

RANKING = sp.Task.ranking()
GOALS = [
    sp.precision_at_k(3, by="query"),
    sp.recall_at_k(3, by="query"),
    sp.ndcg(1),
    sp.ndcg(4),
    sp.ndcg(4, gain="exponential"),
]
COUNTS = (7, 3, 1, 20, 4)  # rows of each query: fewer than, as many as, and more than k


def loss_of(metric, task=RANKING, **options):
    return RunningLoss(query_program(sp.Goal.of(metric), task, **options), memory=0, warmup=0)


def batch(seed, counts=COUNTS):
    g = np.random.default_rng(seed)
    query = np.repeat(g.permutation(100)[: len(counts)], counts)
    order = g.permutation(len(query))
    y, s = g.integers(0, 4, len(query)), 2 * g.normal(size=len(query))
    return torch.tensor(s), torch.tensor(y), torch.tensor(query[order])


def gradient(loss, s, y, q):
    z = s.clone().requires_grad_()
    value = loss(z, y, group=q)
    (found,) = torch.autograd.grad(value, z)
    return value.item(), found


def ndcg_by_hand(y, s, k):
    """Sorted and added up, from the definition."""

    def dcg(relevances):
        return sum(r / math.log2(i + 2) for i, r in enumerate(relevances[:k]))

    best = dcg(sorted(y, reverse=True))
    return dcg([r for _, r in sorted(zip(s, y, strict=True), reverse=True)]) / best if best else 0.0


# --- borders ---------------------------------------------------------------------------------


@settings(deadline=None, max_examples=30)
@given(
    st.lists(st.floats(-30, 30), min_size=2, max_size=12),
    st.integers(1, 11),
    st.sampled_from([0.1, 1.0, 20.0]),
)
def test_the_soft_border_solves_its_equation(scores, t, sharpness):
    t = min(t, len(scores) - 1)
    s = torch.tensor(scores, dtype=torch.double)
    found = float(soft_borders(listed(s, 0 * s.long()), torch.tensor([t]), sharpness))
    assert expit(sharpness * (s.numpy() - found)).sum() == pytest.approx(t, rel=1e-9)


def test_the_soft_border_is_the_root_that_scipy_finds():
    heaps = np.r_[np.linspace(-3, -2, 5), np.linspace(2, 3, 5)]  # a plateau between them
    lists = listed(torch.tensor(heaps), torch.zeros(10, dtype=torch.long))
    ranks = torch.arange(1, 10)
    for sharpness in (0.5, 3.0):
        found = soft_borders(lists, ranks, sharpness)[0]
        for t, border in zip(ranks.tolist(), found.tolist(), strict=True):
            left = functools.partial(lambda x, t, c: expit(c * (heaps - x)).sum() - t, t=t)
            root = brentq(functools.partial(left, c=sharpness), -60, 60, xtol=1e-13)
            assert border == pytest.approx(root, abs=1e-9)


def test_on_a_plateau_the_soft_border_lies_midway():
    """Where rounding hides the equation from a sum: nearest rows are out as much as in."""
    s = torch.tensor([40.0, 40.0, -60.0])
    found = soft_borders(listed(s, torch.zeros(3, dtype=torch.long)), torch.tensor([2]), 5.0)
    out = math.log(2) / 10  # two rows above, one below: e^{−κ(40 − λ)} · 2 = e^{−κ(λ + 60)}
    assert float(found) == pytest.approx(-10 - out, abs=1e-4)


def test_the_exact_border_lies_midway():
    s, codes = torch.tensor([1.0, 5.0, 2.0, 7.0]), torch.tensor([4, 4, 4, 1])
    found = exact_borders(listed(s, codes), torch.tensor([1, 2]))
    assert found[1].tolist() == [3.5, 1.5]  # the query with code 4


def test_lists_that_are_not_there_change_nothing():
    """Off the host there are as many lists as rows, the spare ones empty."""
    s, y, q = batch(4)
    few = listed(s, q)
    spare = len(s) - len(few.size)
    full = dataclasses.replace(
        few,
        start=torch.cat([few.start, torch.full((spare,), len(s))]),
        size=torch.cat([few.size, torch.zeros(spare, dtype=torch.long)]),
    )
    ranks, gain = torch.tensor([1, 3]), y[few.order].double()
    found = []
    for lists in (few, full):
        worth = torch.ones(len(lists.size), 2, dtype=torch.double)
        borders = soft_borders(lists, ranks, 2.0)
        found.append(pull(lists, ranks, borders, gain, worth, 2.0))
        torch.testing.assert_close(hard_shares(lists, ranks), hard_shares(few, ranks))
    torch.testing.assert_close(*found)


# --- values ----------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", GOALS, ids=str)
@pytest.mark.parametrize("scale", ["raw", "query"])
def test_in_the_limit_the_value_is_that_of_the_metric(metric, scale):
    for seed in range(5):
        s, y, q = batch(seed)
        truth = metric(y.numpy(), s.numpy(), query=q.numpy(), task="ranking")
        exact = loss_of(metric, scale=scale, correction="exact")
        soft = loss_of(metric, scale=scale, correction="soft", sharpness=1e6)
        assert exact(s, y, group=q).item() == pytest.approx(1 - truth, abs=1e-6)
        assert soft(s, y, group={"query": q}).item() == pytest.approx(1 - truth, abs=1e-5)


def test_ndcg_is_what_one_adds_up_by_hand():
    s, y, q = batch(11)
    of_query = [ndcg_by_hand(y[q == c].tolist(), s[q == c].tolist(), 4) for c in q.unique()]
    found = loss_of(sp.ndcg(4), correction="exact")(s, y, group=q).item()
    assert found == pytest.approx(1 - np.mean(of_query), abs=1e-6)


@settings(deadline=None, max_examples=40)
@given(st.lists(st.tuples(st.integers(0, 2), st.integers(0, 3), st.integers(0, 2)), min_size=1))
def test_ties_share_as_they_do_in_the_metric(rows):
    y, s, q = (np.array(column) for column in zip(*rows, strict=True))
    for metric in GOALS:
        truth = metric(y, s.astype(float), query=q, task="ranking")
        scores = torch.tensor(s, dtype=torch.double)
        value, pulled = gradient(
            loss_of(metric, correction="exact"), scores, torch.tensor(y), torch.tensor(q)
        )
        assert value == pytest.approx(1 - truth, abs=1e-6)
        assert pulled.isfinite().all()


def test_binary_tasks_count_the_positive_class():
    s, y, q = batch(3)
    hit = (y > 1).long()
    metric = sp.precision_at_k(3, by="query")
    truth = metric(hit.numpy(), s.numpy(), query=q.numpy())
    found = loss_of(metric, sp.Task.binary(), correction="exact")(s, hit, group=q)
    assert found.item() == pytest.approx(1 - truth, abs=1e-6)


# --- gradients -------------------------------------------------------------------------------


@pytest.mark.parametrize("metric", GOALS, ids=str)
@pytest.mark.parametrize("scale", ["raw", "query"])
def test_gradients_are_finite_differences_of_the_value_at_its_own_border(metric, scale):
    s, y, q = batch(5)
    program = query_program(
        sp.Goal.of(metric), RANKING, sharpness=2.0, correction="soft", scale=scale
    )

    def value(x):
        (totals, _) = program.measure(program.rows(x, y, None, q), torch.tensor(0))
        return 1 - totals[0, 0] / totals[0, 1]

    _, found = gradient(RunningLoss(program, memory=0, warmup=0), s, y, q)
    h = 1e-5
    for i, unit in enumerate(h * torch.eye(len(s), dtype=s.dtype)):
        slope = (value(s + unit) - value(s - unit)) / (2 * h)
        assert found[i].item() == pytest.approx(slope, abs=1e-9)
    assert found.abs().max() > 1e-4


@pytest.mark.parametrize("metric", GOALS, ids=str)
@pytest.mark.parametrize("correction", ["exact", "soft"])
def test_gradients_sum_to_zero_within_a_query_and_follow_a_permutation(metric, correction):
    s, y, q = batch(7)
    loss = loss_of(metric, correction=correction)
    value, found = gradient(loss, s, y, q)
    for code in q.unique():
        assert found[q == code].sum().item() == pytest.approx(0, abs=1e-12)
    order = torch.randperm(len(s), generator=torch.Generator().manual_seed(0))
    again, moved = gradient(loss, s[order], y[order], q[order])
    assert again == pytest.approx(value, abs=1e-7)  # the value is kept in single precision
    torch.testing.assert_close(moved, found[order], rtol=1e-9, atol=1e-12)
    shifted, _ = gradient(loss, s + 3.0 * q, y, q)  # each query by an amount of its own
    assert shifted == pytest.approx(value, abs=1e-6)


def test_on_its_own_scale_a_query_does_not_feel_a_factor():
    s, y, q = batch(8)
    loss = loss_of(sp.ndcg(4), scale="query")
    value, found = gradient(loss, s, y, q)
    same, shrunk = gradient(loss, 10 * s, y, q)
    assert same == pytest.approx(value, abs=1e-4)  # up to the least deviation
    torch.testing.assert_close(10 * shrunk, found, rtol=1e-2, atol=1e-5)


@pytest.mark.parametrize("correction", ["exact", "soft"])
@pytest.mark.parametrize("far", [0.0, 1.0, 1e4, 1e30, 3e38])
def test_wherever_the_scores_lie_the_relevant_row_is_raised(correction, far):
    """All equal, or a row that should come first far below: finite, and the right way."""
    s = torch.tensor([0.0, -far, 0.0])
    y, q = torch.tensor([0, 1, 0]), torch.zeros(3, dtype=torch.long)
    for metric in (sp.precision_at_k(2, by="query"), sp.ndcg(2)):
        value, found = gradient(loss_of(metric, correction=correction, scale="raw"), s, y, q)
        assert math.isfinite(value)
        assert found[1] < 0 < found[0] < math.inf
        standard = loss_of(metric, correction=correction, scale="query")
        assert all(
            math.isfinite(x) for x in [*gradient(standard, s, y, q)[1], standard(s, y, group=q)]
        )


# --- running ---------------------------------------------------------------------------------


def test_totals_and_gradients_of_parts_add_up_where_no_query_is_divided():
    s, y, q = batch(9)
    program = query_program(sp.Goal.of(sp.ndcg(4)), RANKING, cross_entropy=0.3)
    step = torch.tensor(0)
    whole = program.rows(s, y, None, q)
    totals, memory = program.measure(whole, step)
    prices = program.price(totals, None).prices
    left = q < q.double().median()
    pulled = torch.zeros_like(s)
    added, base, mass = 0 * totals, 0.0, 0
    for part in (left, ~left):
        rows = program.rows(s[part], y[part], None, q[part])
        found, kept = program.measure(rows, step)
        added, base, mass = added + found, base + program.base(rows), mass + program.mass(rows)[0]
        pulled[part] = program.pull(rows, kept, prices, 1.0, step, 0.25)
    np.testing.assert_allclose(added, totals, rtol=1e-12)
    assert base == pytest.approx(program.base(whole))
    assert mass == program.mass(whole)[0] == len(COUNTS)
    torch.testing.assert_close(pulled, program.pull(whole, memory, prices, 1.0, step, 0.25))


def test_warm_up_descends_cross_entropy_with_each_query_counted_once():
    s, y, q = batch(2)
    loss = RunningLoss(query_program(sp.Goal.of(sp.ndcg(4)), RANKING), memory=0, warmup=1)
    value, found = gradient(loss, s, y, q)
    z = s.clone().requires_grad_()
    each = torch.nn.functional.binary_cross_entropy_with_logits(
        z, (y > 0).double(), reduction="none"
    )
    plain = torch.stack([each[q == c].mean() for c in q.unique()]).mean()
    assert value == pytest.approx(plain.item(), rel=1e-6)
    torch.testing.assert_close(found, torch.autograd.grad(plain, z)[0])
    assert gradient(loss, s, y, q)[0] != pytest.approx(plain.item())  # and then the goal


def test_running_totals_give_the_mean_over_all_queries_seen():
    loss = RunningLoss(query_program(sp.Goal.of(sp.ndcg(4)), RANKING), memory=1e12, warmup=0)
    batches = [batch(seed) for seed in range(4)]
    for s, y, q in batches:
        loss.observe(s, y, group=q)
    truth = np.mean([1 - loss_of(sp.ndcg(4))(s, y, group=q).item() for s, y, q in batches])
    assert query_recovered(loss.totals).value == pytest.approx(truth, abs=1e-6)


@pytest.mark.parametrize("metric", [sp.precision_at_k(3, by="query"), sp.ndcg(3)], ids=str)
def test_a_line_learns_what_comes_first(metric):
    """Pointwise loss is misled by a feature that differs between queries only; the goal is not."""
    g = torch.Generator().manual_seed(1)
    q = torch.arange(40).repeat_interleave(15)
    x = torch.randn(600, 6, generator=g, dtype=torch.double)
    truth = x[:, 0] - x[:, 1]
    level = torch.randn(40, generator=g, dtype=torch.double)[q]
    y = (truth + 0.3 * torch.randn(600, generator=g) > 1.2).long()
    line = torch.nn.Linear(7, 1, dtype=torch.double)
    torch.nn.init.zeros_(line.weight)
    inputs = torch.cat([x, level[:, None]], 1)
    loss, optimiser = loss_of(metric), torch.optim.Adam(line.parameters(), 0.05)
    first = loss(line(inputs), y, group=q).item()
    for _ in range(60):
        optimiser.zero_grad()
        last = loss(line(inputs), y, group=q)
        last.backward()
        optimiser.step()
    assert last.item() < 0.5 * first
    weight = line.weight[0].detach()
    assert weight[0] > 0 > weight[1]
    assert abs(weight[6]) < 1e-3  # shifts of a whole query pull nothing


def test_half_precision_and_columns_are_taken():
    s, y, q = batch(1)
    z = s.bfloat16()[:, None].requires_grad_()
    loss_of(sp.ndcg(4))(z, y[:, None], group=q).backward()
    assert z.grad is not None
    assert z.grad.shape == z.shape
    assert z.grad.isfinite().all()


# --- refusals --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("goal", "task", "says"),
    [
        ("maximize ndcg()", RANKING, r"ndcg\(10\)"),
        ("maximize mean_average_precision", RANKING, "precision_at_k"),
        ("minimize ndcg(5)", RANKING, "maximize"),
        ("maximize ndcg(5) + ndcg(1)", RANKING, "one of them"),
        ("maximize ndcg(5) subject to ndcg(1) >= 0.5", RANKING, "without constraints"),
        ("maximize precision_at_k(5)", sp.Task.binary(), 'by="query"'),
        ("maximize ndcg(5)", sp.Task.multiclass(["a", "b"]), "multiclass"),
    ],
)
def test_other_goals_are_refused_with_the_way_out(goal, task, says):
    goal = sp.Goal.parse(goal)
    sentence = query_objection(goal, task)
    assert sentence is not None
    with pytest.raises(sp.GoalError):
        query_program(goal, task)
    with pytest.raises(AssertionError, match=says):
        raise AssertionError(sentence)


@pytest.mark.parametrize("metric", GOALS, ids=str)
def test_its_own_goals_meet_no_objection(metric):
    assert query_objection(sp.Goal.of(metric), RANKING) is None


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"group": None}, "by query: pass group="),
        ({"group": {"site": torch.zeros(3, dtype=torch.long)}}, "pass group="),
        ({"group": torch.zeros(3)}, "whole numbers"),
        ({"group": torch.zeros(2, dtype=torch.long)}, "3 rows; got 2"),
        ({"weight": torch.ones(3)}, "each query counts once"),
        ({"target": torch.tensor([0, -1, 2])}, "0 or more; got -1"),
        ({"outputs": torch.zeros(3, 2)}, r"\(3, 2\)"),
        ({"outputs": torch.tensor([0.0, math.nan, 1.0])}, "NaN"),
    ],
)
def test_rows_that_cannot_be_meant_are_refused(change, says):
    given_rows = {
        "outputs": torch.zeros(3),
        "target": torch.tensor([0, 1, 2]),
        "group": torch.zeros(3, dtype=torch.long),
        **change,
    }
    outputs, target = given_rows.pop("outputs"), given_rows.pop("target")
    with pytest.raises(sp.DataError, match=says):
        loss_of(sp.ndcg(2))(outputs, target, **given_rows)


@pytest.mark.parametrize(
    "options",
    [{"sharpness": 0}, {"correction": "none"}, {"scale": "big"}, {"cross_entropy": 2}],
    ids=str,
)
def test_options_that_cannot_be_meant_are_refused(options):
    with pytest.raises(sp.KindError, match=next(iter(options))):
        loss_of(sp.ndcg(2), **options)


def test_batches_of_torn_queries_are_noticed():
    program = query_program(sp.Goal.of(sp.ndcg(2)), RANKING)
    torn = program.notices(torch.tensor([[3.0, 10.0, 12.0, 0.0]]), None)
    mute = program.notices(torch.tensor([[3.0, 10.0, 90.0, 8.0]]), None)
    assert "1.2 rows" in torn[0]
    assert "80%" in mute[0]
    assert program.notices(torch.tensor([[3.0, 10.0, 90.0, 1.0]]), None) == []


def test_a_metric_by_query_does_not_take_groups_for_queries():
    y, s, q = np.array([1, 0, 0, 1]), np.array([0.4, 0.3, 0.2, 0.1]), np.array([0, 0, 1, 1])
    with pytest.raises(sp.DataError, match="query="):
        sp.ndcg(5)(y, s, group=q, task="ranking")
    assert sp.ndcg(5)(y, s, query=q, task="ranking") == pytest.approx((1 + 1 / np.log2(3)) / 2)
