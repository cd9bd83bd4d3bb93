"""The two-way partial area: the metric, its pairs, the goal of training, and who refuses it."""

import numpy as np
import pytest
import torch

import setpoint as sp

GOAL = "maximize auroc(max_fpr=0.3, min_tpr=0.6)"


def rows(n=400, seed=0, digits=None):
    rng = np.random.default_rng(seed)
    y = (rng.random(n) < 0.4).astype(int)
    scores = rng.normal(size=n) + y
    return y, scores if digits is None else scores.round(digits), rng.random(n) + 0.1


def overlap(mass, share):
    """How much of each part, in order, lies in the first ``share`` of all."""
    ends = np.cumsum(mass) / mass.sum()
    return np.clip(np.minimum(ends, share) - np.r_[0, ends[:-1]], 0, None)


@pytest.mark.parametrize(
    ("max_fpr", "min_tpr"), [(0.3, 0.6), (1.0, 0.5), (0.9, 0.05), (0.02, 0.97)]
)
def test_the_area_is_the_mean_of_its_pairs(max_fpr, min_tpr):
    """Pairs of the highest negatives and the lowest positives, weighed, without ties."""
    y, scores, weight = rows()
    falling, rising = np.argsort(-scores), np.argsort(scores)
    negative, positive = falling[y[falling] == 0], rising[y[rising] == 1]
    a = overlap(weight[negative], max_fpr)
    b = overlap(weight[positive], 1 - min_tpr)
    pairs = (scores[positive][:, None] > scores[negative]) * b[:, None] * a
    metric = sp.auroc(max_fpr=max_fpr, min_tpr=min_tpr, standardized=False)
    # a pair of parts at both ends counts whole in the rectangle: its corner is what they differ by
    corner = a.min() * b.min() + 1e-3
    assert metric(y, scores, weight) == pytest.approx(pairs.sum(), abs=corner)


def test_with_no_floor_it_is_the_one_way_area():
    y, scores, weight = rows(digits=1)
    for options in ({}, {"max_fpr": 0.2}, {"max_fpr": 0.2, "standardized": False}):
        one = (sp.auroc(**options) if options else sp.auroc)(y, scores, weight)
        assert sp.auroc(min_tpr=0.0, **options)(y, scores, weight) == one
        near = sp.auroc(min_tpr=1e-9, **options)(y, scores, weight)
        assert near == pytest.approx(one, abs=1e-8)


@pytest.mark.parametrize("options", [{"max_fpr": 0.3, "min_tpr": 0.6}, {"min_tpr": 0.8}])
def test_chance_is_a_half_and_perfection_1(options):
    y = np.array([0, 1] * 50)
    metric = sp.auroc(**options)
    assert metric(y, y) == pytest.approx(1)
    assert metric(y, 0 * y) == pytest.approx(0.5)
    assert 0 <= metric(y, -y) <= 0.5
    assert sp.auroc(**options, standardized=False)(y, -y) == 0


def test_it_is_a_goal_that_is_parsed_evaluated_and_trained():
    goal = sp.Goal.parse(GOAL)
    assert str(goal) == GOAL
    assert sp.Goal.parse(str(goal)) == goal
    assert sp.Goal.from_json(goal.to_json()) == goal
    loss = sp.GoalLoss(goal)  # auto takes the method that can
    assert loss.method.name == "pairwise"
    y, scores, _ = rows()
    z = torch.tensor(scores).requires_grad_()
    loss(z, torch.tensor(y)).backward()
    low = np.sort(scores[y == 1])[int(0.4 * (y == 1).sum()) + 1]
    high = np.sort(scores[y == 0])[-int(0.3 * (y == 0).sum()) - 2]
    gradient = z.grad.numpy()
    assert (gradient[(y == 1) & (scores > low)] == 0).all()
    assert (gradient[(y == 0) & (scores < high)] == 0).all()
    assert (gradient != 0).sum() > 50


def test_training_on_it_ends_at_its_best_direction():
    """A line in the plane: the direction that is found is as good as the best of a fine scan."""
    rng = np.random.default_rng(1)
    y = (rng.random(3000) < 0.5).astype(int)
    x = rng.normal(size=(3000, 2))
    x[:, 0] += 2.5 * y * (rng.random(3000) < 0.5)  # half of the positives, and by much
    x[:, 1] += 1.2 * y
    X, target, metric = (
        torch.tensor(x),
        torch.tensor(y),
        sp.metric("auroc(max_fpr=0.6, min_tpr=0.4)"),
    )
    line = torch.nn.Linear(2, 1, bias=False).double()
    with torch.no_grad():
        line.weight.copy_(torch.tensor([[0.5, -0.5]]))
    before = metric(y, line(X)[:, 0].detach().numpy())
    loss = sp.GoalLoss(f"maximize {metric}", "pairwise")
    optimiser = torch.optim.Adam(line.parameters(), 0.05)
    for _ in range(200):
        optimiser.zero_grad()
        loss(line(X)[:, 0], target).backward()
        optimiser.step()
    after = metric(y, line(X)[:, 0].detach().numpy())
    angles = np.linspace(0, np.pi, 181)
    best = max(metric(y, x @ [np.cos(a), np.sin(a)]) for a in angles)
    assert before < 0.6
    assert after > best - 0.01


@pytest.mark.parametrize("name", ["implicit", "lagrangian", "exact"])
def test_methods_with_thresholds_refuse_it_and_name_the_one_that_does_not(name):
    with pytest.raises(sp.GoalError, match=r'two rates at once.*method="pairwise" trains on it'):
        sp.GoalLoss(GOAL, name)


@pytest.mark.parametrize("name", ["soft-set", "costs"])
def test_methods_of_decisions_refuse_it(name):
    with pytest.raises(sp.GoalError, match='method="pairwise"'):
        sp.GoalLoss(GOAL, name)
