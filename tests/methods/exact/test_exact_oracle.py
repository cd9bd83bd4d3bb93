"""The exact reformulation and its method against every labeling a linear score can make.

Points are few, so the truth is known: tests/oracles/linear_labelings.py decides by linear programs
which labelings are reachable, and counts. First the reformulation is held to it (no training), then
the trained models.
"""

from itertools import product
from math import log
from typing import Any

import numpy as np
import pytest
import torch
from tests.oracles.linear_instances import (
    CLASS_GOALS,
    CLASS_SETS,
    GOALS,
    INSTANCES,
    SETS,
    Instance,
    class_instance,
    instance,
    points,
    truth,
)
from tests.oracles.linear_labelings import Fpor, Frop, Ofbs

import setpoint as sp
from setpoint.fit.network.exact_run import fit_exact
from setpoint.methods.exact.exact import Exact
from setpoint.methods.exact.step_tie import apart, exceeds, falls_short

# --- the reformulation, without training -----------------------------------------------------


def all_of(values, n):
    """Every s ∈ valuesⁿ, (m, n)."""
    return torch.tensor(list(product(values, repeat=n)), dtype=torch.float64)


def predicted(case, t):
    """f = σ(w·x + b) at every witness, moved so that w·x + b = 0 is f = t; (R, n)."""
    z = np.array([case.X @ one.w + one.b for one in case.reached])
    return torch.sigmoid(torch.tensor(z) + log(t / (1 - t)))


def untied(form, a, s, y, t):
    """How far s (m, n) is from the steps of a (R, n), in all; (R, m)."""
    a, s = a[:, None, :], s[None]
    if form == "equality":
        return apart(a, s, t).sum(-1)
    positive = torch.as_tensor(y, dtype=torch.float64)
    return (positive * exceeds(a, s, t) + (1 - positive) * falls_short(a, s, t)).sum(-1)


def measured(case, s):
    """Value of the objective at s (m, n) and whether the constraint holds, in floats."""
    w = torch.ones(len(case.y)) if case.weight is None else torch.tensor(case.weight)
    w, y = w.double(), torch.tensor(case.y).double()
    tp, fp, everything = s @ (w * y), s @ (w * (1 - y)), (w * y).sum()
    precision, recall = tp / (tp + fp), tp / everything
    match case.wanted:
        case Fpor(alpha):
            return recall, precision >= alpha - 1e-9  # false where 0/0
        case Frop(alpha):
            return precision, recall >= alpha - 1e-9
        case Ofbs(beta):
            value = (1 + beta**2) * tp / (tp + fp + beta**2 * everything)
            return value, torch.ones_like(value, dtype=torch.bool)
    raise NotImplementedError(case.wanted)


def reformulated(case, form, s, t):
    """max over f and s of the objective, ties and constraints kept; None where none are."""
    value, kept = measured(case, s)
    allowed = (untied(form, predicted(case, t), s, case.y, t) == 0) & kept
    found = value.expand_as(allowed)[allowed]
    return found.max().item() if len(found) else None


@pytest.mark.parametrize("t", [0.5, 0.2, 0.9])
@pytest.mark.parametrize("size", SETS)
def test_ties_hold_for_some_score_iff_the_labeling_is_reachable(size, t):
    X, s = points(*size), all_of((0, 1), size[0])
    case = Instance(X, np.zeros(len(X)), None, None, truth(*size))
    rng = np.random.default_rng(0)
    by_chance = rng.normal(size=(200, size[1])) @ X.T + rng.normal(size=(200, 1))
    by_chance = torch.sigmoid(torch.tensor(by_chance) + log(t / (1 - t)))
    a = torch.cat([predicted(case, t), by_chance])
    assert (a != t).all()  # no singular point
    held = untied("equality", a, s, None, t) == 0
    assert (held.sum(1) == 1).all()  # one s for each score: its step
    tied = {tuple(row) for row in s[held.any(0)].int().tolist()}
    assert tied == {one.labels for one in case.reached}


@pytest.mark.parametrize("form", ["equality", "inequality"])
@pytest.mark.parametrize("goal", GOALS)
def test_reformulated_optimum_is_brute_force(goal, form):
    for i in INSTANCES[::2]:
        case, t = instance(goal, i), (0.5, 0.3, 0.8)[i % 3]
        s = all_of((0, 1), len(case.y))
        assert reformulated(case, form, s, t) == pytest.approx(case.best, abs=1e-12)


@pytest.mark.parametrize("form", ["equality", "inequality"])
@pytest.mark.parametrize("goal", GOALS)
def test_shares_of_a_decision_gain_nothing(goal, form):
    """s strictly between 0 and 1 is untied (equality), or tied but never better (inequality)."""
    for i in [i for i in INSTANCES[::2] if len(instance(goal, i).y) <= 5]:
        case = instance(goal, i)
        s = all_of((0, 0.25, 0.5, 0.75, 1), len(case.y))
        assert reformulated(case, form, s, 0.5) == pytest.approx(case.best, abs=1e-12)


