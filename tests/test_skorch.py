"""GoalNetCallback: the exact goal in the history of a net, its rule, its best weights."""

import numpy as np
import pytest
import torch
from torch import nn

import setpoint as sp

skorch = pytest.importorskip("skorch")

from skorch.callbacks import EarlyStopping  # noqa: E402
from skorch.dataset import ValidSplit  # noqa: E402

from setpoint.skorch import GoalNetCallback  # noqa: E402

GOAL = "maximize recall subject to precision >= 0.5"


def rows(n=400):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n, 3)).astype(np.float32)
    return x, (x[:, 0] + 0.5 * rng.normal(size=n) > 0.8).astype(np.int64)


def net_of(callbacks, epochs=4, **options):
    torch.manual_seed(0)
    known = dict(
        criterion=sp.GoalLoss,
        criterion__goal=GOAL,
        criterion__guard=True,
        optimizer=torch.optim.Adam,
        lr=0.05,
        max_epochs=epochs,
        batch_size=50,
        train_split=ValidSplit(4, stratified=True),
        callbacks=callbacks,
        verbose=0,
    )
    return skorch.NeuralNet(nn.Sequential(nn.Linear(3, 1), nn.Flatten(0)), **{**known, **options})


def test_the_goal_is_recorded_and_the_best_weights_come_back():
    callback = GoalNetCallback()
    net = net_of([("goal", callback)], epochs=6, lr=0.5)
    x, y = rows()
    net.fit(x, y)
    goal = dict(net.callbacks_)["goal"]
    _, valid = net.get_split_datasets(x, y)
    held = np.array([valid[i][0] for i in range(len(valid))])
    labels = np.array([valid[i][1] for i in range(len(valid))])
    z = net.forward(held)
    best = max(net.history[:, "goal"])
    assert goal.rule_.value == pytest.approx(best)
    assert sp.evaluate(goal.rule_, labels, z).value == pytest.approx(best)
    assert net.history[:, "goal_best"].count(True) >= 1
    last = [i for i, is_best in enumerate(net.history[:, "goal_best"]) if is_best][-1]
    assert net.history[last, "goal"] == best
    status = net.criterion_.status()
    assert net.history[-1, "train_held"] == status.held
    assert net.history[-1, "train_threshold"] == status.threshold


def test_without_load_best_the_rule_is_that_of_the_last_epoch():
    goal = GoalNetCallback(load_best=False)
    net = net_of([("goal", goal)], epochs=6, lr=0.5).fit(*rows())
    assert dict(net.callbacks_)["goal"].rule_.value == pytest.approx(net.history[-1, "goal"])


def test_training_is_the_same_with_it_and_without():
    ends = []
    for callbacks in ([], [("goal", GoalNetCallback(load_best=False))]):
        net = net_of(callbacks, iterator_train__shuffle=True)
        torch.manual_seed(4)
        net.fit(*rows())
        ends.append((net.module_.state_dict(), net.criterion_.state_dict()))
    for a, b in zip(*ends, strict=True):
        for name, x in a.items():
            assert torch.equal(x, b[name]), name


def test_early_stopping_watches_it():
    options = {"lower_is_better": False, "threshold_mode": "abs"}
    stop = EarlyStopping(monitor="goal", patience=2, sink=lambda *_: None, **options)
    net = net_of([("goal", GoalNetCallback()), ("stop", stop)], epochs=60, lr=0.0).fit(*rows())
    assert len(net.history) == 3  # the first, and two that are no better


def test_what_it_cannot_read_is_refused():
    with pytest.raises(sp.DataError, match="no validation rows"):
        net_of([("goal", GoalNetCallback())], train_split=None).fit(*rows())
    net = skorch.NeuralNet(
        nn.Sequential(nn.Linear(3, 1), nn.Flatten(0)),
        criterion=nn.MSELoss,
        callbacks=[("goal", GoalNetCallback())],
        verbose=0,
    )
    x, y = rows()
    with pytest.raises(sp.KindError, match="criterion is MSELoss"):
        net.fit(x, y.astype(np.float32))
