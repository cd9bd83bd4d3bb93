"""Attacks of others are called as they want to be, and judged as ours are."""

import sys

import numpy as np
import pytest
import torch
from tests.robustness.stand_ins import (
    Standard,
    TwoCalls,
    WithEpsilons,
    exact,
    fake_foolbox,
    problem,
)

import setpoint as sp
from setpoint.robustness.attacks.attack import Attack, Call
from setpoint.robustness.evaluate import evaluate
from setpoint.robustness.third_party_attacks import named, others


@pytest.fixture
def case():
    return problem()


def call(model, x, y, **more):
    given = {"eps": 0.1, "target": None, "low": 0.0, "high": 1.0, "seed": 0} | more
    return Call(model, x, y, **given)


def test_a_plain_function_gets_model_images_and_labels(case):
    model, weights, bias, x, y = case
    made = named(exact(weights, bias, 2.0))
    assert (made.name, made.each_eps, made.ours) == ("nearest", False, False)
    expected = exact(weights, bias, 2.0)(model, x, y)
    assert torch.equal(made.call(call(model, x, y)), expected)


def test_a_function_that_takes_eps_is_run_for_each(case):
    model, _, _, x, y = case
    seen = []

    def attack(model, images, labels, eps, target=None):
        seen.append((eps, target))
        return images

    evaluate(model, x, y, "linf", [0.3, 0.1], attacks=attack)
    assert seen == [(0.1, None), (0.3, None)]


def test_attacks_that_hold_their_model_are_called_with_two(case):
    model, weights, bias, x, y = case
    attack = TwoCalls(model, 0.05)
    found = evaluate(model, x, y, "linf", 0.05, attacks=attack)
    moved = attack(x, y)
    right = (x @ weights.T + bias).argmax(1) == y
    beaten = right & ((moved @ weights.T + bias).argmax(1) != y)
    assert 0 < int(beaten.sum()) < int(right.sum())
    assert found.columns["attacked"].tolist() == beaten.tolist()
    assert set(found.columns["by"]) == {"TwoCalls", ""}
    attack.targeted = True
    target = (y + 1) % 4
    led = named(attack).call(call(model, x, y, target=target))
    assert torch.equal(led, attack(x, target))


def test_attacks_with_epsilons_get_a_model_with_bounds(case, monkeypatch):
    model, weights, bias, x, y = case
    monkeypatch.setitem(sys.modules, "foolbox", fake_foolbox())
    attack = WithEpsilons(weights, bias)
    found = evaluate(model, x, y, "l2", [0.02, 0.06], attacks=attack)
    assert attack.seen == [(0.02, (0.0, 1.0)), (0.06, (0.0, 1.0))]
    alone = evaluate(model, x, y, "l2", [0.02, 0.06], attacks=exact(weights, bias, 2.0))
    assert found.levels == alone.levels
    np.testing.assert_allclose(found.columns["radius"], alone.columns["radius"], rtol=1e-8)


def test_without_their_package_there_is_a_sentence(case, monkeypatch):
    model, weights, bias, x, y = case
    monkeypatch.setitem(sys.modules, "foolbox", None)  # as if it were not installed
    attacks = [WithEpsilons(weights, bias), exact(weights, bias, 2.0)]
    found = evaluate(model, x, y, "l2", 0.06, attacks=attacks)
    assert "WithEpsilons raised ModuleNotFoundError" in str(found)


def test_standard_evaluations_are_run(case):
    model, weights, bias, x, y = case
    attack = Standard(exact(weights, bias, 2.0), model)
    found = evaluate(model, x, y, "l2", 0.06, attacks={"standard": attack}, batch_size=16)
    alone = evaluate(model, x, y, "l2", 0.06, attacks=exact(weights, bias, 2.0))
    assert found.levels == alone.levels
    assert found.attacks[0].name == "standard"


def test_names_are_kept_apart(case):
    model, weights, bias, x, y = case
    attack = exact(weights, bias, 2.0)
    found = evaluate(model, x, y, "l2", 0.06, attacks=[attack, attack, {"third": attack}])
    assert [ran.name for ran in found.attacks] == ["nearest", "nearest 2", "third"]


def test_an_attack_of_our_own_making_is_taken_as_it_is():
    made = Attack("mine", lambda given: given.x)
    assert others([made, [made]]) == [made, made]


@pytest.mark.parametrize("attack", [3, "pgd", TwoCalls])
def test_what_is_no_attack_is_refused(attack):
    with pytest.raises(sp.KindError, match="cannot be called; it has to be a function"):
        named(attack)