def test_singular_points_are_why_they_are_forbidden():
    """At f = t everywhere each s is tied, and s = y is better than any score can be."""
    case = next(c for i in INSTANCES if (c := instance("fpor", i)).best is not None and c.best < 1)
    s = torch.tensor(case.y).double()[None]
    a = torch.full_like(s, 0.5)
    for form in ("equality", "inequality"):
        assert untied(form, a, s, case.y, 0.5).item() == 0
    value, kept = measured(case, s)
    assert kept.all()
    assert value.item() == 1 > case.best


# --- the same, three classes -----------------------------------------------------------------


def margins(z):
    """z_c − max of the others, (…, K): positive for the highest class alone."""
    others = z.unsqueeze(-2).expand(*z.shape, z.shape[-1]).clone()
    others.diagonal(dim1=-2, dim2=-1).fill_(-torch.inf)
    return z - others.max(-1).values


def test_margins_tie_each_row_to_its_highest_class():
    z = torch.randn(300, 3, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    s = all_of((0, 0.5, 1), 3)
    held = apart(torch.sigmoid(margins(z))[:, None], s[None], 0.5).sum(-1) == 0
    assert (held.sum(1) == 1).all()
    assert torch.equal(s[held.int().argmax(1)].argmax(1), z.argmax(1))
    assert (s[held.any(0)].sum(1) == 1).all()


@pytest.mark.parametrize("goal", CLASS_GOALS)
def test_reformulated_optimum_of_three_classes_is_brute_force(goal):
    for i in range(len(CLASS_SETS)):
        case = class_instance(goal, i)
        labelings = list(product(range(3), repeat=len(case.y)))
        s = torch.nn.functional.one_hot(torch.tensor(labelings), 3).double()  # (m, n, 3)
        z = torch.tensor(np.array([case.X @ one.w + one.b for one in case.reached]))
        a = torch.sigmoid(margins(z))  # (R, n, 3)
        # a row and class at a time: which of s = 0 and s = 1 is tied
        tied = torch.stack([apart(a, torch.full_like(a, x), 0.5) == 0 for x in (0, 1)])
        mine = torch.where(s[None] == 1, tied[1][:, None], tied[0][:, None])
        held = mine.all(-1).all(-1).any(0)
        values = [
            case.value(labels) for labels, ok in zip(labelings, held.tolist(), strict=True) if ok
        ]
        found = max((float(x) for x in values if x is not None), default=None)
        assert found == case.best


# --- the method ------------------------------------------------------------------------------

MODEST: dict[str, Any] = {"rounds": 10, "steps": 20, "walks": 200, "starts": 8}
SHORT = MODEST | {"walks": 50}
QUICK = (29, 50)  #: of INSTANCES: positives in the middle, and a hard one
CLASSES = sp.Task.multiclass(range(3))


def solve(case, task=None, outputs=1, **options):
    """The method's answer with a linear model."""
    torch.manual_seed(0)
    model = torch.nn.Linear(case.X.shape[1], outputs)
    return fit_exact(
        case.goal,
        torch.nn.Sequential(model, torch.nn.Flatten(0)) if outputs == 1 else model,
        torch.tensor(case.X, dtype=torch.float32),
        torch.tensor(case.y),
        task=task,
        weight=None if case.weight is None else torch.tensor(case.weight, dtype=torch.float32),
        method=Exact(**options),
        seed=0,
    )


def decided(case, solved):
    """Its labels, by its own model and threshold."""
    with torch.no_grad():
        logits = solved.model(torch.tensor(case.X, dtype=torch.float32))
    if logits.ndim == 2:
        return tuple(logits.argmax(1).tolist())
    return tuple((logits >= solved.threshold).int().tolist())


def compare(case, solved):
    """What the model decides, counted here, against the best of all reachable labelings."""
    labels = decided(case, solved)
    assert labels in {one.labels for one in case.reached}
    found = case.value(labels)
    assert solved.verdict.feasible == (found is not None) == (case.best is not None)
    if found is not None:
        assert float(found) == pytest.approx(case.best, abs=1e-9)
        assert solved.verdict.value == pytest.approx(float(found), abs=1e-9)


@pytest.mark.parametrize("i", QUICK)
@pytest.mark.parametrize("goal", GOALS)
def test_a_trained_model_is_as_good_as_brute_force(goal, i):
    case = instance(goal, i)
    compare(case, solve(case, **SHORT))


def test_a_long_walk_does_not_run_away():
    """Scores may be scaled without changing a decision, and must not grow beyond all floats."""
    case = instance("frop", 49)
    solved = solve(case, rounds=1, steps=1, walks=1500)
    compare(case, solved)
    assert all(torch.isfinite(x).all() for x in solved.model.parameters())


@pytest.mark.parametrize("goal", CLASS_GOALS)
def test_three_trained_scores_are_as_good_as_brute_force(goal):
    case = class_instance(goal, 1)
    compare(case, solve(case, CLASSES, outputs=3, rounds=5, steps=10, walks=20, starts=1))
