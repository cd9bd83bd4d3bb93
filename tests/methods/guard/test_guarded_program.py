"""The guard of a loss: what it bounds for any batches, what it says, and that training keeps."""

import copy

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import precision_score, recall_score
from torch import nn
from torch.nn.functional import binary_cross_entropy_with_logits

import setpoint as sp
from setpoint.methods.guard.guarded_program import EVERY, STEEPEST
from setpoint.methods.guard.operating_point import operating_point
from setpoint.methods.guard.window_reading import MARGIN

METHODS = ("soft-set", "costs", "implicit", "lagrangian", "exact")
FLOOR = "maximize recall subject to precision >= 0.7"
GOALS = (
    FLOOR,
    "maximize f1",
    "minimize fnr subject to fpr <= 0.01",
    "maximize precision subject to recall >= 0.9",
)


def guarded(goal, method="soft-set", **options):
    return sp.GoalLoss(goal, method, guard=True, **options)


def gradient(loss, logits, target):
    z = logits.clone().requires_grad_()
    loss(z, target).backward()
    return z.grad


@st.composite
def first_batches(draw):
    """Batches without positives, all positive, of one row, with extreme logits."""
    found = []
    for _ in range(draw(st.integers(1, 10))):
        n = draw(st.sampled_from([1, 2, 16, 64]))
        kind = draw(st.sampled_from(["none", "all", "some"]))
        scale = draw(st.sampled_from([0.0, 1.0, 30.0, 1e4]))
        rng = np.random.default_rng(draw(st.integers(0, 10_000)))
        share = {"none": 0.0, "all": 1.0, "some": 0.3}[kind]
        y = torch.from_numpy((rng.random(n) < share).astype(np.float32))
        found.append((torch.from_numpy(rng.normal(size=n).astype(np.float32)) * scale, y))
    return found


@pytest.mark.parametrize("goal", GOALS)
@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=25, deadline=None)
@given(batches=first_batches())
def test_the_gradient_is_bounded_by_that_of_cross_entropy(method, goal, batches):
    loss = guarded(goal, method)
    seen = {0: 0, 1: 0}
    for logits, y in batches:
        ours = gradient(loss, logits, y)
        plain = gradient(binary_cross_entropy_with_logits, logits, y)
        assert ours.isfinite().all()
        assert ours.norm() <= STEEPEST * plain.norm() * (1 + 1e-5) + 1e-12
        for label in (0, 1):
            if not seen[label]:  # the totals lack this class: its rows are pulled as they should be
                rows = y == label
                assert (ours[rows] * plain[rows] >= -1e-12).all()
            seen[label] += int((y == label).sum())


@pytest.mark.parametrize("method", METHODS)
def test_it_is_cross_entropy_until_each_class_has_been_seen(method):
    loss = guarded(FLOOR, method)
    for _ in range(20):
        logits, y = torch.randn(64), torch.zeros(64)
        ours = gradient(loss, logits, y)
        torch.testing.assert_close(ours, gradient(binary_cross_entropy_with_logits, logits, y))


def rows(n, seed, share=0.06):
    rng = np.random.default_rng(seed)
    y = rng.random(n) < share
    x = rng.normal(size=(n, 6)) + 1.1 * y[:, None] * np.array([1, 1, 0.5, 0, 0, 0])
    return torch.from_numpy(x.astype(np.float32)), torch.from_numpy(y.astype(np.float32))


def network(seed, linear):
    torch.manual_seed(seed)
    if linear:
        return nn.Linear(6, 1)
    return nn.Sequential(
        nn.Linear(6, 64), nn.ReLU(), nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 1)
    )


def loop(loss, model, x, y, batch=64, rate=1e-3, steps=600, seed=0):
    optimiser = torch.optim.Adam(model.parameters(), lr=rate)
    order = torch.Generator().manual_seed(seed)
    done = 0
    while done < steps:
        for index in torch.randperm(len(y), generator=order).split(batch):
            optimiser.zero_grad()
            loss(model(x[index]).squeeze(1), y[index]).backward()
            optimiser.step()
            done += 1
            if done == steps:
                break
    with torch.no_grad():
        return model(x).squeeze(1)


