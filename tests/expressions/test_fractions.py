"""Fractions read what the tree reads, and a cleared bound holds where the bound does."""

import numpy as np
import pytest

import setpoint as sp
from setpoint.expressions import Columns, Domain, Task, measure
from setpoint.expressions.fractions import cleared, fractions, linear

BINARY = [
    "f1", "f_beta(2)", "precision", "recall", "accuracy", "jaccard", "fpr", "1 - fpr", "youden",
    "cost(fp=1, fn=10)", "0.5 * precision + 0.5 * recall", "macro(f1)", "(precision + recall) / 2",
    "positive_rate", "tp", "recall.of(0)",
]  # fmt: skip
OTHER = ["mcc", "g_mean", "kappa", "precision * recall", "recall / precision", "weighted(f1)"]


def rows(seed=0):
    rng = np.random.default_rng(seed)
    y, d, w = rng.random(40) < 0.4, rng.random(40) < 0.5, rng.random(40)
    return Columns(Task(), y, d, weight=w)


def value(form, columns):
    return sum(c * (1.0 if t is None else t.measure(columns)) for t, c in form.items())


@pytest.mark.parametrize("text", BINARY)
def test_the_sum_of_fractions_is_the_metric(text):
    columns = rows()
    parts = fractions(sp.metric(text).expand(Domain(columns)))
    read = sum(p.scale * value(p.top, columns) / value(p.bottom, columns) for p in parts)
    assert read == pytest.approx(measure(sp.metric(text), columns).value(), abs=1e-12)


@pytest.mark.parametrize("text", OTHER)
def test_others_are_none(text):
    assert fractions(sp.metric(text).expand(Domain(rows()))) is None


@pytest.mark.parametrize("text", ["precision", "f1", "1 - fpr", "recall.of(0)", "accuracy"])
@pytest.mark.parametrize("bound", [0.2, 0.5, 0.8])
def test_a_cleared_bound_holds_where_the_bound_does(text, bound):
    for seed in range(20):
        columns = rows(seed)
        apart = (sp.metric(text) - bound).expand(Domain(columns))
        top, bottom = cleared(fractions(apart))
        assert value(bottom, columns) > 0
        held = measure(sp.metric(text), columns).value() >= bound
        assert (value(top, columns) >= 0) == held


def test_two_divisors_do_not_clear():
    parts = fractions((sp.precision - sp.recall).expand(Domain(rows())))
    assert cleared(parts) is None
    assert cleared(fractions(sp.tp.expand(Domain(rows())))) is None


def test_linear_forms():
    ground = (2 * sp.tp - 0.5 * sp.fp + 3).expand(Domain(rows()))
    assert sorted(linear(ground).values()) == [-0.5, 2.0, 3.0]
    assert linear(sp.f1.expand(Domain(rows()))) is None
