"""Expressions: equality, normal form, intervals, directions, variants."""

import pickle

import numpy as np
import pytest
import torch

import setpoint as sp
from setpoint.metrics import METRICS


def test_equality_is_by_structure():
    assert sp.recall == sp.tpr == sp.sensitivity
    assert sp.recall != sp.precision
    assert sp.precision + sp.recall == sp.recall + sp.precision
    assert sp.recall - sp.recall + sp.precision == sp.precision
    assert 2 * sp.recall / 2 == sp.recall
    assert sp.recall * sp.precision * 2 == 2 * sp.precision * sp.recall
    assert sp.f_beta(1) == sp.f1
    assert sp.f_beta(2) != sp.f_beta(3)
    assert sp.auprc == sp.average_precision
    assert sp.auroc(max_fpr=0.1) != sp.auroc
    assert sp.recall.of("a") != sp.recall.of("b")
    assert (sp.recall + sp.precision).of(1) == sp.precision.of(1) + sp.recall.of(1)
    assert sp.recall.on(a=1, b=2) == sp.recall.on(b=2).on(a=1)
    assert sp.minimum(sp.recall, sp.precision) == sp.minimum(sp.precision, sp.recall)
    assert len({sp.recall, sp.tpr, sp.precision}) == 2
    assert (sp.recall == "recall") is False


def test_comparison_with_a_number_makes_a_constraint():
    assert isinstance(sp.recall == 0.5, sp.Constraint)
    assert isinstance(0.5 <= sp.recall, sp.Constraint)
    assert str(0.5 <= sp.recall) == "recall >= 0.5"
    assert str(np.float64(0.5) >= sp.recall) == "recall <= 0.5"
    assert (sp.recall >= 0.5) == (sp.tpr >= 0.5)
    assert str(sp.recall >= sp.precision) == "recall >= precision"


def test_numpy_scalars_take_part():
    assert str(np.float64(2) * sp.recall) == "2 * recall"
    assert str(1 - sp.fpr) == "1 - fpr"


@pytest.mark.parametrize(
    ("text", "better"),
    [
        ("recall", 1),
        ("fpr", -1),
        ("1 - fpr", 1),
        ("-recall", -1),
        ("recall + precision", 1),
        ("recall - fpr", 1),
        ("recall + fpr", 0),
        ("2 * recall", 1),
        ("recall / 3", 1),
        ("recall * precision", 1),
        ("recall * fpr", 0),
        ("recall ** 2", 1),
        ("macro(f1)", 1),
        ('gap(recall, by="group")', -1),
        ('ratio(recall, by="group")', 1),
        ('recall.on(group="b")', 1),
        ("min(recall, precision)", 1),
        ("cost(fp=1)", -1),
        ("positive_rate", 0),
    ],
)
def test_directions(text, better):
    assert sp.metric(text).better() == better


@pytest.mark.parametrize(
    ("text", "interval"),
    [
        ("recall", (0, 1)),
        ("mcc", (-1, 1)),
        ("1 - fpr", (0, 1)),
        ("recall - precision", (-1, 1)),
        ("2 * recall + 1", (1, 3)),
        ("recall * mcc", (-1, 1)),
        ("abs(recall - precision)", (0, 1)),
        ("cost(fp=1, fn=10)", (0, 10)),
        ("cost(fp=1, tp=-3)", (-3, 1)),
        ('gap(mcc, by="group")', (0, 2)),
        ("r2", (float("-inf"), 1)),
        ("recall / 2", (0, 0.5)),
        ("tp", (0, float("inf"))),
    ],
)
def test_intervals(text, interval):
    assert sp.metric(text).interval() == interval


@pytest.mark.parametrize("name", METRICS)
def test_every_metric_is_frozen_and_pickles(name):
    expression = sp.metric(METRICS[name].usage)
    assert pickle.loads(pickle.dumps(expression)) == expression
    with pytest.raises(AttributeError):
        expression.name = "x"
    assert repr(expression) == f"metric({str(expression)!r})"
    assert expression.latex()


def test_variants_by_keyword_and_evaluation_by_position():
    assert (
        str(sp.auroc(max_fpr=0.05, standardized=False)) == "auroc(max_fpr=0.05, standardized=false)"
    )
    assert sp.auroc([0, 1], [0.1, 0.9]) == 1.0
    assert sp.recall(y_true=[0, 1], y_pred=[0, 1]) == 1.0
    with pytest.raises(sp.GoalError, match="no option"):
        sp.auroc(min_recall=0.5)


def test_readings_are_floats_or_tensors():
    assert type(sp.f1([0, 1], [0, 1])) is float
    assert type(sp.auroc([0, 1], [0.1, 0.2])) is float
    value = sp.f1(torch.tensor([0, 1]), torch.tensor([0, 1]))
    assert value.dtype == torch.float64
    assert value.ndim == 0


def test_an_expression_of_decisions_and_scores():
    both = sp.metric("0.5 * auroc + 0.5 * recall")
    assert both([0, 1, 1], [0, 1, 0], scores=[0.1, 0.9, 0.8]) == 0.75


def test_pandas_series_and_lists_are_understood():
    import pandas as pd

    y = pd.Series([0, 1, 1], index=[5, 6, 7])
    assert sp.recall(y, pd.Series([0, 1, 0])) == 0.5
    assert sp.recall(y.astype("category"), [0, 1, 0]) == 0.5
    frame = pd.DataFrame({"s": ["a", "b", "b"]})
    assert sp.recall.on(s="b")(y, [0, 1, 0], group={"s": frame["s"]}) == 0.5


def test_soft_gradients_reach_the_memberships():
    s = torch.tensor([0.9, 0.2, 0.6], dtype=torch.float64, requires_grad=True)
    y = torch.tensor([1, 0, 1])
    assert torch.autograd.gradcheck(lambda s: sp.f1.soft(y, s), s)
    assert torch.autograd.gradcheck(lambda s: sp.mcc.soft(y, s), s)
    m = torch.rand(5, 3, dtype=torch.float64, requires_grad=True)
    labels = torch.tensor([0, 1, 2, 1, 0])
    task = sp.Task.multiclass([0, 1, 2])
    assert torch.autograd.gradcheck(lambda m: sp.macro(sp.f1).soft(labels, m, task=task), m)