@pytest.mark.parametrize("linear", [False, True])
@pytest.mark.parametrize("method", METHODS)
def test_a_plain_loop_with_defaults_keeps_a_floor_on_rare_positives(method, linear):
    """Bare, lagrangian, implicit and exact decide nobody here or turn the ranking over."""
    x, y = rows(3_000, 1)
    loss = guarded("maximize recall subject to precision >= 0.5", method)
    z = loop(loss, network(0, linear), x, y)
    decided = (z >= loss.threshold).numpy()
    assert sp.auroc(y.numpy(), z.numpy()) > 0.8
    assert decided.sum() >= 10
    assert sp.precision(y.numpy(), decided) >= 0.5 - 0.02
    status = loss.status()
    assert status.held
    assert status.seen[1] > 100


@pytest.mark.parametrize("method", METHODS)
def test_the_status_counts_the_recent_rows(method):
    x, y = rows(2_000, 2)
    loss = guarded(FLOOR, method)
    model = network(1, linear=True)
    seen = []

    def noted(z, target):
        seen.append((z.detach().clone(), target))
        return loss(z, target)

    loop(noted, model, x, y, steps=200)
    z = torch.cat([a for a, _ in seen])[-8192:].numpy()
    target = torch.cat([b for _, b in seen])[-8192:].numpy()
    status = loss.status()
    decided = z >= np.float32(status.threshold)
    assert status.rows == len(z)
    assert status.step == 200
    assert status.decided == pytest.approx(decided.mean())
    recall, precision = recall_score(target, decided), precision_score(target, decided)
    assert status.objective.value == pytest.approx(recall)
    (floor,) = status.constraints
    assert floor.value == pytest.approx(precision)
    assert floor.held == (precision >= 0.7)
    assert floor.low < precision < floor.high
    assert "precision >= 0.7" in str(status)


