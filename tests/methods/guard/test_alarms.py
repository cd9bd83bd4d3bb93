"""What a loss says when training goes wrong: in its status, and once in the log."""

import logging

import numpy as np
import pytest
import torch

import setpoint as sp

FLOOR = "maximize recall subject to precision >= 0.7"


def fed(loss, draw, calls, batch=64, seed=0):
    """The loss after calls on made-up scores."""
    rng = np.random.default_rng(seed)
    for _ in range(calls):
        z, y = draw(rng, batch)
        logits = torch.from_numpy(z.astype(np.float32)).requires_grad_()
        loss(logits, torch.from_numpy(y.astype(np.float32))).backward()
    return loss


def healthy(rng, n):
    y = rng.random(n) < 0.2
    return rng.normal(size=n) + 2.5 * y - 2, y


def turned_over(rng, n):
    z, y = healthy(rng, n)
    return -z, y


def codes(loss):
    return {note.code for note in loss.status().alarms}


def test_a_healthy_run_raises_no_alarm(caplog):
    with caplog.at_level(logging.WARNING, logger="setpoint"):
        loss = fed(sp.GoalLoss(FLOOR), healthy, 400)
    assert codes(loss) == set()
    assert not caplog.records


def test_a_ranking_worse_than_chance_is_said_and_logged_once(caplog):
    with caplog.at_level(logging.WARNING, logger="setpoint"):
        loss = fed(sp.GoalLoss(FLOOR), turned_over, 1_200)
    assert "ranking-below-chance" in codes(loss)
    said = [r.message for r in caplog.records if "worse than chance" in r.message]
    assert len(said) == 1
    assert "1 is the positive class" in said[0]
    (note,) = [n for n in loss.status().alarms if n.code == "ranking-below-chance"]
    assert note.data["auroc"] < 0.2


def test_scores_without_information_are_not_worse_than_chance():
    def noise(rng, n):
        return rng.normal(size=n), rng.random(n) < 0.2

    loss = fed(sp.GoalLoss("maximize f1"), noise, 300)
    assert "ranking-below-chance" not in codes(loss)


def test_a_constraint_that_stays_broken_is_logged_once_with_what_to_do(caplog):
    def weak(rng, n):
        y = rng.random(n) < 0.2
        return rng.normal(size=n) + 0.3 * y, y

    with caplog.at_level(logging.WARNING, logger="setpoint"):
        goal = "maximize recall subject to precision >= 0.95, recall >= 0.5"
        loss = fed(sp.GoalLoss(goal), weak, 1_200)
    assert "constraint-broken" in codes(loss)
    said = [r.message for r in caplog.records if "no threshold meets" in r.message]
    assert len(said) == 1
    assert "relax the bound" in said[0]


@pytest.mark.parametrize(("share", "scarce"), [(0.2, False), (0.01, True)])
def test_batches_with_few_positives_are_said(share, scarce):
    def rare(rng, n):
        y = rng.random(n) < share
        return rng.normal(size=n) + 2 * y - 2, y

    loss = fed(sp.GoalLoss(FLOOR), rare, 150)
    assert ("few-in-batch" in codes(loss)) == scarce


def test_an_alarm_that_passes_is_not_logged(caplog):
    """The ranking is worse than chance for one look alone: 8 readings of 16 steps."""
    loss = sp.GoalLoss(FLOOR)
    with caplog.at_level(logging.WARNING, logger="setpoint"):
        fed(loss, turned_over, 130)
        fed(loss, healthy, 1_000)
    assert not [r for r in caplog.records if "worse than chance" in r.message]


def test_outputs_that_look_like_probabilities_are_said():
    def squashed(rng, n):
        z, y = healthy(rng, n)
        return 1 / (1 + np.exp(-z)), y

    assert "like-probabilities" in codes(fed(sp.GoalLoss(FLOOR), squashed, 120))
    assert "like-probabilities" not in codes(fed(sp.GoalLoss(FLOOR), healthy, 120))