@pytest.mark.parametrize("batch", [60, 300, 20_000])
def test_the_window_holds_the_newest_rows_however_batches_divide_it(batch):
    """Batches that do not divide 8,192 wrap around its end; of one larger it takes rows evenly."""
    loss = guarded(FLOOR)
    rng, scores, labels = np.random.default_rng(7), [], []
    for _ in range(max(1, 9_000 // batch)):
        z = rng.normal(size=batch).astype(np.float32)
        y = (rng.random(batch) < 0.2).astype(np.float32)
        if batch > 8_192:  # sorted by class, as a table may be
            y = np.sort(y)[::-1].copy()
        scores.append(z)
        labels.append(y)
        gradient(loss, torch.from_numpy(z), torch.from_numpy(y))
    z, y, weight, _ = loss.program.observed()
    every, truth = np.concatenate(scores), np.concatenate(labels)
    assert len(z) == min(8_192, len(every))
    assert (weight == 1).all()
    if batch > 8_192:
        assert y.mean() == pytest.approx(truth.mean(), abs=1e-3)
    else:
        assert sorted(z) == sorted(every[-8_192:].astype(float))
        assert y.sum() == truth[-8_192:].sum()


def test_the_threshold_keeps_its_margin():
    x, y = rows(3_000, 8, share=0.2)
    loss = guarded(FLOOR)
    loop(loss, network(6, linear=True), x, y, steps=10 * EVERY)
    rows_seen = loss.program.observed()
    judge = loss.program.judge
    bare = operating_point(judge, rows_seen, 0.0)
    point = operating_point(judge, rows_seen, MARGIN)
    assert loss.program.margin == point.share == 1.0
    assert point.threshold > bare.threshold
    # the window has been read before the last batch came in
    assert abs(loss.threshold - point.threshold) < abs(loss.threshold - bare.threshold)


def test_a_status_before_any_row_and_without_a_window():
    assert "too few" in str(guarded(FLOOR).status())
    assert not guarded(FLOOR).status().held
    assert not guarded(FLOOR).status().certain
    task = sp.Task.multiclass(["a", "b", "c"])
    assert "too few" in str(guarded("maximize macro(f1)", task=task).status())
    with pytest.raises(sp.KindError, match="keeps no window of recent rows"):
        guarded("maximize auroc", "pairwise").status()


def test_a_goal_that_nothing_meets_is_said():
    rng = np.random.default_rng(0)
    x = torch.from_numpy(rng.normal(size=(2_000, 6)).astype(np.float32))
    y = torch.from_numpy((rng.random(2_000) < 0.1).astype(np.float32))
    loss = guarded("maximize recall subject to precision >= 0.95, recall >= 0.5")
    loop(loss, network(0, linear=True), x, y, steps=600)
    codes = [note.code for note in loss.status().alarms]
    assert "constraint-broken" in codes
    assert "no threshold meets precision >= 0.95" in str(loss.status())


@pytest.mark.parametrize("method", METHODS)
def test_a_run_that_is_taken_up_gives_the_same_gradients(method):
    x, y = rows(1_500, 3)
    loss = guarded(FLOOR, method)
    model = network(2, linear=True)
    loop(loss, model, x, y, steps=3 * EVERY + 5)
    again = guarded(FLOOR, method)
    again.load_state_dict(copy.deepcopy(loss.state_dict()))
    for i in range(2 * EVERY):
        z, target = torch.randn(64, generator=torch.Generator().manual_seed(i)), y[i : i + 64]
        assert torch.equal(gradient(loss, z, target), gradient(again, z, target))
    assert again.threshold == loss.threshold


@pytest.mark.parametrize("method", METHODS)
def test_nothing_moves_without_gradients(method):
    x, y = rows(1_000, 4)
    loss = guarded(FLOOR, method)
    model = network(3, linear=True)
    loop(loss, model, x, y, steps=40)
    before = copy.deepcopy(loss.state_dict())
    with torch.no_grad():
        loss(model(x).squeeze(1), y)
    with torch.inference_mode():
        loss(model(x).squeeze(1), y)
    for name, tensor in loss.state_dict().items():
        assert torch.equal(tensor, before[name]), name
    assert loss.training


@pytest.mark.parametrize("method", ["soft-set", "costs", "lagrangian", "exact"])
def test_a_batch_in_parts_has_the_gradient_of_the_whole(method):
    x, y = rows(2_000, 5, share=0.2)
    model = network(4, linear=True)
    whole = guarded(FLOOR, method)
    parts = guarded(FLOOR, method, accumulate=4)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    order = torch.Generator().manual_seed(0)
    for _ in range(3 * EVERY):
        index = torch.randperm(2_000, generator=order)[:128]
        z, target = model(x[index]).squeeze(1), y[index]
        one = gradient(whole, z.detach(), target)
        pieces = [
            gradient(parts, a, b) / 4
            for a, b in zip(z.detach().split(32), target.split(32), strict=True)
        ]
        torch.testing.assert_close(torch.cat(pieces), one, rtol=1e-4, atol=1e-7)
        optimiser.zero_grad()
        binary_cross_entropy_with_logits(z, target).backward()
        optimiser.step()


def test_a_rule_of_ones_own_rows_is_for_logits():
    x, y = rows(2_000, 6)
    loss = guarded(FLOOR)
    z = loop(loss, network(5, linear=True), x, y, steps=200)
    rule = loss.rule(y, z)
    assert rule.task.score == "logit"
    assert rule.threshold == sp.tune(FLOOR, y, z, task=sp.Task.binary(score="logit")).threshold
    if rule.feasible:
        assert sp.precision(y, rule.decide(z)) >= 0.7
